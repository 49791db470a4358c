"""The probe of all initialisations."""

from typing import Any

from bioptimus_jax.report.layout import Cell, Column, Table, each, fixed
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Addition


def probe(m: Measures) -> Table:
    """Known tokens hidden from the source and rebuilt by every initialisation: how near the true rows they come."""
    variants = m.probe.get('variants', ())
    classes = {
        (f'by_{kind}', name): f'rank, {name} {word}'
        for kind, word in (('contexts', 'contexts'), ('pieces', 'pieces'), ('frequency', 'tokens'))
        for name in dict.fromkeys(name for v in variants for name in v.get(f'by_{kind}', ()))
    }

    def of_class(place: tuple[str, str], v: dict[str, Any]) -> Cell:
        kind, name = place
        found = v.get(kind, {}).get(name)
        return fixed(found and found['rank'][0], 0)

    weighted = any('rank_weighted' in v for v in variants)
    columns = [
        Column('initialisation', lambda v: v['name']),
        Column('median rank', lambda v: fixed(v['rank'][0], 0), 'low'),
        Column('95 %', lambda v: f'{v["rank"][1]:,.0f}-{v["rank"][2]:,.0f}'),
        Column('as new tokens', lambda v: fixed(v['rank_weighted'][0], 0), 'low', weighted),
        Column('rank, uncentred', lambda v: fixed(v['rank_uncentred'][0], 0), 'low'),
        Column('rank, dot product', lambda v: fixed(v['rank_dot'][0], 0), 'low'),
        Column('cosine', lambda v: fixed(v['cosine'][0]), 'high'),
        Column('norm ratio', lambda v: fixed(v['norm_ratio'][0], 2)),
        Column('seconds', lambda v: fixed(v.get('seconds'), 1), 'low'),
        *each(classes, of_class, 'low'),
    ]
    note = (
        f'{len(m.probe.get("hidden", ())):,} tokens of the source hidden from its vocabulary, up to '
        f'{m.probe.get("contexts_per_token")} sentences each; medians, with bootstrap intervals over tokens. Rank: of'
        ' the true token among all by cosine with the rebuilt row, both seen from the mean of all rows (uncentred: from'
        ' zero), or by dot product. As new tokens: weighted, so that hidden tokens are spelled as like the rest of the'
        ' vocabulary as new ones are. Norm ratio: rebuilt to true. Seconds: to make the rows,'
        ' with what is read for them, as if for this one alone; training of a donor counts.'
    )
    if like := m.probe.get('likeness'):
        note += (
            f' Likeness of the median token to the nearest other one of the source: {like["hidden"][1]:.3f} of hidden'
            f' tokens, {like["new"][1]:.3f} of new ones (cosine of n-grams).'
        )
    absent = '`bioptimus surgery --probe` has not been run.'
    return Table.of('Known rows rebuilt by every initialisation', columns, variants, note=note, absent=absent)


SECTION = Addition('new_tokens', 'behind', {'probe': probe})
