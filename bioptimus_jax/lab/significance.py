"""Rows of a table against the row that they are compared with, set by set and over the sets.

Two tests, which answer two questions. Over pre-trainings (the first one, whose mark stands beside scores): would
trainings with other seeds differ so? Arms and seeds in two ways, `student.TwoWay`. On other test items: would these
trained models differ so on more such text? Bootstrap and randomisation of `finetune.statistics`, which know these
models alone.
"""

import dataclasses
import functools
import statistics
from collections.abc import Callable, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.statistics import Difference, holm, macro
from bioptimus_jax.finetune.task import score_of
from bioptimus_jax.finetune.verdict import ALPHA, Pairing, corrected, differences_of
from bioptimus_jax.lab.questions import Row
from bioptimus_jax.report.cells import units_of
from bioptimus_jax.scoring.student import Effect, TwoWay

MACRO = 'mean of the sets'
Pairs = Sequence[tuple[Row, Row]]
"""Each row, and the one that it is compared with."""
DIFFERS = '†'
Key = tuple[int | None, int]
"""Seeds of pre-training and of fine-tuning."""


@dataclasses.dataclass(frozen=True)
class Compared:
    """A row less its reference on one set (or on MACRO), F1 in percent. Both p are corrected, each within its family.

    `over_seeds`: over pre-trainings; without p where there is one. `by_seed`: the difference with each, the mean of
    its fine-tunings. `on_items`: of these models, None where their predictions are not at hand; `p_on_items` its p.
    `over`: the sets of a mean.
    """

    row: str
    reference: str
    dataset: str
    over_seeds: Effect
    by_seed: tuple[float, ...]
    on_items: Difference | None = None
    p_on_items: float | None = None
    over: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """DIFFERS where the test over pre-trainings says so."""
        p = self.over_seeds.p
        return DIFFERS if p is not None and p < ALPHA else ''


def compare(pairs: Pairs, rows: Sequence[Row], datasets: Sequence[str]) -> tuple[list[Compared], list[str]]:
    """Every (row, reference) on every set that both have, and over the sets; and what could not be compared, in words.

    Cells are paired by seeds; the noise over seeds is pooled over all `rows` that have the sets. Holm's correction
    counts the means over sets, which come first, and by themselves all single sets of the table.
    """
    single: list[Compared] = []
    means: list[Compared] = []
    problems: dict[str, list[str]] = {}
    fitted = functools.cache(functools.partial(_fitted, tuple(rows)))
    for row, reference in pairs:
        shared = {d: _common(row, reference, d) for d in datasets}
        over = tuple(d for d, keys in shared.items() if keys)
        on_items = _on_items(row, reference, over, problems)
        for dataset in over:
            single.append(_compared(row, reference, (dataset,), dataset, fitted, on_items.get(dataset)))
        if len({tuple(shared[d]) for d in over}) > 1:
            _add(problems, f'no mean over {", ".join(over)}: other seeds', row, reference)
        elif len(over) > 1:
            mean = macro([on_items[d] for d in over]) if set(over) <= set(on_items) else None
            means.append(_compared(row, reference, over, MACRO, fitted, mean))
    said = [why if len(who) == len(single) else f'{"; ".join(who)}: {why}' for why, who in problems.items()]
    return [*_corrected(single), *_corrected(means)], said


def _add(problems: dict[str, list[str]], why: str, row: Row, reference: Row, on: str = '') -> None:
    problems.setdefault(why, []).append(f'{row.label} and {reference.label}{on and f" on {on}"}')


def _fitted(rows: tuple[Row, ...], datasets: tuple[str, ...]) -> TwoWay:
    """The fit over the rows that have all of these sets; a model that was given as a folder is no training of ours."""
    found = {r.label: r.by_training(*datasets) for r in rows if all(map(r.cells, datasets))}
    known = {label: {s: f1 for s, f1 in scores.items() if s is not None} for label, scores in found.items()}
    return TwoWay({label: scores for label, scores in known.items() if scores})


def _compared(
    row: Row,
    reference: Row,
    datasets: tuple[str, ...],
    name: str,
    fitted: Callable[[tuple[str, ...]], TwoWay],
    items: Difference | None,
) -> Compared:
    by_seed: dict[int | None, list[float]] = {}
    for dataset in datasets:
        cells = row.cells(dataset), reference.cells(dataset)
        for (seed, _), keys in _common(row, reference, dataset).items():
            one, other = (score_of(side[key][1], 'test') for side, key in zip(cells, keys, strict=True))
            by_seed.setdefault(seed, []).append(100 * (one - other))
    differences = tuple(map(statistics.fmean, by_seed.values()))
    names, two_way = (row.label, reference.label), fitted(datasets)
    effect = two_way.contrast(*names) if {*names} <= set(two_way.arms) else None
    effect = effect or Effect(statistics.fmean(differences))
    over, p = datasets if name == MACRO else (), items.p if items else None
    return Compared(*names, name, effect, differences, items, p, over)


def _corrected(family: Sequence[Compared]) -> list[Compared]:
    """Both p, each for as many tests of its kind as there are."""
    seeds = corrected([c.over_seeds for c in family])
    items = iter(holm([c.p_on_items for c in family if c.p_on_items is not None]))
    return [
        dataclasses.replace(c, over_seeds=e, p_on_items=None if c.p_on_items is None else next(items))
        for c, e in zip(family, seeds, strict=True)
    ]


def _on_items(
    row: Row, reference: Row, datasets: Sequence[str], problems: dict[str, list[str]]
) -> dict[str, Difference]:
    """Set -> these models on other test items; what is missing for it is added to `problems`."""
    pairings = []
    for dataset in datasets:
        try:
            pairings.append(_pairing(row, reference, dataset))
        except InputError as error:
            _add(problems, str(error), row, reference, dataset)
    return dict(zip((p.dataset for p in pairings), differences_of(pairings), strict=True))


def _pairing(row: Row, reference: Row, dataset: str) -> Pairing:
    """Reference and row over common seeds. InputError where predictions lack."""
    common = _common(row, reference, dataset)
    one, other = (
        [units_of(*side.cells(dataset)[keys[n]]) for keys in common.values()]
        for n, side in enumerate((row, reference))
    )
    return Pairing.of(dataset, common, other, one)


def _common(row: Row, reference: Row, dataset: str) -> dict[Key, tuple[Key, Key]]:
    """Seeds of pre-training and of fine-tuning -> those of both sides, on a set.

    A model that was given as a folder has no seed of pre-training: it is paired by that of fine-tuning alone, with
    every pre-training of the other.
    """
    a, b = row.cells(dataset), reference.cells(dataset)
    found = {}
    for key in b if any(seed is None for seed, _ in a) else a:
        one, other = (key if key in side else (None, key[1]) for side in (a, b))
        if one in a and other in b:
            found[key] = one, other
    return found
