"""The laboratory on top of the tool: what a paper needs beyond one run. Nothing of the tool imports it."""
