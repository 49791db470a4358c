"""Files with a token and its tag on every line, a blank line between sentences, `-DOCSTART-` before a document.

Columns stand apart by tabs or, in a file without a tab, by spaces (CoNLL). The token is the first, the tag the last;
what is between is not read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.sentences import Reading, Sentence, text_of
from bioptimus_jax.sets.tags import OUTSIDE, is_tag

DOCUMENT = '-DOCSTART-'
BYTE_ORDER_MARK = '\ufeff'
SPACES = re.compile(' +')

Row = tuple[int, str, str]  # number of the line, token, tag


def read_columns(path: Path) -> Reading:
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

    for row in _rows(path, repairs):
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
        raise InputError(f'{path}: holds no sentence; expected lines of token TAB tag')
    odd = {word for word in set().union(*(s.words for s in sentences)) if word.split() != [word]}
    if odd:
        repairs['words with white space in them'] = sum(word in odd for s in sentences for word in s.words)
    return Reading(tuple(sentences), count_mentions(path), +repairs)


def count_mentions(path: Path) -> int:
    """Mentions counted straight from the lines of a file, in whatever scheme, apart from any reading of sentences.

    A mention begins at a letter for a beginning or a single word, and at any other that continues nothing of its type
    (as conlleval reads it).
    """
    # Nothing is shared with `_rows`: `require_all_mentions` holds one against the other.
    lines = path.read_bytes().split(b'\n')
    separator = b'\t' if any(b'\t' in line for line in lines if line.strip(b' \t\r')) else b' '

    def tags() -> Iterator[str]:
        decoded: dict[bytes, str] = {}
        for line in lines:
            _, between, tag = line.strip(b'\r ').rpartition(separator)
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


def first_lines(paths: Iterable[Path]) -> dict[str, str]:
    """FILE:LINE where each kind of tag, without its type, is met first."""
    found: dict[str, str] = {}
    for path in paths:
        for row in _rows(path, Counter()):
            if row is not None and row[1] != DOCUMENT and row[2] != OUTSIDE:
                found.setdefault(row[2][:2], f'{path}:{row[0]}')
    return found


def line_of(path: Path, kind: str) -> str:
    """FILE:LINE where a tag of this type is met first."""
    numbers = (row[0] for row in _rows(path, Counter()) if row is not None and row[2][2:] == kind)
    return f'{path}:{next(numbers)}'


def _rows(path: Path, repairs: Counter[str]) -> Iterator[Row | None]:
    """Lines with token and tag, None for a blank line."""
    lines = _lines(path, repairs)
    tabs = any('\t' in line for line in lines if line.strip(' \t'))
    form = 'token TAB tag' if tabs else 'token and tag'
    width, known = 0, set[str]()
    for number, line in enumerate(lines, 1):
        columns = line.split('\t') if tabs else SPACES.split(line.strip(' '))
        # Nearly every line: its tag was checked before. A line with '-' may begin a document.
        if len(columns) == width and columns[-1] in known and columns[0] and line[0] != '-':
            yield number, columns[0], columns[-1]
        elif not line.strip(' \t'):
            repairs['blank lines with spaces'] += bool(line)
            yield None
        elif columns[0].startswith(DOCUMENT):
            yield number, DOCUMENT, OUTSIDE
        else:
            width = width or len(columns)
            tag = columns[-1].strip()
            _check(f'{path}:{number}', form, columns, width, tag)
            if tag == columns[-1]:
                known.add(tag)
            repairs['blanks around tags'] += tag != columns[-1]
            yield number, columns[0], tag


def _check(where: str, form: str, columns: list[str], width: int, tag: str) -> None:
    if len(columns) < 2 or len(columns) != width or not columns[0]:
        count = f'{len(columns)} column{"s" * (len(columns) != 1)}'
        earlier = f' (lines before have {width})' if len(columns) != width else ''
        empty = ', the token is empty' if not columns[0] else ''
        raise InputError(
            f'{where}: expected {form}, found {count}{earlier} in {" ".join(columns)[:60]!r}{empty}'
        )
    if not is_tag(tag):
        raise InputError(
            f'{where}: unknown tag {tag[:60]!r}; tags are O, B-TYPE, I-TYPE and those of IOBES, BILOU and BMES'
        )


def _lines(path: Path, repairs: Counter[str]) -> list[str]:
    """The lines, cut at line feeds only: str.splitlines also cuts at U+0085, U+2028 and others, found in tokens."""
    text = text_of(path)
    repairs['byte-order mark'] += text.startswith(BYTE_ORDER_MARK)
    lines = text.removeprefix(BYTE_ORDER_MARK).split('\n')
    if not lines[-1]:
        lines.pop()
    returns = sum(line.endswith('\r') for line in lines)
    repairs['carriage returns at line ends'] += returns
    return [line.rstrip('\r') for line in lines] if returns else lines
