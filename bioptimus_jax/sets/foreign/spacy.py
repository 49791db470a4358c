"""spaCy's training data in JSON: ["text", {"entities": [[0, 7, "DRUG"]]}], or "cats" with a number for each label.

The same keys stand in what `Doc.to_json` gives, with "ents" for the entities.
"""

from collections.abc import Iterator
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.foreign import flat
from bioptimus_jax.sets.foreign.items import Context, Dialect, Item

GROUPS = 'spans of spaCy in groups (doc.spans), which are not read; entities are (doc.ents)'
HOLDS = 0.5
"""A label of "cats" with at least this number holds."""


def _is_one(value: Any) -> bool:
    pair = isinstance(value, list) and len(value) == 2
    if pair and isinstance(value[0], str) and isinstance(value[1], dict):
        return True
    return isinstance(value, dict) and (isinstance(value.get('cats'), dict) or 'ents' in value)


def _read(where: str, line: int, value: Any, context: Context) -> Iterator[Item]:
    given = {'text': value[0], **value[1]} if isinstance(value, list) else dict(value)
    given.pop('tokens', None)
    if isinstance(groups := given.get('spans'), dict):
        context.repairs[GROUPS] += sum(len(group) for group in groups.values() if isinstance(group, list))
        del given['spans']
    if isinstance(given.get('cats'), dict) and given['cats']:
        if not all(isinstance(sure, int | float) for sure in given['cats'].values()):
            raise InputError(f'{where}: "cats" has to give each label a number')
        given['labels'] = [label for label, sure in given['cats'].items() if sure >= HOLDS]
    yield flat.item_of(where, line, given, context)


DIALECT = Dialect('spaCy', _is_one, _read)
