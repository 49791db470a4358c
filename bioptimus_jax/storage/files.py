"""Files that are never half-written under their final name, JSON, and checksums."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import socket
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

from bioptimus_jax.errors import ConfigError, InputError


def temporary(path: Path) -> Path:
    """A hidden name beside `path` that no other process uses, on this or another host."""
    return path.with_name(f'.{path.name}.{socket.gethostname()}-{os.getpid()}.tmp')


def by_numbers(path: Path | str) -> tuple[tuple[str | int, ...], str]:
    """A key that sorts paths by the numbers in them: `batch_2.xml` before `batch_10.xml`."""
    parts = NUMBER.split(str(path))
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts)), str(path)


JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON file, whose keys the format of the file decides: another program's, or that of a `Record`."""
REMEMBERED_BYTES = 4_000_000  # smaller files are read faster than looked up
NUMBER = re.compile('([0-9]{1,1000})')  # Python makes no number of many thousands of digits
LEFT = re.compile(r'\..+\.[^/]+-\d+\.tmp')  # a name that `temporary` gives
SEAL = 'seal'
POINTER = b'version https://git-lfs.github.com/spec/'
LOOK_SECONDS = 0.2
"""How long a lock is tried for: `is_held` has it for a moment."""
REMEDY = 'restore it, or rerun the stage that made it'


def is_left(path: Path) -> bool:
    """Whether its name is one that `temporary` gives: where nobody works, a kill has left it."""
    return LEFT.fullmatch(path.name) is not None


@contextlib.contextmanager
def complete(path: Path) -> Iterator[Path]:
    """The name of a hidden, empty file for a writer that opens its file itself.

    What is there at the end gets the name `path`, on disk and with the mode that the umask gives new files, or never.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = temporary(path)
    try:
        with open(hidden, 'wb') as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        yield hidden
        # The content must be on disk before the name: a power cut could keep the renaming and lose the bytes.
        _settle(hidden, mode)
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)


def _settle(path: Path, mode: int) -> None:
    """Put a file on disk, with that mode."""
    with open(path, 'rb') as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) != mode:
            path.chmod(mode)  # safetensors puts a file of its own there, which only its owner may read
        os.fsync(file.fileno())


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder to write files into, which takes the place of `folder` when they are complete and on disk.

    The files get the mode that the umask gives new ones. What was there before stays until then.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_by_a_kill in folder.parent.glob(f'.{folder.name}.*.tmp'):
        shutil.rmtree(left_by_a_kill)
    hidden, before = temporary(folder), temporary(folder.with_name(f'{folder.name}.old'))
    hidden.mkdir()
    # A new file's mode is a new folder's without the right to enter.
    mode = stat.S_IMODE(hidden.stat().st_mode) & 0o666
    try:
        yield hidden
        for file in hidden.rglob('*'):
            if file.is_file():
                _settle(file, mode)
        # A folder that holds files cannot be replaced in one step; a kill between the two leaves no folder, never half.
        if folder.exists():
            os.replace(folder, before)
        os.replace(hidden, folder)
        shutil.rmtree(before, ignore_errors=True)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Remove it in one step, if it is there: a kill leaves no half of it under its name."""
    hidden = temporary(folder)
    with contextlib.suppress(FileNotFoundError):
        os.replace(folder, hidden)
    shutil.rmtree(hidden, ignore_errors=True)


@contextlib.contextmanager
def atomic(path: Path, mode: str = 'w') -> Iterator[IO]:
    """Open a file that appears under its name only when complete and on disk."""
    with complete(path) as hidden, open(hidden, mode, encoding=None if 'b' in mode else 'utf-8') as file:
        yield file


@contextlib.contextmanager
def alone(lock: Path, holder: str) -> Iterator[None]:
    """Hold a lock file, then remove it. Raises ConfigError, beginning with `holder`, while another process holds it."""
    given_up = time.monotonic() + LOOK_SECONDS
    while True:
        with open(lock, 'w') as file:
            if not locks(file):
                if time.monotonic() < given_up:
                    time.sleep(LOOK_SECONDS / 10)
                    continue
                raise ConfigError(f'{holder}; wait for it or stop it')
            # The holder removes the file when it leaves: whoever opened it before has then locked a file without a
            # name, while a third process can make and lock a new one. So both would work.
            if not _is_open_as(file, lock):
                continue
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
            return


def is_held(lock: Path) -> bool:
    """Whether a process holds a lock file. Nothing is made; who takes the lock in this moment waits for it to pass."""
    try:
        with open(lock, 'rb') as file:
            return not locks(file, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def locks(file: IO, how: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file, until it is closed, unless another process holds it; whether it is locked now."""
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_open_as(file: IO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def shown_path(folder: Path) -> str:
    """Relative to here where it lies below."""
    inside = folder.resolve().is_relative_to(Path.cwd())
    return os.path.relpath(folder) if inside else str(folder)


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next(p for p in (path, *path.absolute().parents) if os.path.exists(p))


def absolute(path: Path) -> Path:
    """The path from the root on, without `..`; links keep their names."""
    path = path.absolute()
    if path.name == '..':
        return path.resolve()
    return absolute(path.parent) / path.name if '..' in path.parts else path


def bytes_below(folder: Path) -> int:
    """Bytes of all files in a folder, however deep; those that are gone before they are counted count nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def write_json(path: Path, value: Any) -> None:
    """Write a JSON value, which appears complete or not at all."""
    with atomic(path) as file:
        file.write(json_text(value))


def json_text(value: Any) -> str:
    """A JSON value as `write_json` writes it."""
    return json.dumps(value, indent=1, ensure_ascii=False) + '\n'


def read_json(path: Path, remedy: str = REMEDY) -> Any | None:
    """The parsed file, or None where there is none. Raises InputError for a damaged one."""
    try:
        return json.loads(path.read_text('utf-8'))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, RecursionError, IsADirectoryError) as error:  # no JSON, no UTF-8, too deep
        refuse_pointer(path)
        raise InputError(f'{path}: is damaged ({error}); {remedy}') from error


def refuse_pointer(path: Path) -> None:
    """Raise InputError for what Git LFS leaves in the place of a file that was not fetched; nothing for no file."""
    with contextlib.suppress(OSError), open(path, 'rb') as file:
        if file.read(len(POINTER)) == POINTER:
            raise InputError(
                f'{path}: is a pointer of Git LFS, not the file itself; run `git lfs pull` where it was cloned, or '
                'download the file'
            )


def write_sealed(path: Path, record: JsonObject) -> None:
    """Write a JSON object with the digest of all else in it, by which `read_sealed` knows it again."""
    plain = json.loads(json.dumps(record))  # as it will be read
    write_json(path, {**plain, SEAL: digest({n: v for n, v in plain.items() if n != SEAL})})


def read_sealed(path: Path, remedy: str = REMEDY) -> JsonObject | None:
    """The object of `write_sealed` without its seal, or None where there is no file; one made by hand may have no seal.

    Raises InputError for anything else.
    """
    record = read_json(path, remedy)
    if record is None:
        return None
    if not isinstance(record, dict):
        raise InputError(f'{path}: is damaged (no object); {remedy}')
    if record.pop(SEAL, None) not in (None, digest(record)):
        raise InputError(f'{path}: is damaged (it does not agree with its seal); {remedy}')
    return record


def write_jsonl(path: Path, records: Iterable[JsonObject]) -> None:
    """Write records as JSON, one a line, which appear complete or not at all."""
    with atomic(path) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + '\n')


def read_jsonl(path: Path, remedy: str = REMEDY) -> list[JsonObject]:
    """The records of a file of JSON lines. Raises OSError, and InputError that names a damaged line."""
    return [record for _, record in numbered_jsonl(path, remedy)]


def numbered_jsonl(path: Path, remedy: str = REMEDY) -> Iterator[tuple[int, JsonObject]]:
    """Line numbers, from 1, and records; blank lines have none. Raises as `read_jsonl`."""
    # In bytes a line ends at its newline alone; `splitlines` of a text also ends it at U+2028, which JSON may hold.
    with open(path, 'rb') as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError('no object')
            except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, too deep
                raise InputError(f'{path}, line {number}: is damaged ({error}); {remedy}') from error
            yield number, record


def intact_jsonl(path: Path) -> list[JsonObject]:
    """The records that a log of JSON lines still holds: a kill may cut lines off. None where there is no file."""
    records = []
    with contextlib.suppress(FileNotFoundError), open(path, 'rb') as file:
        for line in file:
            with contextlib.suppress(ValueError, RecursionError):
                records.append(json.loads(line))
    return [record for record in records if isinstance(record, dict)]


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal. Raises OSError."""
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


class Checksums:
    """SHA-256 of files, remembered for large ones in a file by their size and time of change."""

    def __init__(self, path: Path):
        self.path = path
        self.known: JsonObject = {}
        self.changed = False
        with contextlib.suppress(InputError):  # damaged: it is only a memory
            self.known = read_sealed(path) or {}

    def sha256(self, file: Path, advance: Callable[[float], None] = lambda megabytes: None) -> str:
        """The checksum; `advance` is told the file's size once it is read, and nothing of one that was remembered."""
        if found := self._remembered(file):
            return found
        status = file.stat()
        checksum = sha256(file)
        if status.st_size >= REMEMBERED_BYTES:
            self.known[str(file.absolute())] = [status.st_size, status.st_mtime_ns, checksum]
            self.changed = True
            advance(status.st_size / 1e6)
        return checksum

    def at_sight(self, file: Path) -> str | None:
        """The checksum of a small file, or of one that is as it was when it was last read; None: nobody knows."""
        if file.stat().st_size < REMEMBERED_BYTES:
            return sha256(file)
        return self._remembered(file)

    def has_other_size(self, file: Path, checksum: str | None) -> bool:
        """Whether the file had that checksum when it was last read, and another size than now."""
        *known, last = self.known.get(str(file.absolute())) or [None]
        return last == checksum and file.stat().st_size not in known[:1]

    def _remembered(self, file: Path) -> str | None:
        status, (*known, last) = file.stat(), self.known.get(str(file.absolute())) or [None]
        return last if known == [status.st_size, status.st_mtime_ns] else None

    def save(self) -> None:
        if self.changed:
            write_sealed(self.path, self.known)
            self.changed = False


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
