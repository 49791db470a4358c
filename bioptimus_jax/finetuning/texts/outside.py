"""Answers to texts that were predicted elsewhere."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.outside import Item, Submission, said_of
from bioptimus_jax.progress.console import some_labels
from bioptimus_jax.sets import labelled
from bioptimus_jax.sets.foreign.flat import without_role
from bioptimus_jax.sets.foreign.forms import form_at, form_of_name
from bioptimus_jax.sets.foreign.items import Items
from bioptimus_jax.sets.texts import FOUND, Published, Text

SHOWN = 5
"""Labels that a note names."""
UNANSWERED = 'texts without an answer, which count as wrong'


def read_answers(
    asked: Submission, known: Published | None, numbers: bool
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The answers to every text of the test set, and what is odd about them, in words. Raises InputError."""
    found = _named(asked, known)
    items = _of_records(found, known, numbers) if found else _in_columns(asked, known, numbers)
    items = _in_order(asked, items)
    for item in items:
        strange = [x for x in item.answers if asked.labels and x not in asked.labels]
        if strange:
            raise InputError(
                f'{asked.file}:{item.line}: {strange[0]!r:.60} is not a label of the set; they are '
                f'{some_labels(asked.labels)}'
            )
    answers, notes = asked.answers([_spaced(*pair) for pair in zip_longest(items, asked.gold) if pair[0]]), []
    notes += said_of(found, 'answer') if found else []
    empty = 0 if known and known.several else sum(not a for a in answers)
    if empty:
        notes.append(f'{empty:,} {UNANSWERED}')
    if not numbers:
        notes += _strange_labels(asked, answers, known.uncounted if known else ())
    names = _names(items)
    by_name = '' not in names and names == _names(asked.gold)
    if not by_name and all(item.words is None for item in items):
        notes.append('the file repeats no text: answers are taken in the order of the test file')
    return answers, notes


def _in_order(asked: Submission, items: list[Item]) -> list[Item]:
    """Items in the order of the test set, by their names where both sides name the same ones.

    Raises InputError where names are all that tells which example an answer is for, and they do not tell it.
    """
    given, wanted = _names(items), _names(asked.gold)
    if '' in given or '' in wanted or {*given}.isdisjoint(wanted):
        return items
    alike = zip(given, wanted, strict=False)
    at = next((at for at, (ours, theirs) in enumerate(alike) if ours != theirs), None)
    if at is None:
        return items
    # Of equal texts the names alone tell which is meant; where the texts belie the names, the order is meant.
    in_place = _fit(items, asked.gold)
    if sorted(given) == sorted(wanted) and len({*wanted}) == len(wanted):
        places = {name: at for at, name in enumerate(wanted)}
        by_name = sorted(items, key=lambda item: places[item.name])
        if _fit(by_name, asked.gold) or not in_place:
            return by_name
    if in_place:  # the number of them is checked later
        return items
    if any(item.words is not None for item in items):
        return items
    raise InputError(
        f'{asked.file}:{items[at].line}: names {given[at]!r:.60}, but {asked.place(at)} is {wanted[at]!r:.60}; answer '
        'each of them once, or in their order and with their texts'
    )


def _fit(items: Sequence[Item], gold: Sequence[Text]) -> bool:
    """Whether each item repeats the text of the test item in its place."""
    return all(_spaced(*pair).words == pair[1].words for pair in zip(items, gold, strict=False))


def _names(examples: Sequence[Item | Text]) -> list[str]:
    return [example.name for example in examples]


def _spaced(item: Item, example: Text | None) -> Item:
    """The item with the white space of the test item, where they differ in nothing else."""
    if item.words is None or example is None:
        return item
    same = [w.split() for w in item.words] == [w.split() for w in example.words]
    return dataclasses.replace(item, words=example.words) if same else item


def _strange_labels(
    asked: Submission, answers: Sequence[Sequence[str]], uncounted: Sequence[str]
) -> list[str]:
    """A note where answers have labels that no text of the test set has, but for labels that no measure counts."""
    ours = {*uncounted, *(answer for text in asked.gold for answer in text.answers)}
    strange = Counter(answer for given in answers for answer in given if answer not in ours)
    if not strange:
        return []
    shown = ', '.join(f'{label} {count:,}' for label, count in strange.most_common(SHOWN))
    return [f'answers with labels that no test item has count as wrong: {shown}']


def _in_columns(asked: Submission, known: Published | None, numbers: bool) -> list[Item]:
    read: Sequence[Text] = labelled.read_file(asked.file, known, numbers)
    return [Item(text.words, text.answers, text.line, text.name) for text in read]


def _named(asked: Submission, known: Published | None) -> Items | None:
    """The records of a file whose keys or columns have names; None for lines of columns."""
    # What has a record of its columns may begin with a header of its own.
    in_columns = known and known.source != FOUND and not known.layout.keys
    if not (form_of_name(asked.file) if in_columns else form_at(asked.file)):
        return None
    return labelled.predicted_items(asked.file, known.layout if known and known.layout.keys else None)


def _of_records(found: Items, known: Published | None, numbers: bool) -> list[Item]:
    items = []
    for one in found.items:
        if one.answers is None:
            raise without_role(one, '"answers" or "label"')
        if len(one.answers) > 1 and not (known and known.several):
            raise InputError(f'{one.place}: has {len(one.answers)} answers, but a text of this set has one')
        read: list[tuple[Any, ...]]
        if known and known.several and one.listed:
            read = [labelled.answers_of_one(one.place, answer, known) for answer in one.answers]
        else:
            read = [labelled.answers_of(one.place, answer, known, numbers) for answer in one.answers]
        answers = dict.fromkeys(answer for answers in read for answer in answers)
        words = tuple(text.strip() for text in one.texts)
        items.append(Item(words or None, tuple(answers), one.line, one.name))
    return items
