"""Embedding surgery: a source BERT's weights for another vocabulary (paper, section 3)."""
