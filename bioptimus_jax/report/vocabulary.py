"""Word frequencies of the domain beside general text, and entities in pieces of two vocabularies."""

from collections.abc import Mapping
from typing import Any

from bioptimus_jax.report.layout import Table, count, fixed, missing, percent, words
from bioptimus_jax.report.measures import Measures

CORPORA = {'general': 'general corpus', 'domain': "this run's corpus"}
OWNERS = {'source': 'source', 'vocabulary': "this run's"}


def frequency(m: Measures) -> Table:
    """Different words and share of the running words by class, for the general corpus and this run's."""
    known = [name for name in CORPORA if name in m.frequency]
    columns = ['per million words']
    columns += [
        f'{what}, {CORPORA[name]}' for name in known for what in ('different words', 'of running words')
    ]
    rows = []
    for kind in m.frequency['domain']['classes'] if known else ():
        cells = [m.frequency[name]['classes'][kind] for name in known]
        pairs = [(count(c['different']), percent(c['share'])) for c in cells]
        rows.append([words(kind), *(cell for pair in pairs for cell in pair)])
    sizes = [f'{CORPORA[name]} {m.frequency[name]["words"]:,} running words' for name in known]
    note = f'Words with a letter; {", ".join(sizes)}. The bounds of the four classes are ours.'
    if (share := m.frequency.get('share_counted', 1)) < 1:
        note += f' Of this corpus {share:.1%} of the documents were counted, chosen by hash.'
    return Table('Words by frequency', columns, rows, note=note, absent='stage vocab has not counted words.')


def frequency_cross(m: Measures) -> Table:
    """Different words by their class in general text (rows) and in this run's corpus (columns)."""
    cross = m.frequency.get('cross', {})
    columns = ['in general text', *(f'{kind} here' for kind in cross)]
    rows = [
        [words(kind), *(count(cells[k]) if k in cells else missing() for k in cross)]
        for kind, cells in cross.items()
    ]
    examples = ', '.join(f'{x["word"]} ({x["count"]:,})' for x in m.frequency.get('examples', ())[:10])
    note = 'Classes in occurrences per million words.'
    if examples:
        note += f' Most frequent here among the words that the general corpus lacks: {examples}.'
    title = 'From general text to the domain'
    return Table(title, columns, rows, note=note, absent='config.vocab.general names no general corpus.')


def pieces(m: Measures) -> Table:
    """How finely each vocabulary cuts the corpus and the entities of each NER set."""
    columns = ['text', 'vocabulary', 'mentions', 'words', 'pieces / word', 'unknown words', 'one-piece words']
    columns += ['one-piece entities', 'pieces / entity']
    rows = [
        [
            words(text),
            words(OWNERS[owner]),
            count(r.get('mentions')),
            count(r['words']),
            fixed(r['pieces_per_word'], 2),
            percent(r['unknown_words'], 2),
            percent(r['one_piece_words']),
            percent(r.get('one_piece_mentions')),
            fixed(pieces_per_mention(r), 2),
        ]
        for text, measured in _measured(m).items()
        for owner, r in measured.items()
    ]
    better = dict.fromkeys(('one-piece words', 'one-piece entities'), 'high')
    better |= dict.fromkeys(('pieces / word', 'unknown words', 'pieces / entity'), 'low')
    note = "Entities: all mentions of the training splits. Words are BERT's, punctuation apart."
    if 'kept' in m.comparison:
        kept, new, lost = (m.comparison[k] for k in ('kept', 'new', 'lost'))
        note += f" Tokens shared with the source: {kept:,}; new: {new:,}; of the source's alone: {lost:,}."
    absent = 'stage vocab has not been run.'
    return Table('Text in pieces', columns, rows, better, rank_within='text', note=note, absent=absent)


def pieces_per_mention(measured: Mapping[str, Any]) -> float | None:
    """Mean pieces of an entity, None of text that is no list of entities."""
    if not measured.get('mentions'):
        return None
    return measured['pieces_per_word'] * measured['words'] / measured['mentions']


def whole_entities(m: Measures) -> Table:
    """Entities that the source cuts into many pieces and this run's vocabulary keeps whole."""
    rows = [
        [words(x['entity']), count(x['count']), words(' '.join(x['source']))]
        for x in m.entities.get('examples', ())[:12]
    ]
    absent = 'no entity of the NER sets is one piece here and three or more in the source.'
    if not m.entities:
        absent = 'stage analyze has not cut the entities of config.finetune.folder.'
    columns = ['entity', 'mentions', 'pieces in the source']
    return Table('Entities that became one token', columns, rows, absent=absent)


def _measured(m: Measures) -> dict[str, dict[str, Any]]:
    texts = {'corpus': m.comparison} if m.comparison else {}
    texts |= {f'{name}, entities': by_owner for name, by_owner in m.entities.get('datasets', {}).items()}
    return {text: {o: by_owner[o] for o in OWNERS if o in by_owner} for text, by_owner in texts.items()}
