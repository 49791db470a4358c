"""Recall by class of mention: seen or unseen, number of pieces and words, new tokens, how rare."""

import dataclasses
import functools
from typing import Any

from bioptimus_jax.finetune.entities.slices import SLICINGS
from bioptimus_jax.report.drawing import SERIES, Figure, draw_panels, in_legend, name_axes, shown
from bioptimus_jax.report.layout import Cell, Column, Table, each, missing
from bioptimus_jax.report.measures import NOT_SCORED, Measures
from bioptimus_jax.report.section import Section
from bioptimus_jax.report.sections.entities import interval


@dataclasses.dataclass(frozen=True)
class Slicing:
    """How a slicing of the mentions is shown; `own`: it is known for the models of this run alone."""

    title: str
    note: str
    own: bool = False


SHOWN = {
    'surface': Slicing(
        'Recall of mentions seen in training and unseen ones',
        'Seen: the same words, case folded, are a mention of the training set.',
    ),
    'surface_and_type': Slicing(
        'Recall of mentions seen with the same type and unseen ones',
        'Seen: the same words, case folded, are a mention of that type in the training set.',
    ),
    'pieces': Slicing(
        'Recall by number of pieces',
        "Pieces of the mention under the model's own tokenizer, so the classes differ between tokenizers.",
    ),
    'words': Slicing('Recall by number of words', 'Words of the mention in the file.'),
    'new_token': Slicing(
        'Recall of mentions with and without a new token',
        "With: a piece of the mention is a token that the source's vocabulary lacks.",
        own=True,
    ),
    'contexts': Slicing(
        'Recall by contexts of the new token',
        'Sentences that the new token was initialised from; of several, the fewest.',
        own=True,
    ),
    'frequency': Slicing(
        'Recall by frequency of the rarest word',
        "Occurrences of the mention's rarest word in a million words of this run's corpus.",
        own=True,
    ),
}
"""By the names of `finetune.slices`."""
BySet = dict[tuple[str, str], dict[str, Any]]
"""(model, set) -> class -> measures."""


def table(m: Measures, slicing: str) -> Table:
    """A row for a model on a set, a column for a class: recall, its interval, and the gold mentions."""
    found = measured(m, slicing)
    columns = [
        Column('set', lambda model, dataset: dataset),
        Column('model', lambda model, dataset: m.label(model)),
        *each({c: c for c in classes(m, slicing)}, lambda c, *key: _recall(found[key].get(c, {})), 'high'),
    ]
    note = f'{SHOWN[slicing].note} Test: percent, mean over seeds, [95 % interval], of so many gold mentions.'
    absent = _reason(m, slicing)
    return Table.of(SHOWN[slicing].title, columns, found, rank_within='set', note=note, absent=absent)


def measured(m: Measures, slicing: str) -> BySet:
    """(model, set) -> class -> measures, set by set, under the setting that devel chooses."""
    found = {(x, d): m.slices_of(x, d).get(slicing, {}) for d in m.datasets for x in m.models}
    return {key: by_class for key, by_class in found.items() if by_class}


def classes(m: Measures, slicing: str) -> list[str]:
    """Those that some model has on some set, in order."""
    known = {name for by_class in measured(m, slicing).values() for name in by_class}
    return [name for name in SLICINGS[slicing] if name in known]


def seen_recall(m: Measures) -> Figure:
    """Recall of mentions that training has and of unseen ones, every model on every set, with intervals."""
    models, datasets, found, left_out = _drawn(m, 'surface')
    title = 'Recall of seen and unseen mentions'
    if not found:
        return Figure('seen_recall', title, absent=_reason(m, 'surface'))

    def draw(panels: list[Any]) -> None:
        for axes, dataset in zip(panels, datasets, strict=True):
            for name, colour, shift in (('seen', SERIES[0], -0.12), ('unseen', SERIES[1], 0.12)):
                rows = [found.get((x, dataset), {}).get(name, {}) for x in models]
                known = [(y + shift, r) for y, r in enumerate(rows) if r.get('recall') is not None]
                for y, r in known:
                    ends = [100 * v for v in r['recall_interval']]
                    axes.plot(ends, [y] * 2, color=colour, linewidth=1.6)
                dots = [100 * r['recall'] for _, r in known]
                axes.plot(dots, [y for y, _ in known], 'o', color=colour, markersize=4.5, label=name)
            axes.set_title(dataset, fontsize=10)
            axes.set_yticks(range(len(models)), [m.label(x) for x in models])
            axes.grid(False, axis='y')
        panels[0].set_ylim(len(models) - 0.5, -0.5)
        name_axes(panels, 'recall, %', '')

    caption = f'{SHOWN["surface"].note} Lines: 95 % intervals. {left_out}'.strip()
    height = max(1.6, 0.28 * len(models) + 1.1)
    svg = draw_panels('seen_recall', draw, len(datasets), height)
    return Figure('seen_recall', title, caption, _recalls(m, found, 'surface'), svg)


def piece_recall(m: Measures) -> Figure:
    """Recall of mentions by the number of pieces that they are spelled with."""
    return _by_class(m, 'pieces', 'piece_recall', 'pieces of the mention')


def context_recall(m: Measures) -> Figure:
    """Recall of mentions by the number of contexts that their new token was made from."""
    return _by_class(m, 'contexts', 'context_recall', 'contexts of its new token')


TABLES = {f'recall_{slicing}': functools.partial(table, slicing=slicing) for slicing in SHOWN}
SECTION = Section(
    'Mentions found and missed',
    'Is it memory or understanding: which mentions of the test sets does a model find?',
    ('finetune',),
    {name: make for name, make in TABLES.items() if name == 'recall_surface'},
    (seen_recall, piece_recall, context_recall),
    {name: make for name, make in TABLES.items() if name != 'recall_surface'},
)


def _by_class(m: Measures, slicing: str, name: str, axis: str) -> Figure:
    """Recall over the classes of a slicing: a panel for each set, a line for each model, with intervals."""
    models, datasets, found, left_out = _drawn(m, slicing)
    order = classes(m, slicing)
    if not found:
        return Figure(name, SHOWN[slicing].title, absent=_reason(m, slicing))

    def draw(panels: list[Any]) -> None:
        for axes, dataset in zip(panels, datasets, strict=True):
            for number, (model, colour) in enumerate(zip(models, SERIES, strict=False)):
                shift = (number - (len(models) - 1) / 2) * min(0.1, 0.5 / len(models))
                by_class = found.get((model, dataset), {}).items()
                known = [(order.index(c) + shift, r) for c, r in by_class if r['recall'] is not None]
                places, means = [at for at, _ in known], [100 * r['recall'] for _, r in known]
                label = in_legend(m.label(model))
                axes.plot(places, means, 'o-', markersize=3.5, linewidth=1.2, label=label, color=colour)
                for at, r in known:
                    axes.plot([at] * 2, [100 * v for v in r['recall_interval']], color=colour, linewidth=1)
            axes.set_title(dataset, fontsize=10)
            axes.set_xticks(range(len(order)), order)
            axes.grid(False, axis='x')
        name_axes(panels, axis, 'recall, %')

    caption = f'{SHOWN[slicing].note} Upright lines: 95 % intervals. {left_out}'.strip()
    svg = draw_panels(name, draw, len(datasets))
    return Figure(name, SHOWN[slicing].title, caption, _recalls(m, found, slicing), svg)


def _drawn(m: Measures, slicing: str) -> tuple[list[str], list[str], BySet, str]:
    """Models and sets of a figure, what was measured of them, and a sentence on the models that are left out."""
    coloured, left_out = shown(m)
    found = {key: value for key, value in measured(m, slicing).items() if key[0] in coloured}
    models = [x for x in coloured if any(x == model for model, _ in found)]
    return models, list(dict.fromkeys(d for _, d in found)), found, left_out


def _reason(m: Measures, slicing: str) -> str:
    if m.slices and SHOWN[slicing].own:
        return "no model of this run's own with new tokens was scored."
    return 'stage finetune has not sliced the mentions.' if m.finetuned else NOT_SCORED


def _recall(found: dict[str, Any]) -> Cell:
    if found.get('recall') is None:
        return missing()
    between = interval(found['recall_interval'], 1)
    shown = f'{100 * found["recall"]:.1f}' + (f' [{between}]' if between else '')
    return Cell(f'{shown} of {found["gold"]:,}', 100 * found['recall'])


def _recalls(m: Measures, found: BySet, slicing: str) -> str:
    parts = []
    for (model, dataset), by_class in found.items():
        rates = [f'{c} {100 * r["recall"]:.1f}' for c, r in by_class.items() if r['recall'] is not None]
        parts.append(f'{m.label(model)} on {dataset}: {", ".join(rates)}')
    return f'{SHOWN[slicing].title}, percent. {"; ".join(parts)}.'
