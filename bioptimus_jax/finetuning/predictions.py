"""Predictions of a test set beside its gold standard, and what they count for by the units that are resampled.

Shapes: N examples, U units, S seeds, C counts of a metric.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.progress.console import plural
from bioptimus_jax.scoring.metrics import Metric


@dataclasses.dataclass(frozen=True)
class Predicted:
    """An example with its gold and its predicted answers, for entities IOB2 tags, one a word.

    `document` counts from 0, and is 0 where there are none.
    """

    words: tuple[str, ...]
    gold: tuple[Any, ...]
    predicted: tuple[Any, ...]
    document: int = 0


Seeds = Sequence[Sequence[Predicted]]
"""The test set as every seed predicts it, in the same order."""


def units(examples: Sequence[Predicted], unit: str) -> tuple[str, np.ndarray]:
    """What is resampled, in a word, and unit_N: 'documents' where the set has several, else examples, by that name."""
    documents_N = np.asarray([e.document for e in examples])
    different, unit_N = np.unique(documents_N, return_inverse=True)
    if len(different) > 1:
        return 'documents', unit_N
    return plural(unit), np.arange(len(examples))


def majority(given: Iterable[Iterable[Any]]) -> list[Any]:
    """What is in more than half of the collections."""
    sides = [set(one) for one in given]
    counts = Counter(item for side in sides for item in side)
    return [item for item, count in counts.items() if 2 * count > len(sides)]


def counts_by_unit(metric: Metric, predictions: Seeds, unit: str) -> tuple[str, np.ndarray]:
    """What is resampled, in a word, and the metric's counts of every seed added up within it: counts_SxUxC.

    `unit`: what an example is called.
    """
    name, unit_N = units(predictions[0], unit)
    return name, added_up(counts_of(metric, predictions), unit_N)


def counts_of(metric: Metric, predictions: Seeds) -> np.ndarray:
    """The metric's counts of every seed and example: counts_SxNxC."""
    return np.stack(
        [metric.counts([e.gold for e in seed], [e.predicted for e in seed]) for seed in predictions]
    )


def added_up(counts_SxNxC: np.ndarray, unit_N: np.ndarray) -> np.ndarray:
    """Counts of examples added up within their units: counts_SxUxC."""
    shape = (len(counts_SxNxC), int(unit_N.max()) + 1, counts_SxNxC.shape[2])
    counts_SxUxC = np.zeros(shape, counts_SxNxC.dtype)
    for counts_UxC, counts_NxC in zip(counts_SxUxC, counts_SxNxC, strict=True):
        # `counts_UxC[unit_N] += ...` would add one example of each unit alone.
        np.add.at(counts_UxC, unit_N, counts_NxC)
    return counts_SxUxC
