"""The probe of all initialisations."""

from bioptimus_jax.records.probe import ProbedRows
from bioptimus_jax.report.layout import Cell, Column, Table, each, fixed
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Addition


def probe(m: Measures) -> Table:
    """Known tokens hidden from the source and rebuilt by every initialisation: how near the true rows they come."""
    made = m.probe
    variants, hidden, contexts = (
        (made.variants, made.hidden, made.contexts_per_token) if made else ((), (), 0)
    )
    classes = {
        (kind, name): f'rank, {name} {word}'
        for kind, word in (('contexts', 'contexts'), ('pieces', 'pieces'), ('frequency', 'tokens'))
        for name in dict.fromkeys(name for v in variants for name in v.classes(kind))
    }

    def of_class(place: tuple[str, str], v: ProbedRows) -> Cell:
        kind, name = place
        found = v.classes(kind).get(name)
        return fixed(found.rank[0] if found else None, 0)

    weighted = any(v.rank_weighted for v in variants)
    columns = [
        Column('initialisation', lambda v: v.name),
        Column('median rank', lambda v: fixed(v.rank[0], 0), 'low'),
        Column('95 %', lambda v: f'{v.rank[1]:,.0f}-{v.rank[2]:,.0f}'),
        Column('as new tokens', lambda v: fixed(v.rank_weighted and v.rank_weighted[0], 0), 'low', weighted),
        Column('rank, uncentred', lambda v: fixed(v.rank_uncentred[0], 0), 'low'),
        Column('rank, dot product', lambda v: fixed(v.rank_dot[0], 0), 'low'),
        Column('cosine', lambda v: fixed(v.cosine[0]), 'high'),
        Column('norm ratio', lambda v: fixed(v.norm_ratio[0], 2)),
        Column('seconds', lambda v: fixed(v.seconds, 1), 'low'),
        *each(classes, of_class, 'low'),
    ]
    note = (
        f'{len(hidden):,} tokens of the source hidden from its vocabulary, up to '
        f'{contexts} sentences each; medians, with bootstrap intervals over tokens. Rank: of'
        ' the true token among all by cosine with the rebuilt row, both seen from the mean of all rows (uncentred: from'
        ' zero), or by dot product. As new tokens: weighted, so that hidden tokens are spelled as like the rest of the'
        ' vocabulary as new ones are. Norm ratio: rebuilt to true. Seconds: to make the rows,'
        ' with what is read for them, as if for this one alone; training of a donor counts.'
    )
    if made and (like := made.likeness):
        note += (
            f' Likeness of the median token to the nearest other one of the source: {like.hidden[1]:.3f} of hidden'
            f' tokens, {like.new[1]:.3f} of new ones (cosine of n-grams).'
        )
    absent = '`bioptimus surgery --probe` has not been run.'
    return Table.of('Known rows rebuilt by every initialisation', columns, variants, note=note, absent=absent)


SECTION = Addition('new_tokens', 'behind', {'probe': probe})
