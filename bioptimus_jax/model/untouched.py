"""Tensors of a Hugging Face folder that no parameter here has: a pooler, say, or the head of another pre-training.

What pre-training does not touch goes by its name from the source into the model at step 0, and from there into every
export. It lies in the run folder with the weights, under the same checksums; a run from scratch has none.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.weights import check_finite, read_weights


def untouched_in(folder: Path, architecture: Architecture) -> tuple[dict[str, np.ndarray], list[str]]:
    """Tensors that go into exports as they are, float32 by transformers' names; and the names of those that cannot.

    Raises InputError for one that is not finite.
    """
    state, where = read_weights(folder)
    plain = {architecture.plain_name(name): name for name in state}
    found, misfits = {}, []
    for name, shape in architecture.untouched().items():
        if own := plain.get(architecture.plain_name(name)):
            if state[own].shape != shape:
                misfits.append(own)
                continue
            check_finite({own: state[own]}, folder, where)
            found[name] = np.ascontiguousarray(state[own], np.float32)
    lost = architecture.lost({name: state[own] for name, own in plain.items()})
    return found, [*misfits, *(plain.get(name, name) for name in lost)]


def enumerated(names: Sequence[str], most: int = 4) -> str:
    """Names of tensors, for a line."""
    more = f' and {len(names) - most} more' if len(names) > most else ''
    return ', '.join(sorted(names)[:most]) + more
