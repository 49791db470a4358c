"""Verbs that the laboratory adds, or gives more flags, a file each."""
