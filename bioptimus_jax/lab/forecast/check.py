"""How good forecasts are: finished runs are forecast as if they had been cut off, from other finished runs.

A group of arms is held out at a time, with all of its seeds, as candidates of which one is to be taken.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import kendalltau

from bioptimus_jax.errors import InputError
from bioptimus_jax.lab.arms import grouped
from bioptimus_jax.lab.forecast.curves import Curve
from bioptimus_jax.lab.forecast.final import FEWEST, Forecast, extrapolated, forecast
from bioptimus_jax.lab.forecast.short import Shorts

GROUP = 5
"""Arms that are held out at a time."""
GROUPS = 100
FORECAST, OWN, ORDER = 'forecast', "the run's own curve, extrapolated", 'the loss at that step'
OF_SHORTS, ORDER_OF_SHORTS = 'forecast from short runs', 'the loss of short runs'


@dataclasses.dataclass(frozen=True)
class Checked:
    """One way to tell the ends of runs cut at a share of their steps; means over groups of held-out arms.

    `error`: of the final loss, a share of it, and `within`: how often it is below 1 %; None for an order alone.
    `tau`: Kendall's, with the true order. `right`: how often the arm that comes out lowest is the lowest. `lost`: what
    the arm that is taken ends above the lowest, in nats. `inside`: how often the end is in the 95 % interval.
    """

    share: float
    way: str
    error: float | None
    within: float | None
    tau: float
    right: float
    lost: float
    inside: float | None


def check(finished: Sequence[Curve], share: float, seed: int = 0) -> list[Checked]:
    """Forecasts of R finished runs beside their ends. Raises InputError where there are too few arms for a group to be
    held out."""
    cut = {one: one.cut(share) for one in finished}
    ends = {
        OWN: {one: extrapolated(part) for one, part in cut.items()},
        ORDER: {one: float(part.losses_N[-1]) for one, part in cut.items()},
    }
    return _check(cut, FORECAST, ends, share, seed)


def check_shorts(found: Shorts, seed: int = 0) -> list[Checked]:
    """Forecasts of arms with a short and a finished long run, beside their ends. Raises InputError as `check` does."""
    ends = {ORDER_OF_SHORTS: {one: float(one.losses_N[-1]) for one in found.known}}
    return _check({one: one for one in found.known}, OF_SHORTS, ends, found.share, seed)


def as_one_group(told: Sequence[Forecast], share: float) -> Checked:
    """How well the ends of arms were told that have ended since; the curves have their `end`."""
    arms = grouped({f.curve.name: f for f in told})
    ranked = [(name, f) for name, seeds in arms.items() for f in seeds.values()]
    runs = [(name, f.curve) for name, f in ranked]
    scores = _scores([f.final for _, f in ranked], [f.half for _, f in ranked], runs)
    return _mean(share, OF_SHORTS, np.array(scores))


def _check(
    seen: Mapping[Curve, Curve], way: str, ends: Mapping[str, Mapping[Curve, float]], share: float, seed: int
) -> list[Checked]:
    """The check of runs with what is seen of each: forecasts by `way`, and other ways with the `ends` that they
    tell."""
    arms = grouped({one.name: one for one in seen})
    if len(arms) < GROUP + FEWEST:
        raise InputError(
            f'a check holds out {GROUP} arms and forecasts them from {FEWEST} or more, so it needs {GROUP + FEWEST} '
            f'finished ones, and here are {len(arms)}'
        )
    draw, names = np.random.default_rng(seed), sorted(arms)
    scored: dict[str, list[tuple[float, ...]]] = {name: [] for name in (way, *ends)}
    for _ in range(GROUPS):
        held = [names[at] for at in draw.choice(len(arms), GROUP, replace=False)]
        known = [one for name in names if name not in held for one in arms[name].values()]
        runs = [(name, one) for name in held for one in arms[name].values()]
        told = [forecast(seen[one], known) for _, one in runs]
        ways = {way: [f.final for f in told]}
        ways |= {name: [of_runs[one] for _, one in runs] for name, of_runs in ends.items()}
        for name, of_runs in ways.items():
            scored[name].append(_scores(of_runs, [f.half for f in told], runs))
    return [_mean(share, name, np.mean(scores, 0)) for name, scores in scored.items()]


def _scores(
    ends_R: Sequence[float], halves_R: Sequence[float], runs: Sequence[tuple[str, Curve]]
) -> tuple[float, ...]:
    """Scores of one group: error, share within 1 %, tau, winner right, lost, share inside; over arms where they are
    ranked.

    `runs`: the arm of each, and its curve.
    """
    true_R = np.array([one.final for _, one in runs])
    missed_R = np.abs(ends_R - true_R)
    errors_R = missed_R / true_R
    units_R = np.array([one.unit for _, one in runs])
    of_arm = np.array([[name == arm for name, _ in runs] for arm in dict.fromkeys(name for name, _ in runs)])
    told_A, known_A = ((of_arm @ (x * units_R)) / of_arm.sum(1) for x in (ends_R, true_R))
    # Exactly 0 where the lowest is taken: a number less itself.
    taken = known_A[told_A.argmin()] - known_A.min()
    # Where all are told to end alike no order is told: 0, where Kendall's formula divides 0 by 0.
    tau = kendalltau(told_A, known_A).statistic if np.ptp(told_A) and np.ptp(known_A) else 0.0
    return (
        float(errors_R.mean()),
        float((errors_R < 0.01).mean()),
        tau,
        taken == 0,
        taken,
        (missed_R <= halves_R).mean(),
    )


def _mean(share: float, way: str, means: np.ndarray) -> Checked:
    error, within, tau, right, lost, inside = map(float, means)
    if way in (ORDER, ORDER_OF_SHORTS):
        return Checked(share, way, None, None, tau, right, lost, None)
    return Checked(share, way, error, within, tau, right, lost, None if way == OWN else inside)
