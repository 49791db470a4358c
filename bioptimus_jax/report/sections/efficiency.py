"""What it took to get somewhere: words, tokens, FLOPs, hours and energy, surgery included."""

import contextlib
import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.tensors import read_architecture
from bioptimus_jax.pretrain.throughput import forward_flops_per_token
from bioptimus_jax.records.metrics import Encoded, EncodedFlops
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, missing, spread
from bioptimus_jax.report.measures import NO_PHASES, Measures, scored_sets
from bioptimus_jax.report.section import Section

NOT_REPORTED = 'not reported'
LOSS = 'held-out loss'
LEVELS = 4
"""Levels of held-out loss, and of F1 on each set, that are asked for."""
STEPS_OF_LEVELS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
TOLERANCE = 1e-9
"""A level is had by what is so little below it."""
Points = list[tuple[int, float, str]]
"""Step, value (the higher the better), where."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """What was spent up to a step, contexts and surgery included; None: not on record. `words` are estimated from
    the tokens by the ratio of the training rows."""

    step: float
    tokens: float
    words: float | None
    flops: float | None
    seconds: float | None
    joules: float | None


def _hours(effort: Effort) -> Cell:
    hours = None if effort.seconds is None else effort.seconds / 3600
    return fixed(hours, 2 if hours is None or hours >= 1 else 3)


def _kwh(effort: Effort) -> Cell:
    kwh = None if effort.joules is None else effort.joules / 3.6e6
    return fixed(kwh, 3) if kwh is not None or not effort.step else Cell(NOT_REPORTED)


COLUMNS: Mapping[str, Callable[[Effort], Cell]] = {
    'steps': lambda effort: count(effort.step),
    'words': lambda effort: count(effort.words),
    'tokens': lambda effort: count(effort.tokens),
    'FLOPs': lambda effort: missing() if effort.flops is None else Cell(f'{effort.flops:.3g}', effort.flops),
    'hours': _hours,
    'kWh': _kwh,
}


def effort_at(m: Measures, step: int) -> Effort:
    """What a run has spent after so many steps."""
    before, records = _before(m), [r for r in m.spent if r.step <= step]
    if not records:
        return dataclasses.replace(before, step=step)
    last, rows = records[-1], m.rows_of()
    tokens = last.tokens
    words = tokens * (rows.words / rows.tokens) if rows and rows.tokens else None
    flops, seconds = (_plus(getattr(before, key), getattr(last, key)) for key in ('flops', 'seconds'))
    return Effort(step, tokens, words, flops, seconds, last.joules)


def efficiency(m: Measures) -> Table:
    """Step 0, every phase and snapshot against what was spent until then, loss and test F1."""
    steps = {x: step for x in m.on_the_way if m.trains and (step := m.step_of(x)) is not None}
    spent = {model: effort_at(m, step) for model, step in steps.items()}
    columns = [
        Column('until', m.label),
        *each({x: x for x in COLUMNS}, lambda what, model: COLUMNS[what](spent[model])),
        Column(
            'held-out loss', lambda model: fixed(end.frozen_loss if (end := m.phase_end(model)) else None)
        ),
        *each(scored_sets([m]), lambda d, model: spread(m.scores(model, d))),
    ]
    absent = 'stage pretrain has not been run.' if m.trains else NO_PHASES
    return Table.of('What it took', columns, steps, note=_note(m), absent=absent)


def to_reach(m: Measures) -> Table:
    """What it took to reach a held-out loss for the first time, or a mean devel F1 on a set."""
    records = []
    for name, points in aims_of(m).items():
        # The highest of several levels that are reached at the same place is told.
        highest = {first_at(points, level): level for level in levels([value for _, value, _ in points])}
        for (at, _, where), level in highest.items():
            records.append((f'{name} {abs(level):g}', where, effort_at(m, at)))
    columns = [
        Column('to reach', lambda what, where, effort: what),
        Column('first at', lambda what, where, effort: where),
        *each({x: x for x in COLUMNS}, lambda x, what, where, effort: COLUMNS[x](effort)),
    ]
    note = (
        'Levels between what step 0 has and the best; the first evaluation or scored model that is no worse.'
        ' It may have been reached earlier, between two of them. Chosen on devel, so that test keeps its meaning.'
    )
    absent = 'no evaluation improves on step 0 so far.' if m.trains else NO_PHASES
    return Table.of('What it takes to reach …', columns, records, note=note, absent=absent)


SECTION = Section(
    'Efficiency',
    'What a result cost: words, tokens, FLOPs, hours and energy, surgery included.',
    ('pretrain',),
    {'efficiency': efficiency, 'to_reach': to_reach},
)


def aims_of(m: Measures) -> dict[str, Points]:
    """What can be reached -> `(step, value, where)`, the higher the better: the loss is negative."""
    aims = {LOSS: [(step, -loss, f'step {step:,}') for step, loss in m.held_out.items()]}
    for dataset in m.datasets if m.trains else ():
        points = [
            (step, statistics.fmean(found), m.label(model))
            for model in m.on_the_way
            if (step := m.step_of(model)) is not None and (found := m.scores(model, dataset, 'devel'))
        ]
        if points:  # of a set that nothing is learned of there are none
            aims[f'devel {m.task(dataset).metric.label} on {dataset},'] = points
    return aims


def levels(values: list[float]) -> list[float]:
    """Round numbers, at most LEVELS, above the first value and up to the largest, in order."""
    if not values or max(values) <= values[0]:
        return []
    low, high = values[0], max(values)
    step = next((s for s in STEPS_OF_LEVELS if (high - low) / s <= LEVELS), (high - low) / LEVELS)
    first, last = math.floor(low / step) + 1, math.floor(high / step + TOLERANCE)
    return [round(step * number, 10) for number in range(first, last + 1)][-LEVELS:]


def first_at(points: Points, level: float) -> tuple[int, float, str]:
    """The first `(step, value, name)` whose value is at least `level`."""
    ordered = sorted(points, key=lambda point: point[0])
    return next(p for p in ordered if p[1] >= level - TOLERANCE)


def _before(m: Measures) -> Effort:
    """Surgery, and contexts where it read them. Reading sentences is no training: no words, no tokens."""
    stages = ('contexts', 'surgery') if 'contexts' in m.manifest_of('surgery').inputs else ('surgery',)
    seconds = [x for s in stages if (x := m.manifest_of(s).seconds) is not None]
    flops: float | None = 0.0
    if read := [r for r in m.encoded if isinstance(r, Encoded)]:
        with contextlib.suppress(InputError):  # the model of surgery may have been removed
            model = read_architecture(m.run.stage_folder('surgery') / 'model')
            flops = sum(r.pieces * forward_flops_per_token(model, r.attended, 0) for r in read)
    for r in m.encoded:
        if isinstance(r, EncodedFlops):  # of the record of a run
            flops = r.flops
    return Effort(0, 0, 0, flops, sum(seconds) if seconds else None, None)


def _plus(before: float | None, value: float | None) -> float | None:
    return value if before is None else None if value is None else before + value


def _note(m: Measures) -> str:
    note = (
        'Summed from the start: contexts and surgery, then the optimiser steps. FLOPs: those of `bioptimus plan`,'
        ' matrix products alone, with the lengths and rates of the batches. Hours: of the machine that it ran on,'
        ' evaluations left out. Words: from the tokens, by the ratio of the rows.'
    )
    if m.run.config.surgery.fit_steps:
        note += ' The gradient fit of the new rows counts in hours, not in FLOPs.'
    if any(r.joules is not None for r in m.spent):
        note += ' kWh: what the GPUs of the first process report (NVML) during the steps; not surgery, not the host.'
    else:
        note += ' kWh: no device reported its energy.'
    return note
