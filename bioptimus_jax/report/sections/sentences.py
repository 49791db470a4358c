"""Vectors of sentences before and after: what an adaptation for words does to the similarity of texts."""

from bioptimus_jax.model.config import SOURCE
from bioptimus_jax.records.analysis import SentenceVectors
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, missing
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section

ABSENT = 'only stage analyze of a run with a source has it.'
KEEP = 'keep the source for vectors of sentences, or train them again (`bioptimus run --config=embed`)'


def sentence_vectors(m: Measures) -> Table:
    """The mean cosine of unlike held-out sentences and, of sets with a number for pairs, the correlation with it."""
    sets = list(dict.fromkeys(name for r in m.similarity for name in r.sets))

    def correlation(name: str, r: SentenceVectors) -> Cell:
        return fixed(r.sets[name].pearson, 3) if name in r.sets else missing()

    columns = [
        Column('model', lambda r: m.label(r.model)),
        Column('sentences', lambda r: count(r.sentences)),
        Column('mean cosine of two sentences', lambda r: fixed(r.cosine, 3), 'low'),
        *each({name: f'r on {name}' for name in sets}, correlation, 'high'),
    ]
    pairs = '; '.join(
        f'{name} {n} pairs' for name in sets for n in {r.sets[name].pairs for r in m.similarity}
    )
    note = (
        'Vectors are means of last-layer states, without any training. Sentences: of held-out documents; where two that'
        ' have nothing in common have a cosine near 1, vectors hardly tell texts apart.'
    )
    note += f" r: Pearson's, of cosines with the numbers of all pairs ({pairs})." * bool(sets)
    if said := lost_similarity(m):
        note = f'{said} {note}'
    return Table.of('Vectors of sentences', columns, m.similarity, note=note, absent=ABSENT)


def lost_similarity(m: Measures) -> str:
    """What the adaptation took from a source that was made for vectors of sentences; '' where nothing was."""
    source, last = m.sentence_vectors_of(SOURCE), m.sentence_vectors_of(m.phases[-1] if m.phases else '')
    if not (source and last and source.for_sentences):
        return ''
    fell = [
        f'r on {name} falls from {before.pearson:.3f} to {after.pearson:.3f}'
        for name, before in source.sets.items()
        if (after := last.sets.get(name))
        and before.pearson is not None
        and after.pearson is not None
        and after.pearson < before.pearson
    ]
    if source.cosine is not None and last.cosine is not None and last.cosine > source.cosine:
        fell.append(
            f'the mean cosine of unlike sentences rises from {source.cosine:.3f} to {last.cosine:.3f}'
        )
    said = ' and '.join(fell)
    return f'Adapting for words has cost vectors of sentences: {said}; {KEEP}.' if fell else ''


SECTION = Section(
    'Vectors of sentences',
    'What does adapting for words do to the similarity of texts?',
    ('analyze',),
    {'sentence_vectors': sentence_vectors},
)
