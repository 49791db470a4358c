"""How difficult each masking setting is for a model: the paper's Figure 4, and its numbers by kind of position."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.pretrain.config import DIFFICULTY_MEASURES
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.curriculum import Perplexity
from bioptimus_jax.report.drawing import INK, SERIES, Figure, Point, curves
from bioptimus_jax.report.layout import Cell, Column, Table, between, count, each, missing
from bioptimus_jax.report.measures import MeasuredDifficulty, Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.scoring.student import interval

KINDS = {'masked': '[MASK]', 'perplexity': 'all selected', 'replaced': 'replaced', 'kept': 'kept'}
DRAWN_KINDS = ('masked', 'perplexity', 'replaced')
ABSENT = (
    'nothing has been measured; `bioptimus difficulty` measures any model on any texts, and'
    ' config.curriculum.order=easy_to_hard does before training.'
)


def difficulty(m: Measures) -> Table:
    """Perplexity under every masking setting, with 95 % intervals over samples, by what stands at a position."""

    def of_kind(kind: str, r: MeasuredDifficulty, name: str) -> Cell:
        measured = r.settings[name].of(kind)
        return _cell(measured.samples, '.4g') if measured else missing()

    def place(r: MeasuredDifficulty, name: str) -> Cell:
        order = _order(r)
        return count(order.index(name) + 1 if name in order else None)

    columns = [
        Column('model', lambda r, name: m.label(r.model)),
        Column('setting', lambda r, name: name),
        Column('masking', _masking),
        *each(KINDS, of_kind),
        Column('positions', lambda r, name: count(r.settings[name].positions['perplexity'])),
        Column('place', place),
        Column('times the place before', _times),
    ]
    records = [(r, name) for r in m.difficulty for name in r.settings]
    note = (
        f'{_texts(m)} Perplexity: exp of the mean loss of the selected pieces of one sample, then geometric mean and'
        " 95 % interval over the samples (Student's, of the logarithm). By what is at a position: [MASK], another"
        ' token, or the token itself, nearly free for a model that has learned much. Place: 1 is the easiest for that'
        f' model {_measured_by(m)}. Times the place before: how many times as perplexed'
        ' as under the next easier setting, paired by sample, since samples differ in text and settings share it: an'
        ' interval with 1 in it does not tell which of the two is harder. Models with different vocabularies'
        ' compare in the order of the settings, not in the values. A model that was trained on such text finds it'
        ' easy: use text of a domain that it has not seen.'
    )
    return Table.of('Difficulty of the masking settings', columns, records, note=note, absent=ABSENT)


def masking_difficulty(m: Measures) -> Figure:
    """Perplexity by setting: mean and interval, one mark for every sample (paper, Figure 4)."""
    drawn = {m.label(r.model): r.settings for r in m.difficulty[: len(SERIES)]}
    settings = list(dict.fromkeys(name for found in drawn.values() for name in found))
    panels: dict[str, dict[str, list[Point]]] = {}
    dots: dict[str, list[tuple[int, float]]] = {}
    for (model, found), kind in itertools.product(drawn.items(), DRAWN_KINDS):
        panel = f'{model}, {KINDS[kind]}' if len(drawn) > 1 else KINDS[kind]
        samples = [(settings.index(name), x.samples) for name, s in found.items() if (x := s.of(kind))]
        for at, values in samples:
            mean, low, high = geometric(values)
            panels.setdefault(panel, {}).setdefault(model, []).append((at, low, mean, high))
            dots.setdefault(panel, []).extend((at, value) for value in values)

    def finish(axes: Any, panel: str) -> None:
        axes.plot(*zip(*dots[panel], strict=True), '.', color=INK, markersize=2.5, alpha=0.3)
        _logarithmic(axes)

    return curves(
        'masking_difficulty',
        'Perplexity under each masking setting',
        panels,
        'masked as in',
        'perplexity',
        ticks=settings,
        finish=finish,
        caption=f'{_texts(m)} A small dot is one sample, the bar their geometric mean with its 95 % interval; scales'
        f' are logarithmic, and each panel has its own. Places go {_measured_by(m)}. [MASK] and replaced: the same'
        ' masks, only such positions.',
        absent=ABSENT,
        share_y=False,
    )


SECTION = Section(
    'Difficulty',
    'Which masking setting is hard, and is a curriculum from easy to hard what its name says?',
    ('pretrain',),
    {'difficulty': difficulty},
    (masking_difficulty,),
    after='new_tokens',
)


def _logarithmic(axes: Any) -> None:
    """Make an axis logarithmic, with round numbers at the ticks, within a decade and over several."""
    from matplotlib import ticker

    low, high = axes.dataLim.intervaly
    if not 0 < low <= high < math.inf:  # nothing is drawn
        return
    axes.set_yscale('log')
    several = high > 10 * low
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)) if several else ticker.MaxNLocator(5))
    axes.yaxis.set_major_formatter(lambda value, _: f'{value:g}')
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def _masking(r: MeasuredDifficulty, name: str) -> str:
    phase = r.on.phases.get(name)
    if phase is None:
        return ''
    corruption = '-'.join(f'{100 * share:.0f}' for share in phase.corruption)
    return f'{phase.masking} {phase.rate:.0%}, {corruption}'


def _texts(m: Measures) -> str:
    """Sentences on what was measured, one for every set of texts."""
    said = dict.fromkeys(
        f'{numbered(r.on.documents, "document")} ({", ".join(r.on.texts)}), in {numbered(r.on.samples, "sample")}.'
        for r in m.difficulty
    )
    return ' '.join(said)


def geometric(values: Sequence[float]) -> tuple[float, float, float]:
    """Geometric mean, and the ends of its 95 % interval; the same three times of a single value."""
    mean, half = interval([math.log(value) for value in values])
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def _measured_by(m: Measures) -> str:
    by = {r.on.measure: None for r in m.difficulty}
    named = {'masked': 'at [MASK]', 'all': 'over all selected pieces'}
    which = ' or '.join(named[x] for x in by)
    return f'by perplexity {which}, as config.curriculum.order does'


def _order(r: MeasuredDifficulty) -> list[str]:
    """The settings from the easiest to the hardest."""
    known = {name: s.samples for name in r.settings if (s := _decisive(r, name))}
    means = {name: geometric(samples)[0] for name, samples in known.items()}
    return sorted(means, key=lambda name: means[name])


def _decisive(r: MeasuredDifficulty, name: str) -> Perplexity | None:
    return r.settings[name].of(DIFFICULTY_MEASURES[r.on.measure])


def _times(r: MeasuredDifficulty, name: str) -> Cell:
    """How many times as perplexed as under the next easier setting, paired by sample."""
    order = _order(r)
    if name not in order[1:]:
        return missing()
    harder, easier = (_decisive(r, x) for x in (name, order[order.index(name) - 1]))
    if not harder or not easier:
        return missing()
    return _cell([a / b for a, b in zip(harder.samples, easier.samples, strict=True)], '.3f')


def _cell(values: Sequence[float], form: str) -> Cell:
    mean, low, high = geometric(values)
    return Cell(between(mean, low, high, form) if len(values) > 1 else f'{mean:{form}}', mean)
