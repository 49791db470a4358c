"""JSON: a list, values one after the other (JSON lines), or one object that holds a list of records."""

import json
from collections.abc import Iterator
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.foreign import bigbio, bioc, flat, label_studio, prodigy, spacy
from bioptimus_jax.sets.foreign.items import Context, Dialect, Item
from bioptimus_jax.storage.files import JsonObject

OWN = 'answers of bioptimus predict'
DIALECTS: tuple[Dialect, ...] = (
    bigbio.DIALECT,
    bioc.DIALECT,
    label_studio.DIALECT,
    prodigy.DIALECT,
    spacy.DIALECT,
)
"""What values of JSON are recognised as, in this order; all others by their keys (flat.py)."""
LISTS = ('data', 'examples', 'rows', 'records')
"""Keys of one object under which all records stand."""
FLAT = 'JSON'


def is_json(text: str) -> bool:
    """Whether a text, whatever its file is called, holds objects of JSON, or lists with objects in them."""
    start = text.lstrip()
    if start[:1] not in ('{', '['):
        return False
    for part in (start.split('\n', 1)[0].strip().rstrip(','), start):
        try:
            first = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return isinstance(first, dict) or (
            isinstance(first, list) and any(isinstance(one, dict | list) for one in first)
        )
    return False


def values_of(place: str, text: str) -> Iterator[tuple[int, Any]]:
    """Every value of a list, or of JSON lines, and its line. Raises InputError with the line."""
    decoder, line = json.JSONDecoder(), 1
    rest = text.lstrip()
    # A line of spaCy is a list itself, which begins with a text.
    opened = rest.startswith('[') and not rest[1:].lstrip().startswith('"')
    at = counted = len(text) - len(rest) + opened
    line += text.count('\n', 0, at)
    while True:
        while at < len(text) and (text[at].isspace() or (opened and text[at] in ',]')):
            at += 1
        # Lines are counted on from the last value: from the start of the file it would take quadratic time.
        line, counted = line + text.count('\n', counted, at), at
        if at == len(text):
            return
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, 'msg', 'too deep')
            raise InputError(
                f'{place}:{line}: is not JSON ({reason}); give a list, or one object per line'
            ) from error
        yield line, value


def dialect_of(value: Any) -> Dialect | None:
    """The form that a value is recognised as; None for one that is read by its keys."""
    return next((one for one in DIALECTS if one.is_one(value)), None)


def items_of(place: str, text: str, context: Context) -> tuple[str, list[Item]]:
    """The name of the form, and the items. Raises InputError with the line."""
    found: list[Item] = []
    form = ''
    for where, line, value in _records(place, text):
        dialect = dialect_of(value)
        if dialect is None and not isinstance(value, dict):
            raise InputError(f'{where}: is not an object; records of JSON have {flat.READ}')
        form = form or (dialect.name if dialect else _flat_name(value))
        found += (
            dialect.read(where, line, value, context)
            if dialect
            else [flat.item_of(where, line, value, context)]
        )
    return form or FLAT, found


def _records(place: str, text: str) -> Iterator[tuple[str, int, Any]]:
    """Every record with its place, which counts records where several stand in one line, and its line."""
    before = 0
    for number, (line, value) in enumerate(values_of(place, text), 1):
        where = f'{place}:{line}' if line != before else f'{place}:{line}, record {number}'
        before = line
        lists = (
            (value[key] for key in LISTS if isinstance(value.get(key), list))
            if _is_plain(value)
            else iter(())
        )
        inside = next(lists, None)
        if inside is None:
            yield where, line, value
        else:
            yield from ((f'{place}: record {n}', n, one) for n, one in enumerate(inside, 1))


def _is_plain(value: Any) -> bool:
    return isinstance(value, dict) and flat.KNOWN.isdisjoint(value) and dialect_of(value) is None


def _flat_name(value: JsonObject) -> str:
    if 'probabilities' in value:
        return OWN
    given = value.get('entities', value.get('label', value.get('labels')))
    first = given[0] if isinstance(given, list) and given else None
    by_doccano = 'Comments' in value or (isinstance(first, dict) and 'start_offset' in first)
    return 'doccano' if by_doccano else FLAT
