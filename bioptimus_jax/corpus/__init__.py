"""Documents: read, deduplicated, freed of benchmark texts, split, and stored as ArrayRecord shards."""
