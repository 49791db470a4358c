"""Lines of text files, gzipped or not, by their numbers; and texts out of paragraphs, joined to documents."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.records import Record
from bioptimus_jax.corpus.stored import Advance, opened
from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.text.words import count_words

BYTE_ORDER_MARK = b'\xef\xbb\xbf'
LINES_PER_REPORT = 256
LONGEST_SAMPLE = 2**22  # characters
Lines = Iterator[tuple[int, str]]
Item = TypeVar('Item', tuple[int, str], tuple[int, list[str]])


def byte_lines(path: Path, advance: Advance) -> Iterator[tuple[int, bytes]]:
    """The lines of a file from 1, without a byte order mark."""
    with opened(path, advance) as source:
        for number, line in enumerate(source.stream, 1):
            source.whole()
            yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            if number % LINES_PER_REPORT == 0:
                source.report()
        source.report()


def lines(path: Path, encoding: str, advance: Advance) -> Lines:
    """The lines of a text without their ends. Raises BrokenFile for one in another encoding."""
    for number, line in byte_lines(path, advance):
        try:
            text = line.decode(encoding)
        except UnicodeDecodeError as error:
            raise BrokenFile(f'{path}:{number}: {undecodable(error)}') from error
        yield number, text.rstrip('\r\n')


def peeked(items: Iterator[Item], count: int) -> tuple[list[Item], Iterator[Item]]:
    """The first numbered items, fewer where they are long, and all of them.

    What is broken behind the first ones is said where they have been read.
    """
    sample, size, broken = list[Item](), 0, None
    try:
        while len(sample) < count and size < LONGEST_SAMPLE and (item := next(items, None)) is not None:
            sample.append(item)
            size += len(item[1]) if isinstance(item[1], str) else sum(map(len, item[1]))
    except BrokenFile as error:
        broken = error

    def whole() -> Iterator[Item]:
        yield from sample
        if broken:
            raise broken
        yield from items

    return sample, whole()


def undecodable(error: UnicodeDecodeError) -> str:
    """What is wrong with a line in another encoding, and what to do."""
    return (
        f'is not UTF-8 (byte {error.object[error.start]:#04x} at {error.start}); '
        'convert the file, or set --config.corpus.encoding=latin-1 if that is what it holds'
    )


def paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Texts between empty lines, each in one line."""
    squeezed_lines = (' '.join(line.split()) for _, line in lines)
    for filled, paragraph in itertools.groupby(squeezed_lines, bool):
        if filled:
            yield ' '.join(paragraph)


def joined_documents(texts: Iterable[str], prefix: str, settings: Corpus) -> Iterator[Record]:
    """Documents of `words_per_document` words or more out of texts without ids, one after the other."""
    for number, text in enumerate(_joined(texts, settings.words_per_document)):
        yield Record(f'{prefix}-{number}', text)


def _joined(texts: Iterable[str], words_per_document: int) -> Iterator[str]:
    waiting: list[str] = []
    words = 0
    for text in texts:
        waiting.append(text)
        words += count_words(text)
        if words >= words_per_document:
            yield '\n'.join(waiting)
            waiting, words = [], 0
    if waiting:
        yield '\n'.join(waiting)
