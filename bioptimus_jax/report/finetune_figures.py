"""Figures of stage `finetune`: scores over models, checkpoints and epochs, and the labels of the sets."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.report.curves import boundaries, step_axis
from bioptimus_jax.report.drawing import SERIES, Figure, draw_panels, draw_svg, in_legend, name_axes, shown
from bioptimus_jax.report.entities import NOT_SCORED
from bioptimus_jax.report.measures import NO_PHASES, Measures
from bioptimus_jax.sets.sentences import SPLITS

OTHER = 'other types'


def entity_f1(m: Measures) -> Figure:
    """Test F1 of every model and seed; lines through the models that follow one another in training."""
    title = f'Test {_label(m)} ' + ('after each phase' if m.trains else 'of every model')
    models = [x for x in m.models if any(r['model'] == x for r in m.finetuned)]
    if not models:
        return Figure('entity_f1', title, '', '', absent=NOT_SCORED)
    labels = [m.label(x).replace(' (step 0)', '') for x in models]
    path = [i for i, x in enumerate(models) if x in m.on_the_way]

    def draw(axes: Any) -> None:
        for number, (dataset, colour) in enumerate(zip(m.datasets, SERIES * 9, strict=False)):
            shift = (number - (len(m.datasets) - 1) / 2) * 0.08
            scored = {i: m.scores(x, dataset) for i, x in enumerate(models) if m.scores(x, dataset)}
            line = [i for i in path if i in scored]
            means = [statistics.fmean(scored[i]) for i in line]
            axes.plot([i + shift for i in line], means, '-', color=colour, linewidth=1.2)
            places = [i + shift for i, values in scored.items() for _ in values]
            every = [value for values in scored.values() for value in values]
            axes.plot(places, every, 'o', color=colour, markersize=3.5, alpha=0.7, label=in_legend(dataset))
        slanted = (
            {'rotation': 35, 'ha': 'right', 'rotation_mode': 'anchor'} if sum(map(len, labels)) > 70 else {}
        )
        axes.set_xticks(range(len(models)), labels, **slanted)
        axes.set_xlim(-0.5, len(models) - 0.5)
        axes.set_ylabel(f'test {_label(m)}, %')
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))

    parts = []
    for dataset in m.datasets:
        known = [(label, m.scores(x, dataset)) for x, label in zip(models, labels, strict=True)]
        parts.append(f'{dataset} ' + ', '.join(f'{statistics.fmean(v):.1f} ({x})' for x, v in known if v))
    caption = 'A dot per fine-tuning seed' + (', lines through the means.' if path else '.')
    return Figure(
        'entity_f1', title, caption, f'Test {_label(m)}: {"; ".join(parts)}.', draw_svg('entity_f1', draw)
    )


def checkpoint_f1(m: Measures) -> Figure:
    """Devel F1 over the steps of pre-training, at step 0, phase ends and snapshots (paper, Figure 3)."""
    title = f'Devel {_label(m)} over pre-training'
    steps = {x: step for x in m.on_the_way if (step := m.step_of(x)) is not None}
    lines = {
        dataset: sorted(
            (step, m.scores(x, dataset, 'devel'))
            for x, step in steps.items()
            if m.scores(x, dataset, 'devel')
        )
        for dataset in m.datasets
    }
    lines = {dataset: points for dataset, points in lines.items() if len(points) > 1}
    if not lines:
        absent = 'fewer than two checkpoints of this run were scored; config.evaluation.snapshots_per_phase keeps more.'
        return Figure(
            'checkpoint_f1',
            title,
            '',
            '',
            absent=(absent if m.trains else NO_PHASES) if m.finetuned else NOT_SCORED,
        )

    def draw(axes: Any) -> None:
        for (dataset, points), colour in zip(lines.items(), SERIES * 9, strict=False):
            at = [step for step, _ in points]
            axes.plot(
                at,
                [statistics.fmean(v) for _, v in points],
                'o-',
                color=colour,
                markersize=3.5,
                label=in_legend(dataset),
            )
            low, high = [min(v) for _, v in points], [max(v) for _, v in points]
            axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        step_axis(axes, m)
        boundaries(axes, m)
        axes.set_ylabel(f'devel {_label(m)}, %')
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))

    ends = [(d, points[0], points[-1]) for d, points in lines.items()]
    alt = '; '.join(
        f'{d} {statistics.fmean(first[1]):.1f} at step {first[0]:,}, {statistics.fmean(last[1]):.1f} at {last[0]:,}'
        for d, first, last in ends
    )
    caption = 'Means over fine-tuning seeds, bands from the lowest to the highest seed.'
    return Figure(
        'checkpoint_f1', title, caption, f'Devel {_label(m)}: {alt}.', draw_svg('checkpoint_f1', draw)
    )


def epoch_f1(m: Measures) -> Figure:
    """Devel F1 after every fine-tuning epoch, a panel for each set, mean and spread over seeds."""
    title = f'Devel {_label(m)} while fine-tuning'
    models, caption = shown(m)
    curves = {(d, x): _curves(m, x, d) for d in m.datasets for x in models}
    datasets = [d for d in m.datasets if any(curves[d, x] for x in models)]
    if not datasets:
        return Figure(
            'epoch_f1', title, '', '', absent='no epochs were recorded.' if m.finetuned else NOT_SCORED
        )

    def draw(panels: list[Any]) -> None:
        for axes, dataset in zip(panels, datasets, strict=True):
            for number, model in enumerate(models):
                values = curves[dataset, model]
                at, colour = sorted(values), SERIES[number]
                means = [statistics.fmean(values[e]) for e in at]
                axes.plot(
                    at,
                    means,
                    marker='o',
                    markersize=2.5,
                    linewidth=1.2,
                    label=in_legend(m.label(model)),
                    color=colour,
                )
                low, high = [min(values[e]) for e in at], [max(values[e]) for e in at]
                axes.fill_between(at, low, high, color=colour, alpha=0.13, linewidth=0)
            axes.set_title(dataset, fontsize=10)
            axes.locator_params(axis='x', integer=True, nbins=6)
        name_axes(panels, 'epoch', f'devel {_label(m)}, %')

    parts = []
    for dataset in datasets:
        best = {
            x: max(map(statistics.fmean, curves[dataset, x].values())) for x in models if curves[dataset, x]
        }
        parts.append(f'{dataset} ' + ', '.join(f'{f1:.1f} ({m.label(x)})' for x, f1 in best.items()))
    caption = f'Lines are means over seeds, bands from the lowest to the highest seed. {caption}'
    alt = f'Devel {_label(m)} over epochs; highest mean: {"; ".join(parts)}.'
    return Figure('epoch_f1', title, caption.strip(), alt, draw_panels('epoch_f1', draw, len(datasets)))


def label_shares(m: Measures) -> Figure:
    """Which share of a split's words are first and further words of mentions of each type (paper, Figure 6)."""
    title = 'Labels of the sets'
    if not m.labels:
        return Figure('label_shares', title, '', '', absent='stage finetune has not looked through the sets.')
    bars = [(f'{d}, {split}', d, m.labels[d][split]) for d in m.labels for split in SPLITS]
    mentions: Counter[str] = Counter()
    for _, _, found in bars:
        mentions.update({kind: found['mentions'] * share for kind, share in found['types'].items()})
    most = len(SERIES) - (len(mentions) > len(SERIES))
    types = [kind for kind, _ in mentions.most_common(most)]
    types += [OTHER] * (len(mentions) > len(types))
    shares = [_by_label(found['tags'], types) for _, _, found in bars]

    def draw(axes: Any) -> None:
        floor = [0.0] * len(bars)
        for (kind, first), strength in [((k, f), 1.0 if f else 0.5) for k in types for f in (True, False)]:
            width = [share.get((kind, first), 0.0) for share in shares]
            name = in_legend(kind) if first else None
            colour = SERIES[types.index(kind)]
            axes.barh(range(len(bars)), width, 0.72, floor, color=colour, alpha=strength, label=name)
            floor = [low + w for low, w in zip(floor, width, strict=True)]
        axes.set_yticks(range(len(bars)), [name for name, _, _ in bars])
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.set_xlabel('share of all words, %')
        axes.grid(False, axis='y')
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))

    inside = [f'{name} {sum(share.values()):.1f}' for (name, _, _), share in zip(bars, shares, strict=True)]
    caption = (
        'Strong: the first word of a mention (B-); pale: its further words (I-). The rest of the words is O.'
    )
    alt = f'Percent of the words that lie in mentions: {"; ".join(inside)}.'
    svg = draw_svg('label_shares', draw, max(2.0, 0.24 * len(bars) + 0.8))
    return Figure('label_shares', title, caption, alt, svg)


DRAWN = (entity_f1, checkpoint_f1, epoch_f1, label_shares)


def _label(m: Measures) -> str:
    """What the scores of the sets are; F1 before there are any."""
    return ', '.join(dict.fromkeys(m.task(d).metric.label for d in m.datasets)) or 'F1'


def _curves(m: Measures, model: str, dataset: str) -> dict[int, list[float]]:
    """Epoch -> devel F1 of every seed, in percent, under the setting that devel chooses."""
    values: dict[int, list[float]] = {}
    for cell in m.cells(model, dataset):
        for epoch in m.history(cell):
            values.setdefault(epoch['epoch'], []).append(100 * epoch[f'devel_{m.task(dataset).metric.name}'])
    return values


def _by_label(tags: dict[str, float], types: Sequence[str]) -> dict[tuple[str, bool], float]:
    """(type, whether first word) -> percent of the words."""
    shares: dict[tuple[str, bool], float] = defaultdict(float)
    for tag, share in tags.items():
        prefix, _, kind = tag.partition('-')
        if kind:
            shares[kind if kind in types else OTHER, prefix == 'B'] += 100 * share
    return dict(shares)
