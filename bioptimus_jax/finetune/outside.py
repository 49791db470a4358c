"""Predictions that were made elsewhere: items of a file, held against a test set so that each is scored once."""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.sentences import text_of

JSON = ('.json', '.jsonl')
ANSWERS = ('answers', 'predicted')
"""What answers are called in JSON; our own predictions.jsonl has the second."""
SHOWN = 40
"""Letters of a text that a message names."""


@dataclasses.dataclass(frozen=True)
class Item:
    """What was predicted for an example; `words` as the example has them, None where the file does not repeat them."""

    words: tuple[str, ...] | None
    answers: tuple[Any, ...]
    line: int


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

    @property
    def in_json(self) -> bool:
        return self.file.suffix in JSON

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
        more = f'; {len(self.gold):,} {self.unit}s are to be predicted, in the order of {self.gold_file}'
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

    def objects(self, *needed: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """The objects of a JSON list or of JSON lines with the numbers of their lines, all with one of these keys."""
        for line, entry in json_objects(self.file):
            if not any(key in entry for key in needed):
                raise InputError(f'{self.file}:{line}: has no {" or ".join(map(repr, needed))}')
            yield line, entry


def listed(file: Path, line: int, entry: Mapping[str, Any], *names: str) -> list[Any] | None:
    """The list under the first of these names that an object has, None without any. Raises InputError."""
    name = next((name for name in names if name in entry), None)
    if name is None:
        return None
    if not isinstance(entry[name], list):
        raise InputError(f'{file}:{line}: {name!r} is not a list')
    return entry[name]


def words_of(file: Path, line: int, entry: Mapping[str, Any]) -> tuple[str, ...] | None:
    """`"words": [...]` or `"text": "..."` of an object, None without either. Raises InputError."""
    words = [entry['text']] if 'text' in entry else listed(file, line, entry, 'words')
    if words is not None and not all(isinstance(word, str) for word in words):
        raise InputError(f'{file}:{line}: its words are not all texts')
    return None if words is None else tuple(words)


def json_objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every object of a JSON list, or of JSON lines, and its line. Raises InputError with file and line."""
    text, decoder, line = text_of(file).removeprefix('\ufeff'), json.JSONDecoder(), 1
    rest = text.lstrip()
    opened = rest.startswith('[')
    at = counted = len(text) - len(rest) + opened
    line += text.count('\n', 0, at)
    while True:
        while at < len(text) and (text[at].isspace() or (opened and text[at] in ',]')):
            at += 1
        # Lines are counted on from the last object: from the start of the file it would take quadratic time.
        line, counted = line + text.count('\n', counted, at), at
        if at == len(text):
            return
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, 'msg', 'too deep')
            raise InputError(
                f'{file}:{line}: is not JSON ({reason}); give a list, or one object per line'
            ) from error
        if not isinstance(entry, dict):
            raise InputError(f'{file}:{line}: is not an object; see `bioptimus score --help`')
        yield line, entry


def from_difference(text: str, other: str) -> str:
    """Where a text begins to differ from the other, a few letters of it."""
    return text[max(0, first_difference(text, other) - SHOWN // 4) :][:SHOWN]


def first_difference(text: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return len(os.path.commonprefix([text, other]))  # noqa: RUF071, of any strings
