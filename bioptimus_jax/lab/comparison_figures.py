"""Figures of several runs: devel F1 over pre-training (paper, Figure 3), held-out loss with phase boundaries."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bioptimus_jax.lab import trained
from bioptimus_jax.lab.arms import bounds
from bioptimus_jax.model.config import SNAPSHOT
from bioptimus_jax.report.drawing import INK, Figure, Point, curves
from bioptimus_jax.report.measures import score_names

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
    found, left_out = f1_curves(models)
    return curves(
        'devel_f1',
        f'Devel {label} over pre-training (paper, Figure 3)',
        {dataset: _lines(of_set) for dataset, of_set in found.items()},
        'words seen, millions',
        f'devel {label}',
        caption=f'Pre-trained with {trained.PAPER_SETTINGS[0]}. Mean over seeds; bands: 95 % intervals over seeds'
        f' (Student). {left_out}',
        absent='no run has fine-tuned snapshots;'
        ' `bioptimus sweep --config=ablations:table2,snapshots=4 --workdir=DIR` does.',
        share_y=False,
    )


def heldout_losses(models: Sequence[trained.Trained]) -> Figure:
    """The frozen held-out loss over words, a line for each curriculum, upright lines where phases end."""
    found, left_out = loss_curves(models)

    def finish(axes: Any, _: str) -> None:
        for words in _boundaries(found):
            axes.axvline(words / 1e6, color=INK, alpha=0.4, linewidth=0.9, linestyle=':')

    return curves(
        'heldout_losses',
        'Held-out loss over pre-training',
        {'': _lines(found)},
        'words seen, millions',
        'nats per [MASK]ed piece',
        finish=finish,
        caption='One frozen mask of single pieces, the same held-out documents; step 0 is left out. Phases that mask'
        ' single pieces are trained for this very loss, those that mask words are not: the tables have the loss under'
        f' every setting. Dotted: phases end. Bands: 95 % intervals over seeds. {left_out}',
        absent='no run has pre-trained with a vocabulary of its own.',
    )


def f1_curves(models: Sequence[trained.Trained]) -> tuple[dict[str, dict[str, Points]], str]:
    """Set -> arm -> points of the arms with two or more, and what was left out."""
    # One setting, the paper's first: initialisations are compared, not masks.
    static = [t for t in models if t.own and set(t.path) <= {trained.PAPER_SETTINGS[0]}]
    own, left_out = trained.one_set_up([t for t in static if any(map(t.cells, t.measures.datasets))], ())
    found: dict[str, dict[str, Points]] = {}
    for t in own:
        place = len(t.path), int(t.model.partition(SNAPSHOT)[2] or 100) / 100
        for dataset in t.measures.datasets:
            if scores := t.measures.scores(t.model, dataset, 'devel'):
                points = found.setdefault(dataset, {}).setdefault(trained.name_among(t, own, OF_A_RUN), {})
                points.setdefault(place, {}).setdefault(t.seed, (t.words, statistics.fmean(scores)))
    lines = {d: {a: points for a, points in arms.items() if len(points) > 1} for d, arms in found.items()}
    return {d: arms for d, arms in lines.items() if arms}, left_out


def loss_curves(models: Sequence[trained.Trained]) -> tuple[dict[str, Points], str]:
    """Arm -> points, and what was left out; not step 0, which may lie so high that nothing else is seen."""
    ends = [t for t in models if t.own and not t.partial and t.config.vocab.kind != 'source']
    last = [t for t in ends if len(t.path) == len(t.measures.phases) and t.measures.held_out]
    last, left_out = trained.one_set_up(last, FINE_TUNING)
    curve_of: dict[str, Points] = {}
    for t in last:
        points = curve_of.setdefault(trained.name_among(t, last, ('words',)), {})
        for number, name in enumerate(t.measures.phases, 1):
            records = [r for r in t.measures.evaluations if r.phase == name and r.step > 0]
            for at, record in enumerate(records, 1):
                value = trained.words_until(t.measures, record.step), record.loss
                points.setdefault((number, at / len(records)), {}).setdefault(t.seed, value)
    return curve_of, left_out


def _boundaries(found: Mapping[str, Points]) -> list[float]:
    """Words at the end of every phase, the mean over arms and seeds."""
    ends: dict[int, list[float]] = {}
    for points in found.values():
        for (number, share), by_seed in points.items():
            if share == 1:
                ends.setdefault(number, []).extend(words for words, _ in by_seed.values())
    return [statistics.fmean(words) for words in ends.values()]


def _lines(found: Mapping[str, Points]) -> dict[str, list[Point]]:
    """Every arm's line over millions of words, with Student's interval over seeds."""
    lines: dict[str, list[Point]] = {}
    for arm, points in found.items():
        for _, by_seed in sorted(points.items(), key=lambda point: point[0]):
            words, values = zip(*by_seed.values(), strict=True)
            lines.setdefault(arm, []).append((statistics.fmean(words) / 1e6, *bounds(values)))
    return lines
