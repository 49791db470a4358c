"""Measures that add up: counts of every unit, and the value of their sums. So one bootstrap serves them all.

Shapes: N examples, C counts; a leading x stands for any axes.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Answers = Sequence[Sequence[Any]]
"""For every example its gold answers, or its predicted ones: a tag a word, the labels of a text, one number."""
Counts = Callable[[Answers, Answers], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Metric:
    """A measure between 0 and 1, the higher the better; pages show it in percent.

    `name`: its key in records; `label`: its name on pages, `title` where they do not say of what; `meaning`: what is
    counted where, in words. `counts`: gold and predicted answers -> counts_NxC, which `columns` names; `value`: sums_xC
    -> value_x, NaN where nothing is there to divide by. `detail`: from the sums of a split, all that a record holds of
    it, by default the score alone.
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
        return self.detail(*sums_C.tolist()) if self.detail else {self.name: float(self.score(sums_C))}

    def score(self, sums_xC: np.ndarray) -> np.ndarray:
        """`value` as it is reported: 0 where nothing is there to divide by, as seqeval and scikit-learn say."""
        return np.nan_to_num(self.value(sums_xC), nan=0.0)


def f1(sums_x3: np.ndarray) -> np.ndarray:
    """F1 from what is right, in gold, and predicted; NaN where nothing is in either."""
    return divided(2 * sums_x3[..., 0], sums_x3[..., 1] + sums_x3[..., 2])


def divided(over_x: np.ndarray, below_x: np.ndarray) -> np.ndarray:
    """A quotient whose lower part is 0 or more; NaN where it is 0."""
    below_x = np.asarray(below_x, np.float64)
    return np.divide(over_x, below_x, out=np.full(below_x.shape, np.nan), where=below_x > 0)


def micro_f1(title: str, meaning: str, counts: Counts) -> Metric:
    """F1 over all decisions. `counts`: gold and predicted answers -> int64 [N, 3], as `f1` has them."""
    return Metric('f1', 'F1', title, meaning, ('correct', 'gold', 'predicted'), counts, f1, rates)


def macro_f1(classes: Sequence[str], counts: Counts, label: str, title: str, meaning: str) -> Metric:
    """The mean of the F1 of the classes that gold or predictions have, as scikit-learn and seqeval take it.

    `counts`: gold and predicted answers -> int64 [N, K, 3], of every class what is right, in gold, and predicted.
    """

    def flat(gold: Answers, predicted: Answers) -> np.ndarray:
        return counts(gold, predicted).reshape(len(gold), -1)

    def value(sums_x3K: np.ndarray) -> np.ndarray:
        f1_xK = f1(sums_x3K.reshape(*sums_x3K.shape[:-1], len(classes), 3))
        known_xK = ~np.isnan(f1_xK)
        return divided(np.where(known_xK, f1_xK, 0).sum(-1), known_xK.sum(-1))

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
