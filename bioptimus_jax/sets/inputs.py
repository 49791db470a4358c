"""How a text shows the two entities that it is asked about: BLURB's TransformInput (Gu et al. 2021, Table 12).

The public files have names in place of entities (`@GENE$`), one name where two entities overlap. Markers are plain
text, so that no row is added to a vocabulary. The papers do not say which strings theirs were; these are in a line of
BLURB's own script that is commented out. A blank stands on the inner side of each, so that a mention is cut into the
same pieces with and without markers, also by tokenizers that take a space as a part of the word behind it.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence

DUMMY = re.compile(r'@[A-Za-z-]+\$')
"""What stands for an entity."""
MARKED = tuple(re.compile(rf'<e{n}> (.*?) </e{n}>') for n in (1, 2))
MARKER = re.compile('<e[12]> | </e[12]>')


@dataclasses.dataclass(frozen=True)
class NamedPlace:
    """Characters start..end of a text, which is not cut off there, and the name that may replace them."""

    start: int
    end: int
    name: str


@dataclasses.dataclass(frozen=True)
class Input:
    """`meaning` in words. `write` gives the text with its two mentions, the one that begins first before the other.

    `ending`: of the name of a set that is written so.
    """

    meaning: str
    write: Callable[[str, Sequence[NamedPlace]], str]
    ending: str


def with_dummies(text: str, mentions: Sequence[NamedPlace]) -> str:
    """A name in place of each mention; where they overlap, one for both: `@CHEM-GENE$`, `@DRUG-DRUG$`."""
    first, second = mentions
    if first.end > second.start:
        both = '-'.join(sorted(SHORT.get(one.name, one.name) for one in mentions))
        return f'{text[: first.start]}@{both}${text[max(first.end, second.end) :]}'
    between = text[first.end : second.start]
    return f'{text[: first.start]}@{first.name}${between}@{second.name}${text[second.end :]}'


def with_markers(text: str, mentions: Sequence[NamedPlace]) -> str:
    """Both mentions as they are, between markers. The markers of two that overlap are nested or cross."""
    marks = []
    for number, one in enumerate(mentions, 1):
        # Where marks meet, mentions end before others begin; the outer one, or the first of two that are the same,
        # begins first and ends last.
        marks.append((one.start, 1, -one.end, number, f'<e{number}> '))
        marks.append((one.end, 0, -one.start, -number, f' </e{number}>'))
    for at, *_, mark in sorted(marks, reverse=True):
        text = text[:at] + mark + text[at:]
    return text


def as_it_is(text: str, mentions: Sequence[NamedPlace]) -> str:
    """The text alone: nothing says which entities are meant."""
    return text


SHORT = {'CHEMICAL': 'CHEM'}
"""What a name is called in a name for two."""
INPUTS = {
    'dummies': Input('a name in place of each entity, as in the public files', with_dummies, ''),
    'markers': Input('entities as they are, between <e1> </e1> and <e2> </e2>', with_markers, '-markers'),
    'original': Input('entities as they are', as_it_is, '-original'),
}
"""What --input of `bioptimus rebuild` may be; the first one is that of the public files."""


def mentions_in(text: str, markers: bool = False) -> list[tuple[int, int]]:
    """Where the two mentions of a text are, in characters: between markers, with these if `markers`, else the first
    two names. One name for both comes twice; none where a text has neither."""
    marked = [found for form in MARKED if (found := form.search(text))]
    if len(marked) == len(MARKED):
        spans = [found.span(0 if markers else 1) for found in marked]
    else:
        names = [found.span() for found in DUMMY.finditer(text)][:2]
        spans = [names[0], names[-1]] if names else []
    # A blank that a mention begins or ends with is in no piece.
    return [
        (end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())) for start, end in spans
    ]


def searchable(text: str) -> list[str]:
    """The parts of a text that a document has as they are: without markers, and what is between replaced names."""
    return [part for part in DUMMY.split(MARKER.sub('', text)) if part.strip()]
