"""Schemes of tags: those that files come in, recognised and brought to IOB2, and those that a model learns.

Everything between the files and the model is IOB2, with one reading of it: a mention begins at B-, and at an I- that
continues nothing of its type (as conlleval reads it, and seqeval by default).
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence

from bioptimus_jax.errors import ConfigError, InputError

NAMELESS = 'entity'  # the type of tags that have none
OUTSIDE = 'O'
BESIDE = '\t'
"""The separator of the tags of a word that is in several mentions (`with_beside`), as of the columns of a file."""
# The letters of each family, in the order begin, inside, end, single.
CLOSED = {'BILOU': 'BILU', 'IOBES': 'BIES', 'BMES': 'BMES', 'BMEWO': 'BMEW'}
LEARNED = {'bio': 'BI', 'io': 'I', 'bioul': 'BILU'}

Span = tuple[str, int, int]  # type, first word, last word


@dataclasses.dataclass(frozen=True)
class Scheme:
    """How a file writes its mentions: IOB2, IOB1, IO or one of CLOSED; `typed` tags name a type after a hyphen."""

    name: str
    typed: bool = True

    def __str__(self) -> str:
        return self.name if self.typed else f'{self.name} without types'


def is_tag(text: str) -> bool:
    """Whether some scheme has this tag: O, a letter, or a letter, a hyphen and a type."""
    if text == OUTSIDE:
        return True
    return text[:1] in tuple('BIMELSUW') and (len(text) == 1 or (text[1] == '-' and len(text) > 2))


def type_name(kind: str) -> str:
    """A type as every form of a set has it: BRAT's files end a type at a blank, so blanks within it are `_`."""
    return '_'.join(kind.split())


def recognise(sentences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme that all these tags are written in; IOB2 for nothing but O.

    Files with B- and I- are IOB1 where some I- opens a mention and every B- follows a tag of its type; any other of
    them is IOB2, perhaps with orphan I- tags. Files with I- alone are IO: as IOB1 they mean the same. Raises ValueError
    for tags that no scheme has together.
    """
    pairs: set[tuple[str, str]] = set()
    for tags in sentences:
        pairs.update(itertools.pairwise((OUTSIDE, *tags)))
    found = {tag for _, tag in pairs if tag != OUTSIDE}
    letters = ''.join(sorted({tag[0] for tag in found}))
    bare = sorted(tag for tag in found if len(tag) == 1)
    if 0 < len(bare) < len(found):
        raise ValueError(f'tags with a type and without one ({bare[0]!r:.60}) are mixed')
    typed = not bare
    if set(letters) <= set('BI'):
        if letters == 'I':
            return Scheme('IO', typed)
        opened = any(tag[0] == 'I' and not _follows(before, tag) for before, tag in pairs)
        apart = any(tag[0] == 'B' and not _follows(before, tag) for before, tag in pairs)
        return Scheme('IOB1' if opened and not apart else 'IOB2', typed)
    for name, family in CLOSED.items():
        if set(letters) <= set(family):
            return Scheme(name, typed)
    raise ValueError(f'no scheme has the tags {", ".join(letters)} together')


def to_iob2(tags: Sequence[str], scheme: Scheme) -> tuple[str, ...]:
    """Tags of a file as IOB2, with the `type_name` of each type; no mention that the file marks is lost.

    IOB2 stays as it stands, orphan I- tags included. In the closed schemes (end and single have letters) a mention
    that is not closed ends before the next tag that does not go on with it, and one that is not opened is opened.
    """
    if not scheme.typed:
        tags = [tag if tag == OUTSIDE else f'{tag}-{NAMELESS}' for tag in tags]
    tags = [_with_type_names(tag) for tag in tags]
    if scheme.name == 'IOB2':
        return tuple(tags)
    if scheme.name in CLOSED:
        return from_spans(_closed_spans(tags, CLOSED[scheme.name]), len(tags))
    if scheme.name == 'IO':
        return decode(tags, 'io')
    return from_spans(spans(tags), len(tags))


@functools.cache
def _with_type_names(tag: str) -> str:
    return BESIDE.join(part[:2] + type_name(part[2:]) for part in tag.split(BESIDE))


def merged(tags: Sequence[str]) -> tuple[str, ...]:
    """IOB2 tags with one type for all; no mention is lost."""
    return renamed(tags, lambda _: NAMELESS)


def renamed(tags: Sequence[str], name_of: Callable[[str], str]) -> tuple[str, ...]:
    """IOB2 tags whose types have other names; a mention of a type that is called '' is none.

    Neighbours stay apart: where two types get one name, the second mention begins with B-. Mentions `beside` others are
    renamed, too.
    """
    if others := beside(tags):
        alone = renamed([tag.partition(BESIDE)[0] for tag in tags], name_of)
        named = ((name_of(kind), first, last) for kind, first, last in others)
        return with_beside(alone, [one for one in named if one[0]])
    found, before, name_before = [], '', ''
    for tag in tags:
        kind = '' if tag == OUTSIDE else tag[2:]
        name = name_of(kind) if kind else ''
        letter = 'B' if name == name_before and kind != before else tag[0]
        found.append(f'{letter}-{name}' if name else OUTSIDE)
        before, name_before = kind, name
    return tuple(found)


def count_broken(tags: Sequence[str], scheme: Scheme) -> int:
    """How many tags of a sentence contradict the scheme of their file, end of sentence included.

    IOB2: orphan I- tags. Closed schemes: tags that go on where nothing is open, or do not where something is. IOB1 and
    IO cannot be contradicted.
    """
    if scheme.name == 'IOB2':
        pairs = itertools.pairwise((OUTSIDE, *tags))
        return sum(tag[0] == 'I' and not _follows(before, tag) for before, tag in pairs)
    if scheme.name not in CLOSED:
        return 0
    begin, inside, end, _ = tuple(CLOSED[scheme.name])
    # `running` is '' for tags without types, so None says that nothing is open.
    count, running = 0, None
    for tag in (*tags, OUTSIDE):
        goes_on = tag[0] in (inside, end)
        if goes_on != (running is not None) or (goes_on and tag[1:] != running):
            count += 1
        running = tag[1:] if tag[0] in (begin, inside) else None
    return count


def spans(tags: Sequence[str], orphans_open: bool = True) -> list[Span]:
    """The mentions of IOB2 tags, but for those `beside`. Raises InputError for another tag than O, B-TYPE and I-TYPE.

    A mention begins at B-, and at an I- that does not continue one of its type, as seqeval's default mode and conlleval
    read it; without `orphans_open` such an I- belongs to no mention, as in seqeval's strict mode.
    """
    found: list[Span] = []
    kind, first = '', 0
    for at, tag in enumerate(tags):
        if tag == OUTSIDE and not kind:
            continue
        this = _type_of(tag)
        if kind and (this != kind or tag[0] == 'B'):
            found.append((kind, first, at - 1))
            kind = ''
        if this and not kind and (orphans_open or tag[0] == 'B'):
            kind, first = this, at
    if kind:
        found.append((kind, first, len(tags) - 1))
    return found


def with_beside(tags: Sequence[str], mentions: Sequence[Span]) -> tuple[str, ...]:
    """Tags with more mentions, which may overlap: in further columns of a word, as many as are needed."""
    columns = [list(tags)]
    for kind, first, last in mentions:
        own = next((c for c in columns[1:] if set(c[first : last + 1]) == {OUTSIDE}), None)
        if own is None:
            own = [OUTSIDE] * len(tags)
            columns.append(own)
        own[first : last + 1] = from_spans([(kind, 0, last - first)], last - first + 1)
    rows = (BESIDE.join(row) for row in zip(*columns, strict=True))
    return tuple(row.removesuffix((BESIDE + OUTSIDE) * (len(columns) - 1)) for row in rows)


def beside(tags: Sequence[str]) -> list[Span]:
    """The mentions that `with_beside` has put beside others."""
    if BESIDE not in ''.join(tags):
        return []
    rows = [tag.split(BESIDE) for tag in tags]
    columns = range(1, max(map(len, rows)))
    return [one for at in columns for one in spans([(*row, *[OUTSIDE] * at)[at] for row in rows])]


@functools.lru_cache(4096)  # tags of a set are few, and scoring asks for each of them
def _type_of(tag: str) -> str:
    tag = tag.partition(BESIDE)[0] if BESIDE in tag else tag
    if tag == OUTSIDE:
        return ''
    if tag[:2] not in ('B-', 'I-') or len(tag) == 2:
        raise InputError(f'unknown tag {tag!r:.60}; IOB2 has O, B-TYPE and I-TYPE')
    return tag[2:]


def from_spans(mentions: Iterable[Span], words: int) -> tuple[str, ...]:
    """Valid IOB2 tags for mentions that do not overlap."""
    tags = [OUTSIDE] * words
    for kind, first, last in mentions:
        tags[first : last + 1] = [f'B-{kind}', *[f'I-{kind}'] * (last - first)]
    return tuple(tags)


def labels_of(types: Sequence[str], scheme: str) -> tuple[str, ...]:
    """The labels that a model learns for these types under `config.finetune.scheme`; O is the first."""
    letters = _learned(scheme)
    return (OUTSIDE, *(f'{letter}-{kind}' for kind in types for letter in letters))


def encode(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """IOB2 tags of one sentence in the scheme that a model learns: bio (as they stand), io or bioul."""
    _learned(scheme)
    if scheme == 'bio':
        return tuple(tags)
    if scheme == 'io':
        return tuple(tag if tag == OUTSIDE else f'I{tag[1:]}' for tag in tags)
    encoded = [OUTSIDE] * len(tags)
    for kind, first, last in spans(tags):
        letters = 'U' if first == last else f'B{"I" * (last - first - 1)}L'
        encoded[first : last + 1] = [f'{letter}-{kind}' for letter in letters]
    return tuple(encoded)


def decode(tags: Sequence[str], scheme: str) -> tuple[str, ...]:
    """IOB2 tags from a model's tags of one sentence, whatever they are.

    bio: as predicted, so that the scorer's mode decides how an orphan I- counts. io: a run of one type is one mention,
    so that adjacent mentions of a type come back as one. bioul: valid IOB2; B and U open a mention, I and L go on with
    an open one of their type and open one otherwise, L and U close it: what is not closed is a mention all the same
    (seqeval's default reading of IOBES).
    """
    _learned(scheme)
    if scheme == 'bio':
        return tuple(tags)
    if scheme == 'bioul':
        return from_spans(_closed_spans(tags, LEARNED['bioul']), len(tags))
    return tuple(
        tag if tag in (OUTSIDE, before) else f'B{tag[1:]}'
        for before, tag in itertools.pairwise((OUTSIDE, *tags))
    )


def _closed_spans(tags: Sequence[str], letters: str) -> list[Span]:
    begin, _, end, single = tuple(letters)
    found: list[Span] = []
    is_open = False
    for at, tag in enumerate(tags):
        if tag == OUTSIDE:
            is_open = False
            continue
        kind = tag[2:]
        if is_open and tag[0] not in (begin, single) and found[-1][0] == kind:
            found[-1] = (kind, found[-1][1], at)
        else:
            found.append((kind, at, at))
        is_open = tag[0] not in (end, single)
    return found


def _follows(before: str, tag: str) -> bool:
    """Whether a tag of a mention has a tag of its type before it."""
    return before != OUTSIDE and before[1:] == tag[1:]


def _learned(scheme: str) -> str:
    if scheme not in LEARNED:
        raise ConfigError(f'config.finetune.scheme: {scheme!r} is none of {", ".join(LEARNED)}')
    return LEARNED[scheme]
