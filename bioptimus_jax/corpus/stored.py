"""Stored files: their MD5, and their bytes as a stream, gzipped or not, with one message for each way to be damaged."""

import contextlib
import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from bioptimus_jax.errors import BrokenFile

# `MD5(pubmed24n0001.xml.gz)= <hex>`, as PubMed writes it, and `<hex>  name`, as md5sum does.
CHECKSUM = re.compile(r'(?:^|=)\s*([0-9a-f]{32})\b', re.IGNORECASE | re.MULTILINE)


def check_md5(path: Path) -> None:
    """Compare a file with the checksum in the `.md5` beside it, where there is one. Raises BrokenFile."""
    beside = md5_beside(path)
    try:
        text = beside.read_text('ascii', errors='replace')
        wanted = md5_in(text)
        with open(path, 'rb') as file:
            found = md5_of(file)
    except FileNotFoundError:
        return  # where it is the file itself that is missing, opening it says so
    except OSError as error:
        raise unreadable(path, error) from error
    if not wanted:
        raise BrokenFile(f'{beside}: holds no MD5 checksum; fetch it again, or delete it')
    if wanted != found:
        raise BrokenFile(f'{path}: its MD5 is {found}, but {beside.name} says {wanted}; fetch both again')


def md5_beside(path: Path) -> Path:
    """Where a file's checksum lies, if it has one."""
    return path.with_name(f'{path.name}.md5')


def md5_in(text: str) -> str:
    """The checksum that the text of a `.md5` holds, in small letters; empty if it holds none, or several."""
    found = CHECKSUM.findall(text)
    return found[0].lower() if len(found) == 1 else ''


def md5_of(file: BufferedReader) -> str:
    return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


class Source:
    """The decompressed `stream` of a file; `report` tells how many stored bytes were read since the last time."""

    def __init__(self, path: Path, stored: BinaryIO, advance: Callable[[int], None]):
        packed = path.name.endswith('.gz')
        self.stream = cast(BinaryIO, gzip.GzipFile(fileobj=stored)) if packed else stored
        self._stored, self._advance, self._reported = stored, advance, 0

    def report(self) -> None:
        position = self._stored.tell()
        self._advance(position - self._reported)
        self._reported = position


@contextlib.contextmanager
def opened(path: Path, advance: Callable[[int], None] = lambda stored_bytes: None) -> Iterator[Source]:
    """A file as a stream.

    Raises InputError where it cannot be read, BrokenFile where it is empty or a cut-off or damaged gzip file.
    """
    try:
        with open(path, 'rb') as stored:
            size = path.stat().st_size
            if not size:
                raise BrokenFile(f'{path}: is empty; fetch it again or take it out of the inputs')
            try:
                yield Source(path, stored, advance)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise BrokenFile(
                    f'{path}: is a cut-off or damaged gzip file ({error}; {stored.tell():,} of {size:,} bytes read); '
                    'fetch it again'
                ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> BrokenFile:
    """What to raise where the system does not give a file."""
    return BrokenFile(f'{path}: cannot be read ({error.strerror or error}); check the file and its rights')
