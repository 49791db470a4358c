"""Predictions that were made elsewhere: items of a file, held against a test set so that each is scored once."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered, plural
from bioptimus_jax.sets.foreign.flat import OF_MODELS, OF_NOBODY
from bioptimus_jax.sets.foreign.items import Items

SHOWN = 40
"""Letters of a text that a message names."""


@dataclasses.dataclass(frozen=True)
class Item:
    """What was predicted for an example; `words` as the example has them, None where the file does not repeat them.

    `name`: what the file calls the example, '' where it has no names.
    """

    words: tuple[str, ...] | None
    answers: tuple[Any, ...]
    line: int
    name: str = ''


@dataclasses.dataclass(frozen=True)
class Submission:
    """Predictions in `file` for the test items `gold` of `gold_file`; an item is called a `unit`.

    `types`: what predicted types of entities are called in the set, '' for one that is left out. `labels`: those that
    there are, none where nothing says so, and where answers are numbers or tags of words.
    """

    file: Path
    gold_file: Path
    gold: Sequence[Any]
    unit: str
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    labels: tuple[str, ...] = ()

    def place(self, at: int) -> str:
        """`sentence 3 (FILE:17)` of the gold standard, for at = 2."""
        line = self.gold[at].line
        return f'{self.unit} {at + 1} ({self.gold_file}{f":{line}" if line else ""})'

    def answers(self, items: Sequence[Item]) -> list[tuple[Any, ...]]:
        """The answers of the items, which are the test items in their order. Raises InputError that names the first
        that is missing, double or another."""
        for at, (item, example) in enumerate(zip(items, self.gold, strict=False)):
            if item.words is not None and item.words != example.words:
                raise InputError(f'{self.file}:{item.line}: {self._difference(at, item.words)}')
        more = (
            f'; {len(self.gold):,} {plural(self.unit)} are to be predicted, in the order of {self.gold_file}'
        )
        if len(items) < len(self.gold):
            raise InputError(f'{self.file}: ends before {self.place(len(items))}{more}')
        if len(items) > len(self.gold):
            raise InputError(f'{self.file}:{items[len(self.gold)].line}: is one {self.unit} too many{more}')
        return [item.answers for item in items]

    def _difference(self, at: int, words: tuple[str, ...]) -> str:
        known = [example.words for example in self.gold]
        if words in known[at + 1 :]:
            return f'{self.place(at)} is missing before it; predict every {self.unit}, in the order of the test file'
        if words in known[:at]:
            return f'is {self.place(known.index(words))} again; each {self.unit} is scored once'
        pairs = zip(words, known[at], strict=False)
        found, wanted = next((pair for pair in pairs if pair[0] != pair[1]), (None, None))
        if found is None or wanted is None:
            return f'has {numbered(len(words), "word")}, but {self.place(at)} has {len(known[at])}'
        return f'{from_difference(found, wanted)!r} differs from {self.place(at)}, {from_difference(wanted, found)!r}'


def said_of(found: Items, role: str) -> list[str]:
    """A note where predictions stand under a name that a gold standard may have, too."""
    key = found.taken.get(role, '')
    return [f'what was predicted is read from {key!r}'] * (key not in ('', *OF_NOBODY, *OF_MODELS))


def from_difference(text: str, other: str) -> str:
    """Where a text begins to differ from the other, a few letters of it."""
    return text[max(0, first_difference(text, other) - SHOWN // 4) :][:SHOWN]


def first_difference(text: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return len(os.path.commonprefix([text, other]))  # noqa: RUF071, of any strings
