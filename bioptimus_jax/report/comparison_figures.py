"""Figures of several runs: devel F1 over pre-training (paper, Figure 3), held-out loss with phase boundaries."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.report import trained
from bioptimus_jax.report.arms import bounds
from bioptimus_jax.report.drawing import INK, Figure, band, draw_panels, name_axes
from bioptimus_jax.report.measures import score_names
from bioptimus_jax.schema import SNAPSHOT

HEIGHT, LEGEND_LINE = 3.2, 0.2
"""Inches, of a figure without its legend and of a line in that."""
FINE_TUNING = ('finetune.', 'mentions of', 'training sentences')
"""Beginnings of names of conditions."""
OF_A_RUN = ('settings', 'words')
"""What the models of one run differ in."""
Place = tuple[int, float]
"""Number of a phase, and the share of it that is done. Words differ by seed: steps are whole."""
Points = dict[Place, dict[int | None, tuple[float, float]]]
"""Place -> seed -> words seen, and the value."""


def devel_f1(models: Sequence[trained.Trained]) -> Figure:
    """Devel F1 of step 0, snapshots and phase ends under the first setting, a line for each initialisation."""
    label = score_names(*(t.measures for t in models))
    title = f'Devel {label} over pre-training (paper, Figure 3)'
    curves, left_out = f1_curves(models)
    if not curves:
        absent = (
            'no run has fine-tuned snapshots;'
            ' `bioptimus sweep --config=ablations:table2,snapshots=4 --workdir=DIR` does.'
        )
        return Figure('devel_f1', title, absent=absent)
    order = list(dict.fromkeys(arm for lines in curves.values() for arm in lines))

    def draw(panels: list[Any]) -> None:
        for axes, (dataset, lines) in zip(panels, curves.items(), strict=True):
            _draw(axes, lines, order)
            axes.set_title(dataset, fontsize=10)
        name_axes(panels, 'words seen, millions', f'devel {label}')

    said = [f'{dataset}: {_ends(lines)}' for dataset, lines in curves.items()]
    caption = (
        f'Pre-trained with {trained.PAPER_SETTINGS[0]}. Mean over seeds; bands: 95 % intervals over seeds (Student).'
        f' {left_out}'
    ).strip()
    svg = draw_panels('devel_f1', draw, len(curves), share_y=False)
    return Figure('devel_f1', title, caption, f'Devel {label} over words seen. {". ".join(said)}.', svg)


def heldout_losses(models: Sequence[trained.Trained]) -> Figure:
    """The frozen held-out loss over words, a line for each curriculum, upright lines where phases end."""
    title = 'Held-out loss over pre-training'
    curves, left_out = loss_curves(models)
    if not curves:
        absent = 'no run has pre-trained with a vocabulary of its own.'
        return Figure('heldout_losses', title, absent=absent)

    def draw(panels: list[Any]) -> None:
        [axes] = panels
        for words in _boundaries(curves):
            axes.axvline(words / 1e6, color=INK, alpha=0.4, linewidth=0.9, linestyle=':')
        _draw(axes, curves, list(curves))
        name_axes(panels, 'words seen, millions', 'nats per [MASK]ed piece')

    caption = (
        'One frozen mask of single pieces, the same held-out documents; step 0 is left out. Phases that mask single'
        ' pieces are trained for this very loss, those that mask words are not: the tables have the loss under every'
        f' setting. Dotted: phases end. Bands: 95 % intervals over seeds. {left_out}'
    ).strip()
    svg = draw_panels('heldout_losses', draw, height=HEIGHT + LEGEND_LINE * len(curves))
    return Figure('heldout_losses', title, caption, f'Held-out loss over words seen. {_ends(curves)}.', svg)


def f1_curves(models: Sequence[trained.Trained]) -> tuple[dict[str, dict[str, Points]], str]:
    """Set -> arm -> points of the arms with two or more, and what was left out."""
    # One setting, the paper's first: initialisations are compared, not masks.
    static = [t for t in models if t.own and set(t.path) <= {trained.PAPER_SETTINGS[0]}]
    own, left_out = trained.one_set_up([t for t in static if any(map(t.cells, t.measures.datasets))], ())
    curves: dict[str, dict[str, Points]] = {}
    for t in own:
        place = len(t.path), int(t.model.partition(SNAPSHOT)[2] or 100) / 100
        for dataset in t.measures.datasets:
            if scores := t.measures.scores(t.model, dataset, 'devel'):
                points = curves.setdefault(dataset, {}).setdefault(trained.name_among(t, own, OF_A_RUN), {})
                points.setdefault(place, {}).setdefault(t.seed, (t.words, statistics.fmean(scores)))
    lines = {d: {a: points for a, points in arms.items() if len(points) > 1} for d, arms in curves.items()}
    return {d: arms for d, arms in lines.items() if arms}, left_out


def loss_curves(models: Sequence[trained.Trained]) -> tuple[dict[str, Points], str]:
    """Arm -> points, and what was left out; not step 0, which may lie so high that nothing else is seen."""
    ends = [t for t in models if t.own and not t.partial and t.config.vocab.kind != 'source']
    last = [t for t in ends if len(t.path) == len(t.measures.phases) and t.measures.evaluations]
    last, left_out = trained.one_set_up(last, FINE_TUNING)
    curves: dict[str, Points] = {}
    for t in last:
        points = curves.setdefault(trained.name_among(t, last, ('words',)), {})
        for number, name in enumerate(t.measures.phases, 1):
            records = [r for r in t.measures.evaluations if r['phase'] == name and r['step'] > 0]
            for at, record in enumerate(records, 1):
                found = record['step'] * trained.words_per_step(t.measures), record['frozen_loss']
                points.setdefault((number, at / len(records)), {}).setdefault(t.seed, found)
    return curves, left_out


def _boundaries(curves: Mapping[str, Points]) -> list[float]:
    """Words at the end of every phase, the mean over arms and seeds."""
    ends: dict[int, list[float]] = {}
    for points in curves.values():
        for (number, share), by_seed in points.items():
            if share == 1:
                ends.setdefault(number, []).extend(words for words, _ in by_seed.values())
    return [statistics.fmean(words) for words in ends.values()]


def _draw(axes: Any, curves: Mapping[str, Points], order: Sequence[str]) -> None:
    for arm, points in curves.items():
        line = []
        for _, by_seed in sorted(points.items(), key=lambda point: point[0]):
            words, values = zip(*by_seed.values(), strict=True)
            line.append((statistics.fmean(words) / 1e6, *bounds(values)))
        band(axes, line, order.index(arm), arm)


def _ends(curves: Mapping[str, Points]) -> str:
    said = []
    for arm, points in curves.items():
        ends = [[value for _, value in points[at].values()] for at in (min(points), max(points))]
        said.append(f'{arm} {" to ".join(f"{statistics.fmean(values):.2f}" for values in ends)}')
    return '; '.join(said)
