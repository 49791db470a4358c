"""How a learning rate falls from its peak: one record each, and the table is all that names them.

This file imports jax only where a step is made, so that the schema can list the names.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from bioptimus_jax.config.plugins import Table


@dataclasses.dataclass(frozen=True)
class Fall:
    """`meaning` goes on with "the learning rate falls ...".

    `fallen` says how far it is after `done` of so many steps, in steps after which a straight line is as far.
    """

    meaning: str
    fallen: Callable[[Any, Any], Any]


def _by_cosine(done: Any, steps: Any) -> Any:
    import jax.numpy as jnp  # where a step is traced it is there already

    return steps * (1 - jnp.cos(jnp.pi * done / steps)) / 2


FALLS: Table[Fall] = Table(
    'FALLS',
    {
        'linear': Fall('in a straight line', lambda done, steps: done),
        # Half a period (Loshchilov and Hutter 2017, arXiv 1608.03983, without restarts of its own).
        'cosine': Fall('by half a cosine, slowly at both ends', _by_cosine),
        'constant': Fall('not at all', lambda done, steps: 0 * done),
        # 1 - sqrt (Hägele et al. 2024, arXiv 2405.18392). Before the peak, where nobody asks, it must be a number too.
        'sqrt': Fall(
            'by the root of the share of steps, first fast', lambda done, steps: abs(done * steps) ** 0.5
        ),
    },
)
"""What `config.phase.NAME.fall` may be."""
