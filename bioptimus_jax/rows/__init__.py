"""Tokenised documents, packed into rows of fixed width."""
