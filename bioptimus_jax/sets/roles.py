"""Which column of a file holds its words and which its tags: as it was asked for, or found from what columns hold."""

import dataclasses
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.sentences import of_devel
from bioptimus_jax.sets.tags import OUTSIDE, is_tag

CHUNKS = frozenset('ADJP ADVP CONJP INTJ LST NP NX PP PRT QP SBAR UCP VP WHNP WHPP'.split())
"""Types of syntactic chunks, which files of words have beside the tags of entities."""
NUMBERS = re.compile(r'[\W_]*\d[\d\W_]*')
"""What offsets and numbers of documents are made of."""
ATTRIBUTE = re.compile(r'\w+=')
ENOUGH = 10
"""Lines of a file from which on what its columns hold is no accident."""


@dataclasses.dataclass(frozen=True)
class Columns:
    """What was asked for: the name of a column in the header, its number from 1, or from the end (-1); '': found."""

    word: str = ''
    tag: str = ''

    @property
    def asked(self) -> list[str]:
        """`word 2`: those that were asked for."""
        return [f'{name} {value}' for name, value in vars(self).items() if value]


FOUND = Columns()
LAST = Columns(tag='-1')
"""How predictions are read, beside which the gold standard may stand."""


@dataclasses.dataclass(frozen=True)
class ColumnRoles:
    """Places of words and tags in lines of `width` columns, from 0.

    `header`: the first line names the columns. `mixed`: they are apart by blanks, and the last one by a tab.
    """

    word: int
    tag: int
    width: int
    header: bool = False
    mixed: bool = False

    def __str__(self) -> str:
        return f'of {self.width} columns, {self.word + 1} is the word and {self.tag + 1} the tag'


def remedy(key: str, value: str = 'its number or its name in a header') -> str:
    """What to do where a column is not found."""
    return f'set config.finetune.{key} (of lint and score --{key}) to {value}'


@dataclasses.dataclass(frozen=True)
class Held:
    """What the lines of a file hold: by column each value, and the number of the line where it is met first.

    `first`: the columns of the first line, whose number is `number`. `rows`: the columns of every line.
    """

    path: Path
    number: int
    first: Sequence[str]
    count: int
    values: Sequence[Mapping[str, int]]
    rows: Callable[[], Iterator[Sequence[str]]]

    @property
    def width(self) -> int:
        return len(self.first)

    @classmethod
    def of(
        cls, path: Path, rows: Callable[[], Iterator[tuple[int, Sequence[str]]]], asked: Columns, form: str
    ) -> 'Held':
        """`rows`: number and columns of every line; `form`: what lines should be. Raises InputError for a header alone,
        and for lines of another width than the first one."""
        header = has_header(asked)
        first_number, first = next(rows())
        values, count = [dict[str, int]() for _ in first], -header
        for number, columns in rows():
            if len(columns) != len(first) or len(columns) < 2:
                found = numbered(len(columns), 'column')
                earlier = f' (lines before have {len(first)})' if number != first_number else ''
                shown = ' '.join(columns)[:60]
                raise InputError(f'{path}:{number}: expected {form}, found {found}{earlier} in {shown!r}')
            count += 1
            if count:
                for known, value in zip(values, columns, strict=True):
                    known.setdefault(value, number)
        if not count:
            raise InputError(
                f'{path}: holds no sentence; expected lines of {form} below the header{of_devel(path)}'
            )

        def every() -> Iterator[Sequence[str]]:
            return (columns for _, columns in itertools.islice(rows(), header, None))

        return cls(path, first_number, first, count, values, every)

    def all_tags(self, at: int) -> bool:
        return all(is_tag(value.strip()) for value in self.values[at])

    def line_with(self, at: int, is_it: Callable[[str], bool]) -> tuple[int, str]:
        """The first line in which such a value stands in a column, and the value."""
        return min(
            (number, value.strip()) for value, number in self.values[at].items() if is_it(value.strip())
        )


def has_header(asked: Columns) -> bool:
    """Whether names of columns were asked for, which stand in the first line."""
    return any(name and not _is_number(name) for name in (asked.word, asked.tag))


def roles_of(held: Held, asked: Columns = FOUND) -> ColumnRoles:
    """The roles of columns. Raises InputError where several may have one, and where none can be the words."""
    word = _asked(held, asked.word, 'word_column') if asked.word else None
    tag = _asked(held, asked.tag, 'tag_column') if asked.tag else _tag_column(held, word)
    if word is None:
        word = _word_column(held, tag)
    if word == tag:
        raise InputError(
            f'{held.path}:{held.number}: column {tag + 1} cannot be both word and tag; {remedy("tag_column")}'
        )
    return ColumnRoles(word, tag, held.width, has_header(asked))


def unknown_tag(path: Path, number: int, tag: str, first: bool) -> InputError:
    """What is wrong with a line, which may be a header where it is the `first`."""
    hint = ''
    if ATTRIBUTE.match(tag):
        hint = '; it is one of several attributes, as CoNLL-U has in its last column: write the tag alone'
    elif first and tag:
        hint = f'; if the line is a header, {remedy("tag_column", tag[:60])}'
    return InputError(
        f'{path}:{number}: unknown tag {tag[:60]!r}; tags are O, B-TYPE, I-TYPE and those of IOBES, BILOU and '
        f'BMES{hint}'
    )


def words_and_blanks(lines: Iterable[Sequence[str]]) -> bool:
    """Whether lines of two columns, apart by a tab, have several in the first of them, apart by blanks."""
    width, count, tags = 0, 0, True
    for columns in lines:
        parts = columns[0].split(' ')
        width, count = width or len(parts), count + 1
        if len(columns) != 2 or width < 2 or len(parts) != width or not all(parts):
            return False
        tags = tags and is_tag(parts[-1])
    # Two words may be one token by chance, and in a few lines also three.
    return count >= ENOUGH or (width > 2 and tags)


def _is_number(name: str) -> bool:
    return re.fullmatch(r'-?\d+', name) is not None


def _asked(held: Held, name: str, key: str) -> int:
    where = f'{held.path}:{held.number}'
    if _is_number(name):
        at = int(name)
        if not 1 <= abs(at) <= held.width:
            raise InputError(
                f'{where}: has {held.width} columns, but {key} is {name}; the first is 1, the last -1'
            )
        return at - 1 if at > 0 else held.width + at
    names = [column.strip() for column in held.first]
    if names.count(name) != 1:
        raise InputError(
            f'{where}: is the header, but names no one column {name!r} ({key}); it has {", ".join(names)[:80]}'
        )
    return names.index(name)


def _tag_column(held: Held, word: int | None) -> int:
    """The column that reads as tags in every line; of several none of chunks, and none that is O throughout."""
    others = [at for at in range(held.width) if at != word]
    candidates = [at for at in others if held.all_tags(at)]
    if not candidates:
        shares = {at: sum(is_tag(x.strip()) for x in held.values[at]) / len(held.values[at]) for at in others}
        nearest = max(others, key=lambda at: (shares[at], at))
        number, tag = held.line_with(nearest, lambda value: not is_tag(value))
        raise unknown_tag(held.path, number, tag, number == held.number)
    kinds = {at: {value.strip() for value in held.values[at]} - {OUTSIDE} for at in candidates}
    entities = [at for at in candidates if not kinds[at] or not _are_chunks(kinds[at])] or candidates
    filled = [at for at in entities if kinds[at]] or entities[-1:]
    if len(filled) > 1 and held.width == 2:
        return 1  # as it mostly is: words that read as tags
    if len(filled) > 1:
        shown = _shown(held, filled, lambda value: value != OUTSIDE)
        number, _ = held.line_with(filled[0], lambda value: value != OUTSIDE)
        raise InputError(
            f'{held.path}:{number}: columns {shown} all read as tags; {remedy("tag_column")}, or leave one of them'
        )
    return filled[0]


def _word_column(held: Held, tag: int) -> int:
    """The column whose words make the text."""
    others = [at for at in range(held.width) if at != tag]
    plain = [at for at in others if not held.all_tags(at)]
    numbers = [at for at in plain if all(map(NUMBERS.fullmatch, held.values[at]))]
    texts = [at for at in plain if at not in numbers]
    if not texts:
        if held.count < ENOUGH:
            return others[0]
        _refuse(held, others, 'hold tags or numbers in every line, and no words')
    if len(texts) == 1:
        return texts[0]
    if fitting := _as_long_as_offsets(held, texts, numbers):
        return fitting[0]
    # An identifier has a digit in every line.
    texts = [at for at in texts if not all(re.search(r'\d', value) for value in held.values[at])] or texts
    different = {at: len(held.values[at]) for at in texts}
    if held.count >= ENOUGH and different[texts[0]] < max(different.values()):
        _refuse(held, texts, 'may all be the words')
    return texts[0]


def _refuse(held: Held, places: Sequence[int], why: str) -> NoReturn:
    shown = _shown(held, places, lambda value: True)
    raise InputError(f'{held.path}:{held.number}: columns {shown} {why}; {remedy("word_column")}')


def _shown(held: Held, places: Sequence[int], is_it: Callable[[str], bool]) -> str:
    """`1 (Aspirin) and 2 (NN)`: columns with the first such value of each."""
    return ' and '.join(f'{at + 1} ({held.line_with(at, is_it)[1][:20]})' for at in places)


def _as_long_as_offsets(held: Held, texts: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """The columns whose words are as long as two columns of offsets say."""
    offsets = [at for at in numbers if all(map(str.isdecimal, held.values[at]))]
    for start, end in itertools.pairwise(offsets):
        fit = list(texts)
        for columns in held.rows():
            size = int(columns[end]) - int(columns[start])
            fit = [at for at in fit if len(columns[at]) == size]
        if fit:
            return fit
    return []


def _are_chunks(tags: Collection[str]) -> bool:
    return all(tag[2:] in CHUNKS for tag in tags)
