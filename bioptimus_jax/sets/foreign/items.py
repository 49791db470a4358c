"""What a reader of a foreign form gives: records with texts or words, and what is marked in them or said of them."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.sets.characters import Mention
from bioptimus_jax.sets.sentences import text_of

JSON_ENDINGS, XML_ENDINGS, CSV_ENDINGS = ('.json', '.jsonl', '.ndjson'), ('.xml',), ('.csv',)
TEXT_ENDINGS = (*JSON_ENDINGS, *XML_ENDINGS, *CSV_ENDINGS)
"""Endings of the names of foreign files, but for tables."""


@dataclasses.dataclass(frozen=True)
class Keys:
    """Names of keys or columns that were asked for; those that are empty are found by what they are called.

    `predicted`: answers of a model are wanted, where a record has those beside the gold standard. `texts_alone`: every
    text is wanted, whatever is said of it.
    """

    texts: tuple[str, ...] = ()
    answer: str = ''
    name: str = ''
    word: str = ''
    tag: str = ''
    predicted: bool = False
    texts_alone: bool = False


FOUND_KEYS, PREDICTED_KEYS, TEXTS_ALONE = Keys(), Keys(predicted=True), Keys(texts_alone=True)


@dataclasses.dataclass(frozen=True)
class Item:
    """One record of a file. `place`: for messages; `line`: its number there; `keys`: what it has, for messages;
    `others`: keys under which something stands, but for that of the mentions.

    `texts`: one text, or two that are read together. `words` with `tags`, or `mentions` in the first text by
    characters, or `answers` to the texts: each is None where the record does not say it. `listed`: the answers are a
    list in the file, of which some may have none or several. `document`: the name of the document of which the record
    is a part, '' where it names none.
    """

    place: str
    line: int
    name: str = ''
    texts: tuple[str, ...] = ()
    words: tuple[str, ...] | None = None
    tags: tuple[str, ...] | None = None
    mentions: tuple[Mention, ...] | None = None
    answers: tuple[Any, ...] | None = None
    listed: bool = False
    keys: tuple[str, ...] = ()
    document: str = ''
    others: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True)
class Items:
    """All records of a file in a form. `repairs`: in words, what was not as it should be -> how often. `taken`: what is
    read (text, tags ...) -> the key or column that it was found under."""

    form: str
    items: tuple[Item, ...]
    repairs: Mapping[str, int]
    taken: Mapping[str, str]


@dataclasses.dataclass
class Context:
    """What readers share while they read a file: names that were asked for, names of labels, and what they noticed.

    `of_model`: the key of what is predicted in the first record, '' where it has none.
    """

    keys: Keys = FOUND_KEYS
    names: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)
    repairs: Counter[str] = dataclasses.field(default_factory=Counter)
    taken: dict[str, str] = dataclasses.field(default_factory=dict)
    of_model: str | None = None

    def names_of(self, key: str) -> list[str]:
        """What the numbers under a key mean, [] where nothing says so; the names of '' are those of any label."""
        return self.names.get(key) or ([] if key == 'score' else self.names.get('', []))

    def leaves_out(self, why: str) -> bool:
        """Whether a record that gives no answer is left out, which is counted; none is where texts alone are wanted."""
        self.repairs[why] += not self.keys.texts_alone
        return not self.keys.texts_alone


@dataclasses.dataclass(frozen=True)
class Dialect:
    """A form of values of JSON: `is_one`: whether a value is one of it; `read`: place, line and value -> its items."""

    name: str
    is_one: Callable[[Any], bool]
    read: Callable[[str, int, Any, Context], Iterator[Item]]


@dataclasses.dataclass(frozen=True)
class Source:
    """A file, or the text of standard input. `place`: for messages."""

    place: str
    path: Path | None = None
    given: str = ''

    @functools.cached_property
    def text(self) -> str:
        """The text of it, without a byte-order mark."""
        return (text_of(self.path) if self.path else self.given).removeprefix('\ufeff')
