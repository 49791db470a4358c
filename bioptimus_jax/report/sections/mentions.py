"""Recall by class of mention: seen or unseen, number of pieces and words, new tokens, how rare."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping

from bioptimus_jax.finetuning.entities.slices import SLICINGS
from bioptimus_jax.records.statistics import MentionRates
from bioptimus_jax.report.drawing import Figure, Point, curves, shown
from bioptimus_jax.report.layout import Cell, Column, Table, each, missing, percents
from bioptimus_jax.report.measures import NOT_SCORED, Measures
from bioptimus_jax.report.section import Section


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
"""Slicings by their names in `finetune.slices`."""
BySet = dict[tuple[str, str], Mapping[str, MentionRates]]
"""(model, set) -> class -> measures."""


def table(m: Measures, slicing: str) -> Table:
    """A row for a model on a set, a column for a class: recall, its interval, and the gold mentions."""
    found = measured(m, slicing)
    columns = [
        Column('set', lambda model, dataset: dataset),
        Column('model', lambda model, dataset: m.label(model)),
        *each({c: c for c in classes(m, slicing)}, lambda c, *key: _recall(found[key].get(c)), 'high'),
    ]
    note = (
        f'{SHOWN[slicing].note} Test: percent, mean over seeds, [95 % interval], of this many gold mentions.'
    )
    absent = _reason(m, slicing)
    return Table.of(SHOWN[slicing].title, columns, found, rank_within='set', note=note, absent=absent)


def measured(m: Measures, slicing: str) -> BySet:
    """(model, set) -> class -> measures, set by set, under the setting that devel chooses."""
    found = {(x, d): m.slices_of(x, d).get(slicing, {}) for d in m.datasets for x in m.models}
    return {key: by_class for key, by_class in found.items() if by_class}


def classes(m: Measures, slicing: str) -> list[str]:
    """Classes that some model has on some set, in order."""
    known = {name for by_class in measured(m, slicing).values() for name in by_class}
    return [name for name in SLICINGS[slicing] if name in known]


def seen_recall(m: Measures) -> Figure:
    """Recall of mentions that training has and of unseen ones, every model on every set, with intervals."""
    return _by_class(m, 'surface', 'seen_recall', 'mention, in training')


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
    models, left_out = shown(m)
    order, found = classes(m, slicing), measured(m, slicing)
    panels: dict[str, dict[str, list[Point]]] = {}
    for dataset, model in itertools.product(m.datasets, models):
        panels.setdefault(dataset, {})[m.label(model)] = [
            (order.index(c), 100 * low, 100 * r.recall, 100 * high)
            for c, r in found.get((model, dataset), {}).items()
            if r.recall is not None and r.recall_interval
            for low, high in [r.recall_interval]
        ]
    return curves(
        name,
        SHOWN[slicing].title,
        panels,
        axis,
        'recall, %',
        ticks=order,
        caption=f'{SHOWN[slicing].note} Upright lines: 95 % intervals. {left_out}',
        absent=_reason(m, slicing),
    )


def _reason(m: Measures, slicing: str) -> str:
    if m.slices and SHOWN[slicing].own:
        return "no model of this run's own with new tokens was scored."
    return 'stage finetune has not sliced the mentions.' if m.finetuned else NOT_SCORED


def _recall(found: MentionRates | None) -> Cell:
    if found is None or found.recall is None:
        return missing()
    between = percents(found.recall_interval, 1)
    shown = f'{100 * found.recall:.1f}' + (f' [{between}]' if between else '')
    return Cell(f'{shown} of {found.gold:,}', 100 * found.recall)
