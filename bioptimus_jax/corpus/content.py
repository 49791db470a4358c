"""Documents by what they say and by what is known of them: conditions, density of terms, scores of one's own, weights.

A field is what a record says beside its text: a key of a JSON object, a column of a table, and of PubMed `year`, `mesh`
(headings), `journal` and `type`. `words` and `terms` (the share of a document's words that stand in a term) are
computed; files of scores add more.

D documents of a file of scores.
"""

import bisect
import dataclasses
import functools
import itertools
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ahocorasick_rs
import numpy as np

from bioptimus_jax.corpus.config import Content
from bioptimus_jax.corpus.documents import document_key
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.storage.files import JsonObject, numbered_jsonl
from bioptimus_jax.text.words import count_words, spaced

WORDS, TERMS = 'words', 'terms'
ID = 'id'
CONDITION = re.compile(r'\s*([^<>=!\s][^<>=!]*?)\s*(>=|<=|!=|=|>|<)\s*(.+?)\s*')
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    '>=': operator.ge,
    '<=': operator.le,
    '>': operator.gt,
    '<': operator.lt,
    '=': operator.eq,
    '!=': operator.ne,
}
Fields = Mapping[str, tuple[str, ...]]
"""What a record says beside its text: the values of every field, as they are written."""


@dataclasses.dataclass(frozen=True)
class Condition:
    """What has to hold for one of the values of a field; numbers are compared as such, other values without case.

    `!=` holds where no value of the field is the one that is named.
    """

    field: str
    sign: str
    value: str

    @classmethod
    def read(cls, text: str) -> 'Condition':
        """The condition that a text says. Raises ConfigError."""
        found = CONDITION.fullmatch(text)
        if not found:
            raise ConfigError(
                f'config.corpus.content.where: {text!r} is no condition; write year>=2015 or mesh=Asthma'
            )
        made = cls(*found.groups())
        if made.sign not in ('=', '!=') and not math.isfinite(number_of(made.value)):
            raise ConfigError(
                f'config.corpus.content.where: {text!r} compares with no number; write year>=2015'
            )
        return made

    def holds(self, values: Sequence[str]) -> bool:
        """Whether it holds for these values of its field."""
        if self.sign == '!=':
            return bool(values) and all(map(self._compared, values))
        return any(map(self._compared, values))

    def _compared(self, value: str) -> bool:
        numbers = number_of(value), number_of(self.value)
        if all(map(math.isfinite, numbers)):
            return COMPARED[self.sign](*numbers)
        return self.sign in ('=', '!=') and COMPARED[self.sign](value.casefold(), self.value.casefold())


def number_of(text: str) -> float:
    """The number that a text is; NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


@functools.cache
def fields_asked(settings: Content) -> frozenset[str]:
    """The fields that the settings name; asked for every record. Raises ConfigError for a condition that is none."""
    named = [condition.field for condition in map(Condition.read, settings.where)]
    return frozenset(filter(None, [*named, preferred(settings)[0], settings.weight]))


def preferred(settings: Content) -> tuple[str, int]:
    """The field that documents are chosen by, and the sign of the best: 1 the largest, -1 the smallest."""
    return settings.prefer.removeprefix('-'), -1 if settings.prefer.startswith('-') else 1


def check(settings: Content) -> None:
    """Raise ConfigError or InputError for conditions, terms and scores that cannot be."""
    asked = fields_asked(settings)
    if TERMS in asked and not settings.terms:
        raise ConfigError(
            'config.corpus.content.terms: is empty, but terms are asked for; name a file with one a line'
        )
    if settings.terms:
        read_terms(Path(settings.terms).expanduser())
    for path in content_files(settings):
        if not path.is_file():
            raise InputError(f'{path}: no such file; correct config.corpus.content.terms or scores')
    Scores(Path(path).expanduser() for path in settings.scores)


def content_files(settings: Content) -> list[Path]:
    """The files that decide about documents by their content."""
    return [Path(path).expanduser() for path in (settings.terms, *settings.scores) if path]


def read_terms(path: Path) -> list[str]:
    """The terms of a file, one a line, as they are compared. Raises InputError where there are none."""
    try:
        lines = path.read_text('utf-8').splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f'{path}: cannot be read ({error}); config.corpus.content.terms names UTF-8 text'
        ) from error
    terms = sorted(set(map(_folded, lines)) - {''})
    if not terms:
        raise InputError(f'{path}: holds no terms; write one a line')
    return terms


class Terms:
    """Finds terms as whole words, also those that overlap."""

    def __init__(self, terms: Iterable[str]):
        self.terms = [_folded(term) for term in terms]

    @functools.cached_property
    def _automaton(self) -> ahocorasick_rs.AhoCorasick:
        return ahocorasick_rs.AhoCorasick(self.terms)

    def density(self, text: str, words: int) -> float:
        """The share of a text's words that are part of a term; `words`: how many words it has."""
        compared, covered = _folded(text), set[int]()
        parts = compared.split()
        behind = list(itertools.accumulate(len(part) + 1 for part in parts))
        for _, start, stop in self._automaton.find_matches_as_indexes(compared, overlapping=True):
            if _is_whole(compared, start, stop):
                # The numbers of its words: several terms in one, as in IL-2/IL-4, cover it once.
                covered.update(range(bisect.bisect(behind, start), bisect.bisect(behind, stop - 1) + 1))
        if ' '.join(text.lower().split()) != compared:
            # In a script without blanks a mark is not a word.
            covered = {number for number in covered if any(map(str.isalnum, parts[number]))}
        return len(covered) / max(words, 1)


def _folded(text: str) -> str:
    """A text or a term with single blanks, in lower case, each word of any script between blanks."""
    return ' '.join(spaced(text.lower()).split())


def _is_whole(text: str, start: int, stop: int) -> bool:
    before, behind = text[start - 1 : start], text[stop : stop + 1]
    return not before.isalnum() and not behind.isalnum()


class Scores:
    """Numbers of documents out of files of JSON lines: each has `id`, and a number under every other key."""

    def __init__(self, paths: Iterable[Path]):
        found: dict[str, dict[int, float]] = {}
        for path in paths:
            for number, row in numbered_jsonl(path, 'correct it; a line is {"id": ..., "NAME": number}'):
                self._add(found, row, f'{path}:{number}')
        self.names = frozenset(found)
        self._keys_D = {name: np.array(sorted(of), np.uint64) for name, of in found.items()}
        self._numbers_D = {
            name: np.array([of[key] for key in self._keys_D[name].tolist()], np.float64)
            for name, of in found.items()
        }

    @staticmethod
    def _add(found: dict[str, dict[int, float]], row: Any, where: str) -> None:
        id = row.get(ID) if isinstance(row, dict) else None
        if not isinstance(id, str | int):
            raise InputError(
                f'{where}: has no {ID!r}; a line of config.corpus.content.scores names a document'
            )
        for name, value in row.items():
            if name != ID and isinstance(value, int | float):
                found.setdefault(name, {})[document_key(str(id))] = float(value)

    def of(self, name: str, key: int) -> tuple[str, ...]:
        """The score of a document under that name, as a value of a field."""
        keys_D = self._keys_D[name]
        at = int(np.searchsorted(keys_D, np.uint64(key)))
        return (
            (repr(float(self._numbers_D[name][at])),) if at < len(keys_D) and int(keys_D[at]) == key else ()
        )


@dataclasses.dataclass(frozen=True)
class Judged:
    """What content says of a document: a reason to leave it out, its place in the choice, how often it is read."""

    reason: str
    preference: float = 0.0
    weight: float = 1.0


class ContentJudge:
    """Decides about documents by their fields."""

    def __init__(self, settings: Content):
        self.settings, self.asked = settings, fields_asked(settings)
        self.conditions = [Condition.read(text) for text in settings.where]
        self.terms = Terms(read_terms(Path(settings.terms).expanduser()) if TERMS in self.asked else ())
        self.scores = Scores(Path(path).expanduser() for path in settings.scores)

    def judge(self, fields: Fields, key: int, text: str, words: int) -> Judged:
        """The verdict on a document with those fields."""
        return self.verdict(self.values(fields, key, text, words))

    def verdict(self, values: Fields) -> Judged:
        """The verdict by the values of all fields that are asked for; `no_field` where one has none."""
        if not all(values.values()):
            return Judged('no_field')
        if not all(condition.holds(values[condition.field]) for condition in self.conditions):
            return Judged('condition')
        name, sign = preferred(self.settings)
        preference = sign * number_of(values[name][0]) if name else 0.0
        weight = number_of(values[self.settings.weight][0]) if self.settings.weight else 1.0
        if not math.isfinite(preference) or not math.isfinite(weight):
            return Judged('no_field')
        return Judged('' if weight > 0 else 'no_weight', preference, weight)

    def values(self, fields: Fields, key: int, text: str, words: int) -> dict[str, tuple[str, ...]]:
        """The values of all fields that are asked for; none of one that the document lacks."""
        return {name: self._values(name, fields, key, text, words) for name in self.asked}

    def _values(self, name: str, fields: Fields, key: int, text: str, words: int) -> tuple[str, ...]:
        if name in self.scores.names:
            return self.scores.of(name, key)
        if name == TERMS:
            return (repr(self.terms.density(text, words)),)
        return (str(words),) if name == WORDS else tuple(fields.get(name, ()))


def shares(settings: Content, records: Sequence[Record]) -> dict[str, float]:
    """The share of documents that each condition alone keeps, that lack a field that is asked for, and that stay."""
    judge, kept = ContentJudge(settings), Counter[str]()
    for record in records:
        values = judge.values(record.fields, document_key(record.id), record.text, count_words(record.text))
        kept.update(
            text for text, one in zip(settings.where, judge.conditions) if one.holds(values[one.field])
        )
        kept[judge.verdict(values).reason] += 1
    named = {**{text: text for text in settings.where}, 'without a field': 'no_field', 'all together': ''}
    return {name: kept[of] / max(len(records), 1) for name, of in named.items()}


def values_of(row: JsonObject, asked: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The fields of an object of JSON or a row of a table: texts and numbers, or lists of these."""
    found = {}
    for name in asked:
        value = row.get(name)
        listed = value if isinstance(value, list) else [value]
        if kept := tuple(
            str(one).strip() for one in listed if isinstance(one, str | int | float) and str(one).strip()
        ):
            found[name] = kept
    return found
