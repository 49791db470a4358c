"""How rows are shared among corpora: `own=0.7,notes=0.3` as numbers of rows.

This file does without jax, so that the schema can check it.
"""

import math
from collections.abc import Sequence

OWN = 'own'
"""The run's own corpus."""
PATTERN = 1000
"""Rows of which each corpus gives a whole number."""


def quotas(weights: Sequence[str]) -> dict[str, int]:
    """Corpus -> rows of a PATTERN that come from it, by largest remainders; without weights all are the run's own.

    Raises ValueError for what are no weights.
    """
    named = {name: float(weight) for name, _, weight in (one.partition('=') for one in weights)} or {OWN: 1.0}
    total = sum(named.values())
    if len(named) < len(weights) or not all(0 < weight < math.inf for weight in named.values()):
        raise ValueError('weights above 0 are needed, each for another corpus')
    exact = {name: PATTERN * weight / total for name, weight in named.items()}
    found = {name: math.floor(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: found[name] - exact[name])
    for name in by_remainder[: PATTERN - sum(found.values())]:
        found[name] += 1
    if not all(found.values()):
        raise ValueError(f'a corpus gives less than one of {PATTERN:,} rows')
    return found
