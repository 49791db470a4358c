"""Goodput: the share of the wall time of pre-training that trained, and where the rest went."""

from bioptimus_jax.pretrain.goodput import IDLE, account, starts
from bioptimus_jax.progress import clock
from bioptimus_jax.report.layout import Cell, Column, Table, missing, percent
from bioptimus_jax.report.measures import NO_PHASES, Measures
from bioptimus_jax.report.section import Section


def goodput(m: Measures) -> Table:
    """Every span: its time, and its share of all of the time and of that in which a process ran."""
    found = account(m.clock)
    whole = sum(found.values())
    ran = whole - found[IDLE]
    columns = [
        Column('span', lambda span: span),
        Column('time', lambda span: Cell(clock(found[span]), round(found[span], 3))),
        Column('of the time it ran', lambda span: missing() if span == IDLE else percent(found[span] / ran)),
        Column('of all', lambda span: percent(found[span] / whole)),
    ]
    number = starts(m.clock)
    note = (
        f'From the first start to the last record, {number} start{"s" * (number > 1)}. Training: steps that the'
        ' model is made of, without waiting for input. Compile: the first call of each train step. Evaluation,'
        ' checkpoint: while nothing trains. Lost to a kill: what was done again later, and after the last record of a'
        ' process that was killed no more than its last interval; the rest up to the next start counts as not running.'
    )
    absent = 'no process has put its time on record.' if m.trains else NO_PHASES
    return Table.of('Where the time went', columns, found if ran else (), note=note, absent=absent)


SECTION = Section(
    'Goodput',
    'The share of the wall time of pre-training that trained, and where the rest went.',
    ('pretrain',),
    {'goodput': goodput},
)
