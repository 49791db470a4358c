"""Files with a token and its tag on every line, a blank line between sentences, `-DOCSTART-` before a document.

Columns stand apart by tabs or, in a file without a tab, by spaces (CoNLL). Which of them is the token and which the tag
is found from what they hold (roles.py); others are not read. Comments begin with `#`, as in CoNLL-U, whose lines of
several words together (1-2) and of words that are not in the text (8.1) are left out.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.quoting import unquoted
from bioptimus_jax.sets.roles import (
    FOUND,
    ColumnRoles,
    Columns,
    Held,
    roles_of,
    unknown_tag,
    words_and_blanks,
)
from bioptimus_jax.sets.sentences import Sentence, SplitReading, bytes_of, of_devel, text_of
from bioptimus_jax.sets.tags import OUTSIDE, is_tag

DOCUMENT, MEDLINE = '-DOCSTART-', '###MEDLINE:'
BYTE_ORDER_MARK = '\ufeff'
SPACES = re.compile(' +')
CONLL_U = 10
"""Columns of CoNLL-U, the first of which is the number of the word."""
IDENTIFIER = re.compile(r'\d+([-.]\d+)?')

TagLine = tuple[int, str, str]  # number of the line, token, tag


def read_columns(path: Path, asked: Columns = FOUND) -> SplitReading:
    """The sentences of one file, tags as they stand there. Raises InputError with file and line.

    Put right and counted: byte-order mark, carriage returns, white space around a tag, blank lines that hold spaces or
    follow each other, a missing blank line at the end. A token with white space in it stays as it is.
    """
    repairs: Counter[str] = Counter()
    sentences: list[Sentence] = []
    words: list[str] = []
    tags: list[str] = []
    document, line = -1, 0
    expected = False  # a blank line is expected after tokens, and after the start of a document

    def close() -> None:
        if words:
            sentences.append(Sentence(tuple(words), tuple(tags), max(document, 0), line))
            words.clear()
            tags.clear()

    table = _table(path, repairs, asked)
    for row in table.rows(repairs):
        if row is None:
            repairs['blank lines too many'] += not expected
            close()
            expected = False
        elif row[1] == DOCUMENT:
            close()
            document += 1
            expected = True
        else:
            line = line if words else row[0]
            words.append(row[1])
            tags.append(row[2])
            expected = True
    repairs['no blank line at the end'] += bool(words)
    close()
    if not sentences:
        raise InputError(f'{path}: holds no sentence; expected lines of token TAB tag{of_devel(path)}')
    odd = {word for word in set().union(*(s.words for s in sentences)) if word.split() != [word]}
    if odd:
        repairs['words with white space in them'] = sum(word in odd for s in sentences for word in s.words)
    said = str(table.roles) if table.roles.width > 2 or table.roles.word else ''
    mentions = count_mentions(path, table.roles, table.left_out)
    return SplitReading(tuple(sentences), mentions, +repairs, columns=said)


def count_mentions(path: Path, roles: ColumnRoles | None = None, left_out: Collection[int] = ()) -> int:
    """Mentions counted straight from the lines of a file, in whatever scheme, apart from any reading of sentences.

    A mention begins at a letter for a beginning or a single word, and at any other that continues nothing of its type
    (as conlleval reads it). `roles`: where tags stand, by default in the last column. `left_out`: numbers of lines that
    are no part of any sentence.
    """
    # Nothing is shared with `_table` but the places: `require_all_mentions` holds one against the other.
    lines = bytes_of(path).split(b'\n')
    if left_out:
        lines = [line for number, line in enumerate(lines, 1) if number not in left_out]
    separator = b'\t' if any(b'\t' in line for line in lines if line.strip(b' \t\r')) else b' '
    if roles and roles.mixed:
        lines, separator = [line.replace(b'\t', b' ') for line in lines], b' '
    if roles and roles.header:
        lines = lines[1 + next(at for at, line in enumerate(lines) if line.strip(b' \t\r\xef\xbb\xbf')) :]
    within = roles.tag if roles and roles.tag < roles.width - 1 else None

    def tags() -> Iterator[str]:
        decoded: dict[bytes, str] = {}
        for line in lines:
            line = line.strip(b'\r ')
            if within is None:
                _, between, tag = line.rpartition(separator)
            else:
                columns = [x for x in line.split(separator) if x or separator == b'\t']
                between, tag = (separator, columns[within]) if within < len(columns) else (b'', b'')
            if not between or line.startswith(DOCUMENT.encode()):
                yield OUTSIDE
                continue
            if tag not in decoded:
                decoded[tag] = tag.decode('utf-8', 'replace').strip() or OUTSIDE
            yield decoded[tag]

    return count_beginnings(tags())


def count_beginnings(tags: Iterable[str]) -> int:
    """How many mentions begin in a row of tags of any scheme, O between sentences."""
    count, before = 0, OUTSIDE
    for tag in tags:
        continues = tag[0] in 'IMEL' and before[0] in 'BIM' and before[1:] == tag[1:]
        count += tag != OUTSIDE and not continues
        before = tag
    return count


def first_lines(paths: Iterable[Path], asked: Columns = FOUND) -> dict[str, str]:
    """FILE:LINE where each kind of tag, without its type, is met first."""
    found: dict[str, str] = {}
    for path in paths:
        for row in _table(path, Counter(), asked).rows(Counter()):
            if row is not None and row[1] != DOCUMENT and row[2] != OUTSIDE:
                found.setdefault(row[2][:2], f'{path}:{row[0]}')
    return found


def line_of(path: Path, kind: str, asked: Columns = FOUND) -> str:
    """FILE:LINE where a tag of this type is met first."""
    rows = _table(path, Counter(), asked).rows(Counter())
    return f'{path}:{next(row[0] for row in rows if row is not None and row[2][2:] == kind)}'


@dataclasses.dataclass(frozen=True)
class _Table:
    """The lines of a file in columns apart by tabs or by blanks; `roles`: which of them are read."""

    path: Path
    lines: Sequence[str]
    tabs: bool
    roles: ColumnRoles = ColumnRoles(0, 1, 2)
    left_out: frozenset[int] = frozenset()
    """Numbers of lines that are no part of any sentence."""

    def columns(self) -> Iterator[tuple[int, list[str]]]:
        """The number and the columns of every line, none of a blank one."""
        mixed = self.roles.mixed
        for number, line in enumerate(self.lines, 1):
            if number in self.left_out:
                continue
            # The first letter tells nearly all lines that are not blank.
            if line[:1] in ('', ' ', '\t') and not line.strip(' \t'):
                yield number, []
            elif mixed:
                yield number, line.replace('\t', ' ').split(' ')
            else:
                yield number, line.split('\t') if self.tabs else SPACES.split(line.strip(' '))

    def filled(self) -> Iterator[tuple[int, list[str]]]:
        """The same of lines that hold more than the start of a document."""
        return ((n, c) for n, c in self.columns() if c and (c[0][:1] != '-' or not c[0].startswith(DOCUMENT)))

    def rows(self, repairs: Counter[str]) -> Iterator[TagLine | None]:
        """Lines with token and tag, None for a blank line. Raises InputError for a tag that is none."""
        word, tag, known = self.roles.word, self.roles.tag, set[str]()
        header = self.roles.header
        for number, columns in self.columns():
            # Nearly every line: its tag was checked before. A line with '-' may begin a document.
            if columns and columns[0][:1] != '-' and columns[tag] in known and columns[word]:
                yield number, columns[word], columns[tag]
            elif not columns:
                yield None
            elif columns[0].startswith(DOCUMENT):
                yield number, DOCUMENT, OUTSIDE
            elif header:
                header = False
            else:
                own = columns[tag].strip()
                if not columns[word]:
                    shown = ' '.join(columns)[:60]
                    raise InputError(
                        f'{self.path}:{number}: expected token and tag in {shown!r}, the token is empty'
                    )
                if not is_tag(own):
                    raise unknown_tag(self.path, number, own, False)
                if own == columns[tag]:
                    known.add(own)
                repairs['blanks around tags'] += own != columns[tag]
                yield number, columns[word], own


def _table(path: Path, repairs: Counter[str], asked: Columns) -> _Table:
    """The lines of a file. Raises InputError for those of another width than the first one."""
    lines = _lines(path, repairs)
    plain = any(map(_is_plain, lines))  # of a file of nothing but `#` this is a token
    tabs = any('\t' in line for line in lines if line.strip(' \t') and (_is_plain(line) or not plain))
    comments = _comments(lines, tabs)
    table = _Table(path, lines, tabs, left_out=comments)
    if not next(table.filled(), None):
        return table
    others = _not_words(table)
    table = dataclasses.replace(table, left_out=comments | others)
    repairs['lines of comments left out'] += len(comments)
    repairs['lines of CoNLL-U for several words or none left out'] += len(others)
    repairs['blank lines with spaces'] += sum(bool(line) and not line.strip(' \t') for line in lines)
    if tabs and any('"' in line for line in lines):
        _refuse_quoted(table)
    mixed = tabs and words_and_blanks(columns for _, columns in table.filled())
    table = dataclasses.replace(table, roles=ColumnRoles(0, 1, 2, mixed=mixed))
    form = 'token TAB tag' if tabs else 'token and tag'
    roles = roles_of(Held.of(path, table.filled, asked, form), asked)
    return dataclasses.replace(table, roles=dataclasses.replace(roles, mixed=mixed))


def _refuse_quoted(table: _Table) -> None:
    if unquoted([table.lines[number - 1] for number, _ in table.filled()]):
        number, first = next((n, c) for n, c in table.filled() if any(x.startswith('"') for x in c))
        raise InputError(
            f'{table.path}:{number}: {" ".join(first)[:60]!r} is quoted, as no token is; write the file without '
            'quotation (pandas: quoting=csv.QUOTE_NONE)'
        )


def _comments(lines: Sequence[str], tabs: bool) -> frozenset[int]:
    """The numbers of lines that begin with `#` and are no token: names of documents, texts of sentences.

    In a file of tabs those without a tab; in any file those before a sentence that have another number of columns than
    tokens have, or no tag.
    """
    marked = [number for number, line in enumerate(lines, 1) if line.startswith('#')]
    if not marked:
        return frozenset()

    def columns(line: str) -> list[str]:
        return line.split('\t') if tabs else SPACES.split(line.strip(' '))

    tokens = (line for line in lines if _is_plain(line) and not line.startswith(DOCUMENT))
    width = next((len(columns(line)) for line in tokens), 0)
    found = set[int]()
    for number in marked:
        line, above = lines[number - 1], lines[number - 2] if number > 1 else ''
        before_sentence = number - 1 in found or not above.strip(' \t') or above.startswith(DOCUMENT)
        first, *others = columns(line)
        words = not tabs or ' ' in first  # a token may be # alone
        unlike = 1 + len(others) != width or (words and not any(is_tag(x.strip()) for x in others))
        if (tabs and '\t' not in line) or (before_sentence and unlike):
            found.add(number)
    return frozenset(found)


def _is_plain(line: str) -> bool:
    """Whether a line is neither blank nor perhaps a comment."""
    return line[:1] != '#' and bool(line.strip(' \t'))


def _not_words(table: _Table) -> frozenset[int]:
    """The numbers of the lines of CoNLL-U that stand for several words together (1-2), or for none (8.1)."""
    found = set[int]()
    for number, columns in table.filled():
        if len(columns) != CONLL_U or not IDENTIFIER.fullmatch(columns[0]):
            return frozenset()
        if not columns[0].isdecimal():
            found.add(number)
    return frozenset(found)


def _lines(path: Path, repairs: Counter[str]) -> list[str]:
    """The lines, cut at line feeds only: str.splitlines also cuts at U+0085, U+2028 and others, found in tokens."""
    text = text_of(path)
    repairs['byte-order mark'] += text.startswith(BYTE_ORDER_MARK)
    lines = text.removeprefix(BYTE_ORDER_MARK).split('\n')
    if not lines[-1]:
        lines.pop()
    # How GENIA begins a document.
    if marked := sum(line.startswith(MEDLINE) for line in lines):
        repairs[f'{MEDLINE} read as the start of a document'] += marked
        lines = [DOCUMENT if line.startswith(MEDLINE) else line for line in lines]
    returns = sum(line.endswith('\r') for line in lines)
    repairs['carriage returns at line ends'] += returns
    return [line.rstrip('\r') for line in lines] if returns else lines
