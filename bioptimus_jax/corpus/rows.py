"""Records out of rows: mappings from fields to values, as lines of JSON, tables and lists have them."""

import json
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.content import fields_asked, values_of
from bioptimus_jax.corpus.lines import undecodable
from bioptimus_jax.corpus.records import BadRecord, Record, made_id, squeezed
from bioptimus_jax.errors import InputError

Numbered = tuple[int, dict[str, Any] | BadRecord]


def parsed(lines: Iterable[tuple[int, bytes]], encoding: str) -> Iterator[Numbered]:
    """The objects of lines of JSON, or what is wrong with a line."""
    for number, line in lines:
        if not line or line.isspace():
            continue
        try:
            row = json.loads(line.decode(encoding))
            found = row if isinstance(row, dict) else BadRecord('is JSON, but not an object')
        except UnicodeDecodeError as error:
            found = BadRecord(undecodable(error))
        except (ValueError, RecursionError) as error:
            found = BadRecord(f'is not JSON ({error})')
        yield number, found


def from_rows(path: Path, unit: str, rows: Iterable[Numbered], settings: Corpus) -> Iterator[Record]:
    """Records of rows, numbered in `unit`s, each a mapping from field to value or what is wrong with it."""
    asked = fields_asked(settings.content)
    for number, row in rows:
        try:
            if isinstance(row, BadRecord):
                raise row
            _require_fields(f'{path}:{number}', row, settings)
            text = _text_of(row, settings.text_fields)
            id = _id_of(row.get(settings.id_field), settings.id_field, text)
            record = Record(id, text, fields=values_of(row, asked))
        except BadRecord as error:
            if settings.on_bad_record == 'fail':
                raise InputError(
                    f'{path}:{number}: {error}; correct or remove the {unit}, or leave such records out with '
                    '--config.corpus.on_bad_record=skip'
                ) from error
            record = Record('', reason='bad_record', note=f'{unit} {number}: {error}')
        yield record


def _require_fields(where: str, names: Container[str], settings: Corpus) -> None:
    # A field that is not there is not a bad record but a wrong configuration.
    if settings.id_field and settings.id_field not in names:
        raise InputError(
            f'{where}: has no {settings.id_field!r}; add it, or name its key in config.corpus.id_field (empty: ids '
            'are made from the texts)'
        )
    if not any(field in names for field in settings.text_fields):
        wanted = ', '.join(settings.text_fields)
        raise InputError(
            f'{where}: has none of the text fields ({wanted}); name its keys in config.corpus.text_fields'
        )


def _id_of(value: Any, field: str, text: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is not None and not isinstance(value, str):
        raise BadRecord(f'{field!r} is neither a string nor a whole number')
    return squeezed(value or '') or made_id(text)


def _text_of(row: dict[str, Any], fields: tuple[str, ...]) -> str:
    texts = []
    for field in fields:
        value = row.get(field)
        if value is not None and not isinstance(value, str):
            raise BadRecord(f'{field!r} is not a string')
        texts.append(squeezed(value or ''))
    return '\n'.join(text for text in texts if text)
