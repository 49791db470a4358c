"""Is one model better than another at a task? Two folders of stage `finetune` against each other, set by set.

The verdict is over fine-tunings, which differ by their seeds: the paired t-test. What these fine-tuned models would do
on other test items stands below it. Other pre-trainings are in neither: `bioptimus report` takes several runs.
"""

import dataclasses
import statistics
from collections.abc import Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.differing import differences
from bioptimus_jax.finetuning.finished import FinishedModel, read_model
from bioptimus_jax.finetuning.statistics import failures
from bioptimus_jax.finetuning.task import task_of
from bioptimus_jax.finetuning.units import pairing_of_units, read_units
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.scoring.comparison import Comparison, Contrast, Pairing, SeedKey, compare
from bioptimus_jax.scoring.metrics import Metric
from bioptimus_jax.scoring.student import Effect, bracketed

ON_ITEMS = 'these fine-tuned models on other test items: B - A = '
NOTE = (
    '{measures}, percent, mean ± sd over seeds. [95 % interval] and p, '
    "over fine-tunings: Student's paired t over seeds, on these test items; on other test items: paired bootstrap and "
    'randomisation, of these fine-tuned models. Both p are corrected for {sets} (Holm). Neither accounts for other '
    'pre-trainings, which vary more: give `bioptimus report` several runs of each.'
)


@dataclasses.dataclass(frozen=True)
class PairedSet:
    """Both models on one set: what they predict by common seeds, B less A, what is odd, and the seeds that failed."""

    pairing: Pairing
    notes: tuple[str, ...] = ()
    failed: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class ModelComparison:
    """Two models on the sets that both have: B less A on each, and in the mean over them."""

    of_sets: Sequence[PairedSet]
    found: Sequence[Comparison]
    overall: Comparison

    @property
    def measures(self) -> list[Metric]:
        return list(dict.fromkeys(one.pairing.metric for one in self.of_sets))

    @property
    def label(self) -> str:
        """What the mean over sets is in."""
        labels = {metric.label for metric in self.measures}
        return labels.pop() if len(labels) == 1 else 'points'

    @property
    def sets(self) -> str:
        return numbered(len(self.of_sets), 'set')


def compare_both(a: FinishedModel, b: FinishedModel) -> ModelComparison:
    """B less A. Raises InputError where they have no set or seed in common, learned another task, or other text."""
    common = [name for name in a.cells if name in b.cells]
    if not common:
        names = [', '.join(model.cells) for model in (a, b)]
        raise InputError(f'{a.folder} has {names[0]}, but {b.folder} has {names[1]}: no set in common')
    of_sets = [paired_set(name, a, b) for name in common]
    *found, overall = compared([one.pairing for one in of_sets], mean=True)
    return ModelComparison(of_sets, found or [overall], overall)


def compared(pairings: Sequence[Pairing], mean: bool = False) -> list[Comparison]:
    """B less A on each set, by the seeds of fine-tuning; with `mean` also over several of them, which comes last."""
    asked: list[tuple[str, ...]] = [(p.dataset,) for p in pairings]
    if mean and len(pairings) > 1:
        asked.append(tuple(p.dataset for p in pairings))
    scores: dict[str, dict[str, dict[SeedKey, float]]] = {}
    for p in pairings:
        sides = {side: zip(p.seeds, values, strict=True) for side, values in p.scores.items()}
        scores[p.dataset] = {side: {(seed,): x for seed, x in found} for side, found in sides.items()}
    return compare(scores, [Contrast('B', 'A', sets) for sets in asked], {('B', 'A'): pairings})


def compare_models(a: str, b: str) -> list[str]:
    """The lines that `bioptimus compare --models A B` prints: a verdict for each set and one over all.

    `a`, `b`: RUN/finetune/MODEL, or a folder below it, with :SETTING behind it where there are several settings. Raises
    InputError where the two cannot be compared.
    """
    first, second = read_model(a), read_model(b)
    both = compare_both(first, second)
    lines = [f'{side}: {m.folder} ({m.name}, {m.setting})' for side, m in (('A', first), ('B', second))]
    for side, one, other in (('A', first, second), ('B', second, first)):
        if one.left_out:
            cells = numbered(one.left_out, 'cell')
            lines.append(f'{side}: {cells} in its folder left out, of an earlier configuration')
        lines += [f'{name}: only {side} has it' for name in one.cells if name not in other.cells]
    lines += differences(first, second)
    for each, of_both in zip(both.found, both.of_sets, strict=True):
        label = of_both.pairing.metric.label
        lines.append(f'{of_both.pairing.dataset}: {verdict(each, label)} ({_material(of_both.pairing)})')
        items = f'{ON_ITEMS}{on_items(label, each)}'
        lines += [f'  {note}' for note in (items, *of_both.notes, *_without_failed(of_both))]
    wins = [winner_of(each.over_trainings) for each in both.found]
    untested = sum(each.over_trainings.p is None for each in both.found)
    tally = f'A better on {wins.count("A")}, B on {wins.count("B")}, not distinguishable on {wins.count("") - untested}'
    tally += f', not tested on {untested}' if untested else ''
    lines.append(f'all {both.sets}: {verdict(both.overall, both.label)} (mean over sets; {tally})')
    lines.append(f'  {ON_ITEMS}{on_items(both.label, both.overall)}')
    if len({one.pairing.seeds for one in both.of_sets}) > 1:
        shared = sorted(set.intersection(*({*one.pairing.seeds} for one in both.of_sets)))
        by = (
            f'by seeds {", ".join(map(str, shared))}, which all sets have'
            if shared
            else 'by no seed: none has all'
        )
        lines.append(f'  the mean over sets is tested {by}; on other test items it is of all seeds')
    meant = '; '.join(f'{metric.label}: {metric.meaning}' for metric in both.measures)
    return [*lines, NOTE.format(sets=both.sets, measures=meant)]


def verdict(found: Comparison, label: str, a: str = 'A', b: str = 'B') -> str:
    """`over fine-tunings B is better than A by 1.23 F1 [0.40, 2.01], p = 0.004`, or that nothing can be said."""
    effect = found.over_trainings
    if effect.p is None:
        return (
            f'{effect.untested}, so not tested over fine-tunings: {b} - {a} = {effect.observed:.2f} {label}'
        )
    if winner := winner_of(effect):
        turned = dataclasses.replace(effect, observed=-effect.observed, low=-effect.high, high=-effect.low)
        better, worse, by = (b, a, effect) if winner == 'B' else (a, b, turned)
        return f'over fine-tunings {better} is better than {worse} by {_numbers(label, by)}'
    return f'not distinguishable over fine-tunings: {b} - {a} = {_numbers(label, effect)}'


def paired_set(dataset: str, a: FinishedModel, b: FinishedModel) -> PairedSet:
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
        for seed, reason in failures(model.records[dataset]).items():
            notes.append(f'{side}, seed {seed}, failed: {reason}')
            failed.add(seed)
    nothing = {n: x for m in (a, b) for r in m.records[dataset].values() for n, x in r.baselines.items()}
    if nothing:
        said = ', '.join(f'{name} {100 * score:.2f}' for name, score in nothing.items())
        notes.append(f'without a model: {said}')
    tasks = dict.fromkeys(task_of(r) for m in (a, b) for r in m.records[dataset].values())
    if len(tasks) > 1:
        names = ' and '.join(type(task).__name__ for task in tasks)
        raise InputError(f'{dataset}: {a.folder} and {b.folder} learned different tasks from it: {names}')
    (task,) = tasks
    sides = [[read_units(own[seed] / task.files[0], task) for seed in seeds] for own in cells]
    in_both = tuple(seed for seed in seeds if seed in failed)
    return PairedSet(pairing_of_units(dataset, seeds, *sides), tuple(notes), in_both)


def _without_failed(one: PairedSet) -> list[str]:
    """The same of the seeds with which neither model failed, where some did."""
    if not one.failed:
        return []
    left = [seed for seed in one.pairing.seeds if seed not in one.failed]
    if not left:
        return ['without failed runs no seed is left']
    pairing = one.pairing.at(left)
    said = verdict(compared([pairing])[0], pairing.metric.label)
    return [f'without failed runs: {said} ({_material(pairing)}; not corrected)']


def on_items(label: str, found: Comparison) -> str:
    """What the same fine-tuned models differ by on other test items."""
    assert found.on_items is not None  # pairings are of predictions
    return _numbers(label, found.on_items)


def _numbers(label: str, by: Effect) -> str:
    assert by.holm is not None
    p = f'{by.holm:.{3 if by.holm >= 0.001 else 4}f}'
    return f'{by.observed:.2f} {label} {bracketed(*by.ends)}, p = {p}'


def _material(pairing: Pairing) -> str:
    scores = pairing.scores
    parts = [f'{numbered(len(pairing.seeds), "seed")}, {numbered(pairing.units, pairing.unit[:-1])}']
    parts.append(', '.join(f'{name} {_spread(values)}' for name, values in scores.items()))
    if len(pairing.seeds) > 1:
        parts.append('by seed ' + ' '.join(f'{y - x:+.2f}' for x, y in zip(*scores.values(), strict=True)))
    return '; '.join(parts)


def _spread(values: Sequence[float]) -> str:
    mean = f'{statistics.fmean(values):.2f}'
    return f'{mean} ± {statistics.stdev(values):.2f}' if len(values) > 1 else mean


def winner_of(effect: Effect) -> str:
    """A or B, or '' where the test does not tell the two apart."""
    return {1: 'B', -1: 'A'}.get(effect.sign, '')
