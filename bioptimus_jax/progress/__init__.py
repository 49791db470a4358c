"""What a person and a tracker see of a run while it works."""
