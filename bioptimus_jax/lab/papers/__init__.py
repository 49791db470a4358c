"""Published tables: a file a paper; it holds TABLES."""
