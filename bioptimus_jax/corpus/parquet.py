"""Rows of Parquet and Arrow files, batch by batch: only the columns that are asked for are read."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow

from bioptimus_jax.corpus.stored import unreadable
from bioptimus_jax.errors import BrokenFile, InputError
from bioptimus_jax.storage import tables


def rows(
    path: Path,
    text_fields: tuple[str, ...],
    id_field: str,
    advance: Callable[[int], None],
    beside: Collection[str] = (),
) -> Iterator[tuple[int, dict[str, Any]]]:
    """`(row number from 1, the wanted columns that are there)`; `advance` is told the file's bytes in proportion.

    `beside`: more columns, of any type.

    Raises InputError for a column of another type than text (or whole numbers, for ids), BrokenFile for damage.
    """
    number = reported = 0
    try:
        with open(path, 'rb') as stored:
            try:
                schema, batches = tables.opened(path, stored)
                wanted = [name for name in dict.fromkeys((id_field, *text_fields)) if name in schema.names]
                for name in wanted:
                    _require_type(path, name, schema.field(name).type, whole_numbers=name == id_field)
                more = [name for name in sorted(beside) if name in schema.names and name not in wanted]
                for batch, done in batches([*wanted, *more]):
                    for row in batch.to_pylist():
                        number += 1
                        yield number, row
                    advance(done - reported)
                    reported = done
                advance(path.stat().st_size - reported)
            except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
                what = ' '.join(str(error).split())
                kind = path.suffix[1:].capitalize()
                raise BrokenFile(
                    f'{path}: is not in {kind} format, or is cut off or damaged after row {number} ({what}); fetch '
                    'it again'
                ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def _require_type(path: Path, name: str, kind: pyarrow.DataType, whole_numbers: bool) -> None:
    if pyarrow.types.is_dictionary(kind):
        kind = kind.value_type
    tests = [pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view]
    tests += [pyarrow.types.is_null] + ([pyarrow.types.is_integer] if whole_numbers else [])
    if not any(test(kind) for test in tests):
        key = 'id_field' if whole_numbers else 'text_fields'
        raise InputError(f'{path}: column {name!r} holds {kind}, not text; correct config.corpus.{key}')
