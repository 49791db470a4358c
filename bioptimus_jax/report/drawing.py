"""How figures are drawn: inline SVG that follows the page's colours, light or dark.

Each says of its axes where they lie, what they measure and which elements are which line (`data-charts`), so that
figures.js finds values, hides lines and zooms.
"""

import dataclasses
import html
import io
import json
import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.model.config import SOURCE, phase_of
from bioptimus_jax.report.measures import PHASE_INITIAL, Measures
from bioptimus_jax.storage.files import JsonObject, atomic

# Colours that nothing else has: `_inline` looks for them in the text of the SVG.
INK, GRID = '#010203', '#0a0b0c'
SERIES = ('#2f6fab', '#c8553d', '#3c8d53', '#8a5aa8', '#b8860b', '#5f7a8a', '#c2568f')
"""Drawn colours; in the page each becomes a CSS variable with a light and a dark value."""
LINES = ('-', '--', ':')
"""Once every colour is used."""
WIDTHS = (5.0, 10.8, 10.8)
"""Inches, of one panel, and of as many side by side as there are widths."""
COLUMNS = len(WIDTHS)
LEGEND_LETTERS = 13
"""Letters in an inch of a row of the legend, its lines included."""
LEGEND_LINE = 0.2
"""Inches."""
TICK_LETTERS = 9.7
"""Letters in an inch, of the names of all places of panels side by side, above which these are slanted."""
POINTS = 72
"""Points in an inch."""
Point = tuple[float, float, float, float]
"""Place, low end, value, high end."""
GAP = (float('nan'),) * 4
"""A point that interrupts a line."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure of the page; `svg` is empty where its data do not exist yet, and `absent` says why.

    `wide`: it takes the whole width of the page, for it has several panels.
    """

    name: str
    title: str
    caption: str = ''
    alt: str = ''
    svg: str = ''
    absent: str = ''

    @property
    def empty(self) -> bool:
        return not self.svg

    @property
    def wide(self) -> bool:
        size = re.search(r'viewBox="0 0 ([\d.]+)', self.svg)
        return size is not None and float(size[1]) > 1 + POINTS * WIDTHS[0]


def shown(m: Measures) -> tuple[list[str], str]:
    """The scored models that a figure has colours for, and a sentence where some are left out."""
    models = [x for x in m.models if any(r.model == x for r in m.finetuned)]
    if len(models) <= len(SERIES):
        return models, ''
    ends = [x for x in models if x not in m.on_the_way or phase_of(x) == x]
    if len(ends) <= len(SERIES):
        return ends, 'Snapshots are left out.'
    means = {x: statistics.fmean(scores) for x in ends if (scores := _on_devel(m, x))}
    if not means:
        best = ends[-len(SERIES) :]
        return best, f'The last {len(best)} of {len(models)} models: devel chooses none.'
    best = sorted(means, key=lambda x: -means[x])[: len(SERIES)]
    left_out = f'The {len(best)} of {len(models)} models with the highest mean on devel.'
    return [x for x in ends if x in best], left_out


def _on_devel(m: Measures, model: str) -> list[float]:
    return [score for dataset in m.datasets for score in m.scores(model, dataset, 'devel')]


def name_axes(panels: Sequence[Any], x: str, y: str) -> None:
    """Labels at the outer panels, one legend below all of them."""
    columns = min(len(panels), COLUMNS)
    for number, axes in enumerate(panels):
        axes.tick_params(labelbottom=True, labelleft=True)  # each may be alone in its row, on a phone
        if number >= len(panels) - columns:
            axes.set_xlabel(x)
        if number % columns == 0:
            axes.set_ylabel(y)
    lines: dict[str, Any] = {}
    for axes in panels:
        lines |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    letters, room = sum(len(name) + 6 for name in lines), round(LEGEND_LETTERS * width_of(len(panels)))
    columns = max(1, min(len(lines), room * len(lines) // max(letters, 1)))
    panels[0].figure.legend(lines.values(), lines.keys(), loc='outside lower center', ncols=columns)


def width_of(panels: int) -> float:
    """Inches."""
    return WIDTHS[min(panels, COLUMNS) - 1]


def in_legend(name: str) -> str:
    """A name as a legend shows it: matplotlib leaves out those that begin with `_`."""
    return f' {name}' if name.startswith('_') else name


def with_line(label: str) -> str:
    """The label of what is hidden with the line of this label, and is not in the legend."""
    return f'_{in_legend(label)}'


def curves(
    name: str,
    title: str,
    panels: Mapping[str, Mapping[str, Sequence[Point]]],
    x: str,
    y: str,
    *,
    ticks: Sequence[str] = (),
    finish: Callable[[Any, str], None] = lambda axes, panel: None,
    caption: str = '',
    absent: str = '',
    share_y: bool = True,
) -> Figure:
    """Values with their intervals: a panel for each title, in it a line for each label, of one colour in all panels.

    With `ticks`, the names of the places, intervals are upright lines side by side, else they make a band. `finish`
    is called with the axes and the title of a panel. In words the figure says the values; of curves, both ends.
    """
    filled = {panel: {label: p for label, p in lines.items() if p} for panel, lines in panels.items()}
    filled = {panel: lines for panel, lines in filled.items() if lines}
    if not filled:
        return Figure(name, title, absent=absent)
    labels = list(dict.fromkeys(label for lines in filled.values() for label in lines))
    slanted = {'rotation': 35, 'ha': 'right', 'rotation_mode': 'anchor'}

    def draw(every: list[Any]) -> None:
        for axes, (panel, lines) in zip(every, filled.items(), strict=True):
            for label, points in lines.items():
                _line(axes, points, labels.index(label), label, len(labels) if ticks else 0)
            axes.set_title(panel, fontsize=10)
            if ticks:
                wide = min(len(filled), COLUMNS) * sum(map(len, ticks)) > TICK_LETTERS * width_of(len(filled))
                axes.set_xticks(range(len(ticks)), ticks, **(slanted if wide else {}))
                axes.grid(False, axis='x')
            finish(axes, panel)
        name_axes(every, x, y)

    letters = LEGEND_LETTERS * width_of(len(filled))
    legend = LEGEND_LINE * sum(len(label) + 6 for label in labels) / letters
    height = (3.2 if len(filled) == 1 else 2.6) + legend / -(-len(filled) // COLUMNS)
    svg = draw_panels(name, draw, len(filled), height, share_y=share_y)
    return Figure(name, title, caption.strip(), f'{title}. {_in_words(filled, ticks)}.', svg)


def _in_words(panels: Mapping[str, Mapping[str, Sequence[Point]]], ticks: Sequence[str]) -> str:
    """The values at named places, or both ends of curves: for those who do not see the figure."""

    def said(points: Sequence[Point]) -> str:
        if ticks:  # GAP marks a missing value
            known = ((at, value) for at, _, value, _ in points if not math.isnan(value))
            return ', '.join(f'{value:.4g} ({ticks[round(at)]})' for at, value in known)
        return ' to '.join(f'{value:.4g}' for _, _, value, _ in (points[0], points[-1]))

    of_panels = (
        f'{panel and f"{panel}: "}{"; ".join(f"{label} {said(points)}" for label, points in lines.items())}'
        for panel, lines in panels.items()
    )
    return '. '.join(of_panels)


def _line(axes: Any, points: Sequence[Point], number: int, label: str, beside: int) -> None:
    """The line of that number; `beside` so many others its points keep apart, if any."""
    places, lows, values, highs = map(list, zip(*points, strict=True))
    colour, style = SERIES[number % len(SERIES)], LINES[number // len(SERIES) % len(LINES)]
    named = dict(color=colour, markersize=3.5, linewidth=1.3, label=in_legend(label))
    if not beside:
        axes.plot(places, values, f'o{style}', **named)
        axes.fill_between(places, lows, highs, color=colour, alpha=0.13, linewidth=0, label=with_line(label))
        return
    shift = (number - (beside - 1) / 2) * min(0.1, 0.5 / beside)
    below, above = [v - low for v, low in zip(values, lows)], [high - v for v, high in zip(values, highs)]
    axes.errorbar(
        [at + shift for at in places], values, [below, above], fmt=f'o{style}', elinewidth=1, **named
    )


def spanned(place: float, values: Sequence[float]) -> Point:
    """A point with the mean of the values, from the lowest to the highest."""
    return place, min(values), statistics.fmean(values), max(values)


def write_figures(figures: Iterable[Figure], folder: Path) -> None:
    """Write NAME.svg for each that has something to show, and delete that of the others: it is of an earlier call."""
    for figure in figures:
        path = folder / f'{figure.name}.svg'
        if figure.empty:
            path.unlink(missing_ok=True)
            continue
        with atomic(path) as file:
            file.write(figure.svg + '\n')


def phase_spans(m: Measures) -> list[tuple[str, int, int]]:
    """`(phase, first step, last step)` from the records."""
    spans: dict[str, tuple[int, int]] = {}
    for record in m.lines:
        if record.phase not in (PHASE_INITIAL, SOURCE):
            low, high = spans.get(record.phase, (record.step, record.step))
            spans[record.phase] = (min(low, record.step), max(high, record.step))
    return [(name, *span) for name, span in sorted(spans.items(), key=lambda item: item[1])]


def training_axis(axes: Any, m: Measures) -> None:
    """Steps and, below them, tokens, as many a step as on average; a dotted line where a phase ends, its name above."""
    start = 0
    for name, _, stop in phase_spans(m):
        axes.axvline(stop, color=INK, alpha=0.5, linewidth=0.9, linestyle=':')
        above = axes.get_xaxis_transform()
        # A phase of a few steps may be drawn from its last one on: a name outside the axes leaves them no room.
        middle = max((start + stop) / 2, axes.get_xlim()[0])
        axes.text(middle, 1.01, name, transform=above, ha='center', va='bottom', fontsize=9)
        start = stop
    axes.set_xlabel('step')
    last = max(m.lines, key=lambda r: r.step, default=None)
    if not last or not last.tokens or not last.step:
        return
    units = (1e9, 'billion '), (1e6, 'million '), (1e3, 'thousand '), (1, '')
    unit, name = next(known for known in units if last.tokens >= known[0])
    a_step = last.tokens / last.step / unit
    both_ways = (lambda step: step * a_step, lambda tokens: tokens / a_step)
    below = axes.secondary_xaxis(-0.27, functions=both_ways)
    below.set_xlabel(f'{name}tokens')
    below.spines['bottom'].set_linewidth(0.8)


def draw_panels(
    name: str,
    draw: Callable[[list[Any]], None],
    panels: int = 1,
    height: float = 2.8,
    share_x: bool = True,
    share_y: bool = True,
) -> str:
    """A drawing on one or several pairs of axes, by default with one scale; `height` of a row of them, in inches."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    # Text stays text, and ids come from the name: the same data give the same bytes.
    style: Any = {
        'svg.fonttype': 'none', 'svg.hashsalt': name, 'font.size': 10, 'text.color': INK,
        'axes.edgecolor': INK, 'axes.labelcolor': INK, 'xtick.color': INK, 'ytick.color': INK,
        'grid.color': GRID, 'axes.grid': True,
        'grid.linewidth': 0.6, 'axes.spines.top': False, 'axes.spines.right': False, 'legend.frameon': False,
        'legend.fontsize': 9, 'axes.axisbelow': True, 'axes.linewidth': 0.8, 'text.parse_math': False,
    }  # fmt: skip
    with matplotlib.rc_context(style):
        columns = min(panels, COLUMNS)
        rows = -(-panels // columns)
        size = width_of(panels), rows * height
        figure, axes = pyplot.subplots(
            rows, columns, figsize=size, layout='constrained', sharex=share_x, sharey=share_y, squeeze=False
        )
        for unused in axes.flat[panels:]:
            unused.remove()
        draw(list(axes.flat[:panels]))
        lines = [_identified(one, f'p{number}') for number, one in enumerate(figure.axes)]
        buffer = io.StringIO()
        figure.savefig(buffer, format='svg', transparent=True, metadata={'Date': None, 'Creator': None})
        # Only after savefig: the constrained layout gives the axes their places when it draws.
        charts = [_chart(*both) for both in zip(figure.axes, lines, strict=True)]
        pyplot.close(figure)
    return _inline(buffer.getvalue(), name, charts)


def _identified(axes: Any, prefix: str) -> JsonObject:
    """Give every element that is drawn an id: `lines` by their labels, with what is hidden with them, and the others.

    `ticks` are those of both axes, and `under` a second axis below.
    """
    lines: dict[str, list[str]] = {}
    others: list[str] = []
    owned: dict[Any, str] = {}
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        # The handle of error bars is a container, which takes no id; its parts do.
        owned |= dict.fromkeys([handle] if hasattr(handle, 'set_gid') else handle.get_children(), label)
    labels = {with_line(label): label for label in owned.values()}
    for number, artist in enumerate((*axes.patches, *axes.collections, *axes.lines)):
        label = owned.get(artist, labels.get(artist.get_label(), ''))
        has_points = artist in axes.lines or artist in axes.patches
        artist.set_gid(f'{prefix}-{"line" if label and has_points else "mark"}-{number}')
        (lines.setdefault(label, []) if label else others).append(artist.get_gid())
    axes.set_gid(prefix)
    groups = {'x': axes.xaxis, 'y': axes.yaxis, **{f'under{n}': x for n, x in enumerate(axes.child_axes)}}
    groups |= {f'text{number}': text for number, text in enumerate(axes.texts)}
    for part, artist in groups.items():
        artist.set_gid(f'{prefix}-{part}')
    fixed = [f'{prefix}-{part}' for part in groups if part not in ('x', 'y')]
    ticks = [f'{prefix}-x', f'{prefix}-y']
    return {'id': prefix, 'lines': lines, 'others': others, 'ticks': ticks, 'fixed': fixed}


def _chart(axes: Any, elements: JsonObject) -> JsonObject:
    """The elements, where the axes lie in the figure, in points from above, and what they measure."""
    width, height = (POINTS * inches for inches in axes.figure.get_size_inches())
    at = axes.get_position()
    # SVG measures from above, matplotlib from below.
    box = at.x0 * width, (1 - at.y1) * height, at.width * width, at.height * height
    measured = {'x': _measured(axes.xaxis), 'y': _measured(axes.yaxis)}
    return {**elements, 'title': axes.get_title(), 'box': [round(x, 6) for x in box], **measured}


def _measured(axis: Any) -> JsonObject:
    """What an axis measures, from where to where; `names` of places that have some. Without ticks it says nothing."""
    from matplotlib.ticker import FixedLocator

    at = [float(place) for place in axis.get_majorticklocs()]
    named = isinstance(axis.get_major_locator(), FixedLocator)
    return {
        'name': axis.get_label_text(),
        'ends': [float(end) for end in axis.get_view_interval()],
        'scale': axis.get_scale() if at else '',
        'right': axis.get_ticks_position() == 'right',
        'names': list(zip(at, axis.get_major_formatter().format_ticks(at), strict=True)) if named else [],
    }


def _inline(svg: str, name: str, charts: list[JsonObject]) -> str:
    """The <svg> element alone: sized by the page, ids of its own, colours as CSS variables."""
    svg = svg[svg.index('<svg') :]
    svg = re.sub(r'<metadata>.*?</metadata>', '', svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1', svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1', svg, count=1)
    # All figures are in one page, where ids must differ.
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace('url(#', f'url(#{name}-').replace('href="#', f'href="#{name}-')
    said = html.escape(json.dumps(charts, ensure_ascii=False, allow_nan=False))
    svg = svg.replace('<svg', f'<svg data-name="{name}" data-charts="{said}"', 1)
    svg = svg.replace(INK, 'var(--ink, #222)').replace(GRID, 'var(--grid, #ccc)')
    for number, colour in enumerate(SERIES):
        svg = svg.replace(colour, f'var(--series-{number}, {colour})')
    return '\n'.join(line.rstrip() for line in svg.strip().splitlines())
