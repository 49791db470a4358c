"""BioC, in XML and in JSON: documents in passages, whose annotations say where they stand in the document.

The format does not say what its offsets count: PubTator's count characters, those that bconv writes bytes. It is
decided for each document by the texts that annotations quote, and said. An annotation is a mention whether or not it
has an identifier, and whether it stands at a passage, a sentence or the document; relations are none. A mention in
several places is one with gaps.
"""

import dataclasses
import io
from collections.abc import Iterator, Sequence
from typing import Any

from lxml import etree

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.foreign.items import Context, Dialect, Item
from bioptimus_jax.sets.foreign.offsets import CHARACTERS, COUNTED, MarkedPlace, index_of, one_placed, unit_of
from bioptimus_jax.sets.foreign.refused import READ
from bioptimus_jax.sets.tags import NAMELESS
from bioptimus_jax.storage.files import JsonObject
from bioptimus_jax.storage.parsing import PARSING

COLLECTIONS = ('documents', 'PubTator3', 'PubTator')
TYPES = ('type', 'label', 'class', 'entity')
NO_TYPE = f'annotations without a type, which are called {NAMELESS!r}'
OTHERS = 'annotations that are not mentions'


@dataclasses.dataclass(frozen=True)
class Part:
    """A passage, or a sentence of one: where it begins in the document as the file counts, its text, what is marked.

    Places are in the document.
    """

    offset: int
    text: str
    marked: tuple[MarkedPlace, ...]


def read_xml(place: str, content: str, context: Context) -> Iterator[Item]:
    """The documents of a collection in XML. Raises InputError."""
    events = etree.iterparse(io.BytesIO(content.encode('utf-8')), events=('start',), **PARSING)
    try:
        _, root = next(iter(events))
        declared = root.getroottree().docinfo.internalDTD
        if declared is not None and any(declared.iterentities()):
            raise InputError(f'{place}: declares entities of its own, which BioC never does; it is not read')
        for _ in events:
            pass
    except (etree.XMLSyntaxError, StopIteration) as error:
        why = ' '.join(str(error).split())[:120]
        raise InputError(f'{place}: is cut off or not well-formed XML ({why}); fetch it again') from error
    if root.tag != 'collection':
        raise InputError(
            f'{place}: is XML, but not BioC (it begins with <{str(root.tag)[:40]}>); save its text as .txt, '
            f'or what is marked in it as BioC; read are {READ}'
        )
    for number, document in enumerate(root.iterchildren('document'), 1):
        where = f'{place}: document {number}'
        parts = [
            part for passage in document.iterchildren('passage') for part in _parts(where, passage, context)
        ]
        own = list(document.iterchildren('annotation'))
        within = [one for one in own if one.find('location') is not None]  # others are about the document
        parts = _with(where, parts, [_xml_annotation(where, one, context) for one in within])
        context.repairs[OTHERS] += len(list(document.iter('relation'))) + len(own) - len(within)
        yield _item(where, number, document.findtext('id') or '', parts, context)


def _parts(where: str, passage: Any, context: Context) -> list[Part]:
    """The parts of a passage of XML: it, or its sentences where these alone have texts."""
    inside = [] if (passage.findtext('text') or '').strip() else list(passage.iterchildren('sentence'))
    texts = [
        (_number(where, one.findtext('offset')), one.findtext('text') or '') for one in inside or [passage]
    ]
    return _apart(texts, [_xml_annotation(where, a, context) for a in passage.iter('annotation')])


def _with(where: str, parts: Sequence[Part], marked: Sequence[MarkedPlace]) -> list[Part]:
    """The parts of a document with the marks that stand at the document itself. Raises InputError without a part."""
    if marked and not parts:
        raise InputError(f'{where}: has annotations, and no passage in which they are')
    more = _apart([(part.offset, part.text) for part in parts], marked)
    return [
        dataclasses.replace(part, marked=(*part.marked, *of_it.marked))
        for part, of_it in zip(parts, more, strict=True)
    ]


def _apart(texts: Sequence[tuple[int, str]], marked: Sequence[MarkedPlace]) -> list[Part]:
    """Parts of a passage or a document, each with the marks that begin in it."""
    own: list[list[MarkedPlace]] = [[] for _ in texts]
    for one in marked:
        start = min(start for start, _ in one.parts)
        own[max((at for at, (offset, _) in enumerate(texts) if offset <= start), default=0)].append(one)
    return [Part(offset, text, tuple(of_it)) for (offset, text), of_it in zip(texts, own, strict=True)]


def _xml_annotation(where: str, annotation: Any, context: Context) -> MarkedPlace:
    infons = {i.get('key', ''): i.text or '' for i in annotation.iterchildren('infon')}
    places = [
        (_number(where, at.get('offset')), _number(where, at.get('length')))
        for at in annotation.iterchildren('location')
    ]
    return _annotation(where, infons, places, annotation.findtext('text'), context)


def _read(where: str, line: int, value: Any, context: Context) -> Iterator[Item]:
    """The documents of a collection in JSON, or a document."""
    held = next((value[name] for name in COLLECTIONS if isinstance(value.get(name), list)), [value])
    for number, document in enumerate(held, 1):
        place = f'{where}: document {number}' if held != [value] else where
        if not isinstance(document, dict) or not isinstance(document.get('passages'), list):
            raise InputError(f'{place}: has no passages, as each document of BioC has')
        parts = [part for passage in document['passages'] for part in _json_parts(place, passage, context)]
        own = _listed(document, 'annotations')
        within = [one for one in own if not isinstance(one, dict) or one.get('locations')]
        parts = _with(place, parts, _json_annotations(place, within, context))
        context.repairs[OTHERS] += len(_listed(document, 'relations')) + len(own) - len(within)
        yield _item(place, number if len(held) > 1 else line, str(document.get('id') or ''), parts, context)


def _json_parts(where: str, passage: Any, context: Context) -> list[Part]:
    """The parts of a passage of JSON, as of XML."""
    if not isinstance(passage, dict):
        raise InputError(f'{where}: a passage is not an object')
    inside = [one for one in _listed(passage, 'sentences') if isinstance(one, dict)]
    texts = [
        (_number(where, one.get('offset')), str(one.get('text') or ''))
        for one in ([passage] if passage.get('text') or not inside else inside)
    ]
    given = [annotation for one in (passage, *inside) for annotation in _listed(one, 'annotations')]
    return _apart(texts, _json_annotations(where, given, context))


def _json_annotations(where: str, given: Sequence[Any], context: Context) -> list[MarkedPlace]:
    marked = []
    for annotation in given:
        try:
            places = [
                (_number(where, at['offset']), _number(where, at['length'])) for at in annotation['locations']
            ]
            infons = annotation.get('infons') or {}
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f'{where}: an annotation has no locations with offset and length') from error
        marked.append(_annotation(where, infons, places, annotation.get('text'), context))
    return marked


def _listed(one: JsonObject, key: str) -> list[Any]:
    return one[key] if isinstance(one.get(key), list) else []


def _number(where: str, given: Any) -> int:
    try:
        return int(str(given))
    except ValueError as error:
        raise InputError(f'{where}: an offset or length is {given!r:.40}, and not a number') from error


def _annotation(
    where: str, infons: Any, places: Sequence[tuple[int, int]], quoted: str | None, context: Context
) -> MarkedPlace:
    if not places:
        raise InputError(f'{where}: an annotation has no location: {quoted!r:.60}')
    kind = next((str(infons[key]) for key in TYPES if infons.get(key)), '')
    context.repairs[NO_TYPE] += not kind
    return MarkedPlace(kind or NAMELESS, tuple((at, at + length) for at, length in places), quoted)


def _item(where: str, line: int, name: str, parts: Sequence[Part], context: Context) -> Item:
    """A document: its parts with line feeds between them, and the mentions by characters of that."""
    known = [(part.text, [_within(one, part.offset) for one in part.marked]) for part in parts]
    unit = unit_of(known)
    if unit != CHARACTERS:
        context.repairs[COUNTED.format(unit)] += sum(len(marked) for _, marked in known)
    mentions, at = [], 0
    for text, marked in known:
        index = index_of(text, unit)
        for one in marked:
            found = one_placed(where, text, one, index, context.repairs)
            mentions.append(dataclasses.replace(found, start=found.start + at, end=found.end + at))
        at += len(text) + 1
    context.taken.setdefault('entities', 'annotations')
    whole = '\n'.join(text for text, _ in known)
    return Item(where, line, name, (whole,), mentions=tuple(mentions), keys=('passages',))


def _within(one: MarkedPlace, offset: int) -> MarkedPlace:
    return dataclasses.replace(one, parts=tuple((a - offset, b - offset) for a, b in one.parts))


DIALECT = Dialect(
    'BioC',
    lambda value: (
        isinstance(value, dict)
        and ('passages' in value or any(isinstance(value.get(name), list) for name in COLLECTIONS))
    ),
    _read,
)
