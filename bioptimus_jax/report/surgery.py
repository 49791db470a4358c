"""What surgery made: new tokens and their neighbours, contexts found, and the probe of all initialisations."""

from collections.abc import Sequence

from bioptimus_jax.report.layout import Table, count, fixed, percent, words
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.schema import TOKENIZERS

NO_CLASS = {'rank': [None]}


def surgery_examples(m: Measures, how_many: int = 10) -> Table:
    """New tokens: how the source spells them, contexts found, nearest neighbours; evenly spread."""
    new = [t for t in m.tokens if t.get('spelling')]
    begins = TOKENIZERS.load(m.run.config.vocab.tokenizer).begins
    telling = [t for t in new if len(t['token']) > 5 and begins(t['token'])] or new
    chosen = telling[:: max(1, len(telling) // how_many)][:how_many]
    rows = [
        [
            words(t['token']),
            words(_joined(t['spelling'], ' ')),
            count(t.get('contexts')),
            fixed(t.get('norm'), 2),
            fixed(t.get('cosine')),
            words(_joined(t.get('neighbours') or [], ', ')),
            words(t.get('fallback') or ''),
        ]
        for t in chosen
    ]
    columns = [
        'new token',
        'spelling in the source',
        'contexts',
        'norm',
        'cosine to averaged',
        'nearest rows',
        'fallback',
    ]
    reason = (
        'the vocabulary has no token that the source lacks' if m.tokens else 'stage surgery has not been run'
    )
    return Table('New tokens after surgery', columns, rows, absent=f'{reason}.')


def contexts(m: Measures) -> Table:
    """How many sentences were found for the new tokens."""
    most = m.run.config.contexts.per_token
    found = [t['contexts'] for t in m.tokens if 'contexts' in t]
    groups = {
        'none': sum(n == 0 for n in found),
        f'1 to {most - 1}': sum(0 < n < most for n in found),
        f'{most}': sum(n >= most for n in found),
    }
    rows = [[words(name), count(n), percent(n / len(found))] for name, n in groups.items()] if found else []
    note = (
        f'Tokens without any are {percent(groups["none"] / len(m.tokens)).text} of the whole vocabulary; the paper'
        ' found none for fewer than a tenth.'
        if found
        else ''
    )
    reason = 'no token needed one' if m.tokens else 'stage surgery has not been run'
    title, columns = 'Contexts of the new tokens', ['contexts', 'tokens', 'share']
    return Table(title, columns, rows, note=note, absent=f'{reason}.')


def probe(m: Measures) -> Table:
    """Known tokens hidden from the source and rebuilt by every initialisation: how near the true rows they come."""
    variants = m.probe.get('variants', ())
    classes = [
        (f'by_{title}', name, word)
        for title, word in (('contexts', ' contexts'), ('pieces', ' pieces'), ('frequency', ' tokens'))
        for name in dict.fromkeys(name for v in variants for name in v.get(f'by_{title}', ()))
    ]
    columns = [
        'initialisation',
        'median rank',
        '95 %',
        'rank, uncentred',
        'rank, dot product',
        'cosine',
        'norm ratio',
    ]
    columns += [f'rank, {name}{word}' for _, name, word in classes]
    rows = []
    for v in variants:
        rank, low, high = v['rank']
        ranks = [fixed(v[name][0], 0) for name in ('rank_uncentred', 'rank_dot')]
        by_class = [fixed(v.get(title, {}).get(name, NO_CLASS)['rank'][0], 0) for title, name, _ in classes]
        cells = [words(v['name']), fixed(rank, 0), words(f'{low:,.0f}-{high:,.0f}'), *ranks]
        rows.append([*cells, fixed(v['cosine'][0]), fixed(v['norm_ratio'][0], 2), *by_class])
    better = {c: 'high' if c == 'cosine' else 'low' for c in columns if 'rank' in c or c == 'cosine'}
    note = (
        f'{len(m.probe.get("hidden", ())):,} tokens of the source hidden from its vocabulary, up to '
        f'{m.probe.get("contexts_per_token")} sentences each; medians, with bootstrap intervals over tokens. Rank: of'
        ' the true token among all by cosine with the rebuilt row, both seen from the mean of all rows (uncentred: from'
        ' zero), or by dot product. Norm ratio: rebuilt to true.'
    )
    absent = '`bioptimus surgery --probe` has not been run.'
    title = 'Known rows rebuilt by every initialisation'
    return Table(title, columns, rows, better, note=note, absent=absent)


def _joined(parts: Sequence[str] | str, by: str) -> str:
    return parts if isinstance(parts, str) else by.join(p if isinstance(p, str) else str(p[0]) for p in parts)
