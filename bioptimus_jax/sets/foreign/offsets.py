"""Places in a text that a file gives as numbers: what they count is decided by the text that stands there.

Programs count Unicode characters, bytes of UTF-8 (bconv in its BioC) or units of UTF-16 (those in JavaScript, as older
Label Studio). Where a mention is quoted beside its offsets, the count under which all quotations of a text stand where
they should is taken, and it is said. Where nothing is quoted, characters are meant.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from bioptimus_jax.errors import InputError
from bioptimus_jax.sets.characters import Mention
from bioptimus_jax.sets.standoff import mention
from bioptimus_jax.sets.tags import type_name

CHARACTERS = 'characters'
UNITS: Mapping[str, Callable[[str], int]] = {
    CHARACTERS: len,
    'bytes of UTF-8': lambda text: len(text.encode('utf-8', 'surrogatepass')),
    'units of UTF-16': lambda text: len(text.encode('utf-16-le', 'surrogatepass')) // 2,
}
"""What offsets may count -> how much of it a text has."""
COUNTED = 'offsets that count {}, as the quoted texts show, read so'
UNQUOTED = (
    'mentions behind characters such as emoji, without a quoted text: offsets are read as Unicode characters'
)


@dataclasses.dataclass(frozen=True)
class MarkedPlace:
    """Parts start..end of a text as a file has them, and what it quotes of them, None where it quotes nothing."""

    kind: str
    parts: tuple[tuple[int, int], ...]
    quoted: str | None = None


def placed(where: str, text: str, given: Sequence[MarkedPlace], repairs: Counter[str]) -> tuple[Mention, ...]:
    """The mentions of a text by characters. Raises InputError for what is not within it or not what is quoted."""
    unit = unit_of([(text, given)])
    if unit != CHARACTERS:
        repairs[COUNTED.format(unit)] += len(given)
    index = index_of(text, unit)
    return tuple(one_placed(where, text, one, index, repairs) for one in given)


def one_placed(
    where: str, text: str, one: MarkedPlace, index: Callable[[int], int], repairs: Counter[str]
) -> Mention:
    """A mention by characters; `index`: the character that an offset means. Raises InputError."""
    parts = [(index(start), index(end)) for start, end in one.parts]
    start, end = min(a for a, _ in parts), max(b for _, b in parts)
    if not one.kind.strip():
        raise InputError(f'{where}: the entity at {one.parts[0]} has no type')
    if start < 0 or not all(a < b for a, b in parts) or end > len(text) or not text[start:end].strip():
        shown = [*one.parts[0], one.kind]
        raise InputError(
            f'{where}: the entity {shown!r:.80} is not within its text of {len(text):,} characters'
        )
    covered = ' '.join(text[a:b] for a, b in parts)
    if one.quoted is None:
        repairs[UNQUOTED] += any(ord(letter) > 0xFFFF for letter in text[:end])
    quoted = covered if one.quoted is None else one.quoted
    gaps = sum(bool(text[b:a].strip()) for (_, b), (a, _) in itertools.pairwise(parts))
    return mention(where, text, type_name(one.kind), start, end, quoted, covered, repairs, 1 + gaps)


def unit_of(texts: Iterable[tuple[str, Sequence[MarkedPlace]]]) -> str:
    """What the offsets in these texts count, so that most quotations stand where they should; characters in doubt."""
    found: Counter[str] = Counter()
    for text, given in texts:
        if text.isascii() or all(one.quoted is None for one in given):
            continue
        for unit in UNITS:
            index = index_of(text, unit)
            found[unit] += sum(_stands(text, one, index) for one in given if one.quoted is not None)
    return max(UNITS, key=lambda unit: found[unit])


def index_of(text: str, unit: str) -> Callable[[int], int]:
    """What gives the character that an offset means, -1 within one; beyond the text what is beyond it."""
    if unit == CHARACTERS or text.isascii():
        return lambda offset: offset
    places, at = dict[int, int](), 0
    for number, letter in enumerate(text):
        places[at] = number
        at += UNITS[unit](letter)
    places[at] = len(text)
    return lambda offset: places.get(offset, -1 if offset < at else len(text) + offset - at)


def _stands(text: str, one: MarkedPlace, index: Callable[[int], int]) -> bool:
    there = [(index(start), index(end)) for start, end in one.parts]
    covered = ' '.join(text[start:end] for start, end in there)
    return min(min(part) for part in there) >= 0 and covered.split() == (one.quoted or '').split()
