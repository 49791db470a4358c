"""Scores on other test items: intervals by the bootstrap, and a paired test by randomisation.

Shapes: S seeds, U units (documents, or sentences where a set has no documents), R resamples, D sets over the same
units; C counts of a metric, which add up. What is drawn is the same for all seeds: units are what was sampled from the
literature, and seeds share them.

Ours, since scipy's `bootstrap` and `permutation_test` take a statistic of single values, not of counts that are summed:
they would draw other numbers, have no value for a draw that has none, and take four times as long.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from bioptimus_jax.scoring.metrics import Metric
from bioptimus_jax.scoring.student import CONFIDENCE

RESAMPLES = 10_000
# Numbers are drawn chunk by chunk: another size draws others, which moves the last digits of intervals.
CHUNK_CELLS = 250_000  # of resamples x units held at a time
BOOTSTRAP, SHUFFLE = 1, 2  # streams of random numbers
TIE = 1e-12  # below the rounding of a score, above that of a mean


@dataclasses.dataclass(frozen=True)
class Difference:
    """Mean score of B minus that of A: observed, as bootstrapped, and as it comes out when A and B are shuffled."""

    observed: float
    bootstrapped_R: np.ndarray
    shuffled_R: np.ndarray

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of CONFIDENCE, by percentiles of the paired bootstrap; NaN where no resample scores both."""
        return percentile_interval(self.bootstrapped_R)

    @property
    def p(self) -> float:
        """Two-sided; the observed difference counts as one of the shuffles, so it is never 0.

        Shuffles in which a score has no value are left out.
        """
        shuffled_R = _defined(self.shuffled_R)
        as_large = np.sum(np.abs(shuffled_R) >= abs(self.observed) - TIE)
        return float((as_large + 1) / (len(shuffled_R) + 1))


def mean_score(metric: Metric, counts_SxUxC: np.ndarray) -> float:
    """The score of every seed over all units as it is reported, averaged over seeds."""
    return float(metric.score(counts_SxUxC.sum(1)).mean())


def bootstrap(
    metric: Metric, counts_SxUxC: np.ndarray, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """The mean over seeds of `metric.value`, of R draws of units with replacement, the same for every seed.

    A draw without entities, texts of a class or numbers that differ has no F1 and no correlation: it is NaN, and
    `percentile_interval` leaves it out, as it would otherwise be scored 0 where everything is right. So is a draw in
    which one of the seeds has no value: the mean of the others would be that of other seeds.
    """
    return metric.value(resampled(counts_SxUxC, resamples, seed)).mean(1)


def percentile_interval(draws_R: np.ndarray) -> tuple[float, float]:
    """The percentile interval (CONFIDENCE) of bootstrapped values; NaN, where a measure was undefined, is left out."""
    draws_R = _defined(draws_R)
    if not len(draws_R):
        return math.nan, math.nan
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws_R, (tail, 1 - tail))
    return float(low), float(high)


def recorded(ends: tuple[float, float]) -> tuple[float, float] | None:
    """An interval as records hold it, which have no NaN."""
    return None if math.isnan(ends[0]) else ends


def paired(
    metric: Metric,
    first_DxSxUxC: Sequence[np.ndarray],
    second_DxSxUxC: Sequence[np.ndarray],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Difference]:
    """`Difference` second - first for every set, all sets drawn together: they share their units.

    The test is approximate randomisation (Noreen 1989): under the null hypothesis the two predictions of a unit
    could as well change places, for all seeds together, as seeds of one unit are alike. It says whether these
    fine-tuned models differ on more such text, not whether other seeds would: that is `student.TwoWay`.
    Sets may have different numbers of seeds, models may not.
    """
    a, b = np.concatenate(first_DxSxUxC), np.concatenate(second_DxSxUxC)
    seeds = [len(counts) for counts in first_DxSxUxC]
    observed_D = _by_set(metric.score(b.sum(1)), seeds) - _by_set(metric.score(a.sum(1)), seeds)
    totals = resampled(np.concatenate([a, b]), resamples, seed)
    of_a, of_b = np.split(totals, [len(a)], axis=1)
    bootstrapped_RxD = _by_set(metric.value(of_b), seeds) - _by_set(metric.value(of_a), seeds)
    moved = _swapped(b - a, resamples, seed)
    shuffled = metric.value(b.sum(1) - moved), metric.value(a.sum(1) + moved)
    shuffled_RxD = _by_set(shuffled[0], seeds) - _by_set(shuffled[1], seeds)
    columns = zip(observed_D.tolist(), bootstrapped_RxD.T, shuffled_RxD.T, strict=True)
    return [Difference(*column) for column in columns]


def macro(differences: Sequence[Difference]) -> Difference:
    """The mean over sets; sets of one `paired` keep the units that they share."""
    return Difference(
        float(np.mean([d.observed for d in differences])),
        np.mean([d.bootstrapped_R for d in differences], axis=0),
        np.mean([d.shuffled_R for d in differences], axis=0),
    )


def resampled(counts_SxUxC: np.ndarray, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """totals_RxSxC: the counts summed over U units drawn with replacement, the same for every seed.

    Units without any count add nothing: of them only the number that is drawn matters, not which.
    """
    units = counts_SxUxC.shape[1]
    counts_UxSC = _by_unit(counts_SxUxC)
    counts_UxSC = counts_UxSC[counts_UxSC.any(1)]
    filled = len(counts_UxSC)
    generator = np.random.default_rng((seed, BOOTSTRAP))
    totals = []
    for size in _chunks(resamples, filled):
        # How many draws meet a unit with counts is binomial; which of these they meet is uniform.
        drawn_R = generator.binomial(units, filled / units, size)
        cells = generator.integers(0, max(filled, 1), drawn_R.sum())
        # Each resample counts in a range of its own, so that one bincount serves all.
        cells += np.repeat(np.arange(size) * filled, drawn_R)
        times_RxU = np.bincount(cells, minlength=size * filled).reshape(size, filled)
        totals.append(times_RxU.astype(np.float64) @ counts_UxSC)
    return np.concatenate(totals).reshape(resamples, -1, counts_SxUxC.shape[-1])


def _swapped(differences_SxUxC: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """moved_RxSxC: the differences of the units that change places, each with probability 1/2, summed."""
    counts_UxSC = _by_unit(differences_SxUxC)
    counts_UxSC = counts_UxSC[counts_UxSC.any(1)]  # where both are alike nothing changes
    generator = np.random.default_rng((seed, SHUFFLE))
    totals = []
    for size in _chunks(resamples, len(counts_UxSC)):
        swaps_RxU = generator.integers(0, 2, (size, len(counts_UxSC)), dtype=np.uint8)
        totals.append(swaps_RxU.astype(np.float64) @ counts_UxSC)
    return np.concatenate(totals).reshape(resamples, -1, differences_SxUxC.shape[-1])


def _defined(values_R: np.ndarray) -> np.ndarray:
    return values_R[~np.isnan(values_R)]


def _by_set(values_xN: np.ndarray, seeds: Sequence[int]) -> np.ndarray:
    """Means over the seeds of each set, xD: N is the seeds of all D sets, one set after the other."""
    parts = np.split(values_xN, np.cumsum(seeds)[:-1], axis=-1)
    return np.stack([part.mean(-1) for part in parts], axis=-1)


def _by_unit(counts_SxUxC: np.ndarray) -> np.ndarray:
    """Sums of these are exact where counts are whole numbers: they are far below 2**53."""
    return counts_SxUxC.transpose(1, 0, 2).reshape(counts_SxUxC.shape[1], -1).astype(np.float64)


def _chunks(resamples: int, units: int) -> Iterator[int]:
    size = max(1, CHUNK_CELLS // max(units, 1))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)
