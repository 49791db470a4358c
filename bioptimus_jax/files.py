"""Files that are never half-written under their final name, JSON, and checksums."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from bioptimus_jax.errors import ConfigError, InputError


def temporary(path: Path) -> Path:
    """A hidden name beside `path` that no other process uses, on this or another host."""
    return path.with_name(f'.{path.name}.{socket.gethostname()}-{os.getpid()}.tmp')


REMEMBERED_BYTES = 4_000_000  # smaller files are read faster than looked up


@contextlib.contextmanager
def atomic(path: Path, mode: str = 'w') -> Iterator[IO]:
    """Open a file that appears under its name only when complete and on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = temporary(path)
    try:
        with open(hidden, mode, encoding=None if 'b' in mode else 'utf-8') as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder to write files into, which takes the place of `folder` when they are complete and on disk."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    for left_by_a_kill in folder.parent.glob(f'.{folder.name}.*.tmp'):
        shutil.rmtree(left_by_a_kill)
    hidden = temporary(folder)
    hidden.mkdir()
    try:
        yield hidden
        for file in hidden.iterdir():
            with open(file, 'rb') as written:
                os.fsync(written.fileno())
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(hidden, folder)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


@contextlib.contextmanager
def alone(lock: Path, whose: str) -> Iterator[None]:
    """Hold a lock file. Raises ConfigError, which begins with `whose`, while another process holds it."""
    with open(lock, 'w') as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f'{whose}; wait for it or stop it') from error
        yield


def write_json(path: Path, value: Any) -> None:
    """Write a JSON value, which appears complete or not at all."""
    with atomic(path) as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write('\n')


def read_json(path: Path) -> Any | None:
    """The parsed file, or None where there is none. Raises InputError for a damaged one."""
    try:
        return json.loads(path.read_text('utf-8'))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f'{path}: is damaged ({error}); restore it, or run the stage that made it again'
        ) from error


def write_jsonl(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records as JSON, one a line, which appear complete or not at all."""
    with atomic(path) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + '\n')


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """The records of a file of JSON lines. Raises OSError, and ValueError for a line that is no JSON."""
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def sha256(path: Path) -> str:
    """The SHA-256 of a file in hexadecimal. Raises OSError."""
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


class Checksums:
    """SHA-256 of files, remembered for large ones in a file by their size and time of change."""

    def __init__(self, path: Path):
        self.path = path
        self.known: dict[str, list[Any]] = {}
        self.changed = False
        with contextlib.suppress(InputError):  # damaged: it is only a memory
            self.known = read_json(path) or {}

    def sha256(self, file: Path, advance: Callable[[float], None] = lambda megabytes: None) -> str:
        """The checksum; `advance` is told the file's size once it is read, and nothing of one that was remembered."""
        stat, name = file.stat(), str(file.absolute())
        found = self.known.get(name)
        if found and found[:2] == [stat.st_size, stat.st_mtime_ns]:
            return found[2]
        checksum = sha256(file)
        if stat.st_size >= REMEMBERED_BYTES:
            self.known[name] = [stat.st_size, stat.st_mtime_ns, checksum]
            self.changed = True
            advance(stat.st_size / 1e6)
        return checksum

    def save(self) -> None:
        if self.changed:
            write_json(self.path, self.known)


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
