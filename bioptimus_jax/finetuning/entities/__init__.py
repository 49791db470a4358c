"""Named entities: windows of words, tag schemes, taggers, entity F1 and what is looked at beside it."""
