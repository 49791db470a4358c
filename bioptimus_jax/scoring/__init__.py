"""Scores and their statistics: metrics that add up, entities, frozen states, intervals."""
