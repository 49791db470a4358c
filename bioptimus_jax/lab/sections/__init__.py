"""Sections of the page that the laboratory adds, a file each."""
