"""How near rebuilt rows come to the true ones: cosine, rank of the true token, norm; medians with intervals.

N: tokens rebuilt, V: source tokens, D: hidden size.
"""

import functools
from collections.abc import Mapping

import numpy as np

from bioptimus_jax.records.probe import Median, RecoveredClass, RecoveredRows
from bioptimus_jax.surgery.rows import seeded

MEASURES = ('rank', 'rank_uncentred', 'rank_dot', 'cosine', 'norm_ratio')
BY_CLASS = ('rank', 'cosine', 'norm_ratio')
RESAMPLES = 1000
FIFTHS = 5
BLOCK = 512
CLASSES: dict[str, dict[str, tuple[int, int | None]]] = {
    'contexts': {'0': (0, 0), '1': (1, 1), '2-4': (2, 4), '5-9': (5, 9), '10+': (10, None)},
    'pieces': {'1': (0, 1), '2': (2, 2), '3': (3, 3), '4+': (4, None)},
    'frequency': {'rare': (0, 0), 'middle': (1, 1), 'frequent': (2, 2)},
}
"""Bounds of each class, from and to; frequency is the third of the tokens, by their count in the corpus."""


def measure(rows_NxD: np.ndarray, true_N: np.ndarray, table_VxD: np.ndarray) -> dict[str, np.ndarray]:
    """MEASURES of every rebuilt row beside the true row table[true_N], each [N].

    A rank counts the rows of the table that score higher than the true one, plus 1. `rank` and `cosine` look from the
    mean of the table's rows: rows of a BERT share a large common part, beside which all are alike. `rank_uncentred` is
    by plain cosine; `rank_dot` by dot product, as in the output layer, where long rows have it easier. `norm_ratio` is
    the length of the rebuilt row to that of the true one.
    """
    table_VxD = table_VxD.astype(np.float32)
    mean_D = table_VxD.mean(axis=0)
    rank_N, _, cosine_N = _ranks(rows_NxD - mean_D, true_N, table_VxD - mean_D)
    uncentred_N, by_dot_N, _ = _ranks(rows_NxD, true_N, table_VxD)
    norms_N = np.linalg.norm(table_VxD[true_N], axis=1)
    ratio_N = np.linalg.norm(rows_NxD, axis=1) / np.where(norms_N > 0, norms_N, 1)
    return dict(zip(MEASURES, (rank_N, uncentred_N, by_dot_N, cosine_N, ratio_N), strict=True))


def _ranks(
    rows_NxD: np.ndarray, true_N: np.ndarray, table_VxD: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank by cosine, rank by dot product and cosine of the true row for each rebuilt one."""
    norms_V = np.linalg.norm(table_VxD, axis=1)
    safe_V = np.where(norms_V > 0, norms_V, 1)
    by_cosine_N, by_dot_N, cosine_N = (np.empty(len(true_N)) for _ in range(3))
    for start in range(0, len(true_N), BLOCK):
        part = slice(start, start + BLOCK)
        rows_BxD, own = rows_NxD[part].astype(np.float32), np.arange(len(true_N[part]))
        scores_BxV = rows_BxD @ table_VxD.T
        by_dot_N[part] = 1 + (scores_BxV > scores_BxV[own, true_N[part]][:, None]).sum(axis=1)
        # The length of the rebuilt row divides all of its scores alike: ranks do without it.
        scores_BxV /= safe_V
        true_B = scores_BxV[own, true_N[part]]
        by_cosine_N[part] = 1 + (scores_BxV > true_B[:, None]).sum(axis=1)
        lengths_B = np.linalg.norm(rows_BxD, axis=1)
        cosine_N[part] = true_B / np.where(lengths_B > 0, lengths_B, 1)
    return by_cosine_N, by_dot_N, cosine_N


def weights_like(likeness_N: np.ndarray, likeness_M: np.ndarray) -> np.ndarray:
    """Weights [N], of sum 1, with which the likenesses of N tokens are spread as those of M others are.

    Both are counted in FIFTHS of the M. A fifth in which none of the N is counts for nothing.
    """
    edges = np.quantile(likeness_M, np.linspace(0, 1, FIFTHS + 1)[1:-1])
    fifth_N, fifth_M = (np.searchsorted(edges, values, side='right') for values in (likeness_N, likeness_M))
    here, there = (np.bincount(fifth, minlength=FIFTHS) for fifth in (fifth_N, fifth_M))
    weights_N = (there / np.maximum(here, 1))[fifth_N]
    return weights_N / weights_N.sum()


def summary(
    measured: dict[str, np.ndarray],
    numbers: Mapping[str, np.ndarray],
    seed: int,
    weights_N: np.ndarray | None = None,
) -> RecoveredRows:
    """Medians with bootstrap intervals of 95 % over tokens, for every class of CLASSES that `numbers` [N] are given for
    and that is not empty too. With weights also the weighted median of the rank."""
    medians = {name: _median(measured[name], seed) for name in MEASURES}
    weighted = None if weights_N is None else _median(measured['rank'], seed, weights_N)
    by_class: dict[str, dict[str, RecoveredClass]] = {}
    for title, numbers_N in numbers.items():
        classes = by_class[f'by_{title}'] = {}
        for name, (low, high) in CLASSES[title].items():
            within = (numbers_N >= low) & (numbers_N <= (np.inf if high is None else high))
            if within.any():
                of_class = {m: _median(measured[m][within], seed) for m in BY_CLASS}
                classes[name] = RecoveredClass(tokens=int(within.sum()), **of_class)
    return RecoveredRows(**medians, rank_weighted=weighted, **by_class)  # type: ignore[arg-type]


def _median(values_N: np.ndarray, seed: int, weights_N: np.ndarray | None = None) -> Median:
    """Median, 2.5 % and 97.5 % over RESAMPLES resamples; the same ones for every variant of a probe."""
    if weights_N is None:
        drawn, middle = _drawn(seed, len(values_N)), float(np.median(values_N))
    else:
        shape = RESAMPLES, len(values_N)
        drawn = seeded(seed, len(values_N)).choice(len(values_N), shape, p=weights_N)
        order_N = np.argsort(values_N, kind='stable')
        at = np.searchsorted(np.cumsum(weights_N[order_N]), 0.5 - 1e-9)  # sums of weights are rounded
        middle = float(values_N[order_N[at]])
    low, high = np.quantile(np.median(values_N[drawn], axis=1, overwrite_input=True), (0.025, 0.975))
    return tuple(round(float(value), 4) for value in (middle, low, high))


@functools.lru_cache(maxsize=1)
def _drawn(seed: int, count: int) -> np.ndarray:
    """The resamples of so many values, RESAMPLES rows of places. The last ones are kept: measures share them."""
    return seeded(seed, count).integers(0, count, (RESAMPLES, count))
