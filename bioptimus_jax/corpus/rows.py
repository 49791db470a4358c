"""Records out of rows: mappings from fields to values, as lines of JSON, tables and lists have them."""

import json
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.corpus.content import fields_asked, values_of
from bioptimus_jax.corpus.dates import without_dates
from bioptimus_jax.corpus.lines import undecodable
from bioptimus_jax.corpus.records import BadRecord, Record, joined, made_id, squeezed
from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import JsonObject

Numbered = tuple[int, JsonObject | BadRecord]
# Names of a text, as MIMIC-IV (note_id, text), CORD-19 (cord_uid, title, abstract), BEIR (title, text), PubMed's list
# of search results (PMID, Title) and others spell them. The first that is there counts.
TEXT_NAMES = (
    'text note_text abstract body body_text full_text fulltext content contents paragraph passage document report note '
    'article sentence title'
).split()
BESIDE_TITLE = 'text body body_text full_text fulltext content contents paragraph passage'.split()
USUAL = Corpus().text_fields


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
    """Records of rows, numbered in `unit`s, each a mapping from field to value or what is wrong with it.

    Where another text than the fields that are asked for is read, a record says so first.
    """
    asked, beside = fields_asked(settings.content), ''
    yield from without_dates(settings)
    for number, row in rows:
        try:
            if isinstance(row, BadRecord):
                raise row
            _require_fields(f'{path}:{number}', row, settings)
            texts = [name for name, value in row.items() if value is None or isinstance(value, str)]
            fields = text_fields_of(row, [beside] if beside in texts else texts, settings)
            if not beside and fields != settings.text_fields:
                beside = fields[-1]  # of all records, whatever other keys some have
                note = f'its text is {" and ".join(fields)}; config.corpus.text_fields names others'
                yield Record('', reason='form', note=note)
            text = _text_of(row, fields)
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


def text_fields_of(names: Container[str], texts: Container[str], settings: Corpus) -> tuple[str, ...]:
    """The fields of a text: those that are asked for; by default a title is not all of it, where there is more.

    `texts`: the names of fields that hold text.
    """
    found = [name for name in settings.text_fields if name in names]
    if found != ['title'] or settings.text_fields != USUAL:
        return settings.text_fields
    more = [name for name in BESIDE_TITLE if name in texts and name != settings.id_field]
    return ('title', more[0]) if more else settings.text_fields


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


def _text_of(row: JsonObject, fields: tuple[str, ...]) -> str:
    texts = dict[str, str]()
    for field in fields:
        if field in row:
            value = row[field]
            if value is not None and not isinstance(value, str):
                raise BadRecord(f'{field!r} is not a string')
            texts[field] = value or ''
    return joined(texts)
