"""Files of a tar archive one after the other, as a stream: nothing is unpacked, and no name in it leads anywhere.

Written out, as the standard library's reader takes headers of any length into memory.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from bioptimus_jax.corpus.stored import UnpackedFile
from bioptimus_jax.errors import BrokenFile

BLOCK = 512
LONGEST_HEADER = 2**20  # of what GNU and POSIX write before a file with a long name
BYTES_PER_SKIP = 2**20
# Types of an entry, POSIX.1-2017, pax, "ustar Interchange Format": files; links, devices and folders, without content.
FILES, EMPTY = b'\0' + b'07', b'123456'
GNU_NAME, PAX = b'L', b'x'
OCTAL = re.compile(b'[0-7]+')
PAX_NAME = re.compile(rb'\d+ path=([^\n]*)\n')


def files(
    path: Path, source: UnpackedFile, endings: tuple[str, ...], longest: int
) -> Iterator[tuple[str, bytes | None]]:
    """`(name, content)` of the files that end so, in order; no content where it is longer than `longest`.

    Raises BrokenFile for what is not a tar archive, or is cut off.
    """
    name, number = '', 0
    while any(header := _read(path, source, BLOCK)):
        number += 1
        kind, size = header[156:157], _size(path, number, header)
        padding = -size % BLOCK
        if kind in (GNU_NAME, PAX):
            name = _long_name(path, kind, _read(path, source, min(size, LONGEST_HEADER)), size) or name
        else:
            name = name or _text(header[:100])
            if kind in FILES and name.endswith(endings):
                content = _read(path, source, size) if size <= longest else None
                yield name, content
                padding += size if content is None else 0
            elif kind in EMPTY:
                padding = 0
            else:
                padding += size
            name = ''
        _skip(path, source, padding)
    while source.stream.read(BYTES_PER_SKIP):  # so that the sum at the end of a gzip file is checked
        source.whole()
    source.report()


def _size(path: Path, number: int, header: bytes) -> int:
    """Bytes of an entry's content, from a header that agrees with its sum."""
    written, wanted = header[124:136], header[148:156].strip(b' \0')
    octal = b'0' + written.strip(b' \0')
    large = written[0] == 0x80  # then a binary number, as sizes from 8 GiB on are
    # The field of the sum counts as blanks in the sum, POSIX says.
    found = sum(header) - sum(header[148:156]) + 8 * ord(' ')
    if re.fullmatch(b'[0-7]{1,7}', wanted) and int(wanted, 8) == found and (large or OCTAL.fullmatch(octal)):
        return int.from_bytes(written[1:]) if large else int(octal, 8)
    raise BrokenFile(f'{path}: is not a tar archive, or is damaged at entry {number}; fetch it again')


def _long_name(path: Path, kind: bytes, content: bytes, size: int) -> str:
    """The name that stands before an entry whose own field is too short for it; empty where none does."""
    if len(content) < size:
        raise BrokenFile(
            f'{path}: has a name longer than {LONGEST_HEADER // 2**20} MiB; take it out of the inputs'
        )
    found = PAX_NAME.search(content) if kind == PAX else None
    return _text(found[1] if found else b'' if kind == PAX else content)


def _text(field: bytes) -> str:
    return field.partition(b'\0')[0].decode('utf-8', 'replace')


def _read(path: Path, source: UnpackedFile, size: int) -> bytes:
    content = source.stream.read(size)
    source.whole()
    if len(content) < size:
        raise BrokenFile(f'{path}: is a cut-off tar archive; fetch it again')
    return content


def _skip(path: Path, source: UnpackedFile, size: int) -> None:
    while size:
        size -= len(_read(path, source, min(size, BYTES_PER_SKIP)))
