"""Arrays of work that takes long, kept on disk with a key that says what they are of."""

import contextlib
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.storage.files import atomic
from bioptimus_jax.surgery.reading import StateReading


def key_of(reading: StateReading, parameters: Mapping[str, np.ndarray], *facts: object) -> str:
    """SHA-256 of everything that decides the sums: the reading, the weights by path, and what else is given."""
    sha = hashlib.sha256(repr((facts, list(parameters), [len(w) for w in reading.windows])).encode())
    columns = (reading.window, reading.position, reading.target, reading.weight, reading.contexts)
    for values in (*reading.windows, *columns, *parameters.values()):
        sha.update(np.ascontiguousarray(values).data)
    return sha.hexdigest()


def save(path: Path, key: str, **arrays: Any) -> None:
    """Keep the arrays."""
    with atomic(path, 'wb') as file:
        np.savez(file, key=np.array(key), **arrays)


def load(path: Path, key: str) -> dict[str, np.ndarray] | None:
    """The arrays by name; None where there are none of that key, or the file is damaged."""
    damage = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
    with contextlib.suppress(*damage), open(path, 'rb') as file:
        saved = np.load(file, allow_pickle=False)
        if str(saved['key']) == key:
            # All are read here: damage in the middle of the file shows only then.
            return {name: saved[name] for name in saved.files}
    return None
