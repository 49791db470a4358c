"""What the readers of all formats give."""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

PARAGRAPH_END = re.compile(r'\n[^\S\n]*\n')
SURROGATE = re.compile('[\ud800-\udfff]')
# Ids of records whose id is empty, as of abstracts from collections that kept none.
MADE_ID = 'text-'


class Record(NamedTuple):
    """What a file says: a document, or why it is none.

    `version` counts the versions of a PubMed record or an article from 1, and is 0 where a format knows none; `revised`
    orders records of one version, as 20240131 does, and is 0 where nothing is said. Which of them stands is decided in
    `newest`. `reason` is empty for a document; `deletion` takes back what came before under this id, in this version or
    (0) in all; `bad_record` explains itself in `note`. With any other reason it has no text. `kind` is one of KINDS for
    what is no ordinary article, else empty. `not_read`: how many words of an article are not in its text, by what they
    stand in. `fields`: what it says beside its text, as far as config.corpus.content asks for it.
    """

    id: str
    text: str = ''
    version: int = 0
    reason: str = ''
    note: str = ''
    revised: int = 0
    kind: str = ''
    not_read: Mapping[str, int] = MappingProxyType({})
    fields: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class BadRecord(Exception):
    """A record that cannot be read; the message says what is wrong with it, not where it is."""


def squeezed(text: str) -> str:
    """Valid Unicode with runs of white space made one space, and a line break between paragraphs."""
    if '\n' in text:
        parts = (' '.join(part.split()) for part in PARAGRAPH_END.split(text.replace('\r\n', '\n')))
        text = '\n'.join(part for part in parts if part)
    else:
        text = ' '.join(text.split())
    # JSON escapes may spell half a character, which no encoding can store.
    return text if text.isascii() else SURROGATE.sub('\ufffd', text)


def joined(fields: Mapping[str, str]) -> str:
    """The text of a record that has these fields, by their names. The first of several is one line, as a title is.

    So the first line of a document ends where its first field ends, and half of a pair has one line. A text that lacks
    its title is whole: it keeps its paragraphs.
    """
    texts = [squeezed(text) for text in fields.values()]
    untitled = next(iter(fields), '').casefold() == 'title' and not texts[0]
    found = [text for text in texts if text]
    if len(texts) > 1 and not untitled:
        found[:1] = [text.replace('\n', ' ') for text in found[:1]]
    return '\n'.join(found)


def is_number(text: str) -> bool:
    """Whether it is a whole number that a file may give: 18 digits always fit into the int64 of what is stored.

    Python makes no number of thousands of digits.
    """
    return text.isascii() and text.isdigit() and len(text) < 19


def made_id(text: str) -> str:
    """An id out of the text, which stays the same when files are cut or ordered otherwise."""
    return MADE_ID + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
