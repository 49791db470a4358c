"""One page about a run: its tables, its curves, and the commands that made them."""
