"""A whole experiment: the sections of all rooms as one configuration, and the table of stages."""
