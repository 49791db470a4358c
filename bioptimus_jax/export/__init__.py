"""Folders that transformers loads and computes alike, each with a model card, or nothing."""
