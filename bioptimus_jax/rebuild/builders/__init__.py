"""How public sets of texts are made from their originals: a file each, found by its name, with a `BUILDER`."""
