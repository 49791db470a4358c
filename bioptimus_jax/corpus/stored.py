"""Stored files: their MD5, and their bytes as a stream, gzipped or not, with one message for each way to be damaged."""

import contextlib
import gzip
import hashlib
import io
import re
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from bioptimus_jax.errors import BrokenFile
from bioptimus_jax.storage.files import refuse_pointer

# No text comes near these: PubMed's files unpack to 4 to 9 times their size, gzip's own limit is 1,032.
MOST_UNPACKED = 200
SMALL_UNPACKED = 2**23
LONGEST_LINE = 2**28
BUFFER_BYTES = 2**17
Advance = Callable[[int], None]  # is told the stored bytes that were consumed

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
    """The MD5 of an open file in hexadecimal."""
    return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


class UnpackedFile(io.RawIOBase):
    """The unpacked `stream` of a file, as long as it can be text that people wrote.

    Whoever reads calls `whole` after each line or record, and `report`, which tells `advance` the stored bytes that
    were read since the last time. Reading raises BrokenFile where more than `longest` bytes come without a call of
    `whole`, and where a packed file has become more than MOST_UNPACKED times as long as what was read of it.
    """

    def __init__(self, path: Path, stored: BinaryIO, advance: Advance, longest: int):
        self.path, self.stored, self.advance, self.longest = path, stored, advance, longest
        self.packed = path.name.endswith('.gz')
        self.bytes = cast(BinaryIO, gzip.GzipFile(fileobj=stored)) if self.packed else stored
        self.came = self.ended = self.reported = 0
        self.stream = io.BufferedReader(self, BUFFER_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; returns the number of bytes."""
        count = self.bytes.readinto(buffer)  # type: ignore[attr-defined]
        self.came += count
        if self.packed and self.came > SMALL_UNPACKED + MOST_UNPACKED * self.stored.tell():
            raise BrokenFile(
                f'{self.path}: unpacks to more than {MOST_UNPACKED} times its size, which no text does; '
                'take it out of the inputs'
            )
        # What the buffer has read ahead counts as ended too, so a line may exceed `longest` by one buffer.
        if self.came - self.ended > self.longest:
            raise BrokenFile(
                f'{self.path}: has a line or record longer than {self.longest // 2**20} MiB; cut it, or take the '
                'file out of the inputs'
            )
        return count

    def whole(self) -> None:
        """A line or record has come to its end."""
        self.ended = self.came

    def report(self) -> None:
        position = self.stored.tell()
        self.advance(position - self.reported)
        self.reported = position

    def finish(self) -> None:
        """Report what is left of the file, which was read otherwise."""
        self.stored.seek(0, io.SEEK_END)
        self.report()


@contextlib.contextmanager
def opened(
    path: Path, advance: Advance = lambda stored_bytes: None, longest: int = LONGEST_LINE
) -> Iterator[UnpackedFile]:
    """A file as a stream of lines or records of at most `longest` bytes.

    Raises InputError where it cannot be read, BrokenFile where it is empty, a cut-off or damaged gzip file, or a bomb.
    """
    try:
        refuse_pointer(path)
        with open(path, 'rb') as stored:
            size = path.stat().st_size
            if not size:
                raise BrokenFile(f'{path}: is empty; fetch it again or take it out of the inputs')
            try:
                yield UnpackedFile(path, stored, advance, longest)
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
