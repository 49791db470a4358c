"""Files that are never half-written under their final name, JSON, and checksums."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from bioptimus_jax.errors import InputError


@contextlib.contextmanager
def atomic(path: Path, mode: str = 'w') -> Iterator[IO]:
    """Open a file that appears under its name only when complete and on disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f'.{path.name}.{os.getpid()}.tmp')
    try:
        with open(hidden, mode, encoding=None if 'b' in mode else 'utf-8') as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(hidden, path)
    finally:
        hidden.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    with atomic(path) as file:
        json.dump(value, file, indent=1, ensure_ascii=False)
        file.write('\n')


def read_json(path: Path) -> Any | None:
    """The parsed file, or None where there is none. Raises InputError for a damaged one."""
    try:
        return json.loads(path.read_text('utf-8'))
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f'{path}: is damaged ({error}); restore it, or run the stage that made it again'
        ) from error


def write_jsonl(path: Path, records: Iterable[dict[str, Any]]) -> None:
    with atomic(path) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + '\n')


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    with open(path, encoding='utf-8') as file:
        return [json.loads(line) for line in file]


def sha256(path: Path) -> str:
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, independent of key order."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
