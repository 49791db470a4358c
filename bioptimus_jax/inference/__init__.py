"""What a finished model says of new text: entities, labels of texts, words for [MASK]."""
