"""What a stage writes and another one, or the report, reads: a frozen record of each kind."""
