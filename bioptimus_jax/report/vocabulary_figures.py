"""Figures of words and pieces: frequency classes of two corpora, entities under two vocabularies."""

from typing import Any

from bioptimus_jax.report.drawing import SERIES, Figure, draw_panels, draw_svg, name_axes
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.vocabulary import CORPORA, OWNERS, pieces_per_mention


def frequency_classes(m: Measures) -> Figure:
    """Different and running words of the corpora in four frequency classes (paper, Figure 1)."""
    title = 'Words in four classes of frequency'
    known = [name for name in CORPORA if name in m.frequency]
    if not known:
        return Figure('frequency_classes', title, '', '', absent='stage vocab has not counted words.')
    classes = list(m.frequency[known[0]]['classes'])
    shares = {name: _shares(m.frequency[name]) for name in known}

    def draw(panels: list[Any]) -> None:
        for axes, what in zip(panels, ('different words', 'running words'), strict=True):
            for number, (name, colour) in enumerate(zip(known, SERIES, strict=False)):
                width = 0.8 / len(known)
                places = [i + (number - (len(known) - 1) / 2) * width for i in range(len(classes))]
                bars = axes.bar(places, shares[name][what], width * 0.92, color=colour, label=CORPORA[name])
                axes.bar_label(bars, fmt='%.0f', fontsize=9)
            axes.set_title(f'{what}, %', fontsize=10)
            axes.set_xticks(range(len(classes)), [c.replace(' or more', '+') for c in classes], fontsize=9)
            axes.set_ylim(0, 108)
            axes.grid(False, axis='x')
        name_axes(panels, 'occurrences in a million words', '')

    parts = []
    for name in known:
        listed = ', '.join(
            f'{share:.0f} ({c})' for c, share in zip(classes, shares[name]['different words'], strict=True)
        )
        parts.append(f'{CORPORA[name]} {listed}')
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
        return Figure('word_frequency', title, '', '', absent='config.vocab.general names no general corpus.')
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
        reason = 'stage analyze has not cut the entities of config.finetune.folder.'
        return Figure('entity_pieces', title, '', '', absent=reason)
    owners = [name for name in OWNERS if all(name in by_owner for by_owner in measured.values())]
    found = {
        owner: {
            'pieces an entity': [pieces_per_mention(by_owner[owner]) or 0 for by_owner in measured.values()],
            'words that are one piece, %': [100 * x[owner]['one_piece_words'] for x in measured.values()],
        }
        for owner in owners
    }

    def draw(panels: list[Any]) -> None:
        width = 0.8 / len(owners)
        for axes, what in zip(panels, next(iter(found.values())), strict=True):
            for number, (owner, colour) in enumerate(zip(owners, SERIES, strict=False)):
                places = [i + (number - (len(owners) - 1) / 2) * width for i in range(len(measured))]
                bars = axes.bar(places, found[owner][what], width * 0.92, color=colour, label=OWNERS[owner])
                axes.bar_label(bars, fmt='%.0f' if what.endswith('%') else '%.1f', fontsize=9)
            axes.set_title(what, fontsize=10)
            axes.set_xticks(range(len(measured)), list(measured), rotation=20 if len(measured) > 2 else 0)
            axes.grid(False, axis='x')
            axes.margins(y=0.12)
        name_axes(panels, '', '')

    parts = []
    for at, name in enumerate(measured):
        counts = ', '.join(f'{found[o]["pieces an entity"][at]:.1f} ({OWNERS[o]})' for o in owners)
        parts.append(f'{name} {counts}')
    alt = f'Mean number of pieces of an entity, by vocabulary: {"; ".join(parts)}.'
    caption = (
        "All mentions of the training splits; words are BERT's, punctuation apart. Vocabulary by colour."
    )
    svg = draw_panels('entity_pieces', draw, 2, 3.0, share_y=False)
    return Figure('entity_pieces', title, caption, alt, svg)


DRAWN = (frequency_classes, word_frequency, entity_pieces)


def _shares(corpus: dict[str, Any]) -> dict[str, list[float]]:
    """Percent by class: of the different words, of the running words."""
    different = max(sum(c['different'] for c in corpus['classes'].values()), 1)
    return {
        'different words': [100 * c['different'] / different for c in corpus['classes'].values()],
        'running words': [100 * c['share'] for c in corpus['classes'].values()],
    }
