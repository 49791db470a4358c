"""Predictions of a test set beside its gold standard, and what they count for by the units that are resampled.

Shapes: N examples, U units, S seeds, C counts of a metric.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.finetune.metrics import Metric


@dataclasses.dataclass(frozen=True)
class Predicted:
    """An example with its gold and its predicted answers, for entities IOB2 tags, one a word.

    `document` counts from 0, and is 0 where there are none.
    """

    words: tuple[str, ...]
    gold: tuple[Any, ...]
    predicted: tuple[Any, ...]
    document: int = 0


def units(examples: Sequence[Predicted], unit: str) -> tuple[str, np.ndarray]:
    """What is resampled, in a word, and unit_N: 'documents' where the set has several, else examples, by that name."""
    documents_N = np.asarray([e.document for e in examples])
    different, unit_N = np.unique(documents_N, return_inverse=True)
    if len(different) > 1:
        return 'documents', unit_N
    return f'{unit}s', np.arange(len(examples))


def majority(given: Iterable[Iterable[Any]]) -> list[Any]:
    """What is in more than half of the collections."""
    sides = [set(one) for one in given]
    counts = Counter(item for side in sides for item in side)
    return [item for item, count in counts.items() if 2 * count > len(sides)]


def counts_by_unit(
    metric: Metric, predictions: Sequence[Sequence[Predicted]], unit: str, inside_N: np.ndarray | None = None
) -> tuple[str, np.ndarray]:
    """What is resampled, in a word, and the metric's counts of every seed added up within it: counts_SxUxC.

    `unit`: what an example is called. `inside_N`: whether an example counts, where not all do.
    """
    name, unit_N = units(predictions[0], unit)
    counted = []
    for examples in predictions:
        counts_NxC = metric.counts([e.gold for e in examples], [e.predicted for e in examples])
        if inside_N is not None:
            counts_NxC = counts_NxC * inside_N[:, None]
        counts_UxC = np.zeros((int(unit_N.max()) + 1, counts_NxC.shape[1]), counts_NxC.dtype)
        np.add.at(counts_UxC, unit_N, counts_NxC)
        counted.append(counts_UxC)
    return name, np.stack(counted)
