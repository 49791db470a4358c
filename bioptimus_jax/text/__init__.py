"""Words and sentences of running text."""
