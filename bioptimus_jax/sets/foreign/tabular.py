"""Tables: the splits of a data set of the hub, or of a folder that `datasets` saved, in Parquet or Arrow.

A row is a record with keys, as an object of JSON is one. Numbers become the names that the table gives its labels.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow

from bioptimus_jax.errors import InputError
from bioptimus_jax.progress.console import shortened
from bioptimus_jax.sets.foreign import flat
from bioptimus_jax.sets.foreign.items import Context, Item, Keys, Source
from bioptimus_jax.sets.foreign.jsons import dialect_of
from bioptimus_jax.sets.sentences import NAMES
from bioptimus_jax.storage import tables

DATA = 'data'
"""The folder of a data set of the hub that holds its Parquet files, mostly."""
FORM = 'table'
MORE = ('passages', 'ents', 'cats')
"""Columns that a form of its own has."""


def candidates(folder: Path, split: str) -> list[Path]:
    """The first file of every table in a folder that may be this split."""
    found = [tables.first_of(folder, name) for name in NAMES[split]]
    return [path for path in found if path]


def files_of(first: Path) -> list[Path]:
    """The files that a split is read from, which begins with this one."""
    info = first.parent / tables.INFO
    return [*tables.shards(first), *([info] if info.is_file() else [])]


def table_items(source: Source, context: Context) -> tuple[str, list[Item]]:
    """The rows of a table in all its files. Raises InputError with file and row."""
    assert source.path is not None
    items: list[Item] = []
    for path in tables.shards(source.path):
        with _opened(path) as (schema, batches):
            columns = _columns(path, schema, context.keys)
            context.names = tables.label_names(path, schema)
            number = 0
            for batch, _ in batches(columns):
                for row in batch.to_pylist():
                    number += 1
                    where, dialect = f'{path}: row {number}', dialect_of(row)
                    read = dialect.read if dialect else _flat
                    items += read(where, len(items) + 1, row, context)
    return FORM, items


def _flat(where: str, line: int, row: Any, context: Context) -> Iterator[Item]:
    yield flat.item_of(where, line, row, context)


def _columns(path: Path, schema: pyarrow.Schema, keys: Keys) -> list[str]:
    """The columns that may be read. Raises InputError without one."""
    asked = {name.lower() for name in (*keys.texts, keys.answer, keys.name, keys.word, keys.tag)}
    found = [name for name in schema.names if name.strip().lower() in (*flat.KNOWN, *MORE, *asked)]
    if not found:
        others = '' if keys.texts_alone else ', or name them in set.json'
        raise InputError(
            f'{path}: needs columns such as {flat.READ}; it has {shortened(schema.names) or "none"}; rename '
            f'them{others}'
        )
    return found


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[pyarrow.Schema, tables.BatchReader]]:
    try:
        with open(path, 'rb') as stored:
            yield tables.opened(path, stored)
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        what = ' '.join(str(error).split())
        raise InputError(f'{path}: cannot be read as a table ({what}); fetch or save it again') from error
