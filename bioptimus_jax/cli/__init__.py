"""The command line: verbs, flags and what a command does in a run folder."""
