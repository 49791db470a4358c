"""How difficult each masking setting is for a model: the paper's Figure 4, and its numbers by kind of position."""

import math
from typing import Any

from bioptimus_jax.report.drawing import SERIES, Figure, draw_panels, in_legend, name_axes
from bioptimus_jax.report.layout import Cell, Table, count, missing, words
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.student import interval

KINDS = {'perplexity': 'all selected', 'masked': '[MASK]', 'replaced': 'replaced', 'kept': 'kept'}
FAR_APART = 5
DRAWN_KINDS = ('perplexity', 'masked', 'replaced')
ABSENT = (
    'nothing has been measured; `bioptimus difficulty` measures any model on any texts, and'
    ' config.curriculum.order=easy_to_hard does before training.'
)


def difficulty(m: Measures) -> Table:
    """Perplexity under every masking setting, with 95 % intervals over samples, by what stands at a position."""
    columns = ['model', 'setting', 'masking', *KINDS.values(), 'positions', 'place', 'times the place before']
    rows = []
    for r in m.difficulty:
        order = sorted(r['settings'], key=lambda name: r['settings'][name]['perplexity']['mean'])
        for name, measured in r['settings'].items():
            cells = [_interval(measured.get(kind)) for kind in KINDS]
            positions = count(measured['positions']['perplexity'])
            place = order.index(name)
            times = _times(measured, r['settings'][order[place - 1]]) if place else missing()
            model = words(m.label(r['model']))
            rows.append(
                [model, words(name), words(_masking(r, name)), *cells, positions, count(place + 1), times]
            )
    note = (
        f'{_texts(m)} Perplexity: exp of the mean loss of the selected pieces of one sample, then mean and 95 %'
        ' interval over the samples (Student). By what stands at a position: [MASK], another token, or the token'
        ' itself, nearly free for a model that has learned much. Place: 1 is the easiest for that model by all'
        ' selected pieces, which config.curriculum.order goes by. Times the place before: how many times as perplexed'
        ' as under the next easier setting, paired by sample, since samples differ in text and settings share it: an'
        ' interval with 1 in it leaves the two in no order. Models with different vocabularies compare in the order'
        ' of the settings, not in height. A model that was trained on such text finds it easy: take text of a domain'
        ' that it has not seen.'
    )
    return Table('Difficulty of the masking settings', columns, rows, note=note, absent=ABSENT)


def masking_difficulty(m: Measures) -> Figure:
    """Perplexity by setting: mean and interval, one mark for every sample (paper, Figure 4)."""
    title = 'Perplexity under each masking setting'
    if not m.difficulty:
        return Figure('masking_difficulty', title, '', '', absent=ABSENT)
    settings = list(dict.fromkeys(name for r in m.difficulty for name in r['settings']))
    drawn = m.difficulty[: len(SERIES)]
    apart = _far_apart(drawn)
    groups = [[number] for number in range(len(drawn))] if apart else [list(range(len(drawn)))]

    def draw(panels: list[Any]) -> None:
        pictures = [(group, kind) for group in groups for kind in DRAWN_KINDS]
        for axes, (group, kind) in zip(panels, pictures, strict=True):
            step = 0.6 / len(group)
            for place, number in enumerate(group):
                shift = (place - (len(group) - 1) / 2) * step
                _draw_model(axes, drawn[number], kind, settings, shift, step, SERIES[number], m)
            axes.set_title(
                f'{m.label(drawn[group[0]]["model"])}, {KINDS[kind]}' if apart else KINDS[kind], fontsize=10
            )
            axes.set_xticks(range(len(settings)), settings)
            axes.set_xlim(-0.6, len(settings) - 0.4)
            axes.grid(False, axis='x')
        name_axes(panels, 'masked as in', 'perplexity')

    parts = []
    for r in drawn:
        means = ', '.join(f'{s["perplexity"]["mean"]:.4g} ({name})' for name, s in r['settings'].items())
        parts.append(f'{m.label(r["model"])} {means}')
    caption = (
        f'{_texts(m)} A dot is one sample, the bar their mean with its 95 % interval. Left: what the order of a'
        ' curriculum goes by. [MASK] and replaced: the same masks, only such positions; panels have scales of their'
        ' own. Dots of one sample stand in the same place of every setting.'
    )
    count = len(groups) * len(DRAWN_KINDS)
    svg = draw_panels('masking_difficulty', draw, count, 2.8 if apart else 3.0, share_y=False)
    alt = f'Perplexity over all selected positions by masking setting: {"; ".join(parts)}.'
    return Figure('masking_difficulty', title, caption, alt, svg)


DRAWN = (masking_difficulty,)


def _far_apart(records: list[dict[str, Any]]) -> bool:
    """Whether models lie so far apart, as step 0 and a trained one do, that one scale would hide their settings."""
    means = [s['perplexity']['mean'] for r in records for s in r['settings'].values()]
    return len(records) > 1 and max(means) > FAR_APART * min(means)


def _draw_model(
    axes: Any,
    r: dict[str, Any],
    kind: str,
    settings: list[str],
    shift: float,
    step: float,
    colour: str,
    m: Measures,
) -> None:
    """A model's samples, means and intervals, `shift` beside the place of each setting."""
    found = [(settings.index(name) + shift, s[kind]) for name, s in r['settings'].items() if s.get(kind)]
    for at, measured in found:
        last = max(len(measured['samples']) - 1, 1)
        places = [at + 0.25 * step * (2 * i / last - 1) for i in range(len(measured['samples']))]
        axes.plot(places, measured['samples'], 'o', color=colour, markersize=2.5, alpha=0.45)
    axes.errorbar(
        [at for at, _ in found],
        [measured['mean'] for _, measured in found],
        [measured['interval'][1] - measured['mean'] if measured['interval'] else 0 for _, measured in found],
        fmt='_',
        color=colour,
        markersize=12,
        capsize=3,
        label=in_legend(m.label(r['model'])),
    )


def _masking(r: dict[str, Any], name: str) -> str:
    phase = r.get('phases', {}).get(name)
    if phase is None:
        return ''
    corruption = '-'.join(f'{100 * share:.0f}' for share in phase['corruption'])
    return f'{phase["masking"]} {phase["rate"]:.0%}, {corruption}'


def _texts(m: Measures) -> str:
    """On what was measured, in a sentence for every set of texts."""
    said = dict.fromkeys(
        f'{r["documents"]:,} documents ({", ".join(r["texts"])}), in {r["samples"]} samples.'
        for r in m.difficulty
    )
    return ' '.join(said)


def _times(measured: dict[str, Any], easier: dict[str, Any]) -> Cell:
    """Ratio of two settings' perplexities: the geometric mean over the samples, and its interval."""
    pairs = zip(measured['perplexity']['samples'], easier['perplexity']['samples'], strict=True)
    mean, half = interval([math.log(a / b) for a, b in pairs])
    text = f'{math.exp(mean):.3f}'
    if half:
        text += f' [{math.exp(mean - half):.3f}, {math.exp(mean + half):.3f}]'
    return Cell(text, math.exp(mean))


def _interval(found: dict[str, Any] | None) -> Cell:
    if found is None:
        return missing()
    if found['interval'] is None:
        return Cell(f'{found["mean"]:.4g}', found['mean'])
    low, high = found['interval']
    return Cell(f'{found["mean"]:.4g} [{low:.4g}, {high:.4g}]', found['mean'])
