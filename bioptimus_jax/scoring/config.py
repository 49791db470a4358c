"""Values of keys that several rooms read."""

HALVES, UPPER = 'halves', 'upper'
"""Layers that frozen states are means of: both halves, each with its own mean, or the upper one alone."""
