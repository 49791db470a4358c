"""What each of several arms took to reach a held-out loss or a score: words, FLOPs, hours and energy."""

import dataclasses
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.lab.trained import loss_measured_by
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, missing, spread
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.sections.efficiency import (
    COLUMNS,
    LOSS,
    TOLERANCE,
    Effort,
    Points,
    aims_of,
    effort_at,
    first_at,
)


def arms(
    groups: Mapping[str, Sequence[Measures]], losses: Sequence[float] = (), f1: Sequence[float] = ()
) -> Table:
    """What every arm took to a held-out loss and to a devel F1 on each set, mean over its seeds.

    Levels: `losses` and `f1` where they are given, else what all of the arms reach.
    """
    left_out = _of_other_losses(groups)
    measured = {arm: [(m, aims_of(m)) for m in group] for arm, group in groups.items()}
    records = []
    for name in dict.fromkeys(name for seeds in measured.values() for _, aims in seeds for name in aims):
        aims = _seeds_with(name, measured, left_out if name == LOSS else ())
        if len(aims) < min(2, len(groups)):
            continue
        given = [-level for level in losses] if name == LOSS else list(f1)
        for level in given or [min(_best(points) for seeds in aims.values() for _, points in seeds)]:
            shown = f'{name} {abs(level):.4g}'
            records += [(shown, arm, len(seeds), *_reached(seeds, level)) for arm, seeds in aims.items()]
    columns = [
        Column('to reach', lambda what, arm, seeds, where, cells: what),
        Column('arm', lambda what, arm, seeds, where, cells: arm),
        Column('first at', lambda what, arm, seeds, where, cells: where),
        *each({x: x for x in COLUMNS}, lambda x, what, arm, seeds, where, cells: cells[x], 'low'),
        Column('seeds', lambda what, arm, seeds, where, cells: count(seeds)),
    ]
    note = (
        'The first evaluation or scored model no worse; means over seeds, steps ± sd. A level that was not given is the'
        ' best of the arm and seed that get least far. Empty: not reached by every seed. ≤: the first scored model'
        ' of a seed has it, and an earlier one may have had it, so it is not ranked. Contexts and surgery are'
        ' counted. Hours compare only on one machine.'
    )
    if left_out:
        left = ', '.join(left_out)
        note += (
            ' Vocabularies or held-out texts and masks differ, so losses per piece are not comparable.'
            f' Left out there: {left}.'
        )
    absent = 'these runs have no evaluation or score in common.'
    return Table.of('What each arm took', columns, records, rank_within='to reach', note=note, absent=absent)


def _of_other_losses(groups: Mapping[str, Sequence[Measures]]) -> list[str]:
    """The arms whose held-out losses are of other pieces, documents or masks than those of most of them."""
    own = {arm: frozenset(map(loss_measured_by, group)) for arm, group in groups.items()}
    most = next((value for value, _ in Counter(own.values()).most_common(1)), frozenset())
    return [arm for arm in groups if own[arm] != most]


def _seeds_with(
    name: str, measured: Mapping[str, Sequence[tuple[Measures, dict[str, Points]]]], left_out: Sequence[str]
) -> dict[str, list[tuple[Measures, Points]]]:
    """Arm -> its seeds that have something of this name to reach."""
    found = {
        arm: [(m, aims[name]) for m, aims in seeds if aims.get(name)]
        for arm, seeds in measured.items()
        if arm not in left_out
    }
    return {arm: seeds for arm, seeds in found.items() if seeds}


def _best(points: Points) -> float:
    return max(value for _, value, _ in points)


def _reached(seeds: Sequence[tuple[Measures, Points]], level: float) -> tuple[str, Mapping[str, Cell]]:
    """Where and with what the seeds of an arm have a level; empty where one of them never has it."""
    got = [(m, first_at(points, level)) for m, points in seeds if _best(points) >= level - TOLERANCE]
    if len(got) < len(seeds):
        where = f'by {len(got)} of {len(seeds)} seeds' if got else 'not reached'
        return where, dict.fromkeys(COLUMNS, missing())
    efforts = [effort_at(m, step) for m, (step, _, _) in got]
    where = ', '.join(dict.fromkeys(place for _, (_, _, place) in got))
    mean = _mean(efforts)
    cells = {name: cell(mean) for name, cell in COLUMNS.items()}
    cells['steps'] = spread([e.step for e in efforts], 0)
    # Step 0 is exact; for later models the first one scored gives only an upper bound.
    firsts = [min(step for step, _, _ in points) for _, points in seeds]
    if any(0 < e.step == first for e, first in zip(efforts, firsts, strict=True)):
        cells = {x: c if c.value is None else Cell(f'≤ {c.text}') for x, c in cells.items()}
    return where, cells


def _mean(efforts: Sequence[Effort]) -> Effort:
    """The mean effort of several seeds; what one of them has not on record is not on record."""

    def mean(values: Sequence[Any]) -> Any:
        return None if None in values else statistics.fmean(values)

    return Effort(*map(mean, zip(*map(dataclasses.astuple, efforts), strict=True)))
