"""Measures of texts, one definition each; every one is of sums that add up over texts.

Shapes: N examples, K labels that are counted.
"""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from bioptimus_jax.config.plugins import Table
from bioptimus_jax.scoring import metrics
from bioptimus_jax.scoring.metrics import Answers, Metric

ROUNDING = 1e-12
"""Bound on a variance over the mean square: below it all values are one."""
NEAR_CONSTANT = 1e-13
"""Bound on a spread over the largest number: below it numbers differ only by rounding, as scipy has it."""


def micro_f1(labels: Sequence[str]) -> Metric:
    """F1 over all decisions for one of these labels; with one label, its own F1 (GAD)."""

    def counts(gold: Answers, predicted: Answers) -> np.ndarray:
        return _by_label(labels, gold, predicted).sum(1)

    return metrics.micro_f1('micro F1', f'texts with the labels {", ".join(labels)}, all together', counts)


def macro_f1(labels: Sequence[str]) -> Metric:
    """The mean of the F1 of each of these labels that gold or predictions have."""
    counts = functools.partial(_by_label, labels)
    return metrics.macro_f1(labels, counts, 'macro F1', 'macro F1', 'the mean over labels of F1')


def example_f1(labels: Sequence[str]) -> Metric:
    """The harmonic mean of mean precision and mean recall of a text (BLUE; Peng et al. 2019).

    A text without labels has recall 1, and one that gets none precision 1: BLUE leaves such texts out, BLURB's split of
    HoC has them.
    """

    def counts(gold: Answers, predicted: Answers) -> np.ndarray:
        of_label_NxKx3 = _by_label(labels, gold, predicted)
        correct_N, gold_N, predicted_N = np.moveaxis(of_label_NxKx3.sum(1), -1, 0)
        precision_N = np.where(predicted_N > 0, correct_N / np.maximum(predicted_N, 1), 1.0)
        recall_N = np.where(gold_N > 0, correct_N / np.maximum(gold_N, 1), 1.0)
        return np.stack([precision_N, recall_N, np.ones(len(gold))], -1)

    def value(sums_x3: np.ndarray) -> np.ndarray:
        precision_x, recall_x = (metrics.divided(sums_x3[..., at], sums_x3[..., 2]) for at in (0, 1))
        both_x = precision_x + recall_x
        found_x = 2 * precision_x * recall_x / np.maximum(both_x, ROUNDING)
        return np.where(both_x == 0, 0.0, found_x)  # NaN, without texts, is not 0

    columns = ('precision', 'recall', 'texts')
    return Metric(
        'f1', 'example F1', 'example-based F1', 'mean precision and recall of a text', columns, counts, value
    )


def accuracy(labels: Sequence[str]) -> Metric:
    """The share of texts with exactly the right labels."""

    def counts(gold: Answers, predicted: Answers) -> np.ndarray:
        right = [set(g) == set(p) for g, p in zip(gold, predicted, strict=True)]
        return np.stack([right, np.ones(len(right))], -1).astype(np.int64)

    def value(sums_x2: np.ndarray) -> np.ndarray:
        return metrics.divided(sums_x2[..., 0], sums_x2[..., 1])

    meaning = 'texts with exactly the right label'
    return Metric('accuracy', 'accuracy', 'accuracy', meaning, ('right', 'texts'), counts, value)


def pearson(labels: Sequence[str]) -> Metric:
    """Pearson's correlation of two numbers; it has no value where one of them is always the same."""
    return _correlation('r', "Pearson's r", 'pairs of texts', lambda numbers_N: numbers_N)


def spearman(labels: Sequence[str]) -> Metric:
    """Spearman's correlation: Pearson's of ranks, equal numbers sharing the mean of theirs.

    Ranks are those among all texts that are counted together, gold and predicted apart. They are fixed then: sums over
    drawn texts are the correlation of these ranks, not of new ranks among the drawn ones.
    """
    from scipy.stats import rankdata  # slow to import

    return _correlation('rho', "Spearman's rho", 'ranks of pairs of texts', rankdata)


def _correlation(name: str, title: str, meaning: str, of: Callable[[np.ndarray], np.ndarray]) -> Metric:
    """Metric of a correlation; `of`: numbers_N -> what is correlated.

    Both sides are brought to mean 0 and to at most 1 before anything is squared: sums of raw squares of numbers that
    lie close together hold nothing but rounding. It changes no correlation; and where the numbers of two models change
    places in a test, they do so on one scale.
    """

    def counts(gold: Answers, predicted: Answers) -> np.ndarray:
        x_N, y_N = (_centred(of(np.array([a[0] for a in each], np.float64))) for each in (gold, predicted))
        return np.stack([np.ones(len(x_N)), x_N, y_N, x_N * x_N, y_N * y_N, x_N * y_N], -1)

    def value(sums_x6: np.ndarray) -> np.ndarray:
        n_x, x, y, xx, yy, xy = np.moveaxis(sums_x6, -1, 0)
        n_x = np.maximum(n_x, 1)
        varies = [np.maximum(square / n_x - (total / n_x) ** 2, 0) for total, square in ((x, xx), (y, yy))]
        # Sums of floats leave a variance above 0 even where all values are one: compared with the mean square.
        constant_x = np.any([v <= ROUNDING * s / n_x for v, s in zip(varies, (xx, yy), strict=True)], 0)
        covariance = xy / n_x - x * y / n_x**2
        deviations = np.where(constant_x, 1.0, np.sqrt(varies[0]) * np.sqrt(varies[1]))
        return np.where(constant_x, np.nan, np.clip(covariance / deviations, -1, 1))

    columns = ('pairs', 'x', 'y', 'xx', 'yy', 'xy')
    return Metric(name, name, title, meaning, columns, counts, value)


Measure = Callable[[Sequence[str]], Metric]
MEASURES: Table[Measure] = Table(
    'MEASURES',
    {
        'micro_f1': micro_f1,
        'macro_f1': macro_f1,
        'example_f1': example_f1,
        'accuracy': accuracy,
        'pearson': pearson,
        'spearman': spearman,
    },
)
"""Names in records of sets -> the measure, given the labels that it counts."""
OF_NUMBERS = ('pearson', 'spearman')
"""The measures of answers that are numbers."""


@functools.cache
def measure(name: str, labels: tuple[str, ...]) -> Metric:
    """One object for each, so that sets that are measured alike have the same."""
    return MEASURES[name](labels)


def _centred(numbers_N: np.ndarray) -> np.ndarray:
    """The numbers less their mean, by the largest deviation; all 0 where they differ by rounding alone."""
    if not len(numbers_N):
        return numbers_N
    # A power of 2 rounds nothing, and with it no sum is too large for a float.
    numbers_N = np.ldexp(numbers_N, -int(np.frexp(np.abs(numbers_N).max())[1]))
    deviations_N = numbers_N - numbers_N.mean()
    spread = np.abs(deviations_N).max()
    varies = spread > NEAR_CONSTANT * np.abs(numbers_N).max()
    return deviations_N / spread if varies else np.zeros_like(numbers_N)


def _by_label(labels: Sequence[str], gold: Answers, predicted: Answers) -> np.ndarray:
    """Counts by text and label, int64 [N, K, 3]: whether both have it, gold has it, predicted has it."""
    in_both = [
        [[x in g and x in p, x in g, x in p] for x in labels] for g, p in zip(gold, predicted, strict=True)
    ]
    return np.array(in_both, np.int64).reshape(len(gold), len(labels), 3)
