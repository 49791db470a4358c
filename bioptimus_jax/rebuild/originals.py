"""The files that a public set was made from, and what is made of them."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from bioptimus_jax.config.plugins import Plugins
from bioptimus_jax.corpus import tarred
from bioptimus_jax.corpus.stored import opened
from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.inputs import NamedPlace
from bioptimus_jax.sets.sentences import SPLITS, decoded

BUILDERS = Plugins('bioptimus_jax.rebuild.builders', 'BUILDER')
"""A file for each set that can be made from its originals."""

ARCHIVES = ('.tar.gz', '.tgz', '.tar')
ENDINGS = ('.tsv', '.txt', '.json', '.xml', '.tokens', '.ann')
LONGEST, LARGEST = 2**26, 2**29
"""Bytes of one file, and of all that is taken from archives."""


class Originals:
    """The files of a folder and its folders, packed with gzip or not, and those of tar archives among them.

    A file is asked for by the end of its path. Errors are InputError and name the folder or file.
    """

    def __init__(self, folder: Path):
        if not folder.is_dir():
            raise InputError(f'{folder}: no such folder; --from needs the folder of the originals')
        self.folder = folder
        self._found: dict[str, dict[str, Path | bytes]] = {}
        for path in sorted(path for path in folder.rglob('*') if path.is_file()):
            if path.name.endswith(ARCHIVES):
                self._unpack(path)
            else:
                self._add(path.relative_to(folder).as_posix().removesuffix('.gz'), str(path), path)

    def text(self, *names: str) -> tuple[str, str]:
        """The first of these files that is there, as messages call it, and its text."""
        for name in names:
            if len(found := self._found.get(name, {})) > 1:
                raise InputError(f'{self.folder}: {name} is there twice ({" and ".join(found)}); leave one')
            for shown, place in found.items():  # the one, or none
                return shown, decoded(shown, place if isinstance(place, bytes) else _read(place))
        raise InputError(f'{self.folder}: has no {" or ".join(names)} in it')

    def listed(self, *names: str) -> tuple[str, list[str]]:
        """The first of these files that is there, as messages call it, and what it lists, with commas or blanks."""
        shown, text = self.text(*names)
        return shown, text.replace(',', ' ').split()

    def lists(self, what: str) -> Iterator[tuple[str, list[str]]]:
        """What BLURB's list of each split has in it: train_WHAT, dev_WHAT and test_WHAT, as .tsv or .txt."""
        for split, name in zip(SPLITS, ('train', 'dev', 'test'), strict=True):
            yield split, self.listed(f'{name}_{what}.tsv', f'{name}_{what}.txt')[1]

    def has(self, *names: str) -> bool:
        """Whether one of these files is there."""
        return any(name in self._found for name in names)

    def rows(self, name: str, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """FILE:LINE and the columns of every line of a table."""
        shown, text = self.text(name)
        for number, line in enumerate(text.removesuffix('\n').split('\n'), 1):
            row = line.split('\t')
            if len(row) != len(columns):
                wanted = f'{len(columns)}: {", ".join(columns)}'
                raise InputError(f'{shown}:{number}: has {numbered(len(row), "column")}, not {wanted}')
            yield f'{shown}:{number}', row

    def _unpack(self, path: Path) -> None:
        total = 0
        with opened(path) as source:
            for name, content in tarred.files(path, source, ENDINGS, LONGEST):
                total += len(content or b'')
                if content is None or total > LARGEST:
                    raise InputError(
                        f'{path}: {name} is too long; unpack the archive and leave its files alone'
                    )
                self._add(name, f'{path}:{name}', content)

    def _add(self, name: str, shown: str, place: Path | bytes) -> None:
        parts = name.split('/')
        for at in range(len(parts)):
            self._found.setdefault('/'.join(parts[at:]), {})[shown] = place


def _read(path: Path) -> bytes:
    with opened(path, longest=LONGEST) as source:
        return source.stream.read()


@dataclasses.dataclass(frozen=True)
class Example:
    """The columns of a line; with `mentions`, the two entities of its text, the one that begins first before the
    other."""

    columns: tuple[str, ...]
    mentions: tuple[NamedPlace, ...] = ()


@dataclasses.dataclass(frozen=True)
class Made:
    """The examples of train, devel and test, and what is worth saying of them."""

    splits: Mapping[str, Sequence[Example]]
    notes: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Builder:
    """How a set is made. `reads`: which files. `make`: from them and the number of a fold. Raises InputError.

    `checksums`: SHA-256 of the public train, devel and test, or git's of one that is known by that alone; empty where
    there are none. `header`: their first line. `folds`: how many there are, the first of which is the public set.
    `mentions`: the column of the text in which the originals say where entities are, 0 for none. `document`: what
    the last column of an example begins with, where documents are counted: the same in all examples of one.
    """

    reads: str
    make: Callable[[Originals, int], Made]
    checksums: tuple[str, ...] = ()
    header: str = ''
    folds: int = 1
    mentions: int = 0
    document: str = ''


def quoted(where: str, text: str, start: int, end: int, quote: str) -> str:
    """The characters start..end of a text. Raises InputError where they are none."""
    if not 0 <= start < end <= len(text):
        raise InputError(
            f'{where}: {quote[:60]!r} is said to be characters {start} to {end} of a text that has {len(text):,}'
        )
    return text[start:end]
