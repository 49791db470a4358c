"""What duplicates have in common: two texts may be the same however they are printed."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

ACCENTS = re.compile('[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+')
# Forms of the hyphen and the minus, and of quotation marks.
DASHES = '\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d'
QUOTES = {'"': '\u201c\u201d\u201e', "'": '\u2018\u2019\u201a\u02bc'}
PRINTED_AS = [(other.encode(), b'-') for other in DASHES] + [
    (other.encode(), quote.encode()) for quote, others in QUOTES.items() for other in others
]
STOPS = b'.,;:!?'
SMALL = bytes(range(256)).lower().replace(b'\n', b' ')
IS_STOP, IS_END = (bytes(i in marks for i in range(256)) for marks in (STOPS, b' \0'))
REMOVED = 1


def comparable(texts: Sequence[str]) -> list[bytes]:
    """What is equal of texts that are the same: words and signs, without case, accents, and stops at the ends of words.

    Signs and decimal points stay, as `ER+` and `2.5 mg` say other things than `ER-` and `25 mg`. Texts are squeezed.
    """
    # All at once: by replacing in one text after the other, it took as long as all else that is decided about a text.
    together = b''.join(_plain(text) + b'\0' for text in texts).translate(SMALL)
    stops, ends = (np.frombuffer(together.translate(table), np.bool_) for table in (IS_STOP, IS_END))
    found = np.frombuffer(bytearray(together), np.uint8)
    found[:-1][stops[:-1] & ends[1:]] = REMOVED
    return found.tobytes().translate(None, bytes([REMOVED])).split(b'\0')[:-1]


def _plain(text: str) -> bytes:
    text = text.replace('\0', ' ')
    if text.isascii():
        return text.encode()
    found = ACCENTS.sub('', unicodedata.normalize('NFD', text)).casefold().encode()
    for other, mark in PRINTED_AS:
        found = found.replace(other, mark)
    return found
