"""Measures that hold across vocabularies, and the geometry of the embeddings."""
