"""Word frequencies of the domain beside general text, and entities in pieces of two vocabularies."""

from collections.abc import Mapping

from bioptimus_jax.records.vocabulary import ClassOfWords, CorpusWords, Pieces, same_words
from bioptimus_jax.report.drawing import Figure, Point, curves, spanned
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, percent
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section

CORPORA = {'general': 'general corpus', 'domain': "this run's corpus"}
SHARES = {'different': 'different words', 'share': 'running words'}
OWNERS = {'source': 'source', 'vocabulary': "this run's"}
NOT_COUNTED = 'stage vocab has not counted words.'
NO_GENERAL = 'config.vocab.general names no general corpus.'
NOT_CUT = 'stage analyze has not cut the entities of config.finetune.folder.'


def frequency(m: Measures) -> Table:
    """Different words and share of the running words by class, for the general corpus and this run's."""
    known = _corpora(m)
    columns = [Column('per million words', lambda kind: kind)]
    for name in known:
        classes = known[name].classes
        columns += [
            Column(f'different words, {CORPORA[name]}', lambda x, of=classes: count(of[x].different)),
            Column(f'of running words, {CORPORA[name]}', lambda x, of=classes: percent(of[x].share)),
        ]
    sizes = [f'{CORPORA[name]} {of.words:,} running words' for name, of in known.items()]
    note = f'Words with a letter; {", ".join(sizes)}. The bounds of the four classes are ours.'
    if m.frequency and (share := m.frequency.share_counted) < 1:
        note += f' {share:.1%} of the documents of this corpus were counted, chosen by hash.'
    kinds = m.frequency.domain.classes if m.frequency else ()
    return Table.of('Words by frequency', columns, kinds, note=note, absent=NOT_COUNTED)


def frequency_cross(m: Measures) -> Table:
    """Different words by their class in general text (rows) and in this run's corpus (columns)."""
    cross = (m.frequency and m.frequency.cross) or {}
    columns = [
        Column('in general text', lambda there: there),
        *each({here: f'{here} here' for here in cross}, lambda here, there: count(cross[there].get(here))),
    ]
    lacking = (m.frequency and m.frequency.examples) or ()
    examples = ', '.join(f'{x.word} ({x.count:,})' for x in lacking[:10])
    note = 'Classes in occurrences per million words.'
    if examples:
        note += f' Most frequent here among the words that the general corpus lacks: {examples}.'
    return Table.of('From general text to the domain', columns, cross, note=note, absent=NO_GENERAL)


def pieces(m: Measures) -> Table:
    """How finely each vocabulary cuts the corpus and the entities of each NER set.

    What is said of a word is not ranked where the tokenizers cut a text into other words.
    """
    texts: dict[str, Mapping[str, Pieces | None]] = {}
    if found := m.comparison:
        texts['corpus'] = {'source': found.source, 'vocabulary': found.vocabulary}
    if m.entities:
        texts |= {f'{name}, entities': by_owner for name, by_owner in m.entities.datasets.items()}
    records = [(text, o, cut) for text, owners in texts.items() for o in OWNERS if (cut := owners.get(o))]

    alike = all(same_words(filter(None, owners.values())) for owners in texts.values())
    low, high = ('low', 'high') if alike else ('', '')

    def share(key: str, text: str, owner: str, r: Pieces) -> Cell:
        return percent(getattr(r, key, None))

    columns = [
        Column('text', lambda text, owner, r: text),
        Column('vocabulary', lambda text, owner, r: OWNERS[owner]),
        *each(
            {x: x for x in ('mentions', 'words')}, lambda key, text, owner, r: count(getattr(r, key, None))
        ),
        Column('pieces / word', lambda text, owner, r: fixed(r.pieces_per_word, 2), low),
        Column(
            'pieces / word between spaces',
            lambda text, owner, r: fixed(getattr(r, 'pieces_per_word_between_spaces', None), 2),
            'low',
            when=not alike,
        ),
        Column('unknown words', lambda text, owner, r: percent(r.unknown_words, 2), low),
        *each({'one_piece_words': 'one-piece words'}, share, high),
        *each({'one_piece_mentions': 'one-piece entities'}, share, 'high'),
        Column(
            'pieces / entity', lambda text, owner, r: fixed(getattr(r, 'pieces_per_mention', None), 2), 'low'
        ),
    ]
    note = 'Entities: all mentions of the training splits. Words are those of the tokenizers.'
    if not alike:
        note += (
            ' These are not the same, so vocabularies are compared by pieces / word between spaces, which are'
        )
        note += ' counted of the corpus alone, and by pieces / entity.'
    if found and found.source:
        note += f' Tokens shared with the source: {found.kept:,}; new: {found.new:,};'
        note += f' only in the source: {found.lost:,}.'
    absent = 'stage vocab has not been run.'
    return Table.of('Text in pieces', columns, records, rank_within='text', note=note, absent=absent)


def whole_entities(m: Measures) -> Table:
    """Entities that the source cuts into many pieces and this run's vocabulary keeps whole."""
    columns = [
        Column('entity', lambda x: x.entity),
        Column('mentions', lambda x: count(x.count)),
        Column('pieces in the source', lambda x: ' '.join(x.source)),
    ]
    none = 'no entity of the NER sets is one piece here and three or more in the source.'
    examples = m.entities.examples[:12] if m.entities else ()
    absent = none if m.entities else NOT_CUT
    return Table.of('Entities that became one token', columns, examples, absent=absent)


def frequency_classes(m: Measures) -> Figure:
    """Different and running words of the corpora in four frequency classes (paper, Figure 1)."""
    known = {CORPORA[name]: of.classes for name, of in _corpora(m).items()}
    panels = {
        f'{what}, %': {shown: _shares(x, key) for shown, x in known.items()} for key, what in SHARES.items()
    }
    caption = 'Words with a letter. Left: each different word once; right: as often as it occurs.'
    if len(known) < len(CORPORA):
        caption += ' config.vocab.general names no general corpus to compare with.'
    return curves(
        'frequency_classes',
        'Words in four classes of frequency',
        panels,
        'occurrences in a million words',
        '',
        ticks=[name.replace(' or more', '+') for name in next(iter(known.values()), ())],
        caption=caption,
        absent=NOT_COUNTED,
    )


SECTION = Section(
    'Vocabulary',
    'Which words does the domain have, and how finely are they cut?',
    ('vocab',),
    {
        'frequency': frequency,
        'frequency_cross': frequency_cross,
        'pieces': pieces,
        'whole_entities': whole_entities,
    },
    (frequency_classes,),
)


def _corpora(m: Measures) -> dict[str, CorpusWords]:
    """The corpora whose words were counted, in the order of the tables."""
    found = {name: getattr(m.frequency, name, None) for name in CORPORA}
    return {name: of for name, of in found.items() if of}


def _shares(classes: Mapping[str, ClassOfWords], key: str) -> list[Point]:
    """Percent by class, in order."""
    total = max(sum(getattr(of, key) for of in classes.values()), 1)
    return [spanned(at, [100 * getattr(of, key) / total]) for at, of in enumerate(classes.values())]
