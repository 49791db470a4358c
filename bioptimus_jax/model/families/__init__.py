"""Model families, a file each: its name is the `model_type` of config.json."""
