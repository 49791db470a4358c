"""Figures of several runs: devel F1 over pre-training (paper, Figure 3), held-out loss with phase boundaries."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.report.arms import interval
from bioptimus_jax.report.drawing import INK, SERIES, Figure, draw_panels, name_axes
from bioptimus_jax.report.trained import Trained, differing, words_per_step

LINES = ('-', '--', ':')
Points = dict[float, list[float]]
"""Words seen -> one value for each seed."""


def devel_f1(models: Sequence[Trained]) -> Figure:
    """Devel F1 of step 0, snapshots and phase ends under the first setting, a line for each initialisation."""
    title = 'Devel F1 over pre-training (paper, Figure 3)'
    own, left_out = _one_set_up([t for t in models if t.own and t.measures.ner])
    datasets = list(dict.fromkeys(d for t in own for d in t.measures.datasets))
    curves: dict[str, dict[str, Points]] = {}
    for t in own:
        if len(set(t.path)) > 1:  # one setting: initialisations are compared, not masks
            continue
        for dataset in datasets:
            scores = t.measures.scores(t.model, dataset, 'devel')
            if scores:
                place = curves.setdefault(dataset, {}).setdefault(_arm(t, own), {})
                place.setdefault(_rounded(t.words), []).append(statistics.fmean(scores))
    curves = {d: {a: points for a, points in arms.items() if len(points) > 1} for d, arms in curves.items()}
    curves = {d: arms for d, arms in curves.items() if arms}
    if not curves:
        absent = (
            'no run has fine-tuned snapshots; `bioptimus sweep --config=ablations:table2,snapshots=4` does.'
        )
        return Figure('devel_f1', title, '', '', absent=absent)

    def draw(panels: list[Any]) -> None:
        for axes, (dataset, arms) in zip(panels, curves.items(), strict=True):
            _lines(axes, arms, list(dict.fromkeys(a for arms in curves.values() for a in arms)))
            axes.set_title(dataset, fontsize=10)
        name_axes(panels, 'words seen, millions', 'devel F1')

    said = [f'{d}: {"; ".join(_ends(a, points) for a, points in arms.items())}' for d, arms in curves.items()]
    caption = f'Mean over seeds; bands: 95 % intervals over seeds (Student). {left_out}'.strip()
    svg = draw_panels('devel_f1', draw, len(curves), share_y=False)
    return Figure('devel_f1', title, caption, f'Devel F1 over words seen. {". ".join(said)}.', svg)


def heldout_losses(models: Sequence[Trained]) -> Figure:
    """The frozen held-out loss over words, a line for each curriculum, upright lines where phases end."""
    title = 'Held-out loss over pre-training'
    ends = [t for t in models if t.own and not t.partial and t.config.vocab.kind != 'source']
    last = [t for t in ends if len(t.path) == len(t.measures.phases)]
    last, left_out = _one_set_up(last)
    curves: dict[str, Points] = {}
    boundaries: set[float] = set()
    seen = set()
    for t in last:
        arm = _curriculum(t, last)
        if (arm, t.seed) in seen:
            continue
        seen.add((arm, t.seed))
        per_step = words_per_step(t.measures)
        for record in t.measures.evaluations:
            if record['step'] > 0:  # step 0 may lie so high that nothing else is seen
                words = _rounded(record['step'] * per_step)
                curves.setdefault(arm, {}).setdefault(words, []).append(record['frozen_loss'])
                boundaries |= {words} if record.get('phase_end') else set()
    if not curves:
        return Figure(
            'heldout_losses', title, '', '', absent='no run has pre-trained with a vocabulary of its own.'
        )

    def draw(panels: list[Any]) -> None:
        [axes] = panels
        for words in sorted(boundaries):
            axes.axvline(words / 1e6, color=INK, alpha=0.4, linewidth=0.9, linestyle=':')
        _lines(axes, curves, list(curves))
        name_axes(panels, 'words seen, millions', 'nats per [MASK]ed piece')

    caption = (
        'One frozen mask of single pieces, the same held-out documents; step 0 is left out. Dotted: phases end. Bands:'
        f' 95 % intervals over seeds. {left_out}'
    ).strip()
    said = '; '.join(_ends(arm, points) for arm, points in curves.items())
    svg = draw_panels('heldout_losses', draw, height=3.8)
    return Figure('heldout_losses', title, caption, f'Held-out loss over words seen. {said}.', svg)


def _one_set_up(models: Sequence[Trained]) -> tuple[list[Trained], str]:
    """The largest group of models that compare, budgets aside, which a curve shows itself; and what is left out."""
    groups: list[tuple[dict[str, str], list[Trained]]] = []
    for t in models:
        conditions = {
            name: value
            for name, value in t.conditions.items()
            if not name.startswith(('words of', 'learning rate', 'mentions of', 'training sentences'))
        }
        for known, members in groups:
            if not differing(known, conditions):
                known.update(conditions)
                members.append(t)
                break
        else:
            groups.append((conditions, [t]))
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
    path = [f'static: {t.path[0]}'] if len(set(t.path)) == 1 else ['; '.join(t.path)]
    starts = {x.initialisation for x in among}
    paths = {x.path for x in among}
    return ': '.join([_arm(t, among)] * (len(starts) > 1) + path * (len(paths) > 1)) or t.initialisation


def _rounded(words: float) -> float:
    """Steps are whole: arms with other vocabularies stop within a step of each other."""
    return float(f'{words:.2g}')


def _lines(axes: Any, curves: Mapping[str, Points], order: Sequence[str]) -> None:
    for arm, points in curves.items():
        number = order.index(arm)
        colour, style = SERIES[number % len(SERIES)], LINES[number // len(SERIES) % len(LINES)]
        places = sorted(points)
        means, halves = zip(*(interval(points[x]) for x in places), strict=True)
        millions = [x / 1e6 for x in places]
        axes.plot(millions, means, style, color=colour, linewidth=1.3, marker='o', markersize=3, label=arm)
        low, high = ([m + sign * h for m, h in zip(means, halves, strict=True)] for sign in (-1, 1))
        axes.fill_between(millions, low, high, color=colour, alpha=0.12, linewidth=0)


def _ends(arm: str, points: Points) -> str:
    first, last = min(points), max(points)
    return f'{arm} {statistics.fmean(points[first]):.2f} to {statistics.fmean(points[last]):.2f}'
