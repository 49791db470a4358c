"""The verbs of `bioptimus` that are more than a stage: a file each, found by its name, with a `VERB`."""
