"""Geometry of embeddings and of words in context: what every model has, and what each phase changed."""

import itertools
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.analysis.geometry import change
from bioptimus_jax.records.analysis import ShapeOfWords, WordMeasure
from bioptimus_jax.report.drawing import INK, SERIES, Figure, Point, curves, draw_panels, name_axes, with_line
from bioptimus_jax.report.layout import Cell, Column, Table, between, count, each, fixed, missing, percent
from bioptimus_jax.report.measures import NOT_ANALYZED, PHASE_INITIAL, Measures
from bioptimus_jax.report.section import Section

TITLE = 'Geometry of rare and frequent words'
KINDS = {'embeddings': 'embedding row', 'contextual': 'in context'}
MEASURES = {
    'cosine': 'cosine',
    'cosine_centred': 'cosine, centred',
    'top_share_uncentred': 'top component',
    'top_share': 'top component, centred',
    'isoscore': 'IsoScore',
    'purity': 'neighbours of its class',
    'purity_centred': 'neighbours, centred',
    'centroid_distance': 'centroid distance',
}
DRAWN_MEASURES = ('cosine', 'top_share', 'isoscore', 'purity', 'purity_centred', 'centroid_distance')
NOT_MEASURED = 'stage analyze has not measured words; run it with --replace.'
CLASSES = (('rare', SERIES[0]), ('frequent', SERIES[1]))


def rows(m: Measures) -> Table:
    """Rows of the embedding table: all of them, those shared with the source, new ones."""
    measures = dict(
        norm_mean='mean norm', norm_sd='sd of norms', cosine='cosine', cosine_centred='cosine, centred'
    )
    columns = [
        Column('model', lambda model, kind, g: m.label(model)),
        Column('rows', lambda model, kind, g: kind),
        Column('count', lambda model, kind, g: count(g.count)),
        *each(measures, lambda name, model, kind, g: fixed(getattr(g, name))),
        Column('top component', lambda model, kind, g: percent(g.top_component_share)),
    ]
    records = [(r.model, kind, g) for r in m.geometry for kind, g in r.rows.items()]
    note = (
        'Word-embedding rows without special and [unused] ones. Cosine: mean over random pairs,'
        ' isotropic at 0. Top component: its share of the variance around the mean.'
    )
    return Table.of('Geometry of the embeddings', columns, records, note=note, absent=NOT_ANALYZED)


def of_words(m: Measures) -> Table:
    """Anisotropy, and separation of rare and frequent words, in every model with 95 % intervals over words."""
    columns = [
        Column('vector', lambda kind, model, r: KINDS[kind]),
        Column('model', lambda kind, model, r: m.label(model)),
        *each(MEASURES, lambda name, kind, model, r: _interval(r.of(kind).get(name))),
    ]
    records = [(kind, model, r) for kind in KINDS for model, r in by_model(m).items()]
    note = (
        f'{_which(m)} Cosine: of all pairs of words, isotropic at 0. Top component: of the second moment; centred: of'
        ' the variance. IsoScore: 1 isotropic, 0 a line. Neighbours: share of the ten nearest by cosine that are of'
        " the word's own class, a half by chance. Centroid distance: in units of the spread within classes, about 2"
        ' over the root of the number of words by chance. Brackets: 95 % intervals over words, not over runs.'
    )
    return Table.of(TITLE, columns, records, note=note, absent=reason(m))


def changes(m: Measures) -> Table:
    """What each phase changed, word by word: differences of the measures with 95 % intervals."""
    measured = by_model(m)
    order = [x for x in (PHASE_INITIAL, *m.phases) if x in measured]
    steps = list(itertools.pairwise(order))
    steps += [(order[0], order[-1])] if len(order) > 2 else []
    same = [(a, b) for a, b in steps if measured[a].digest == measured[b].digest]
    records = [(k, a, b, change(measured[a].of(k), measured[b].of(k))) for k in KINDS for a, b in same]
    columns = [
        Column('vector', lambda kind, before, after, found: KINDS[kind]),
        Column('from', lambda kind, before, after, found: m.label(before)),
        Column('to', lambda kind, before, after, found: m.label(after)),
        *each(MEASURES, lambda name, kind, before, after, found: _interval(found[name], '+')),
    ]
    note = (
        'Less anisotropy: cosine and top component fall, IsoScore rises. The same words on both sides: brackets are'
        ' 95 % intervals of the difference over words. They do not show whether another seed changes in the same way.'
        ' A phase is also more steps: what a masking setting did is the difference of arms with equal steps.'
    )
    return Table.of('What each phase changed', columns, records, note=note, absent=reason(m))


def anisotropy(m: Measures) -> Figure:
    """Measures of the words by model, with intervals."""
    measured = by_model(m)

    def points(kind: str, name: str) -> list[Point]:
        found = [r.of(kind)[name] for r in measured.values()]
        return [(i, r.low, r.value, r.high) for i, r in enumerate(found)]

    def finish(axes: Any, panel: str) -> None:
        if panel in (MEASURES['purity'], MEASURES['purity_centred']):
            axes.axhline(0.5, color=INK, alpha=0.5, linewidth=0.9, linestyle=':')
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))

    return curves(
        'anisotropy',
        'Anisotropy, and separation of rare and frequent words',
        {MEASURES[x]: {shown: points(kind, x) for kind, shown in KINDS.items()} for x in DRAWN_MEASURES},
        '',
        '',
        ticks=[m.label(x).split(' ')[0] for x in measured],
        finish=finish,
        caption='The same words in every model; upright lines are 95 % intervals over words, not over runs.'
        ' Dotted: neighbours by chance.',
        absent=reason(m),
        share_y=False,
    )


def words_in_the_plane(m: Measures) -> Figure:
    """t-SNE of some of the words in every model, by frequency (paper, Figure 5)."""
    title = 'Rare and frequent words in the plane'
    drawn = m.points.models if m.points else ()
    if not (m.points and drawn):
        return Figure('words_in_the_plane', title, absent=reason(m))
    high = m.points.high

    def draw(panels: list[Any]) -> None:
        pictures = [(kind, shown, r) for kind, shown in KINDS.items() for r in drawn]
        for axes, (kind, shown, r) in zip(panels, pictures, strict=True):
            for (name, colour), frequent in zip(CLASSES, (False, True), strict=True):
                own = [xy for xy, is_high in zip(r.of(kind), high, strict=True) if is_high == frequent]
                _dots(axes, own, colour, name)
            axes.set_title(f'{m.label(r.model)}, {shown}', fontsize=9)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.grid(False)
        name_axes(panels, '', '')

    caption = (
        'A picture, not evidence: t-SNE keeps neighbours, so distances between clusters and their sizes mean nothing'
        ' and every panel has its own axes. What is apart, and how far, is in the tables.'
    )
    models = ', '.join(m.label(r.model) for r in drawn)
    alt = f't-SNE of {len(high) // 2:,} rare and as many frequent words by embedding row and in context: {models}.'
    svg = draw_panels('words_in_the_plane', draw, len(KINDS) * len(drawn), 2.3, share_x=False, share_y=False)
    return Figure('words_in_the_plane', title, caption, alt, svg)


SECTION = Section(
    'Geometry',
    'Are words spread out, or do they share one direction? Are rare and frequent ones apart?',
    ('analyze',),
    {'geometry_words': of_words, 'geometry_changes': changes, 'geometry': rows},
    (anisotropy, words_in_the_plane),
    after='training',
)


def _dots(axes: Any, points: Sequence[Sequence[float]], colour: str, label: str) -> None:
    """Points as one path of strokes without length and with round ends: a third of the bytes of markers."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    lines = Path([xy for xy in points for _ in range(2)], [Path.MOVETO, Path.LINETO] * len(points))
    lines.should_simplify = False
    look = dict(fill=False, edgecolor=colour, linewidth=2.4, capstyle='round', alpha=0.8)
    axes.add_patch(PathPatch(lines, **look, label=with_line(label)))
    axes.plot([], [], 'o', color=colour, markersize=3.5, label=label)
    axes.autoscale_view()


def by_model(m: Measures) -> dict[str, ShapeOfWords]:
    """Model -> what was measured of its words, in the order of the tables."""
    found = {r.model: r.words for r in m.geometry if r.words.digest is not None}
    return {model: found[model] for model in m.models if model in found}


def of_last_phase(m: Measures) -> ShapeOfWords | None:
    """What was measured of the words of the last phase's model; None where nothing was."""
    return by_model(m).get(m.phases[-1]) if m.phases else None


def reason(m: Measures) -> str:
    """Why there is nothing of the words of a run."""
    if not m.geometry:
        return NOT_ANALYZED
    reasons = [r.words.skipped for r in m.geometry if r.words.skipped]
    return f'{reasons[0]}.' if reasons else NOT_MEASURED


def _which(m: Measures) -> str:
    """The words measured, in a sentence or two."""
    measured = by_model(m)
    if not measured:
        return ''
    r = list(measured.values())[-1]
    if r.split is None or r.low is None or r.high is None:
        return ''
    text = {'heldout': 'held-out', 'train': 'training'}[r.split]
    parted = {x: w.one_piece for x, w in measured.items() if w.one_piece is not None and w.one_piece < 1}
    several = [f'{m.label(x)} {1 - share:.0%}' for x, share in parted.items()]
    spelled = (
        f' Spelled in several pieces, and represented by their mean: {", ".join(several)}.' if several else ''
    )
    return (
        f'{r.count:,} words, a piece each in this vocabulary, half of them rare (median count'
        f' {r.low.median_count:,.0f}, new tokens {r.low.new:.0%}), half frequent'
        f' ({r.high.median_count:,.0f}, {r.high.new:.0%}), in pairs of equal length. In context: mean'
        f' last-layer state over {r.contexts} places in unmasked {text} text.{spelled}'
    )


def _interval(found: WordMeasure | None, sign: str = '') -> Cell:
    if found is None:
        return missing()
    return Cell(between(found.value, found.low, found.high, f'{sign}.3f'), found.value)
