"""Public sets from their originals."""
