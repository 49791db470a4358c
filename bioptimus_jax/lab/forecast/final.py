"""The final loss of a run from its first evaluations, by a regression over finished runs.

What a run still gains after a share of its steps is regressed, over finished runs, on what can be known by then: its
loss, the area under the learning rate of all steps, and the settings of the second half of the steps. These are
numbers, such as the share of the pieces that are masked, so that a setting that no finished run has may be near to one
that a run has. The last steps decide more than the first. A high rate is behind until it falls, so the order at that
step says little where rates differ (Tissue et al. 2024, arXiv 2408.11029, have a law for this, of which no constant is
needed here).

The regression is a Gaussian process: a line in all features, and what runs with similar features have in common beyond
it (Rasmussen and Williams 2006, chapters 2 and 5). So a rate may suit one order and not another.

Legend: R finished runs, F features.
"""

import dataclasses
import functools
import math
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

from bioptimus_jax.errors import InputError
from bioptimus_jax.lab.forecast.curves import Curve
from bioptimus_jax.scoring.student import half_interval

FEWEST = 4
"""Finished runs that a forecast takes."""
POWERS = np.arange(0.05, 2.001, 0.05)
CONSTANTS = 3
"""Constants of the curve that is fitted to one run."""
SAME = 1e-3
"""Settings that differ by less are the same."""
DRAWS = 20_000
KERNEL = ConstantKernel() * (Matern(nu=2.5) + DotProduct(0, 'fixed')) + WhiteKernel(0.01)
"""A line and what is beyond it, equally large, and noise; size, reach and noise are those of the largest likelihood."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The final loss that is expected of a run, in nats a piece, and half of its 95 % interval.

    `open`: whether the run has not ended. No interval tells it: that of a forecast is nearly 0 wide where the
    regression errs nowhere.
    """

    curve: Curve
    final: float
    half: float
    open: bool = True

    @property
    def comparable(self) -> float:
        """The end in nats a word, as if each piece were hidden alone: for runs with different vocabularies."""
        return self.final * self.curve.unit


def forecast(curve: Curve, finished: Sequence[Curve]) -> Forecast:
    """The forecast of a curve from curves of R finished runs.

    Raises InputError where these are fewer than FEWEST, or all seeds of one arm and the curve is of another.
    """
    if len(finished) < FEWEST:
        raise InputError(
            f'a forecast takes {FEWEST} finished runs or more, and here are {len(finished)}; let more arms of the '
            'sweep end, those with the lowest and the highest learning rate first, or name other runs as well'
        )
    fitted = _regression(tuple(finished), curve.share)
    planned_F = _planned(curve, settings_of(finished))
    another_seed = bool((np.abs(fitted.planned_RxF - planned_F) < SAME).all(1).any())
    if fitted.arms == 1 and not another_seed:
        raise InputError(
            f'the {len(finished)} finished runs have the same settings and learning rates, and {curve.name} has '
            'others; let another arm end as well'
        )
    own_F = fitted.scaled(np.r_[curve.at(curve.share), planned_F])
    [gain], [deviation] = fitted.process.predict(own_F[None], return_std=True)
    if another_seed:
        half = half_interval(float(deviation), len(finished) - 1)
    else:  # constants that suit the known arms best promise too much of another one
        half = half_interval(max(float(deviation), fitted.error), fitted.arms - 1)
    return Forecast(curve, float(curve.losses_N[-1] + gain), half)


def settings_of(curves: Sequence[Curve]) -> list[str]:
    """The names of the settings that these were, or will be, trained with."""
    return sorted({name for one in curves for name in one.settings})


def outside(curves: Sequence[Curve], finished: Sequence[Curve]) -> list[str]:
    """The settings that are further up or down in one of these than in every finished run."""
    found = []
    for name in settings_of([*curves, *finished]):
        known, asked = ([one.settings.get(name, 0.0) for one in part] for part in (finished, curves))
        if min(asked) < min(known) - SAME or max(asked) > max(known) + SAME:
            found.append(name)
    return found


def chances(forecasts: Sequence[Forecast], seed: int = 0) -> np.ndarray:
    """How likely each of the runs is to end lowest, its error being independent of those of the others."""
    normal = np.random.default_rng(seed).standard_normal((DRAWS, len(forecasts)))
    # Half of Student's interval, which is wider where few runs are known, is taken for 1.96 deviations.
    deviations = np.array([f.half * f.curve.unit / 1.96 for f in forecasts])
    ends = np.array([f.comparable for f in forecasts]) + normal * deviations
    return np.bincount(ends.argmin(1), minlength=len(forecasts)) / DRAWS


def extrapolated(curve: Curve) -> float:
    """What a + b step^-c, fitted to the last two thirds of the curve, has at the last step, with a and b above 0.

    The last loss where it cannot be fitted.
    """
    steps_N, losses_N = (x[len(x) // 3 :] for x in (curve.steps_N, curve.losses_N))
    end, best = float(losses_N[-1]), math.inf
    if len(steps_N) <= CONSTANTS:
        return end
    for power in POWERS:
        design_Nx2 = np.c_[np.ones(len(steps_N)), steps_N**-power]
        (a, b), *_ = np.linalg.lstsq(design_Nx2, losses_N)
        left = float(np.square(design_Nx2 @ (a, b) - losses_N).sum())
        if a > 0 and b > 0 and left < best:
            end, best = float(a + b * len(curve.rates_T) ** -power), left
    return end


def _planned(curve: Curve, names: Sequence[str]) -> np.ndarray:
    size = math.log2(curve.rates_T.sum())
    # From none to a hundredth of the pieces kept is a larger step than from one hundredth to two: roots.
    return np.array([size, size**2, *(math.sqrt(curve.settings.get(name, 0.0)) for name in names)])


@dataclasses.dataclass(frozen=True, eq=False)
class _Regression:
    """A process of gains on features, which are less their `centre` over their `scale`.

    It is fitted to runs of so many `arms`; `error`: root mean square, in nats, where each arm is told from the others.
    """

    planned_RxF: np.ndarray
    arms: int
    centre_F: np.ndarray
    scale_F: np.ndarray
    process: GaussianProcessRegressor
    error: float

    def scaled(self, features_F: np.ndarray) -> np.ndarray:
        return (features_F - self.centre_F) / self.scale_F


@functools.lru_cache(16)  # the candidates of a group share what is known
def _regression(finished: tuple[Curve, ...], share: float) -> _Regression:
    """The regression from R finished runs after a share of their steps."""
    names = settings_of(finished)
    planned_RxF = np.array([_planned(one, names) for one in finished])
    seen_R = np.array([one.at(share) for one in finished])
    features_RxF = np.c_[seen_R, planned_RxF]
    centre_F, spread_F = features_RxF.mean(0), features_RxF.std(0)
    # What all of them share tells nothing. Distances do not grow with the number of features.
    scale_F = np.where(spread_F < SAME, np.inf, spread_F * math.sqrt((spread_F >= SAME).sum()))
    process = GaussianProcessRegressor(KERNEL, normalize_y=True)
    gains_R = np.array([one.final for one in finished]) - seen_R
    with warnings.catch_warnings():
        # It warns of a constant that ends at its bound, where the runs need no such part.
        warnings.simplefilter('ignore', ConvergenceWarning)
        process.fit((features_RxF - centre_F) / scale_F, gains_R)
    groups_R = np.unique(np.round(planned_RxF / SAME), axis=0, return_inverse=True)[1].reshape(-1)
    left_R = left_out(process.kernel_(process.X_train_), process.y_train_, groups_R) * gains_R.std()
    error, arms = float(np.sqrt(np.square(left_R).mean())), int(groups_R.max()) + 1
    return _Regression(planned_RxF, arms, centre_F, scale_F, process, error)


def left_out(covariance_RxR: np.ndarray, values_R: np.ndarray, groups_R: np.ndarray) -> np.ndarray:
    """For each run the error of the process that does not know its group (Rasmussen and Williams, equation 5.12)."""
    inverse_RxR = np.linalg.inv(covariance_RxR)
    weights_R, left_R = inverse_RxR @ values_R, np.empty(len(values_R))
    for group in range(groups_R.max() + 1):
        [of_group] = np.nonzero(groups_R == group)
        left_R[of_group] = np.linalg.solve(inverse_RxR[np.ix_(of_group, of_group)], weights_R[of_group])
    return left_R
