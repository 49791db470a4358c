"""Sums of a reading that is not yet encoded to its end, kept on disk with a key that says what they are of."""

import contextlib
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bioptimus_jax.files import atomic
from bioptimus_jax.surgery.reading import Reading


def key_of(reading: Reading, parameters: Mapping[str, np.ndarray], *facts: object) -> str:
    """SHA-256 of everything that decides the sums: the reading, the weights by path, and what else is given."""
    sha = hashlib.sha256(repr((facts, list(parameters), [len(w) for w in reading.windows])).encode())
    columns = (reading.window, reading.position, reading.target, reading.weight, reading.contexts)
    for values in (*reading.windows, *columns, *parameters.values()):
        sha.update(np.ascontiguousarray(values).data)
    return sha.hexdigest()


def save(path: Path, key: str, sums_NxD: np.ndarray, batches: int) -> None:
    """Keep the sums over the first `batches` batches."""
    with atomic(path, 'wb') as file:
        np.savez(file, key=np.array(key), sums=sums_NxD, batches=batches)


def load(path: Path, key: str) -> tuple[np.ndarray, int] | None:
    """Sums and number of batches; None where there are none of that key, or the file is damaged."""
    damage = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
    with contextlib.suppress(*damage), open(path, 'rb') as file:
        saved = np.load(file, allow_pickle=False)
        if str(saved['key']) == key:
            return saved['sums'], int(saved['batches'])
    return None
