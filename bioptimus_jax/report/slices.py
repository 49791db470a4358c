"""Recall by class of mention, in tables: seen or unseen, number of pieces and words, new tokens, how rare."""

from typing import Any

from bioptimus_jax.finetune.entities.slices import SLICINGS
from bioptimus_jax.report.entities import NOT_SCORED, interval
from bioptimus_jax.report.layout import Cell, Table, missing, words
from bioptimus_jax.report.measures import Measures

TITLES = {
    'surface': 'Recall of mentions seen in training and unseen ones',
    'surface_and_type': 'Recall of mentions seen with the same type and unseen ones',
    'pieces': 'Recall by number of pieces',
    'words': 'Recall by number of words',
    'new_token': 'Recall of mentions with and without a new token',
    'contexts': 'Recall by contexts of the new token',
    'frequency': 'Recall by frequency of the rarest word',
}
NOTES = {
    'surface': 'Seen: the same words, case folded, are a mention of the training set.',
    'surface_and_type': 'Seen: the same words, case folded, are a mention of that type in the training set.',
    'pieces': "Pieces of the mention under the model's own tokenizer, so the classes differ between tokenizers.",
    'words': 'Words of the mention in the file.',
    'new_token': "With: a piece of the mention is a token that the source's vocabulary lacks.",
    'contexts': 'Sentences that the new token was initialised from; of several, the fewest.',
    'frequency': "Occurrences of the mention's rarest word in a million words of this run's corpus.",
}
OWN = ('new_token', 'contexts', 'frequency')
"""What is known for the models of this run alone."""


def table(m: Measures, slicing: str) -> Table:
    """A row for a model on a set, a column for a class: recall, its interval, and the gold mentions."""
    found = measured(m, slicing)
    names = classes(m, slicing)
    rows = [
        [words(dataset), words(m.label(model)), *(_recall(by_class.get(name, {})) for name in names)]
        for (model, dataset), by_class in found.items()
    ]
    note = f'{NOTES[slicing]} Test: percent, mean over seeds, [95 % interval], of so many gold mentions.'
    absent = NOT_SCORED if not m.finetuned else 'stage finetune has not sliced the mentions.'
    if m.slices and slicing in OWN:
        absent = "no model of this run's own with new tokens was scored."
    better = dict.fromkeys(names, 'high')
    columns = ['set', 'model', *names]
    return Table(TITLES[slicing], columns, rows, better, rank_within='set', note=note, absent=absent)


def measured(m: Measures, slicing: str) -> dict[tuple[str, str], dict[str, Any]]:
    """(model, set) -> class -> measures, set by set, under the setting that devel chooses."""
    found = {(x, d): m.slices_of(x, d).get(slicing, {}) for d in m.datasets for x in m.models}
    return {key: by_class for key, by_class in found.items() if by_class}


def classes(m: Measures, slicing: str) -> list[str]:
    """Those that some model has on some set, in order."""
    known = {name for by_class in measured(m, slicing).values() for name in by_class}
    return [name for name in SLICINGS[slicing] if name in known]


def _recall(found: dict[str, Any]) -> Cell:
    if found.get('recall') is None:
        return missing()
    between = interval(found['recall_interval'], 1)
    shown = f'{100 * found["recall"]:.1f}' + (f' [{between}]' if between else '')
    return Cell(f'{shown} of {found["gold"]:,}', 100 * found['recall'])
