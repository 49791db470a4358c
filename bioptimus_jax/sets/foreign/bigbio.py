"""BigBio's schema of entities, as its sets have it on the hub: passages with their places, entities with parts."""

from collections.abc import Iterator
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.foreign import flat
from bioptimus_jax.sets.foreign.items import Context, Dialect, Item


def _is_one(value: Any) -> bool:
    passages = value.get('passages') if isinstance(value, dict) else None
    return (
        isinstance(passages, list)
        and all(isinstance(p, dict) and 'offsets' in p for p in passages)
        and bool(passages)
    )


def _read(where: str, line: int, value: Any, context: Context) -> Iterator[Item]:
    text = ''
    for passage in value['passages']:
        texts = passage.get('text')
        try:
            [own], [(start, end)] = [texts] if isinstance(texts, str) else texts, passage['offsets']
        except (TypeError, ValueError) as error:
            raise InputError(f'{where}: a passage has not one text at one place') from error
        if len(text) > start or len(own) != end - start:
            raise InputError(f'{where}: a passage is not as long as its offsets {start} to {end} say')
        # What is between passages is not told; a blank separates words.
        text = text.ljust(start) + own
    entry = {
        'id': value.get('document_id') or value.get('id'),
        'text': text,
        'entities': value.get('entities') or [],
    }
    yield flat.item_of(where, line, entry, context)


DIALECT = Dialect('BigBio', _is_one, _read)
