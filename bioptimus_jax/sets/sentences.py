"""What a reader of NER files gives: sentences, how many mentions the files mark, and what had to be repaired."""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.errors import InputError

SPLITS = ('train', 'devel', 'test')
NAMES = {'train': ('train',), 'devel': ('devel', 'dev', 'valid', 'validation'), 'test': ('test',)}

WITHIN_LINE = re.compile(r'\r(?=[^\r\n])')


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words with one tag each; `document` counts documents from 0 (all 0 where the files mark none).

    `line` of its file where it begins, 0 where the file has no line for it.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    document: int = 0
    line: int = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass(frozen=True)
class Reading:
    """One split, its tags in the scheme of its files.

    `mentions` are counted in the files, apart from any sentence. `repairs`: in words, what was not as it should be
    -> how often. Nothing is left out that is not counted there. `columns`: in words, which of several were read.
    """

    sentences: tuple[Sentence, ...]
    mentions: int
    repairs: Mapping[str, int]
    columns: str = ''


def text_of(path: Path) -> str:
    """The text of a file, line ends and byte-order mark as they are. Raises InputError as `decoded` does."""
    return decoded(path, bytes_of(path))


def bytes_of(path: Path) -> bytes:
    """What a file holds. Raises InputError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f'{path}: cannot be read ({error.strerror or error}); check the file and its rights'
        ) from error


def decoded(path: Path | str, content: bytes) -> str:
    """The text that a file holds. Raises InputError with file and line, and for lines that end with carriage returns
    alone."""
    try:
        text = content.decode('utf-8')
    except UnicodeDecodeError as error:
        number = content.count(b'\n', 0, error.start) + 1
        raise InputError(f'{path}:{number}: is not UTF-8 ({error.reason}); convert the file') from error
    alone = len(WITHIN_LINE.findall(text)) if '\r' in text else 0
    if alone and alone >= text.count('\n'):
        raise InputError(
            f'{path}: its lines end with carriage returns alone, as in old Mac OS; convert them to line feeds'
        )
    return text


def split_called(name: str) -> str:
    """The split that a name means, as devel for dev. Raises InputError."""
    for split, names in NAMES.items():
        if name in names:
            return split
    raise InputError(
        f'{name!r} is not a split; known: {", ".join(n for names in NAMES.values() for n in names)}'
    )
