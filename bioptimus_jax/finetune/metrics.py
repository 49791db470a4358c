"""Measures that add up: counts of every unit, and the value of their sums. So one bootstrap serves them all.

Shapes: N examples, C counts; a leading x stands for any axes.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Answers = Sequence[Sequence[Any]]
"""Of every example its gold answers, or its predicted ones: a tag a word, the labels of a text, one number."""
Counts = Callable[[Answers, Answers], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Metric:
    """A measure between 0 and 1, the higher the better; pages show it in percent.

    `name`: its key in records; `label`: its name on pages, `title` where they do not say of what; `meaning`: what is
    counted where, in words. `counts`: gold and predicted answers -> counts_NxC, which `columns` names; `value`: sums_xC
    -> value_x. `detail`: from the sums of a split, all that a record holds of it, by default the value alone.
    """

    name: str
    label: str
    title: str
    meaning: str
    columns: tuple[str, ...]
    counts: Counts
    value: Callable[[np.ndarray], np.ndarray]
    detail: Callable[..., dict[str, float]] | None = None

    def scores(self, gold: Answers, predicted: Answers) -> dict[str, float]:
        """What a record holds of a split. Raises InputError where answers do not fit their gold."""
        sums_C = self.counts(gold, predicted).sum(0)
        return self.detail(*sums_C.tolist()) if self.detail else {self.name: float(self.value(sums_C))}


def f1(sums_x3: np.ndarray) -> np.ndarray:
    """F1 from what is right, in gold, and predicted; 0 where nothing is in either."""
    found_x = sums_x3[..., 1] + sums_x3[..., 2]
    return np.where(found_x > 0, 2 * sums_x3[..., 0] / np.maximum(found_x, 1), 0.0)


def micro_f1(title: str, meaning: str, counts: Counts) -> Metric:
    """F1 over all decisions. `counts`: gold and predicted answers -> int64 [N, 3], as `f1` has them."""
    return Metric('f1', 'F1', title, meaning, ('correct', 'gold', 'predicted'), counts, f1, rates)


def macro_f1(classes: Sequence[str], counts: Counts, label: str, title: str, meaning: str) -> Metric:
    """The mean of the F1 of each class, 0 for one that nobody has and nobody says.

    `counts`: gold and predicted answers -> int64 [N, K, 3], of every class what is right, in gold, and predicted.
    """

    def flat(gold: Answers, predicted: Answers) -> np.ndarray:
        return counts(gold, predicted).reshape(len(gold), -1)

    def value(sums_x3K: np.ndarray) -> np.ndarray:
        return f1(sums_x3K.reshape(*sums_x3K.shape[:-1], len(classes), 3)).mean(-1)

    columns = tuple(f'{what} {name}' for name in classes for what in ('correct', 'gold', 'predicted'))
    return Metric('f1', label, title, meaning, columns, flat, value)


def rates(correct: int, in_gold: int, in_predicted: int) -> dict[str, float]:
    """Precision, recall and F1 with the counts that they are made of; 0 where nothing is there to divide by."""
    return {
        'precision': correct / in_predicted if in_predicted else 0.0,
        'recall': correct / in_gold if in_gold else 0.0,
        'f1': 2 * correct / (in_gold + in_predicted) if correct else 0.0,
        'gold': in_gold,
        'predicted': in_predicted,
    }
