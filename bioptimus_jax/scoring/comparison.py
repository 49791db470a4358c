"""The one way from scores of models to a comparison of two: over trainings, and on other test items.

Two tests, which answer two questions. Over trainings: would models with other seeds differ so? Arms and seeds in two
ways, `student.TwoWay`. On other test items: would these trained models differ so on more such text? Bootstrap and
randomisation, which know these models alone. Each is corrected after Holm for its family: single sets, and means.

Shapes: S seeds, U units (documents or examples), C counts of a metric.
"""

import dataclasses
import functools
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.scoring.metrics import Metric
from bioptimus_jax.scoring.resampling import RESAMPLES, Difference, macro, mean_score, paired
from bioptimus_jax.scoring.student import Effect, TwoWay

SeedKey = tuple[Any, ...]
"""The seed of the training that a test is about, None for a model without one; then those of what was done with it
several times, such as fine-tuning, whose scores are averaged."""
MACRO = 'mean of the sets'
ScoresOfSet = Mapping[str, Mapping[SeedKey, float]]
"""Model -> seeds -> score on one set, or another measure."""


@dataclasses.dataclass(frozen=True)
class Pairing:
    """Test predictions of a model and of its reference on one set by common seeds, as counts over the same units.

    `unit`: what these are called. `text`: a digest; sets with the same text are drawn together.
    """

    dataset: str
    metric: Metric
    seeds: tuple[Any, ...]
    unit: str
    text: str
    reference_SxUxC: np.ndarray
    model_SxUxC: np.ndarray

    @property
    def units(self) -> int:
        return self.model_SxUxC.shape[1]

    @property
    def scores(self) -> dict[str, list[float]]:
        """Percent by seed, of the reference (A) and of the model (B)."""
        sides = {'A': self.reference_SxUxC, 'B': self.model_SxUxC}
        return {
            side: [100 * mean_score(self.metric, seed[None]) for seed in counts_SxUxC]
            for side, counts_SxUxC in sides.items()
        }

    def at(self, seeds: Iterable[Any]) -> 'Pairing':
        """The pairing by these seeds alone."""
        rows = [self.seeds.index(seed) for seed in seeds]
        kept = tuple(self.seeds[row] for row in rows)
        sides = {n: getattr(self, n)[rows] for n in ('reference_SxUxC', 'model_SxUxC')}
        return dataclasses.replace(self, seeds=kept, **sides)


@dataclasses.dataclass(frozen=True)
class Contrast:
    """What is compared: a model with a reference on one set, or in the mean over several."""

    model: str
    reference: str
    sets: tuple[str, ...]

    @property
    def pair(self) -> tuple[str, str]:
        return self.model, self.reference

    @property
    def name(self) -> str:
        """The set, or MACRO of several."""
        return self.sets[0] if len(self.sets) == 1 else MACRO


@dataclasses.dataclass(frozen=True)
class Comparison(Contrast):
    """A model less its reference, in the unit of the scores; on test items in percent.

    `by_seed`: the difference with each training. `on_items`: None where predictions are not at hand.
    """

    by_seed: tuple[float, ...]
    over_trainings: Effect
    on_items: Effect | None = None


def compare(
    scores: Mapping[str, ScoresOfSet],
    asked: Iterable[Contrast],
    pairings: Mapping[tuple[str, str], Sequence[Pairing]] | None = None,
) -> list[Comparison]:
    """A comparison for each that is asked for; none where no chain of common seeds links the two.

    `scores`: set -> scores; the noise over seeds is pooled over all models that have the sets. `pairings`: (model,
    reference) -> their test predictions.
    """
    fitted = functools.cache(lambda sets: TwoWay(_by_training([scores[name] for name in sets])))
    on_items = {pair: differences_on_items(found) for pair, found in (pairings or {}).items()}
    found = []
    for one in asked:
        by_set = [_differences(scores[name], one) for name in one.sets]
        effect = _over_trainings(fitted(one.sets), one, by_set)
        items = _in_percent(on_items.get(one.pair, {}), one.sets)
        if effect is not None:
            found.append(Comparison(*one.pair, one.sets, tuple(_means(by_set)), effect, items))
    return _corrected(found)


def paired_differences(model: Mapping[Any, float], reference: Mapping[Any, float]) -> list[float]:
    """The model less the reference with each seed that both have; a value that is NaN counts as none."""
    found = (float(model[seed] - reference[seed]) for seed in model if seed in reference)
    return [value for value in found if value == value]


def common_seeds(
    model: Iterable[SeedKey], reference: Iterable[SeedKey]
) -> dict[SeedKey, tuple[SeedKey, SeedKey]]:
    """The seeds that two models share -> those of both.

    A model without a seed of training is paired by the others alone, with every training of the other model.
    """
    a, b = dict.fromkeys(model), dict.fromkeys(reference)
    found = {}
    for key in b if any(seeds[0] is None for seeds in a) else a:
        one, other = (key if key in side else (None, *key[1:]) for side in (a, b))
        if one in a and other in b:
            found[key] = one, other
    return found


def differences_on_items(pairings: Sequence[Pairing]) -> dict[str, Difference]:
    """Set -> difference. Sets over one text (BC5-chem, BC5-disease) are not independent: they are drawn together."""
    found: dict[str, Difference] = {}
    for number, key in enumerate(dict.fromkeys((p.text, p.metric) for p in pairings)):
        group = [p for p in pairings if (p.text, p.metric) == key]
        sides = [p.reference_SxUxC for p in group], [p.model_SxUxC for p in group]
        # `macro` averages draws of several texts: they are independent only with a stream for each text.
        results = paired(key[1], *sides, RESAMPLES, seed=number)
        found.update(zip((p.dataset for p in group), results, strict=True))
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number by Holm's step-down procedure (1979), in the order given."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    # A larger p-value is never corrected to less than a smaller one.
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = largest
    return adjusted


def _by_training(of_sets: Sequence[ScoresOfSet]) -> dict[str, dict[Any, float]]:
    """Model -> seed of training -> the mean over sets, and over what was done with this training in all of them.

    What only some models with this training have, such as more fine-tunings, does not count, unless they share none.
    """
    found: dict[str, dict[Any, dict[SeedKey, float]]] = {}
    for model in of_sets[0]:
        own = [of_set.get(model, {}) for of_set in of_sets]
        for seeds in own[0]:
            if seeds[0] is not None and all(seeds in scores for scores in own):
                mean = statistics.fmean(scores[seeds] for scores in own)
                found.setdefault(model, {}).setdefault(seeds[0], {})[seeds] = mean
    shared: dict[Any, set[SeedKey]] = {}
    for by_seed in found.values():
        for seed, scores in by_seed.items():
            shared[seed] = shared.get(seed, set(scores)) & set(scores)
    return {
        model: {
            seed: statistics.fmean(scores[key] for key in shared[seed] or scores)
            for seed, scores in by_seed.items()
        }
        for model, by_seed in found.items()
    }


def _differences(scores: ScoresOfSet, asked: Contrast) -> dict[Any, list[float]]:
    """Seed of training -> differences on one set, of the seeds that both have."""
    model, reference = (scores.get(name, {}) for name in asked.pair)
    found: dict[Any, list[float]] = {}
    for seeds, (own, other) in common_seeds(model, reference).items():
        found.setdefault(seeds[0], []).append(model[own] - reference[other])
    return found


def _means(by_set: Sequence[Mapping[Any, Sequence[float]]]) -> list[float]:
    seeds = dict.fromkeys(seed for of_set in by_set for seed in of_set)
    return [statistics.fmean(x for of_set in by_set for x in of_set.get(seed, ())) for seed in seeds]


def _over_trainings(
    fitted: TwoWay, asked: Contrast, by_set: Sequence[Mapping[Any, Sequence[float]]]
) -> Effect | None:
    effect = fitted.contrast(*asked.pair) if {*asked.pair} <= set(fitted.arms) else None
    if effect is None and all(by_set):  # without common seeds of training, or none that all sets have
        mean = statistics.fmean(statistics.fmean(_means([of_set])) for of_set in by_set)
        return Effect(mean, apart=len({tuple(of_set) for of_set in by_set}) > 1)
    return effect


def _in_percent(found: Mapping[str, Difference], sets: Sequence[str]) -> Effect | None:
    """The difference on other items in the mean over sets; None unless all of them have one."""
    if not all(name in found for name in sets):
        return None
    mean = macro([found[name] for name in sets]) if len(sets) > 1 else found[sets[0]]
    low, high = mean.interval
    return Effect(100 * mean.observed, 100 * low, 100 * high, mean.p)


def _corrected(found: Sequence[Comparison]) -> list[Comparison]:
    """Both p, each for as many tests of its kind as there are: on single sets, or of means."""
    made = list(found)
    for kind, several in itertools.product(('over_trainings', 'on_items'), (False, True)):
        family = [
            (at, effect)
            for at, one in enumerate(found)
            if (len(one.sets) > 1) == several and (effect := getattr(one, kind)) and effect.p is not None
        ]
        for (at, effect), p in zip(family, holm([effect.p for _, effect in family]), strict=True):
            made[at] = dataclasses.replace(made[at], **{kind: dataclasses.replace(effect, holm=p)})
    return made
