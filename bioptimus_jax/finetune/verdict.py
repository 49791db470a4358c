"""Is one model better than another at a task? Two folders of stage `finetune` against each other, set by set.

The verdict is over fine-tunings, which differ by their seeds: the paired t-test. What these fine-tuned models would do
on other test items stands below it. Other pre-trainings are in neither: `bioptimus report` takes several runs.
"""

import dataclasses
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.finished import FinishedModel, read_model
from bioptimus_jax.finetune.statistics import RESAMPLES, Difference, failures, holm, macro, mean_score, paired
from bioptimus_jax.finetune.task import task_of
from bioptimus_jax.finetune.units import Units, read_units
from bioptimus_jax.scoring.metrics import Metric
from bioptimus_jax.scoring.student import Effect, TwoWay, bracketed

ALPHA = 0.05
ON_ITEMS = 'these fine-tuned models on other test items: B - A = '
NOTE = (
    '{measures}, percent, mean ± sd over seeds. [95 % interval] and p, '
    "over fine-tunings: Student's paired t over seeds, on these test items; on other test items: paired bootstrap and "
    'randomisation, of these fine-tuned models. Both p are corrected for {sets} (Holm). Neither accounts for other '
    'pre-trainings, which vary more: give `bioptimus report` several runs of each.'
)


@dataclasses.dataclass(frozen=True)
class Pairing:
    """One set: the test predictions of both models by common seeds, as counts over the same units."""

    dataset: str
    metric: Metric
    seeds: tuple[Any, ...]  # of fine-tuning; or pairs, of pre-training and of fine-tuning
    unit: str
    text: str  # digest: sets with the same text are drawn together
    a_SxUxC: np.ndarray
    b_SxUxC: np.ndarray
    notes: tuple[str, ...] = ()
    failed: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, dataset: str, seeds: Iterable[Any], a: Sequence[Units], b: Sequence[Units], **said: Any
    ) -> 'Pairing':
        """The pairing of both models' predictions by seeds. Raises InputError unless all are of one text with one gold
        standard."""
        for units in (*a, *b):
            a[0].check_same_items(units)
        a_SxUxC, b_SxUxC = (np.stack([units.counts_UxC for units in side]) for side in (a, b))
        first = a[0]
        return cls(dataset, first.task.metric, tuple(seeds), first.kind, first.text, a_SxUxC, b_SxUxC, **said)

    def without_failed(self) -> 'Pairing':
        """The seeds with which neither model failed."""
        at = [i for i, seed in enumerate(self.seeds) if seed not in self.failed]
        seeds = tuple(self.seeds[i] for i in at)
        return dataclasses.replace(
            self, seeds=seeds, a_SxUxC=self.a_SxUxC[at], b_SxUxC=self.b_SxUxC[at], failed=()
        )


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two models on the sets that both have: each set, and the mean over sets, over fine-tunings and on other items."""

    found: Sequence['Compared']
    effect: Effect
    items: Difference

    @property
    def measures(self) -> list[Metric]:
        return list(dict.fromkeys(one.pairing.metric for one in self.found))

    @property
    def label(self) -> str:
        """What the mean over sets is in."""
        labels = {metric.label for metric in self.measures}
        return labels.pop() if len(labels) == 1 else 'points'

    @property
    def sets(self) -> str:
        return _number(len(self.found), 'set')


def compare(a: FinishedModel, b: FinishedModel) -> Comparison:
    """B less A. Raises InputError where they have no set or seed in common, learned another task, or other text."""
    common = [name for name in a.cells if name in b.cells]
    if not common:
        names = [', '.join(model.cells) for model in (a, b)]
        raise InputError(f'{a.folder} has {names[0]}, but {b.folder} has {names[1]}: no set in common')
    pairings = [pairing_of(name, a, b) for name in common]
    found = compared(pairings)
    return Comparison(found, _over_seeds(_mean_by_seed(pairings)), macro([each.items for each in found]))


def compare_models(a: str, b: str) -> list[str]:
    """The lines that `bioptimus compare --models A B` prints: a verdict for each set and one over all.

    `a`, `b`: RUN/finetune/MODEL, or a folder below it, with :SETTING behind it where there are several settings. Raises
    InputError where the two cannot be compared.
    """
    first, second = read_model(a), read_model(b)
    both = compare(first, second)
    lines = [f'{side}: {m.folder} ({m.name}, {m.setting})' for side, m in (('A', first), ('B', second))]
    for side, one, other in (('A', first, second), ('B', second, first)):
        if one.left_out:
            cells = _number(one.left_out, 'cell')
            lines.append(f'{side}: {cells} in its folder left out, of an earlier configuration')
        lines += [f'{name}: only {side} has it' for name in one.cells if name not in other.cells]
    for each in both.found:
        pairing, label = each.pairing, each.pairing.metric.label
        lines.append(f'{pairing.dataset}: {verdict(each.effect, label)} ({_material(pairing)})')
        items = f'{ON_ITEMS}{on_items(label, each.items, each.p_items)}'
        lines += [f'  {note}' for note in (items, *pairing.notes, *_without_failed(pairing))]
    wins = [winner_of(each.effect) for each in both.found]
    untested = sum(each.effect.p is None for each in both.found)
    tally = f'A better on {wins.count("A")}, B on {wins.count("B")}, not distinguishable on {wins.count("") - untested}'
    tally += f', not tested on {untested}' if untested else ''
    lines.append(f'all {both.sets}: {verdict(both.effect, both.label)} (mean over sets; {tally})')
    lines.append(f'  {ON_ITEMS}{on_items(both.label, both.items, both.items.p)}')
    meant = '; '.join(f'{metric.label}: {metric.meaning}' for metric in both.measures)
    return [*lines, NOTE.format(sets=both.sets, measures=meant)]


def verdict(effect: Effect, label: str, a: str = 'A', b: str = 'B') -> str:
    """`over fine-tunings B is better than A by 1.23 F1 [0.40, 2.01], p = 0.004`, or that nothing can be said."""
    if effect.half is None or effect.p is None:
        return (
            f'{effect.untested}, so not tested over fine-tunings: {b} - {a} = {effect.observed:.2f} {label}'
        )
    winner = winner_of(effect)
    by = -effect.observed if winner == 'A' else effect.observed
    numbers = _numbers(label, by, by - effect.half, by + effect.half, effect.p)
    if winner:
        better, worse = (b, a) if winner == 'B' else (a, b)
        return f'over fine-tunings {better} is better than {worse} by {numbers}'
    return f'not distinguishable over fine-tunings: {b} - {a} = {numbers}'


def pairing_of(dataset: str, a: FinishedModel, b: FinishedModel) -> Pairing:
    """A set by the seeds that both have. Raises InputError where there are none, or where other text was scored."""
    once = [model.is_one_run(dataset) for model in (a, b)]
    cells = a.beside(dataset, b.cells[dataset]), b.beside(dataset, a.cells[dataset])
    if all(once):
        cells = a.beside(dataset, [0]), b.beside(dataset, [0])
    seeds = sorted(cells[0].keys() & cells[1].keys())
    if not seeds:
        have = [', '.join(map(str, sorted(m.cells[dataset]))) for m in (a, b)]
        raise InputError(
            f'{dataset}: {a.folder} has seeds {have[0]}, but {b.folder} {have[1]}: none in common'
        )
    notes, failed = [], set()
    for side, model, own in (('A', a, cells[0]), ('B', b, cells[1])):
        if own != model.cells[dataset]:
            several = len(model.cells[dataset]) > 1
            one = (
                'predicts the same with every seed' if several else 'is one set of predictions without a seed'
            )
            paired_with = ', which is one run' if all(once) else ': it is paired with every seed of the other'
            notes.append(f'{side} {one}{paired_with}')
        alone = sorted(own.keys() - set(seeds))
        if alone:
            notes.append(f'left out, because only {side} has them: seeds {", ".join(map(str, alone))}')
        for seed, reason in failures(dict(model.records[dataset])).items():
            notes.append(f'{side}, seed {seed}, failed: {reason}')
            failed.add(seed)
    tasks = dict.fromkeys(task_of(r) for m in (a, b) for r in m.records[dataset].values())
    if len(tasks) > 1:
        names = ' and '.join(type(task).__name__ for task in tasks)
        raise InputError(f'{dataset}: {a.folder} and {b.folder} learned different tasks from it: {names}')
    (task,) = tasks
    sides = [[read_units(own[seed] / task.files[0], task) for seed in seeds] for own in cells]
    in_both = tuple(seed for seed in seeds if seed in failed)
    return Pairing.of(dataset, seeds, *sides, notes=tuple(notes), failed=in_both)


@dataclasses.dataclass(frozen=True)
class Compared:
    """One set: B less A over fine-tunings, and of these fine-tuned models on other test items; p corrected (Holm)."""

    pairing: Pairing
    effect: Effect
    items: Difference
    p_items: float


def compared(pairings: Sequence[Pairing]) -> list[Compared]:
    """Both tests of every set."""
    effects = corrected([_over_seeds(_by_seed(p)) for p in pairings])
    differences = differences_of(pairings)
    p_values = holm([d.p for d in differences])
    return [Compared(*row) for row in zip(pairings, effects, differences, p_values, strict=True)]


def differences_of(pairings: Sequence[Pairing]) -> list[Difference]:
    """One for each set. Those over one text (BC5-chem, BC5-disease) are not independent: they are drawn together."""
    found: dict[str, Difference] = {}
    for number, key in enumerate(dict.fromkeys((p.text, p.metric) for p in pairings)):
        group = [p for p in pairings if (p.text, p.metric) == key]
        sides = [p.a_SxUxC for p in group], [p.b_SxUxC for p in group]
        # `macro` averages draws of several texts: they are independent only with a stream for each text.
        results = paired(key[1], *sides, RESAMPLES, seed=number)
        found.update(zip((p.dataset for p in group), results, strict=True))
    return [found[p.dataset] for p in pairings]


def _without_failed(pairing: Pairing) -> list[str]:
    if not pairing.failed:
        return []
    left = pairing.without_failed()
    if not left.seeds:
        return ['without failed runs no seed is left']
    found = verdict(_over_seeds(_by_seed(left)), left.metric.label)
    return [f'without failed runs: {found} ({_material(left)}; not corrected)']


def _over_seeds(scores_2xS: Sequence[Sequence[float]]) -> Effect:
    """B less A, in percent, over the seeds that both have."""
    sides = {side: dict(enumerate(scores)) for side, scores in zip('AB', scores_2xS, strict=True)}
    effect = TwoWay(sides).contrast('B', 'A')
    assert effect is not None  # the seeds are the same
    return effect


def corrected(effects: Sequence[Effect]) -> list[Effect]:
    """Effects with p corrected after Holm for as many as have one."""
    known = iter(holm([effect.p for effect in effects if effect.p is not None]))
    return [e if e.p is None else dataclasses.replace(e, p=next(known)) for e in effects]


def _mean_by_seed(pairings: Sequence[Pairing]) -> list[list[float]]:
    """Scores of A and of B, the mean over sets, by seeds that all sets have; without any, the means over seeds."""
    of_sets = [[dict(zip(p.seeds, side, strict=True)) for side in _by_seed(p)] for p in pairings]
    seeds = [s for s in pairings[0].seeds if all(s in sides[0] for sides in of_sets)]
    if not seeds:
        return [[statistics.fmean(statistics.fmean(sides[n].values()) for sides in of_sets)] for n in (0, 1)]
    return [[statistics.fmean(sides[n][s] for sides in of_sets) for s in seeds] for n in (0, 1)]


def on_items(label: str, difference: Difference, p: float) -> str:
    """What the same fine-tuned models differ by on other test items."""
    low, high = (100 * end for end in difference.interval)
    return _numbers(label, 100 * difference.observed, low, high, p)


def _numbers(label: str, by: float, low: float, high: float, p: float) -> str:
    return f'{by:.2f} {label} {bracketed(low, high)}, p = {p:.{3 if p >= 0.001 else 4}f}'


def _by_seed(pairing: Pairing) -> list[list[float]]:
    """Scores in percent of A and of B, by seed."""
    return [
        [100 * mean_score(pairing.metric, seed[None]) for seed in side]
        for side in (pairing.a_SxUxC, pairing.b_SxUxC)
    ]


def _material(pairing: Pairing) -> str:
    scores = _by_seed(pairing)
    parts = [f'{_number(len(pairing.seeds), "seed")}, {_number(pairing.a_SxUxC.shape[1], pairing.unit[:-1])}']
    parts.append(', '.join(f'{name} {_spread(values)}' for name, values in zip('AB', scores, strict=True)))
    if len(pairing.seeds) > 1:
        parts.append('by seed ' + ' '.join(f'{y - x:+.2f}' for x, y in zip(*scores, strict=True)))
    return '; '.join(parts)


def _spread(values: Sequence[float]) -> str:
    mean = f'{statistics.fmean(values):.2f}'
    return f'{mean} ± {statistics.stdev(values):.2f}' if len(values) > 1 else mean


def winner_of(effect: Effect) -> str:
    """A or B, or '' where fine-tunings do not tell the two apart."""
    if effect.p is None or effect.p >= ALPHA:
        return ''
    return 'B' if effect.observed > 0 else 'A'


def _number(count: int, noun: str) -> str:
    return f'{count:,} {noun}' if count == 1 else f'{count:,} {noun}s'
