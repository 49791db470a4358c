"""Hidden words: the measure that compares models with different vocabularies."""

from collections.abc import Callable, Iterable
from typing import Any

from bioptimus_jax.report.layout import Cell, Column, Table, count, fixed, missing, percent
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section


def cloze(m: Measures) -> Table:
    """The word-level measure that compares across vocabularies, a row for each model."""

    def known(cell: Callable[[dict[str, Any]], Cell]) -> Callable[[dict[str, Any]], Cell]:
        return lambda r: missing() if r.get('skipped') else cell(r)

    columns = [
        Column('model', lambda r: m.label(r['model'])),
        Column('words', known(lambda r: count(r['words']))),
        Column('nats / word', known(lambda r: fixed(r.get('nats_per_word'))), 'low'),
        Column('± se', known(lambda r: fixed(r.get('nats_per_word_error')))),
        Column('bits / character', known(lambda r: fixed(r.get('bits_per_character'))), 'low'),
        Column('words right', known(lambda r: percent(r.get('word_accuracy'))), 'high'),
        Column(
            'nats / one-piece word',
            known(lambda r: fixed(r.get('one_piece', {}).get('nats_per_word'))),
            'low',
        ),
        Column(
            'one-piece words right',
            known(lambda r: percent(r.get('one_piece', {}).get('word_accuracy'))),
            'high',
        ),
        Column('nats / piece', known(lambda r: fixed(r['nats_per_piece']))),
        Column('pieces / word', known(lambda r: fixed(r['pieces'] / r['words'], 2))),
    ]
    note = (
        'The same held-out words are hidden whole for every model, whatever its vocabulary. One-piece words'
        ' are one piece in both vocabularies. Nats per piece compares only models with the same vocabulary.'
    )
    skipped = [f'{r["model"]}: {r["skipped"]}' for r in m.cloze if r.get('skipped')]
    absent = 'stage analyze has not been run.'
    return Table.of('Hidden words', columns, m.cloze, note=' '.join([note, *skipped]), absent=absent)


def other_words(records: Iterable[dict[str, Any]]) -> str:
    """A warning where models were scored on different words, else ''."""
    several = len({r['mask'] for r in records if 'mask' in r}) > 1
    return ' These models did not score the same words: set config.analysis.reference_vocab.' * several


SECTION = Section(
    'Hidden words',
    'The measure that compares models with different vocabularies.',
    ('analyze',),
    {'cloze': cloze},
)
