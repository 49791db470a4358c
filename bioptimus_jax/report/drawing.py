"""How figures are drawn: inline SVG that follows the page's colours, light or dark."""

import dataclasses
import io
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bioptimus_jax.report.measures import PHASE_INITIAL, Measures
from bioptimus_jax.schema import SOURCE, phase_of

INK, GRID = '#010203', '#0a0b0c'
SERIES = ('#2f6fab', '#c8553d', '#3c8d53', '#8a5aa8', '#b8860b', '#5f7a8a', '#c2568f')
"""Drawn colours; in the page each becomes a CSS variable with a light and a dark value."""
LINES = ('-', '--', ':')
"""Once every colour is used."""
COLUMNS = 3
"""Panels side by side."""
LEGEND_LETTERS = 95
"""In a row of the legend, its lines included."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """One figure of the page; `svg` is empty where its data do not exist yet, and `absent` says why."""

    name: str
    title: str
    caption: str = ''
    alt: str = ''
    svg: str = ''
    absent: str = ''

    @property
    def empty(self) -> bool:
        return not self.svg


def shown(m: Measures) -> tuple[list[str], str]:
    """The scored models that a figure has colours for, and a sentence where some are left out."""
    models = [x for x in m.models if any(r['model'] == x for r in m.finetuned)]
    if len(models) <= len(SERIES):
        return models, ''
    ends = [x for x in models if x not in m.on_the_way or phase_of(x) == x]
    if len(ends) <= len(SERIES):
        return ends, 'Snapshots are left out.'
    means = {x: statistics.fmean(s for d in m.datasets for s in m.scores(x, d, 'devel')) for x in ends}
    best = sorted(ends, key=lambda x: -means[x])[: len(SERIES)]
    left_out = f'The {len(best)} of {len(models)} models with the highest mean on devel.'
    return [x for x in ends if x in best], left_out


def name_axes(panels: Sequence[Any], x: str, y: str) -> None:
    """Labels at the outer panels, one legend below all of them."""
    columns = min(len(panels), COLUMNS)
    for number, axes in enumerate(panels):
        if number >= len(panels) - columns:
            axes.set_xlabel(x)
            axes.tick_params(labelbottom=True)
        if number % columns == 0:
            axes.set_ylabel(y)
    lines = dict(zip(*reversed(panels[0].get_legend_handles_labels()), strict=True))
    for axes in panels[1:]:
        lines |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    letters = sum(len(name) + 6 for name in lines)
    columns = max(1, min(len(lines), LEGEND_LETTERS * len(lines) // max(letters, 1)))
    panels[0].figure.legend(lines.values(), lines.keys(), loc='outside lower center', ncols=columns)


def in_legend(name: str) -> str:
    """A name as a legend shows it: matplotlib leaves out those that begin with `_`."""
    return f' {name}' if name.startswith('_') else name


def band(axes: Any, points: Sequence[tuple[float, float, float, float]], number: int, label: str) -> None:
    """A line with dots through `(place, low, mean, high)`, and a band from low to high; `number` chooses the colour."""
    places, lows, means, highs = zip(*points, strict=True) if points else ((), (), (), ())
    colour, style = SERIES[number % len(SERIES)], LINES[number // len(SERIES) % len(LINES)]
    name = in_legend(label)
    axes.plot(places, means, style, color=colour, linewidth=1.3, marker='o', markersize=3, label=name)
    axes.fill_between(places, lows, highs, color=colour, alpha=0.13, linewidth=0)


def bars(axes: Any, groups: Sequence[str], heights: Mapping[str, Sequence[float]], form: str) -> None:
    """Bars side by side at every group, one for each label of `heights`, with their numbers above."""
    width = 0.8 / len(heights)
    for number, ((label, values), colour) in enumerate(zip(heights.items(), SERIES, strict=False)):
        places = [i + (number - (len(heights) - 1) / 2) * width for i in range(len(groups))]
        drawn = axes.bar(places, values, width * 0.92, color=colour, label=label)
        axes.bar_label(drawn, fmt=form, fontsize=9)
    axes.grid(False, axis='x')


def phase_spans(m: Measures) -> list[tuple[str, int, int]]:
    """`(phase, first step, last step)` from the records."""
    spans: dict[str, tuple[int, int]] = {}
    for record in (*m.training, *m.evaluations):
        if record['phase'] not in (PHASE_INITIAL, SOURCE):
            low, high = spans.get(record['phase'], (record['step'], record['step']))
            spans[record['phase']] = (min(low, record['step']), max(high, record['step']))
    return [(name, *span) for name, span in sorted(spans.items(), key=lambda item: item[1])]


def training_axis(axes: Any, m: Measures) -> None:
    """Steps and, below them, tokens, as many a step as on average; a dotted line where a phase ends, its name above."""
    start = 0
    for name, _, stop in phase_spans(m):
        axes.axvline(stop, color=INK, alpha=0.5, linewidth=0.9, linestyle=':')
        above = axes.get_xaxis_transform()
        axes.text((start + stop) / 2, 1.01, name, transform=above, ha='center', va='bottom', fontsize=9)
        start = stop
    axes.set_xlabel('step')
    last = max((*m.training, *m.evaluations), key=lambda r: r['step'], default={})
    if not last.get('tokens') or not last['step']:
        return
    units = (1e9, 'billion '), (1e6, 'million '), (1e3, 'thousand '), (1, '')
    unit, name = next(known for known in units if last['tokens'] >= known[0])
    a_step = last['tokens'] / last['step'] / unit
    both_ways = (lambda step: step * a_step, lambda tokens: tokens / a_step)
    below = axes.secondary_xaxis(-0.19, functions=both_ways)
    below.set_xlabel(f'{name}tokens')
    below.spines['bottom'].set_linewidth(0.8)


def draw_svg(name: str, draw: Callable[[Any], None], height: float = 3.6) -> str:
    """A drawing on one pair of axes, `height` in inches."""
    return draw_panels(name, lambda panels: draw(panels[0]), height=height)


def draw_panels(
    name: str,
    draw: Callable[[list[Any]], None],
    panels: int = 1,
    height: float = 2.8,
    share_x: bool = True,
    share_y: bool = True,
) -> str:
    """A drawing on several pairs of axes, by default with one scale for all; `height` of a row of them, in inches."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

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
        figure, axes = pyplot.subplots(
            rows,
            columns,
            figsize=(7.2, rows * height),
            layout='constrained',
            sharex=share_x,
            sharey=share_y,
            squeeze=False,
        )
        for unused in axes.flat[panels:]:
            unused.remove()
        draw(list(axes.flat[:panels]))
        buffer = io.StringIO()
        figure.savefig(buffer, format='svg', transparent=True, metadata={'Date': None, 'Creator': None})
        pyplot.close(figure)
    return _inline(buffer.getvalue(), name)


def _inline(svg: str, name: str) -> str:
    """The <svg> element alone: sized by the page, ids of its own, colours as CSS variables."""
    svg = svg[svg.index('<svg') :]
    svg = re.sub(r'<metadata>.*?</metadata>', '', svg, flags=re.DOTALL)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r'\1', svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1', svg, count=1)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = svg.replace('url(#', f'url(#{name}-').replace('href="#', f'href="#{name}-')
    svg = svg.replace(INK, 'var(--ink, #222)').replace(GRID, 'var(--grid, #ccc)')
    for number, colour in enumerate(SERIES):
        svg = svg.replace(colour, f'var(--series-{number}, {colour})')
    return '\n'.join(line.rstrip() for line in svg.strip().splitlines())
