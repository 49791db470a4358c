"""What a key of the configuration is: fields of frozen records, and variations that are files."""
