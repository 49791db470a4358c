"""Tokenizers: all that may be known of one, and the kinds of them."""
