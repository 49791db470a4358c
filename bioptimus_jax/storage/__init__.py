"""Files that are never half-written, their checksums, tables of Parquet and Arrow, hashes that stay the same."""
