"""Goodput: the share of the wall time of pre-training that trained, and where the rest went."""

import time

from bioptimus_jax.pretrain.goodput import IDLE, account, processes, ran
from bioptimus_jax.progress.console import clock, numbered
from bioptimus_jax.report.layout import Cell, Column, Table, count, missing, percent
from bioptimus_jax.report.measures import NO_PHASES, Measures
from bioptimus_jax.report.section import Section


def goodput(m: Measures) -> Table:
    """Every span: its time, and its share of all of the time and of that in which a process ran."""
    found = account(m.clock)
    whole = sum(found.values())
    running = whole - found[IDLE]
    columns = [
        Column('span', lambda span: span),
        Column('time', lambda span: Cell(clock(found[span]), round(found[span], 3))),
        Column(
            'of the time it ran', lambda span: missing() if span == IDLE else percent(found[span] / running)
        ),
        Column('of all', lambda span: percent(found[span] / whole)),
    ]
    number = len(processes(m.clock))
    note = (
        f'From the first start to the last record, {numbered(number, "start")}. Training: steps that the'
        ' model is made of, without waiting for input. Compile: the first call of each train step. Evaluation,'
        ' checkpoint: while nothing trains. Lost to a kill: what was done again later, and the time after the'
        ' last record of a process that was killed, at most its last interval; the rest up to the next start counts as'
        ' not running.'
    )
    absent = NOT_CLOCKED if m.trains else NO_PHASES
    return Table.of('Where the time went', columns, found if running else (), note=note, absent=absent)


def starts(m: Measures) -> Table:
    """Every process that worked on it: when, on what, from which step to which."""
    columns = [
        Column('began (UTC)', lambda *own: time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(own[0].began))),
        Column('from step', lambda *own: count(own[-1].first)),
        Column('to step', lambda *own: count(own[-1].step)),
        Column('time', lambda *own: Cell(clock(ran(own[-1])), ran(own[-1]))),
        Column('computed on', lambda *own: str(next(filter(None, (r.computed for r in own)), ''))),
        Column('end', lambda *own: 'in order' if own[-1].ended else 'killed, or not yet'),
    ]
    rows = [tuple(own) for own in processes(m.clock)]
    return Table.of('Starts', columns, rows, absent=NOT_CLOCKED if m.trains else NO_PHASES)


NOT_CLOCKED = 'no process has recorded its time.'
SECTION = Section(
    'Goodput',
    'The share of the wall time of pre-training that trained, and where the rest went.',
    ('pretrain',),
    {'goodput': goodput, 'starts': starts},
)
