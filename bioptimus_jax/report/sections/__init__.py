"""The sections of a run's page, one a file: its tables and figures together."""
