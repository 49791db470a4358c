"""Figures of several runs: devel F1 over pre-training (paper, Figure 3), held-out loss with phase boundaries."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.report.drawing import INK, SERIES, Figure, draw_panels, name_axes
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.trained import PAPER_SETTINGS, Trained, curriculum_name, differing, words_per_step
from bioptimus_jax.schema import SNAPSHOT
from bioptimus_jax.student import interval

LINES = ('-', '--', ':')
HEIGHT, LEGEND_LINE = 3.2, 0.2
"""Inches, of a figure without its legend and of a line in that."""
FINE_TUNING = ('finetune.', 'mentions of', 'training sentences')
BUDGETS = ('words of', 'learning rate', 'mentions of', 'training sentences')
"""Beginnings of names of conditions."""
Place = tuple[int, float]
"""Number of a phase, and the share of it that is done. Words differ by seed: steps are whole."""
Points = dict[Place, dict[int | None, tuple[float, float]]]
"""Place -> seed -> words seen, and the value."""


def devel_f1(models: Sequence[Trained]) -> Figure:
    """Devel F1 of step 0, snapshots and phase ends under the first setting, a line for each initialisation."""
    title = 'Devel F1 over pre-training (paper, Figure 3)'
    # One setting, the paper's first: initialisations are compared, not masks.
    static = [t for t in models if t.own and set(t.path) <= {PAPER_SETTINGS[0]}]
    own, left_out = one_set_up([t for t in static if any(map(t.cells, t.measures.datasets))], ())
    datasets = list(dict.fromkeys(d for t in own for d in t.measures.datasets))
    curves: dict[str, dict[str, Points]] = {}
    for t in own:
        place = len(t.path), int(t.model.partition(SNAPSHOT)[2] or 100) / 100
        for dataset in datasets:
            scores = t.measures.scores(t.model, dataset, 'devel')
            if scores:
                points = curves.setdefault(dataset, {}).setdefault(_arm(t, own), {})
                points.setdefault(place, {}).setdefault(t.seed, (t.words, statistics.fmean(scores)))
    curves = {d: {a: points for a, points in arms.items() if len(points) > 1} for d, arms in curves.items()}
    curves = {d: arms for d, arms in curves.items() if arms}
    if not curves:
        absent = (
            'no run has fine-tuned snapshots;'
            ' `bioptimus sweep --config=ablations:table2,snapshots=4 --workdir=DIR` does.'
        )
        return Figure('devel_f1', title, '', '', absent=absent)

    def draw(panels: list[Any]) -> None:
        for axes, (dataset, arms) in zip(panels, curves.items(), strict=True):
            _lines(axes, arms, list(dict.fromkeys(a for arms in curves.values() for a in arms)))
            axes.set_title(dataset, fontsize=10)
        name_axes(panels, 'words seen, millions', 'devel F1')

    said = [f'{d}: {"; ".join(_ends(a, points) for a, points in arms.items())}' for d, arms in curves.items()]
    caption = (
        f'Pre-trained with {PAPER_SETTINGS[0]}. Mean over seeds; bands: 95 % intervals over seeds (Student).'
        f' {left_out}'
    ).strip()
    svg = draw_panels('devel_f1', draw, len(curves), share_y=False)
    return Figure('devel_f1', title, caption, f'Devel F1 over words seen. {". ".join(said)}.', svg)


def heldout_losses(models: Sequence[Trained]) -> Figure:
    """The frozen held-out loss over words, a line for each curriculum, upright lines where phases end."""
    title = 'Held-out loss over pre-training'
    ends = [t for t in models if t.own and not t.partial and t.config.vocab.kind != 'source']
    last = [t for t in ends if len(t.path) == len(t.measures.phases) and t.measures.evaluations]
    last, left_out = one_set_up(last, FINE_TUNING)
    curves: dict[str, Points] = {}
    for t in last:
        points = curves.setdefault(_curriculum(t, last), {})
        per_step = words_per_step(t.measures)
        for place, record in _evaluations(t.measures).items():
            found = record['step'] * per_step, record['frozen_loss']
            points.setdefault(place, {}).setdefault(t.seed, found)
    if not curves:
        return Figure(
            'heldout_losses', title, '', '', absent='no run has pre-trained with a vocabulary of its own.'
        )

    def draw(panels: list[Any]) -> None:
        [axes] = panels
        for words in _boundaries(curves):
            axes.axvline(words / 1e6, color=INK, alpha=0.4, linewidth=0.9, linestyle=':')
        _lines(axes, curves, list(curves))
        name_axes(panels, 'words seen, millions', 'nats per [MASK]ed piece')

    caption = (
        'One frozen mask of single pieces, the same held-out documents; step 0 is left out. Phases that mask single'
        ' pieces are trained for this very loss, those that mask words are not: the tables have the loss under every'
        f' setting. Dotted: phases end. Bands: 95 % intervals over seeds. {left_out}'
    ).strip()
    said = '; '.join(_ends(arm, points) for arm, points in curves.items())
    svg = draw_panels('heldout_losses', draw, height=HEIGHT + LEGEND_LINE * len(curves))
    return Figure('heldout_losses', title, caption, f'Held-out loss over words seen. {said}.', svg)


def one_set_up(models: Sequence[Trained], ignored: tuple[str, ...] = BUDGETS) -> tuple[list[Trained], str]:
    """The models of the largest group of runs that compare, and what is left out.

    `ignored`: how the names of conditions begin that may differ.
    """
    runs: dict[int, list[Trained]] = {}
    for t in models:
        runs.setdefault(id(t.measures), []).append(t)
    groups: list[tuple[dict[str, str], list[Trained]]] = []
    for of_run in runs.values():
        every = {name: value for t in of_run for name, value in t.conditions.items()}
        conditions = {name: value for name, value in every.items() if not name.startswith(ignored)}
        for known, members in groups:
            if not differing(known, conditions):
                known.update(conditions)
                members += of_run
                break
        else:
            groups.append((conditions, of_run))
    groups.sort(key=lambda group: -len(group[1]))
    if not groups:
        return [], ''
    folders = sorted({t.folder.name for _, members in groups[1:] for t in members})
    named = f'Left out, since they were made otherwise: {", ".join(folders)}.' if folders else ''
    return groups[0][1], named


def _arm(t: Trained, among: Sequence[Trained]) -> str:
    several = len({(x.initialisation, x.rate) for x in among}) > len({x.initialisation for x in among})
    return t.initialisation + (f', {t.rate:g}' if several else '')


def _curriculum(t: Trained, among: Sequence[Trained]) -> str:
    """Initialisation where it differs, and the settings in order."""
    starts = {x.initialisation for x in among}
    paths = {x.path for x in among}
    parts = [_arm(t, among)] * (len(starts) > 1) + [curriculum_name(t.path)] * (len(paths) > 1)
    return ': '.join(parts) or t.initialisation


def _evaluations(m: Measures) -> dict[Place, dict[str, Any]]:
    """Those of every phase; not of step 0, which may lie so high that nothing else is seen."""
    found: dict[Place, dict[str, Any]] = {}
    for number, name in enumerate(m.phases, 1):
        records = [r for r in m.evaluations if r['phase'] == name and r['step'] > 0]
        found |= {(number, at / len(records)): record for at, record in enumerate(records, 1)}
    return found


def _boundaries(curves: Mapping[str, Points]) -> list[float]:
    """Words at the end of every phase, the mean over arms and seeds."""
    ends: dict[int, list[float]] = {}
    for points in curves.values():
        for (number, share), by_seed in points.items():
            if share == 1:
                ends.setdefault(number, []).extend(words for words, _ in by_seed.values())
    return [statistics.fmean(words) for words in ends.values()]


def _lines(axes: Any, curves: Mapping[str, Points], order: Sequence[str]) -> None:
    for arm, points in curves.items():
        number = order.index(arm)
        colour, style = SERIES[number % len(SERIES)], LINES[number // len(SERIES) % len(LINES)]
        seeds = [list(points[place].values()) for place in sorted(points)]
        means, halves = zip(*(interval([value for _, value in at]) for at in seeds), strict=True)
        millions = [statistics.fmean(words for words, _ in at) / 1e6 for at in seeds]
        axes.plot(millions, means, style, color=colour, linewidth=1.3, marker='o', markersize=3, label=arm)
        low, high = ([m + sign * h for m, h in zip(means, halves, strict=True)] for sign in (-1, 1))
        axes.fill_between(millions, low, high, color=colour, alpha=0.12, linewidth=0)


def _ends(arm: str, points: Points) -> str:
    first, last = (
        statistics.fmean(value for _, value in points[place].values()) for place in (min(points), max(points))
    )
    return f'{arm} {first:.2f} to {last:.2f}'
