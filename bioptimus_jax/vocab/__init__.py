"""The WordPiece vocabulary, its comparison with the source's, and sentences for every token that is new."""
