"""Answers to texts that were predicted elsewhere."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetune.outside import ANSWERS, Item, Submission, listed, words_of
from bioptimus_jax.sets import texts
from bioptimus_jax.sets.texts import Published, Text

SHOWN = 5
"""Labels that a note names."""
UNANSWERED = 'texts without an answer, which count as wrong'


def read_answers(
    asked: Submission, known: Published | None, numbers: bool
) -> tuple[list[tuple[Any, ...]], list[str]]:
    """The answers to every text of the test set, and what is odd about them, in words. Raises InputError."""
    items = _in_json(asked, known, numbers) if asked.in_json else _in_columns(asked, known, numbers)
    for item in items:
        strange = [x for x in item.answers if asked.labels and x not in asked.labels]
        if strange:
            labels = ', '.join(asked.labels)
            raise InputError(
                f'{asked.file}:{item.line}: {strange[0]!r} is not a label of the set; they are {labels}'
            )
    answers, notes = asked.answers(items), []
    empty = 0 if known and known.several else sum(not a for a in answers)
    if empty:
        notes.append(f'{empty:,} {UNANSWERED}')
    if not (numbers or asked.labels):
        notes += _strange_labels(asked, answers)
    if all(item.words is None for item in items):
        notes.append('the file repeats no text: answers are taken in the order of the test file')
    return answers, notes


def _strange_labels(asked: Submission, answers: Sequence[Sequence[str]]) -> list[str]:
    """A note where answers have labels that no text of a test file has, which may be all that there is of its set."""
    ours = {answer for text in asked.gold for answer in text.answers}
    strange = Counter(answer for given in answers for answer in given if answer not in ours)
    if not strange:
        return []
    shown = ', '.join(f'{label} {count:,}' for label, count in strange.most_common(SHOWN))
    return [f'answers with labels that no test item has count as wrong: {shown}']


def _in_columns(asked: Submission, known: Published | None, numbers: bool) -> list[Item]:
    read: Sequence[Text] = texts.read_file(asked.file, known, numbers)
    return [Item(text.words, text.answers, text.line) for text in read]


def _in_json(asked: Submission, known: Published | None, numbers: bool) -> list[Item]:
    items = []
    for line, entry in asked.objects(*ANSWERS):
        words, given = words_of(asked.file, line, entry), listed(asked.file, line, entry, *ANSWERS) or []
        wanted = 'one number' if numbers else 'texts that are labels'
        if not all(isinstance(x, int | float if numbers else str) for x in given) or (
            numbers and len(given) != 1
        ):
            raise InputError(f'{asked.file}:{line}: its answers are {given!r}, not {wanted}')
        if len(given) > 1 and not (known and known.several):
            raise InputError(f'{asked.file}:{line}: has {len(given)} answers, but a text of this set has one')
        read = [texts.answers_of(f'{asked.file}:{line}', str(x), known, numbers) for x in given]
        found = dict.fromkeys(answer for answers in read for answer in answers)
        items.append(Item(words and tuple(w.strip() for w in words), tuple(found), line))
    return items
