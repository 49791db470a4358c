"""Prodigy's JSON lines: a text with spans, or with options of which some are accepted, and what the person answered.

Only what was accepted is read. A rejected or ignored text is left out and counted: it says what is wrong, and not what
is right. Where texts alone are wanted, it is one of them.
"""

from collections.abc import Iterator
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.foreign import flat
from bioptimus_jax.sets.foreign.items import Context, Dialect, Item

LEFT_OUT = 'texts that were rejected or ignored in Prodigy, left out'
SAID = ('accept', 'reject', 'ignore')
MARKS = ('_task_hash', '_input_hash', '_view_id')


def _is_one(value: Any) -> bool:
    return isinstance(value, dict) and (
        any(mark in value for mark in MARKS)
        or (value.get('answer') in SAID and not {'spans', 'accept', 'options', 'label'}.isdisjoint(value))
    )


def _read(where: str, line: int, value: Any, context: Context) -> Iterator[Item]:
    given = {key: inner for key, inner in value.items() if key not in ('answer', 'tokens')}
    if value.get('answer', 'accept') != 'accept' and context.leaves_out(LEFT_OUT):
        return
    if 'accept' in value:
        if not isinstance(value['accept'], list):
            raise InputError(f'{where}: "accept" is not a list of options')
        given['labels'] = value['accept']
        given.pop('label', None)
    elif isinstance(value.get('relations'), list):
        context.repairs['annotations that are not mentions'] += len(value['relations'])
    yield flat.item_of(where, line, given, context)


DIALECT = Dialect('Prodigy', _is_one, _read)
