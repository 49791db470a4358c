"""How a table of learned positions is made longer. P positions, D columns."""

import dataclasses
from collections.abc import Callable

import numpy as np

from bioptimus_jax.config.plugins import Table


@dataclasses.dataclass(frozen=True)
class Stretch:
    """A way to make more rows. `rows(table_PxD, positions)`: a row for each position, [positions, D]."""

    meaning: str
    rows: Callable[[np.ndarray, int], np.ndarray]


def copied(table_PxD: np.ndarray, positions: int) -> np.ndarray:
    """The rows again and again from the first on, as Longformer has it (Beltagy et al. 2020, arXiv 2004.05150)."""
    return table_PxD[np.arange(positions) % len(table_PxD)]


def interpolated(table_PxD: np.ndarray, positions: int) -> np.ndarray:
    """Rows between those of the table, which lie evenly over the longer one: the ends stay the ends."""
    places = np.linspace(0, len(table_PxD) - 1, positions)
    below = np.minimum(places.astype(np.int64), max(len(table_PxD) - 2, 0))
    above, share = np.minimum(below + 1, len(table_PxD) - 1), (places - below)[:, None]
    return (table_PxD[below] * (1 - share) + table_PxD[above] * share).astype(table_PxD.dtype)


STRETCHES: Table[Stretch] = Table(
    'STRETCHES',
    {
        'copied': Stretch('the rows again from the first on', copied),
        'interpolated': Stretch('rows between those that there are', interpolated),
    },
)
"""What `config.surgery.longer.table` may be."""
