"""The final loss of a run from its first evaluations, by a regression over finished runs.

What a run still gains after a share of its steps is regressed, over finished runs, on what can be known by then: its
loss, what the last doubling of the steps brought, the area under the learning rate of all steps, and the settings of
the second half of the steps. These are numbers, such as the share of the pieces that are masked, so that a setting that
no finished run has may be near to one that a run has. The last steps decide more than the first. A high rate is behind
until it falls, so the order at that step says little where rates differ (Tissue et al. 2024, arXiv 2408.11029, have a
law for this, of which no constant is needed here).

Legend: R finished runs, F features.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.forecast.curves import Curve
from bioptimus_jax.student import reach

FEWEST = 4
"""Finished runs that a forecast takes."""
PENALTIES = tuple(10.0**power for power in range(-3, 4))
POWERS = np.arange(0.05, 2.001, 0.05)
CONSTANTS = 3
"""Of the curve that is fitted to one run."""
SAME = 1e-3
"""Settings that differ by less are the same."""
DRAWS = 20_000


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The final loss that is expected of a run, in nats a piece, and half of its 95 % interval.

    `open`: whether the run has not ended. No interval tells it: that of a forecast is 0 wide where the regression errs
    nowhere.
    """

    curve: Curve
    final: float
    half: float
    open: bool = True

    @property
    def comparable(self) -> float:
        """In nats a word, as if each piece were hidden alone: for runs with different vocabularies."""
        return self.final * self.curve.unit


def forecast(curve: Curve, finished: Sequence[Curve]) -> Forecast:
    """Of a curve, from curves of R finished runs.

    Raises InputError where these are fewer than FEWEST, or all seeds of one arm and the curve is of another.
    """
    if len(finished) < FEWEST:
        raise InputError(
            f'a forecast takes {FEWEST} finished runs or more, and here are {len(finished)}; let more arms of the '
            'sweep end, those with the lowest and the highest learning rate first, or name other runs as well'
        )
    planned_F = _planned(curve, settings_of(finished))
    planned_RxF, groups_R = _plans(tuple(finished))
    # A regression that knows a seed of an arm tells another one better than it would tell a new arm.
    alone = bool((np.abs(planned_RxF - planned_F) < SAME).all(1).any())
    if not alone and not groups_R.any():
        raise InputError(
            f'the {len(finished)} finished runs have the same settings and learning rates, and {curve.name} has '
            'others; let another arm end as well'
        )
    fitted = _regression(tuple(finished), curve.share, alone)
    own_F = (np.r_[_seen(curve, curve.share), planned_F] - fitted.centre_F) / fitted.scale_F
    own_F = np.clip(own_F, fitted.low_F - 1, fitted.high_F + 1)  # further out a line says nothing
    final = float(curve.losses_N[-1] + fitted.mean + own_F @ fitted.weights_F)
    # An interval is wider for a run that is unlike the finished ones.
    wider = math.sqrt((1 + own_F @ fitted.inverse_FxF @ own_F) / (1 + fitted.leverage))
    return Forecast(curve, final, fitted.half * wider)


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


@functools.lru_cache(1000)  # a check asks for the same ones in every group
def _seen(curve: Curve, share: float) -> tuple[float, ...]:
    return curve.at(share), curve.at(share / 2) - curve.at(share)


@dataclasses.dataclass(frozen=True, eq=False)
class _Regression:
    """Of gains on features, which are less their `centre` over their `scale`.

    `half`: of the 95 % interval of an end, for a run with the mean `leverage` of the finished ones.
    """

    centre_F: np.ndarray
    scale_F: np.ndarray
    low_F: np.ndarray
    high_F: np.ndarray
    mean: float
    weights_F: np.ndarray
    inverse_FxF: np.ndarray
    leverage: float
    half: float


@functools.lru_cache(16)  # the candidates of a group share what is known
def _plans(finished: tuple[Curve, ...]) -> tuple[np.ndarray, np.ndarray]:
    """What is planned of R finished runs, RxF, and for each the number of its arm: seeds of an arm have the same."""
    names = settings_of(finished)
    planned_RxF = np.array([_planned(one, names) for one in finished])
    return planned_RxF, np.unique(np.round(planned_RxF / SAME), axis=0, return_inverse=True)[1].reshape(-1)


@functools.lru_cache(16)
def _regression(finished: tuple[Curve, ...], share: float, alone: bool) -> _Regression:
    """From R finished runs after a share of their steps. Errors are those of leaving out an arm, or one run `alone`."""
    planned_RxF, groups_R = _plans(finished)
    groups_R = np.arange(len(finished)) if alone else groups_R
    features_RxF = np.c_[[_seen(one, share) for one in finished], planned_RxF]
    gains_R = np.array([one.final for one in finished]) - features_RxF[:, 0]
    # A feature that all finished runs share has no spread.
    centre_F, scale_F = features_RxF.mean(0), np.maximum(features_RxF.std(0), 1e-9)
    known_RxF = (features_RxF - centre_F) / scale_F
    fits = [ridge(known_RxF, gains_R, groups_R, penalty) for penalty in PENALTIES]
    weights_F, left_R, inverse_FxF = min(fits, key=lambda fit: float(np.square(fit[1]).sum()))
    leverage = float(np.einsum('RF,FG,RG->R', known_RxF, inverse_FxF, known_RxF).mean())
    # Groups are numbered from 0: the largest number is how many there are less one, the degrees of freedom.
    half = reach(float(np.sqrt(np.square(left_R).mean())), int(groups_R.max()))
    low_F, high_F, mean = known_RxF.min(0), known_RxF.max(0), float(gains_R.mean())
    return _Regression(centre_F, scale_F, low_F, high_F, mean, weights_F, inverse_FxF, leverage, half)


def ridge(
    known_RxF: np.ndarray, gains_R: np.ndarray, groups_R: np.ndarray, penalty: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, for each run the error of the regression that leaves out its group, and the inverse behind both, FxF."""
    centred_R = gains_R - gains_R.mean()
    inverse_FxF = np.linalg.inv(known_RxF.T @ known_RxF + penalty * np.eye(known_RxF.shape[1]))
    weights_F = inverse_FxF @ known_RxF.T @ centred_R
    # With it the errors of all regressions that leave one group out follow from a single fit; 1 / R is the intercept's.
    leverage_RxR = known_RxF @ inverse_FxF @ known_RxF.T + 1 / len(gains_R)
    left_R = centred_R - known_RxF @ weights_F
    for group in range(groups_R.max() + 1):
        [of_group] = np.nonzero(groups_R == group)
        rest = np.eye(len(of_group)) - leverage_RxR[np.ix_(of_group, of_group)]
        left_R[of_group] = np.linalg.solve(rest, left_R[of_group])
    return weights_F, left_R, inverse_FxF
