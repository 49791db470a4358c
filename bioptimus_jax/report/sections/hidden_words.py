"""Hidden words: the measure that compares models with different vocabularies; beside it entities from frozen states."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from bioptimus_jax.records.analysis import HiddenWords
from bioptimus_jax.report.frozen import frozen
from bioptimus_jax.report.layout import Cell, Column, Table, count, fixed, missing
from bioptimus_jax.report.measures import NOT_ANALYZED, Measures
from bioptimus_jax.report.section import Section


@dataclasses.dataclass(frozen=True)
class Measure:
    """How a measure of hidden words is shown: its values are multiplied by `times`."""

    title: str
    better: str = 'low'
    decimals: int = 3
    times: float = 1


MEASURES = {
    'nats_per_word': Measure('nats / word'),
    'bits_per_character': Measure('bits / character'),
    'word_accuracy': Measure('words right, %', 'high', 1, 100),
    'one_piece.nats_per_word': Measure('nats / one-piece word'),
    'one_piece.word_accuracy': Measure('one-piece words right, %', 'high', 1, 100),
}


def value_of(record: HiddenWords | None, measure: str) -> float | None:
    """One of MEASURES of a model's record, None where it was not measured."""
    value: Any = record
    for part in measure.split('.'):
        value = getattr(value, part, None)
    return float(value) * MEASURES[measure].times if isinstance(value, int | float) else None


def columns_of(cell: Callable[..., Cell]) -> list[Column]:
    """A column for each measure of hidden words; `cell` takes its name and the record."""
    return [Column(x.title, functools.partial(cell, name), x.better) for name, x in MEASURES.items()]


def cloze(m: Measures) -> Table:
    """The word-level measure that compares across vocabularies, a row for each model."""

    def known(cell: Callable[[HiddenWords], Cell]) -> Callable[[HiddenWords], Cell]:
        return lambda r: missing() if r.skipped else cell(r)

    columns = [
        Column('model', lambda r: m.label(r.model)),
        Column('words', known(lambda r: count(r.words))),
        *columns_of(lambda name, r: fixed(value_of(r, name), MEASURES[name].decimals)),
        Column('± se of nats / word', known(lambda r: fixed(r.nats_per_word_error))),
        Column('nats / piece', known(lambda r: fixed(r.nats_per_piece))),
        Column(
            'pieces / word', known(lambda r: fixed(r.pieces / r.words if r.pieces and r.words else None, 2))
        ),
    ]
    note = (
        'The same held-out words are hidden whole for every model, whatever its vocabulary. One-piece words'
        ' are one piece in both vocabularies. Nats per piece compares only models with the same vocabulary.'
    )
    skipped = [f'{r.model}: {r.skipped}' for r in m.cloze if r.skipped]
    return Table.of('Hidden words', columns, m.cloze, note=' '.join([note, *skipped]), absent=NOT_ANALYZED)


SECTION = Section(
    'Hidden words',
    'The measure that compares models with different vocabularies.',
    ('analyze',),
    {'cloze': cloze, 'frozen': frozen},
)
