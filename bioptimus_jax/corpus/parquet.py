"""Rows of Parquet and Arrow files, batch by batch: only the columns that are asked for are read."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import pyarrow

from bioptimus_jax.corpus.stored import unreadable
from bioptimus_jax.errors import BrokenFile, InputError
from bioptimus_jax.storage import tables
from bioptimus_jax.storage.files import JsonObject


def rows(
    path: Path,
    text_fields_of: Callable[[Collection[str], Collection[str]], Sequence[str]],
    id_field: str,
    advance: Callable[[int], None],
    beside: Collection[str] = (),
) -> Iterator[tuple[int, JsonObject]]:
    """`(row number from 1, the wanted columns that are there)`; `advance` is told the file's bytes in proportion.

    `text_fields_of`: names of all columns, and of those of text -> columns that are read, which have to hold text.
    `beside`: more columns, of any type.

    Raises InputError for a column of another type than text (or whole numbers, for ids), BrokenFile for damage.
    """
    number = reported = 0
    try:
        with open(path, 'rb') as stored:
            try:
                schema, batches = tables.opened(path, stored)
                texts = [name for name in schema.names if _is_text(schema.field(name).type)]
                fields = text_fields_of(schema.names, texts)
                wanted = [name for name in dict.fromkeys((id_field, *fields)) if name in schema.names]
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


def _is_text(kind: pyarrow.DataType) -> bool:
    types = pyarrow.types
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return any(test(_value_type(kind)) for test in tests)


def _value_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    return kind.value_type if pyarrow.types.is_dictionary(kind) else kind


def _require_type(path: Path, name: str, kind: pyarrow.DataType, whole_numbers: bool) -> None:
    if not _is_text(kind) and not (whole_numbers and pyarrow.types.is_integer(_value_type(kind))):
        key = 'id_field' if whole_numbers else 'text_fields'
        raise InputError(f'{path}: column {name!r} holds {kind}, not text; correct config.corpus.{key}')
