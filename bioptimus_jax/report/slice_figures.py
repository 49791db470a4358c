"""Figures of recall by class of mention: seen or unseen, number of pieces, contexts of new tokens."""

from typing import Any

from bioptimus_jax.report import slices
from bioptimus_jax.report.drawing import SERIES, Figure, draw_panels, in_legend, name_axes, shown
from bioptimus_jax.report.measures import Measures


def seen_recall(m: Measures) -> Figure:
    """Recall of mentions that training has and of unseen ones, every model on every set, with intervals."""
    title = 'Recall of seen and unseen mentions'
    (models, left_out), found = shown(m), slices.measured(m, 'surface')
    found = {key: value for key, value in found.items() if key[0] in models}
    models = [x for x in models if any(x == model for model, _ in found)]
    datasets = list(dict.fromkeys(d for _, d in found))
    if not found:
        return Figure('seen_recall', title, '', '', absent=slices.table(m, 'surface').absent)

    def draw(panels: list[Any]) -> None:
        for axes, dataset in zip(panels, datasets, strict=True):
            for (name, colour), shift in zip(
                (('seen', SERIES[0]), ('unseen', SERIES[1])), (-0.12, 0.12), strict=True
            ):
                rows = [found.get((x, dataset), {}).get(name, {}) for x in models]
                known = [(y, r) for y, r in enumerate(rows) if r.get('recall') is not None]
                for y, r in known:
                    axes.plot(
                        [100 * v for v in r['recall_interval']], [y + shift] * 2, color=colour, linewidth=1.6
                    )
                dots = [100 * r['recall'] for _, r in known]
                axes.plot(dots, [y + shift for y, _ in known], 'o', color=colour, markersize=4.5, label=name)
            axes.set_title(dataset, fontsize=10)
            axes.set_yticks(range(len(models)), [m.label(x) for x in models])
            axes.grid(False, axis='y')
        panels[0].set_ylim(len(models) - 0.5, -0.5)
        name_axes(panels, 'recall, %', '')

    alt = _recalls(m, found, 'surface')
    caption = f'{slices.NOTES["surface"]} Lines: 95 % intervals. {left_out}'.strip()
    height = max(1.6, 0.28 * len(models) + 1.1)
    return Figure('seen_recall', title, caption, alt, draw_panels('seen_recall', draw, len(datasets), height))


def piece_recall(m: Measures) -> Figure:
    """Recall of mentions by the number of pieces that they are spelled with."""
    return _by_class(m, 'pieces', 'piece_recall', 'pieces of the mention')


def context_recall(m: Measures) -> Figure:
    """Recall of mentions by the number of contexts that their new token was made from."""
    return _by_class(m, 'contexts', 'context_recall', 'contexts of its new token')


DRAWN = (seen_recall, piece_recall, context_recall)


def _by_class(m: Measures, slicing: str, name: str, axis: str) -> Figure:
    """Recall over the classes of a slicing: a panel for each set, a line for each model, with intervals."""
    title, (models, left_out) = slices.TITLES[slicing], shown(m)
    found = {key: value for key, value in slices.measured(m, slicing).items() if key[0] in models}
    models = [x for x in models if any(x == model for model, _ in found)]
    datasets = list(dict.fromkeys(d for _, d in found))
    order = slices.classes(m, slicing)
    if not found:
        return Figure(name, title, '', '', absent=slices.table(m, slicing).absent)

    def draw(panels: list[Any]) -> None:
        for axes, dataset in zip(panels, datasets, strict=True):
            for number, model in enumerate(models):
                by_class = found.get((model, dataset), {})
                shift = (number - (len(models) - 1) / 2) * min(0.1, 0.5 / len(models))
                known = [(order.index(c), r) for c, r in by_class.items() if r['recall'] is not None]
                places, colour = [at + shift for at, _ in known], SERIES[number]
                means = [100 * r['recall'] for _, r in known]
                axes.plot(
                    places,
                    means,
                    marker='o',
                    markersize=3.5,
                    linewidth=1.2,
                    label=in_legend(m.label(model)),
                    color=colour,
                )
                for at, (_, r) in zip(places, known, strict=True):
                    axes.plot([at] * 2, [100 * v for v in r['recall_interval']], color=colour, linewidth=1)
            axes.set_title(dataset, fontsize=10)
            axes.set_xticks(range(len(order)), order)
            axes.grid(False, axis='x')
        name_axes(panels, axis, 'recall, %')

    caption = f'{slices.NOTES[slicing]} Upright lines: 95 % intervals. {left_out}'.strip()
    return Figure(name, title, caption, _recalls(m, found, slicing), draw_panels(name, draw, len(datasets)))


def _recalls(m: Measures, found: dict[tuple[str, str], dict[str, Any]], slicing: str) -> str:
    parts = []
    for (model, dataset), by_class in found.items():
        rates = [f'{c} {100 * r["recall"]:.1f}' for c, r in by_class.items() if r['recall'] is not None]
        parts.append(f'{m.label(model)} on {dataset}: {", ".join(rates)}')
    return f'{slices.TITLES[slicing]}, percent. {"; ".join(parts)}.'
