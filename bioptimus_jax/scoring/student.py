"""Student's t: the interval of a mean, and differences between arms over their trainings."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

CONFIDENCE = 0.95
ALPHA = 0.05
TIE = 1e-9
"""What is below it is 0: so much may be rounding."""
NO_INTERVAL = 'no interval'
ONE_SEED, NO_RESIDUAL = 'one seed', 'every seed gives the same difference'
OTHER_SEEDS = 'no seed has all sets'
"""Why there is no test."""


@dataclasses.dataclass(frozen=True)
class Effect:
    """One arm less another: the difference, the ends of its interval, two-sided p, degrees of freedom of the residual.

    `holm`: p corrected for the family of tests that it is one of. `apart`: the mean of sets that share no seed.

    Where nothing says how far trainings differ it is not tested: the ends are NaN and `p` is None. So it is with one
    seed, and where nothing is left beside the effects of arms and seeds: two seeds that both count 8 and 9 of ten texts
    right are no certainty.
    """

    observed: float
    low: float = math.nan
    high: float = math.nan
    p: float | None = None
    freedom: int = 0
    holm: float | None = None
    apart: bool = False

    @property
    def untested(self) -> str:
        """Why it is not tested, in words; '' where it is."""
        if self.p is not None:
            return ''
        if self.apart:
            return OTHER_SEEDS
        return NO_RESIDUAL if self.freedom else ONE_SEED

    @property
    def ends(self) -> tuple[float, float]:
        """Low and high end of its interval; NaN where it has none."""
        return self.low, self.high

    @property
    def sign(self) -> int:
        """1 or -1 where the corrected p says that the two differ, else 0."""
        if self.holm is None or self.holm >= ALPHA:
            return 0
        return 1 if self.observed > 0 else -1


def half_interval(error: float, freedom: float) -> float:
    """Half of the interval of CONFIDENCE around something with this standard error and degrees of freedom."""
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error


def bracketed(low: float, high: float, form: str = '.2f') -> str:
    """`[0.10, 0.14]`, or that there is no interval, which NaN stands for."""
    return f'[{NO_INTERVAL}]' if math.isnan(low) else f'[{low:{form}}, {high:{form}}]'


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Mean, and half of its interval; 0 of one value."""
    count, mean = len(values), float(np.mean(values))
    return mean, half_interval(float(np.std(values, ddof=1)) / count**0.5, count - 1) if count > 1 else 0.0


class TwoWay:
    """Scores by arm and seed as the sum of an effect of each; what is left, pooled over all arms, is the noise.

    By least squares, so that arms may lack seeds. Two arms give the paired t-test. It takes trainings of all arms to
    be equally unsure. `scores`: arm -> seed -> score; an arm or a seed that stands alone says nothing of the noise.
    """

    def __init__(self, scores: Mapping[str, Mapping[Any, float]]):
        self.arms = list(scores)
        seeds = list(dict.fromkeys(itertools.chain(*scores.values())))
        places = [(arm, seed) for arm, by_seed in scores.items() for seed in by_seed]
        design_NxP = np.zeros((len(places), len(self.arms) + len(seeds)))
        for row, (arm, seed) in zip(design_NxP, places, strict=True):
            row[[self.arms.index(arm), len(self.arms) + seeds.index(seed)]] = 1
        scores_N = np.array([scores[arm][seed] for arm, seed in places])
        self.inverse_PxN = np.linalg.pinv(design_NxP)
        self.spanned_PxP = self.inverse_PxN @ design_NxP
        self.effects_P = self.inverse_PxN @ scores_N
        # The trace of a projection is its rank: the number of effects that the scores can tell apart.
        self.freedom = len(places) - round(float(np.trace(self.spanned_PxP)))
        left_N = _rounded(scores_N - design_NxP @ self.effects_P)
        self.variance = float((left_N**2).sum()) / self.freedom if self.freedom else None

    def contrast(self, arm: str, reference: str) -> Effect | None:
        """`arm` - `reference`; None where no chain of common seeds links the two."""
        contrast_P = np.zeros(len(self.effects_P))
        contrast_P[self.arms.index(arm)] += 1
        contrast_P[self.arms.index(reference)] -= 1
        # Only a sum of rows of the design can be estimated: arms without a chain of common seeds give no such sum.
        if not np.allclose(contrast_P @ self.spanned_PxP, contrast_P):
            return None
        observed = float(_rounded(contrast_P @ self.effects_P))
        if self.variance is None:
            return Effect(observed)
        weights_N = contrast_P @ self.inverse_PxN
        error = float(np.sqrt(self.variance * (weights_N**2).sum()))
        if not error:
            return Effect(observed, freedom=self.freedom)
        half = half_interval(error, self.freedom)
        p = float(2 * special.stdtr(self.freedom, -abs(observed) / error))
        return Effect(observed, observed - half, observed + half, p, self.freedom)


def _rounded(values: np.ndarray) -> np.ndarray:
    return np.where(np.abs(values) < TIE, 0.0, values)
