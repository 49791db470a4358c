"""The final loss of a run from its first evaluations, by a regression over finished runs.

What a run still gains after a share of its steps is regressed, over finished runs, on what can be known by then: its
loss, what the last doubling of the steps brought, the area under the learning rate of all steps, and the share of each
masking setting in both halves of the steps. A high rate is behind until it falls, so the order at that step says little
where rates differ (Tissue et al. 2024, arXiv 2408.11029, have a law for this, of which no constant is needed here).

Legend: R finished runs, F features.
"""

import dataclasses
import functools
import itertools
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
DRAWS = 20_000


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The final loss that is expected of a run, in nats a piece, and half of its 95 % interval."""

    curve: Curve
    final: float
    half: float

    @property
    def comparable(self) -> float:
        """In nats a word, as if each piece were hidden alone: for runs with different vocabularies."""
        return self.final * self.curve.unit


def forecast(curve: Curve, finished: Sequence[Curve]) -> Forecast:
    """Of a curve, from curves of R finished runs. Raises InputError where these are fewer than FEWEST."""
    if len(finished) < FEWEST:
        raise InputError(
            f'a forecast takes {FEWEST} finished runs or more, and here are {len(finished)}; let more arms of the '
            'sweep end, those with the lowest and the highest learning rate first, or name other runs as well'
        )
    share, settings = curve.share, settings_of(finished)
    features_RxF = np.array([_features(one, share, settings) for one in finished])
    gains_R = np.array([one.losses_N[-1] for one in finished]) - features_RxF[:, 0]
    # A feature that all finished runs share has no spread.
    centre_F, scale_F = features_RxF.mean(0), np.maximum(features_RxF.std(0), 1e-9)
    known_RxF = (features_RxF - centre_F) / scale_F
    own_F = (_features(curve, share, settings) - centre_F) / scale_F
    own_F = np.clip(own_F, known_RxF.min(0) - 1, known_RxF.max(0) + 1)  # further out a line says nothing
    fits = [_ridge(known_RxF, gains_R, penalty) for penalty in PENALTIES]
    weights_F, left_R = min(fits, key=lambda fit: float(np.square(fit[1]).sum()))
    error = float(np.sqrt(np.square(left_R).mean()))
    final = float(curve.losses_N[-1] + gains_R.mean() + own_F @ weights_F)
    return Forecast(curve, final, reach(error, len(finished) - 1))


def settings_of(curves: Sequence[Curve]) -> list[str]:
    """The masking settings that these were, or will be, trained with."""
    return sorted({name for one in curves for name in one.masked})


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


def _features(curve: Curve, share: float, settings: Sequence[str]) -> np.ndarray:
    masked = itertools.chain(*(curve.masked.get(name, (0.0, 0.0)) for name in settings))
    return np.array([*_measured(curve, share), *masked])


@functools.lru_cache(1000)  # a check asks for the same ones in every group
def _measured(curve: Curve, share: float) -> tuple[float, ...]:
    size = math.log2(curve.rates_T.sum())
    return curve.at(share), curve.at(share / 2) - curve.at(share), size, size**2


def _ridge(known_RxF: np.ndarray, gains_R: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights, and for each run the error of the regression that leaves it out."""
    centred_R = gains_R - gains_R.mean()
    inverse_FxF = np.linalg.inv(known_RxF.T @ known_RxF + penalty * np.eye(known_RxF.shape[1]))
    weights_F = inverse_FxF @ known_RxF.T @ centred_R
    # With it the errors of all R regressions that leave one run out follow from a single fit; 1 / R is the intercept's.
    leverage_R = np.einsum('rf,fg,rg->r', known_RxF, inverse_FxF, known_RxF) + 1 / len(gains_R)
    return weights_F, (centred_R - known_RxF @ weights_F) / (1 - leverage_R)
