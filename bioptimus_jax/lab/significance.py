"""Rows of a table against the row that they are compared with, set by set and over the sets."""

from collections.abc import Mapping, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.task import score_of
from bioptimus_jax.finetuning.units import pairing_of_units
from bioptimus_jax.lab.questions import Row
from bioptimus_jax.report.cells import units_of
from bioptimus_jax.scoring import comparison
from bioptimus_jax.scoring.comparison import Comparison, Contrast, Pairing, SeedKey, common_seeds

Pairs = Sequence[tuple[Row, Row]]
"""Each row, and the one that it is compared with."""


def compare(pairs: Pairs, rows: Sequence[Row], datasets: Sequence[str]) -> tuple[list[Comparison], list[str]]:
    """Every (row, reference) on every set that both have, and over the sets; and what could not be compared, in words.

    Cells are paired by seeds of pre-training and of fine-tuning; noise is pooled over all `rows` that have the sets.
    """
    scores = {
        d: {
            r.label: {seeds: 100 * score_of(cell, 'test') for seeds, (_, cell) in r.cells(d).items()}
            for r in rows
        }
        for d in datasets
    }
    single: list[Contrast] = []
    means: list[Contrast] = []
    pairings: dict[tuple[str, str], list[Pairing]] = {}
    problems: dict[str, list[str]] = {}
    for row, reference in pairs:
        names = row.label, reference.label
        shared = {d: common_seeds(*(scores[d][name] for name in names)) for d in datasets}
        over = tuple(d for d, seeds in shared.items() if seeds)
        single += [Contrast(*names, (d,)) for d in over]
        pairings[names] = []
        for dataset in over:
            try:
                pairings[names].append(_pairing(row, reference, dataset, shared[dataset]))
            except InputError as error:
                problems.setdefault(str(error), []).append(f'{" and ".join(names)} on {dataset}')
        if len({tuple(shared[d]) for d in over}) > 1:
            why = f'no mean over {", ".join(over)}: other seeds'
            problems.setdefault(why, []).append(' and '.join(names))
        elif len(over) > 1:
            means.append(Contrast(*names, over))
    said = [why if len(who) == len(single) else f'{"; ".join(who)}: {why}' for why, who in problems.items()]
    return comparison.compare(scores, [*single, *means], pairings), said


def _pairing(
    row: Row,
    reference: Row,
    dataset: str,
    shared: Mapping[SeedKey, tuple[SeedKey, SeedKey]],
) -> Pairing:
    """Both rows' predictions by common seeds. Raises InputError where predictions lack."""
    own, other = (
        [units_of(*side.cells(dataset)[seeds[at]]) for seeds in shared.values()]
        for at, side in enumerate((row, reference))
    )
    return pairing_of_units(dataset, shared, other, own)
