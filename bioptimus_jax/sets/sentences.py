"""What a reader of NER files gives: sentences, how many mentions the files mark, and what had to be repaired."""

import dataclasses
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import refuse_pointer

SPLITS = ('train', 'devel', 'test')
NAMES = {'train': ('train',), 'devel': ('devel', 'dev', 'valid', 'validation'), 'test': ('test',)}

WITHOUT_DEVEL = 'devel chooses the epoch and the setting, so of a set without one move a part of train there'
GZIPPED, GZIP_BEGINS = '.gz', b'\x1f\x8b'
MOST_UNPACKED, SMALL_UNPACKED = 200, 2**23
"""No text becomes so many times as long, when it is unpacked, and this many bytes more."""
WITHIN_LINE = re.compile(r'\r(?=[^\r\n])')


@dataclasses.dataclass(frozen=True)
class Exact:
    """The gold standard of a sentence by characters, where its words cannot hold it.

    `words`: those of the sentence, cut where a mention begins or ends within one; the last one may be what a mention
    has beyond the end of the sentence. `tags`: IOB2 of these. `word_of`: the number of the word that each is part of;
    what is beyond the end has the number of words.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    word_of: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words with one tag each, as a model reads and learns them.

    `document` counts documents from 0 (all 0 where the files mark none), `source` is the name of the document. `line`
    of its file where it begins, 0 where the file has no line for it. `marked`: mentions were marked by characters, and
    are compared by characters; `exact` says where they are, unless the tags say it.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    document: int = 0
    line: int = dataclasses.field(default=0, compare=False)
    marked: bool = dataclasses.field(default=False, compare=False)
    exact: Exact | None = None
    source: str = dataclasses.field(default='', compare=False)

    @property
    def scored_words(self) -> tuple[str, ...]:
        """The words that answers are compared on."""
        return self.exact.words if self.exact else self.words

    @property
    def gold(self) -> tuple[str, ...]:
        """The IOB2 tags of `scored_words`: what answers are compared with."""
        return self.exact.tags if self.exact else self.tags

    @property
    def word_of(self) -> tuple[int, ...]:
        """The number of the word that each of `scored_words` is part of, but for what is beyond the end."""
        known = self.exact.word_of if self.exact else range(len(self.words))
        return tuple(number for number in known if number < len(self.words))

    @classmethod
    def joined(
        cls, parts: tuple[str, ...], gold: tuple[str, ...], word_of: tuple[int, ...], document: int
    ) -> 'Sentence':
        """The sentence of these `scored_words`, `gold` and `word_of`, to be read and scored; what is learned of it is
        not known."""
        of_word = itertools.groupby(zip(word_of, parts, strict=False), key=lambda pair: pair[0])
        words = tuple(''.join(part for _, part in pairs) for _, pairs in of_word)
        beyond = (len(words),) * (len(parts) - len(word_of))
        return cls(words, (), document, marked=True, exact=Exact(parts, gold, (*word_of, *beyond)))

    def retagged(self, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> 'Sentence':
        """The sentence with other tags, those by characters too."""
        exact = self.exact and dataclasses.replace(self.exact, tags=change(self.exact.tags))
        return dataclasses.replace(self, tags=change(self.tags), exact=exact)

    def laid_out(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Tags of `scored_words` from tags of `words`: the parts of a word go on with its tag."""
        if self.exact is None:
            return tuple(tags)
        found, before = [], -1
        for word in self.exact.word_of:
            tag = tags[word] if word < len(tags) else 'O'
            found.append(f'I{tag[1:]}' if word == before and tag != 'O' else tag)
            before = word
        return tuple(found)


@dataclasses.dataclass(frozen=True)
class SplitReading:
    """One split, its tags in the scheme of its files.

    `mentions` are counted in the files, apart from any sentence; `left_out` of them are in no sentence, since they
    overlap or repeat others. `repairs`: in words, what was not as it should be -> how often. `cut`: the rule of
    `cutting.CUTS` that gives these words from text, '' where the words themselves have to tell. `columns`: in words,
    which of several were read. `form`: the exact name of the form, where what a file holds tells it.
    """

    sentences: tuple[Sentence, ...]
    mentions: int
    repairs: Mapping[str, int]
    left_out: int = 0
    cut: str = ''
    columns: str = ''
    form: str = ''


def text_of(path: Path) -> str:
    """The text of a file, line ends and byte-order mark as they are. Raises InputError as `decoded` does."""
    return decoded(path, bytes_of(path))


def plain_name(path: Path) -> str:
    """The name of a file without the .gz behind it."""
    return path.name.removesuffix(GZIPPED)


def plain_suffix(path: Path) -> str:
    """The ending of a file before .gz."""
    return Path(plain_name(path)).suffix


def bytes_of(path: Path) -> bytes:
    """What a file holds, unpacked where it is compressed with gzip. Raises InputError."""
    try:
        refuse_pointer(path)
        content = path.read_bytes()
        return unpacked(path, content) if content.startswith(GZIP_BEGINS) else content
    except OSError as error:
        raise InputError(
            f'{path}: cannot be read ({error.strerror or error}); check the file and its rights'
        ) from error


def unpacked(place: Path | str, content: bytes) -> bytes:
    """What is compressed with gzip. Raises InputError where it is cut off, damaged, or longer than any text becomes."""
    most = SMALL_UNPACKED + MOST_UNPACKED * len(content)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            found = packed.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f'{place}: is cut off or damaged gzip ({error}); fetch it again') from error
    if len(found) > most:
        raise InputError(f'{place}: unpacks to more than {MOST_UNPACKED} times its size, which no text does')
    return found


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


def of_devel(path: Path) -> str:
    """The end of a message about a file without examples: what to do where it is devel, else ''."""
    return f'; {WITHOUT_DEVEL}' if re.split('[.-]', path.name)[0] in NAMES['devel'] else ''
