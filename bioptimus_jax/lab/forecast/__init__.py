"""How a run will end, from its first evaluations and from finished runs."""
