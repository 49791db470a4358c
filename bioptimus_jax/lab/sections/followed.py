"""How closely the F1 of entities from frozen states follows the F1 after fine-tuning.

Shapes: N models of all runs, R resamples of the arms.
"""

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.finetuning.texts.measures import pearson, spearman
from bioptimus_jax.model.config import INITIAL, SOURCE
from bioptimus_jax.report.frozen import ABSENT
from bioptimus_jax.report.layout import Cell, Column, Table, between, count, fixed, missing
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Addition
from bioptimus_jax.scoring.metrics import Metric, divided
from bioptimus_jax.scoring.resampling import percentile_interval

LEAST = 4
"""Models that a correlation needs."""
RESAMPLES, SEED = 1000, 0
MEAN = 'mean of the sets'
FROZEN, NATS = 'F1 from frozen states', 'nats / hidden word, negated'
Runs = Mapping[str, Mapping[Any, Measures]]
"""Name of an arm -> seed -> run."""


@dataclasses.dataclass(frozen=True)
class Point:
    """A model on a set, or on several: F1 after fine-tuning, in percent, and measures of the same model `before` it.

    `noise`: the variance of this F1 if the model were fine-tuned again with other seeds; None if it has only one.
    """

    arm: str
    seed: Any
    f1: float
    noise: float | None
    before: Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Correlated:
    """A measure x and the fine-tuned F1 y of the same models; `arm_N`, `run_N`: the numbers of their arms and runs.

    `arms`: the arms' names by their numbers.
    `noise`: the mean over models of what fine-tuning adds to the variance of y; None where it is not known.
    """

    dataset: str
    measure: str
    x_N: np.ndarray
    y_N: np.ndarray
    arm_N: np.ndarray
    run_N: np.ndarray
    arms: Mapping[int, str]
    noise: float | None

    def cell(self, how: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]) -> Cell:
        """A correlation, with its interval over arms if there are several."""
        value = float(how(self.x_N, self.y_N, np.ones((1, len(self.x_N))))[0])
        if math.isnan(value):  # nothing differs, so nothing can be correlated
            return missing()
        if len(set(self.arm_N.tolist())) < 2:
            return fixed(value, 2)
        low, high = percentile_interval(how(self.x_N, self.y_N, self._drawn()))
        return Cell(between(value, low, high, '.2f'), value)

    def within(self) -> Cell:
        """Pearson's correlation after the mean of each run is subtracted."""
        own = self.run_N[:, None] == self.run_N
        if own.sum(1).max() < 2:
            return missing()
        x_N, y_N = (values_N - own @ values_N / own.sum(1) for values_N in (self.x_N, self.y_N))
        value = float(weighted_pearson(x_N, y_N, np.ones((1, len(x_N))))[0])
        return missing() if math.isnan(value) else fixed(value, 2)

    def without_an_arm(self) -> Cell:
        """Pearson's correlation without the arm that it rests on most, and this arm's name."""
        arms = np.unique(self.arm_N)
        if len(arms) < 2:
            return missing()
        left_AxN = (arms[:, None] != self.arm_N).astype(np.float64)
        whole, *values = weighted_pearson(
            self.x_N, self.y_N, np.vstack([np.ones(len(self.arm_N)), left_AxN])
        ).tolist()
        if not all(map(math.isfinite, (whole, *values))):
            return missing()
        value, arm = min(
            zip(values, arms.tolist(), strict=True), key=lambda pair: math.copysign(1, whole) * pair[0]
        )
        return Cell(f'{value:.2f} ({self.arms[arm]})', value)

    def most(self) -> Cell:
        """Pearson's of a perfect measure: the root of the share of F1's variance that the models themselves have."""
        if self.noise is None or not self.y_N.var():
            return missing()
        return fixed(math.sqrt(max(0.0, 1 - self.noise / self.y_N.var(ddof=1))), 2)

    def _drawn(self) -> np.ndarray:
        """How often each model is in each resample of the arms, RxN."""
        # Whole arms are drawn: models of one training are not independent.
        arms = np.unique(self.arm_N)
        drawn = np.random.default_rng(SEED).integers(0, len(arms), (RESAMPLES, len(arms)))
        times_RxA = (drawn[:, :, None] == np.arange(len(arms))).sum(1)
        return times_RxA[:, np.searchsorted(arms, self.arm_N)].astype(np.float64)


def followed(runs: Runs) -> Table:
    """Correlations of F1 from frozen states, and of the loss of hidden words, with fine-tuned F1 over all models."""
    measured = [m for seeds in runs.values() for m in seeds.values()]
    datasets = list(dict.fromkeys(d for m in measured for d in m.datasets if _has(m, d)))
    records = [r for d in datasets for r in correlated(runs, (d,), d)]
    records += correlated(runs, datasets, MEAN) if len(datasets) > 1 else []
    columns = [
        Column('set', lambda r: r.dataset),
        Column('measure', lambda r: r.measure),
        Column('models', lambda r: count(len(r.x_N))),
        Column('Pearson', lambda r: r.cell(weighted_pearson)),
        Column('Spearman', lambda r: r.cell(weighted_spearman)),
        Column('Kendall', lambda r: r.cell(weighted_kendall)),
        Column('Pearson without one arm', Correlated.without_an_arm),
        Column('Pearson within runs', Correlated.within),
        Column('at most', Correlated.most),
    ]
    note = (
        'Correlation with test F1 after fine-tuning (mean over its seeds), over all models of all arms: source, step'
        ' 0, phases, snapshots. A model that runs share counts once. [95 %: arms drawn with replacement; Spearman'
        ' keeps the ranks of all models.] Without one arm: what is left of Pearson when the arm that it rests on most'
        ' is taken out, and which arm that is. Within runs: after the mean of each run is subtracted. Nats are'
        ' negated, so that a higher value is better in all rows. At most: what a perfect measure would have in'
        ' Pearson, since F1 differs between fine-tunings of one model (Spearman 1904); it takes two or more of each.'
    )
    absent = f'fewer than {LEAST} models have both; {ABSENT}'
    return Table.of('Frozen states and fine-tuned F1', columns, records, note=note, absent=absent)


def correlated(runs: Runs, datasets: Sequence[str], name: str) -> list[Correlated]:
    """The measures of the models that were scored on all of these sets, as means over the sets; [] for too few models.

    The loss of hidden words is among them if enough models have one; then both measures are of these models alone.
    """
    known = points(runs, datasets)
    both = [p for p in known if NATS in p.before]
    used = both if len(both) >= LEAST else known
    if len(used) < LEAST:
        return []
    numbers: dict[Any, int] = {}
    arm_N = np.array([numbers.setdefault(p.arm, len(numbers)) for p in used])
    arms = {number: arm for arm, number in numbers.items()}
    run_N = np.array([numbers.setdefault((p.arm, p.seed), len(numbers)) for p in used])
    y_N = np.array([p.f1 for p in used])
    noises = [p.noise for p in used if p.noise is not None]
    noise = statistics.fmean(noises) if len(noises) == len(used) else None
    return [
        Correlated(name, measure, np.array([p.before[measure] for p in used]), y_N, arm_N, run_N, arms, noise)
        for measure in ((FROZEN, NATS) if used is both else (FROZEN,))
    ]


def points(runs: Runs, datasets: Sequence[str]) -> list[Point]:
    """Every model that was scored on all of these sets, frozen and fine-tuned.

    Runs share their source, and often step 0: such a model comes once, known by its name and its frozen F1.
    """
    found, shared = [], set()
    for (arm, seeds), seed in ((pair, seed) for pair in runs.items() for seed in pair[1]):
        m = seeds[seed]
        for model in m.models:
            tuned = [m.scores(model, d) for d in datasets]
            before = [m.frozen_f1(model, d) for d in datasets]
            key = model, *before
            if not all(tuned) or None in before or key in shared:
                continue
            if model in (SOURCE, INITIAL):
                shared.add(key)
            measures = {FROZEN: statistics.fmean(f1 for f1 in before if f1 is not None)}
            if (hidden := m.hidden_words_of(model)) and hidden.nats_per_word is not None:
                measures[NATS] = -hidden.nats_per_word
            f1 = statistics.fmean(map(statistics.fmean, tuned))
            found.append(Point(arm, seed, f1, _noise(tuned), measures))
    return found


def _noise(tuned: Sequence[Sequence[float]]) -> float | None:
    """The variance of the mean over sets of the mean over fine-tunings, from the F1 of each fine-tuning on each set."""
    if min(map(len, tuned)) < 2:
        return None
    return sum(statistics.variance(of_set) / len(of_set) for of_set in tuned) / len(tuned) ** 2


def weighted_pearson(x_N: np.ndarray, y_N: np.ndarray, weights_RxN: np.ndarray) -> np.ndarray:
    """Pearson's correlation, with each model counted as often as its weight says, R values."""
    return _of_metric(pearson(()), x_N, y_N, weights_RxN)


def weighted_spearman(x_N: np.ndarray, y_N: np.ndarray, weights_RxN: np.ndarray) -> np.ndarray:
    """Spearman's correlation likewise, with ranks among all models whatever the weights."""
    return _of_metric(spearman(()), x_N, y_N, weights_RxN)


def weighted_kendall(x_N: np.ndarray, y_N: np.ndarray, weights_RxN: np.ndarray) -> np.ndarray:
    """Kendall's tau-b likewise: copies of a model tie with each other. NaN where all values of one side tie."""
    orders = [np.sign(values_N[:, None] - values_N) for values_N in (x_N, y_N)]

    def pairs(signs_NxN: np.ndarray) -> np.ndarray:
        return ((weights_RxN @ signs_NxN) * weights_RxN).sum(1)

    concordant_R = pairs(functools.reduce(np.multiply, orders))
    untied_R = np.sqrt(pairs(np.abs(orders[0])) * pairs(np.abs(orders[1])))
    return divided(concordant_R, untied_R)


def _of_metric(metric: Metric, x_N: np.ndarray, y_N: np.ndarray, weights_RxN: np.ndarray) -> np.ndarray:
    answers = ([(value,) for value in values_N.tolist()] for values_N in (x_N, y_N))
    return metric.value(weights_RxN @ metric.counts(*answers))


def _has(m: Measures, dataset: str) -> bool:
    return any(r.set == dataset for r in m.frozen)


SECTION = Addition('hidden_words', 'frozen', {'followed': lambda m: followed({'': {'': m}})})
