"""Word frequencies of the domain beside general text, and entities in pieces of two vocabularies."""

from collections.abc import Mapping
from typing import Any

from bioptimus_jax.report.drawing import SERIES, Figure, bars, draw_panels, draw_svg, name_axes
from bioptimus_jax.report.layout import Cell, Column, Table, count, each, fixed, percent
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.section import Section

CORPORA = {'general': 'general corpus', 'domain': "this run's corpus"}
OWNERS = {'source': 'source', 'vocabulary': "this run's"}
NOT_COUNTED = 'stage vocab has not counted words.'
NO_GENERAL = 'config.vocab.general names no general corpus.'
NOT_CUT = 'stage analyze has not cut the entities of config.finetune.folder.'


def frequency(m: Measures) -> Table:
    """Different words and share of the running words by class, for the general corpus and this run's."""
    known = [name for name in CORPORA if name in m.frequency]
    columns = [Column('per million words', lambda kind: kind)]
    for name in known:
        classes = m.frequency[name]['classes']
        columns += [
            Column(f'different words, {CORPORA[name]}', lambda x, of=classes: count(of[x]['different'])),
            Column(f'of running words, {CORPORA[name]}', lambda x, of=classes: percent(of[x]['share'])),
        ]
    sizes = [f'{CORPORA[name]} {m.frequency[name]["words"]:,} running words' for name in known]
    note = f'Words with a letter; {", ".join(sizes)}. The bounds of the four classes are ours.'
    if (share := m.frequency.get('share_counted', 1)) < 1:
        note += f' Of this corpus {share:.1%} of the documents were counted, chosen by hash.'
    kinds = m.frequency['domain']['classes'] if known else ()
    return Table.of('Words by frequency', columns, kinds, note=note, absent=NOT_COUNTED)


def frequency_cross(m: Measures) -> Table:
    """Different words by their class in general text (rows) and in this run's corpus (columns)."""
    cross = m.frequency.get('cross', {})
    columns = [
        Column('in general text', lambda there: there),
        *each({here: f'{here} here' for here in cross}, lambda here, there: count(cross[there].get(here))),
    ]
    examples = ', '.join(f'{x["word"]} ({x["count"]:,})' for x in m.frequency.get('examples', ())[:10])
    note = 'Classes in occurrences per million words.'
    if examples:
        note += f' Most frequent here among the words that the general corpus lacks: {examples}.'
    return Table.of('From general text to the domain', columns, cross, note=note, absent=NO_GENERAL)


def pieces(m: Measures) -> Table:
    """How finely each vocabulary cuts the corpus and the entities of each NER set."""
    texts = {'corpus': m.comparison} if m.comparison else {}
    texts |= {f'{name}, entities': by_owner for name, by_owner in m.entities.get('datasets', {}).items()}
    records = [(text, o, owners[o]) for text, owners in texts.items() for o in OWNERS if o in owners]

    def share(key: str, text: str, owner: str, r: Mapping[str, Any]) -> Cell:
        return percent(r.get(key))

    columns = [
        Column('text', lambda text, owner, r: text),
        Column('vocabulary', lambda text, owner, r: OWNERS[owner]),
        *each({x: x for x in ('mentions', 'words')}, lambda key, text, owner, r: count(r.get(key))),
        Column('pieces / word', lambda text, owner, r: fixed(r['pieces_per_word'], 2), 'low'),
        Column('unknown words', lambda text, owner, r: percent(r['unknown_words'], 2), 'low'),
        *each({'one_piece_words': 'one-piece words'}, share, 'high'),
        *each({'one_piece_mentions': 'one-piece entities'}, share, 'high'),
        Column('pieces / entity', lambda text, owner, r: fixed(pieces_per_mention(r), 2), 'low'),
    ]
    note = 'Entities: all mentions of the training splits. Words are those of the tokenizers.'
    if 'kept' in m.comparison:
        kept, new, lost = (m.comparison[k] for k in ('kept', 'new', 'lost'))
        note += f" Tokens shared with the source: {kept:,}; new: {new:,}; of the source's alone: {lost:,}."
    absent = 'stage vocab has not been run.'
    return Table.of('Text in pieces', columns, records, rank_within='text', note=note, absent=absent)


def pieces_per_mention(measured: Mapping[str, Any]) -> float | None:
    """Mean pieces of an entity, None of text that is no list of entities."""
    if not measured.get('mentions'):
        return None
    return measured['pieces_per_word'] * measured['words'] / measured['mentions']


def whole_entities(m: Measures) -> Table:
    """Entities that the source cuts into many pieces and this run's vocabulary keeps whole."""
    columns = [
        Column('entity', lambda x: x['entity']),
        Column('mentions', lambda x: count(x['count'])),
        Column('pieces in the source', lambda x: ' '.join(x['source'])),
    ]
    none = 'no entity of the NER sets is one piece here and three or more in the source.'
    examples = m.entities.get('examples', ())[:12]
    absent = none if m.entities else NOT_CUT
    return Table.of('Entities that became one token', columns, examples, absent=absent)


def frequency_classes(m: Measures) -> Figure:
    """Different and running words of the corpora in four frequency classes (paper, Figure 1)."""
    title = 'Words in four classes of frequency'
    known = [name for name in CORPORA if name in m.frequency]
    if not known:
        return Figure('frequency_classes', title, absent=NOT_COUNTED)
    classes = list(m.frequency[known[0]]['classes'])
    shares = {CORPORA[name]: _shares(m.frequency[name]) for name in known}

    def draw(panels: list[Any]) -> None:
        for axes, what in zip(panels, ('different words', 'running words'), strict=True):
            bars(axes, classes, {name: of_corpus[what] for name, of_corpus in shares.items()}, '%.0f')
            axes.set_title(f'{what}, %', fontsize=10)
            axes.set_xticks(range(len(classes)), [c.replace(' or more', '+') for c in classes], fontsize=9)
            axes.set_ylim(0, 108)
        name_axes(panels, 'occurrences in a million words', '')

    parts = []
    for name, of_corpus in shares.items():
        by_class = zip(classes, of_corpus['different words'], strict=True)
        parts.append(f'{name} {", ".join(f"{share:.0f} ({c})" for c, share in by_class)}')
    alt = f'Percent of the different words by occurrences in a million words: {"; ".join(parts)}.'
    caption = 'Words with a letter. Left: each different word once; right: as often as it occurs.'
    if len(known) < len(CORPORA):
        caption += ' config.vocab.general names no general corpus to stand beside.'
    svg = draw_panels('frequency_classes', draw, 2, 3.0)
    return Figure('frequency_classes', title, caption, alt, svg)


def word_frequency(m: Measures) -> Figure:
    """For every frequency class of this run's corpus: where its words are in general text (paper, Figure 1)."""
    title = 'Words of the corpus by their frequency in general text'
    cross = m.frequency.get('cross')
    if not cross:
        return Figure('word_frequency', title, absent=NO_GENERAL)
    classes = list(m.frequency['domain']['classes'])
    totals = {here: max(sum(cells[here] for cells in cross.values()), 1) for here in classes}

    def draw(axes: Any) -> None:
        floor = [0.0] * len(classes)
        for (there, cells), colour in zip(cross.items(), SERIES, strict=False):
            shares = [100 * cells[here] / totals[here] for here in classes]
            axes.bar(range(len(classes)), shares, 0.7, floor, color=colour, label=there)
            floor = [low + share for low, share in zip(floor, shares, strict=True)]
        axes.set_xticks(range(len(classes)), [f'{here}\n{totals[here]:,} words' for here in classes])
        axes.set_xlabel('occurrences in a million words of this corpus')
        axes.set_ylabel('different words, %')
        axes.grid(False, axis='x')
        axes.legend(title='in general text', loc='center left', bbox_to_anchor=(1, 0.5), reverse=True)

    top = classes[0]
    parts = [f'{100 * cells[top] / totals[top]:.0f} percent {there}' for there, cells in cross.items()]
    alt = f'Of the words that occur {top} times in a million here, in general text are: {", ".join(parts)}.'
    caption = 'A bar is a frequency class of this corpus, its colours the classes of the same words in general text.'
    return Figure('word_frequency', title, caption, alt, draw_svg('word_frequency', draw))


def entity_pieces(m: Measures) -> Figure:
    """Entities of the benchmarks in pieces: the source's vocabulary against this run's."""
    title = 'Entities in pieces'
    measured = m.entities.get('datasets', {})
    if not measured:
        return Figure('entity_pieces', title, absent=NOT_CUT)
    owners = [name for name in OWNERS if all(name in by_owner for by_owner in measured.values())]
    per_entity = {OWNERS[o]: [pieces_per_mention(x[o]) or 0 for x in measured.values()] for o in owners}
    whole = {OWNERS[o]: [100 * x[o]['one_piece_words'] for x in measured.values()] for o in owners}

    def draw(panels: list[Any]) -> None:
        pictures = ('pieces an entity', per_entity, '%.1f'), ('words that are one piece, %', whole, '%.0f')
        for axes, (what, heights, form) in zip(panels, pictures, strict=True):
            bars(axes, list(measured), heights, form)
            axes.set_title(what, fontsize=10)
            axes.set_xticks(range(len(measured)), list(measured), rotation=20 if len(measured) > 2 else 0)
            axes.margins(y=0.12)
        name_axes(panels, '', '')

    parts = []
    for at, name in enumerate(measured):
        parts.append(f'{name} {", ".join(f"{x[at]:.1f} ({owner})" for owner, x in per_entity.items())}')
    alt = f'Mean number of pieces of an entity, by vocabulary: {"; ".join(parts)}.'
    caption = 'All mentions of the training splits; words are those of the tokenizers. Vocabulary by colour.'
    svg = draw_panels('entity_pieces', draw, 2, 3.0, share_y=False)
    return Figure('entity_pieces', title, caption, alt, svg)


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
    (frequency_classes, word_frequency, entity_pieces),
)


def _shares(corpus: dict[str, Any]) -> dict[str, list[float]]:
    """Percent by class: of the different words, of the running words."""
    different = max(sum(c['different'] for c in corpus['classes'].values()), 1)
    return {
        'different words': [100 * c['different'] / different for c in corpus['classes'].values()],
        'running words': [100 * c['share'] for c in corpus['classes'].values()],
    }
