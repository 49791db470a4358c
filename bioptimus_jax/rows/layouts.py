"""What a row is packed of: documents, pairs of texts with two token types, or texts in pairs. One record each.

The pairs are those of next sentence prediction (Devlin et al. 2019, section 3.1, and the code published with it). Texts
apart are two documents of a row that do not see each other, one behind the other: what is embedded and compared.
This file does without jax, so that the schema can list the names. A document is its *bounds*: 0, and where each of its
sentences ends, counted in pieces.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from bioptimus_jax.config.plugins import Table

TRIES = 10  # to draw another document than the one that the first text is from
SPECIAL = 3  # of a pair: [CLS] A [SEP] B [SEP]
SPECIAL_APART = 4  # of two texts: [CLS] A [SEP] and [CLS] B [SEP]
Span: TypeAlias = tuple[int, int]
"""A text: its first piece in a document, and the one behind its last."""


class Pair(NamedTuple):
    """Two texts, each a span (begin, end) of the pieces of a document, and whether the second was drawn at random."""

    document: int
    first: tuple[int, int]
    other: int
    second: tuple[int, int]
    random: bool


@dataclasses.dataclass(frozen=True)
class Layout:
    """What rows are packed of.

    `is_random(sentences, surplus, draw)`: whether the second text is drawn at random, for a chunk of so many sentences;
    `surplus`: random pairs so far less true ones, `draw`: uniform in [0, 1). Without it documents are not paired.
    `labelled`: whether there is a choice, so that it can be learned. `apart(bounds)`: the texts of a document that go
    together, two by two, each of which becomes a document of its own; `same`: both are one text; `share`: of the room
    that the first may fill. `cut`: the parts of a text that bounds are the ends of; without it, its sentences.
    """

    meaning: str
    is_random: Callable[[int, int, float], bool] | None = None
    labelled: bool = False
    apart: Callable[[Sequence[int]], Iterable[tuple[Span, Span]]] | None = None
    same: bool = False
    share: float = 0.5
    cut: Callable[[str], list[str]] | None = None


def first_and_rest(bounds: Sequence[int]) -> list[tuple[Span, Span]]:
    """The first part of a document and all that follows it; nothing of a document with one part."""
    return [((bounds[0], bounds[1]), (bounds[1], bounds[-1]))] if len(bounds) > 2 else []


def two_by_two(bounds: Sequence[int]) -> list[tuple[Span, Span]]:
    """The first part of a document and the second, the third and the fourth; an odd last one is left out."""
    parts = list(itertools.pairwise(bounds))
    return list(zip(parts[::2], parts[1::2], strict=False))


def twice(bounds: Sequence[int]) -> list[tuple[Span, Span]]:
    """The whole document, and once more."""
    return [((bounds[0], bounds[-1]),) * 2]


def lines(text: str) -> list[str]:
    """The lines of a document that are not blank."""
    return [line for line in text.split('\n') if line.strip()]


LAYOUTS: Table[Layout] = Table(
    'LAYOUTS',
    {
        'documents': Layout('whole documents, and parts of long ones'),
        'pairs': Layout(
            'two texts with token types 0 and 1; the second follows, or is drawn at random (with probability 0.5, and '
            "always after a document's last sentence), as in BERT: 0.58 of them are",
            lambda sentences, surplus, draw: sentences == 1 or draw < 0.5,
            labelled=True,
        ),
        'pairs_exact_half': Layout(
            'the same, but as many are drawn at random as follow',
            lambda sentences, surplus, draw: sentences == 1 or surplus < 0 or (surplus == 0 and draw < 0.5),
            labelled=True,
        ),
        'two_segments': Layout('the same, but the second always follows', lambda *_: False),
        'first_line': Layout(
            'texts in pairs, to be embedded: the first line of a document and the rest (title and abstract, or the two '
            'fields that corpus.text_fields names)',
            apart=first_and_rest,
            share=0.25,
            cut=lines,
        ),
        'neighbours': Layout('the same, of sentences that follow one another', apart=two_by_two),
        'twice': Layout(
            'the same, of each document and itself, which dropout tells apart', apart=twice, same=True
        ),
    },
)
"""What `config.rows.layout` may be."""
PAIRED = LAYOUTS.those(lambda one: one.is_random)
"""Layouts of pairs."""


APART = LAYOUTS.those(lambda one: one.apart)
"""Layouts of texts in pairs."""


def layout_of(name: str) -> Layout:
    """The record of that name."""
    return LAYOUTS[name]


def make_pairs(
    bounds: Sequence[Sequence[int]],
    longest: int,
    short: float,
    is_random: Callable[[int, int, float], bool],
    generator: np.random.Generator,
    lent: Sequence[Sequence[int]] = (),
) -> Iterator[Pair]:
    """The pairs of some documents, of at most `longest` pieces with the special ones, document after document.

    Random texts are of another one of them, or of those that are `lent`, whose numbers come behind; where there is no
    other document no text is random.

    A chunk is as many sentences as reach the target: all the room or, with probability `short`, a length that is
    drawn once for a document. Its first text is a random number of its sentences. What a random second text replaces
    is not lost: the next chunk begins there. A single sentence that may not have a random one is cut in two.
    """
    room, surplus, drawn_from = longest - SPECIAL, 0, [*bounds, *lent]
    for document, own in enumerate(bounds):
        target = int(generator.integers(2, room, endpoint=True)) if generator.random() < short else room
        at = 0
        while at < len(own) - 1:
            stop = _reaching(own, at, target)
            sentences = stop - at
            turn = at + (int(generator.integers(1, sentences)) if sentences > 1 else 1)
            random = is_random(sentences, surplus, float(generator.random())) and len(drawn_from) > 1
            surplus += 1 if random else -1
            first, other, second = (own[at], own[turn]), document, (own[turn], own[stop])
            if random:
                other, second = _elsewhere(drawn_from, document, target - (first[1] - first[0]), generator)
                stop = turn
            elif sentences == 1 and first[1] - first[0] > 1:
                cut = int(generator.integers(first[0] + 1, first[1]))
                first, second = (first[0], cut), (cut, first[1])
            first, second = _cut_to(room, first, second, generator)
            yield Pair(document, first, other, second, random)
            at = stop


def fitting(longest: int, share: float, first: Span, second: Span) -> tuple[Span, Span]:
    """The beginnings of two texts that have room in `longest` pieces with the special ones of both.

    The first has that `share` of the room and the second the rest, whatever the other needs: if one was cut by the
    other, the length of each would say what the other's is, and texts would be told by their lengths alone.
    """
    room = longest - SPECIAL_APART
    most = max(round(share * room), 1)
    return (
        (first[0], min(first[1], first[0] + most)),
        (second[0], min(second[1], second[0] + room - most)),
    )


def _reaching(bounds: Sequence[int], start: int, wanted: int) -> int:
    """The sentence behind those from `start` that reach so many pieces; one at least, and none beyond the document."""
    stop = start + 1
    while stop < len(bounds) - 1 and bounds[stop] - bounds[start] < wanted:
        stop += 1
    return stop


def _elsewhere(
    bounds: Sequence[Sequence[int]], document: int, wanted: int, generator: np.random.Generator
) -> tuple[int, tuple[int, int]]:
    """Another document, and some sentences of it from a random one on."""
    for _ in range(TRIES):
        other = int(generator.integers(len(bounds)))
        if other != document:
            break
    else:  # of two documents, one in a thousand times
        other = (document + 1) % len(bounds)
    start = int(generator.integers(len(bounds[other]) - 1))
    return other, (bounds[other][start], bounds[other][_reaching(bounds[other], start, wanted)])


def _cut_to(
    room: int, first: tuple[int, int], second: tuple[int, int], generator: np.random.Generator
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Both texts, cut to that room: piece by piece the longer one, or the second, loses its first or its last."""
    texts = [list(first), list(second)]
    lengths = [end - begin for begin, end in texts]
    for at_front in generator.random(max(sum(lengths) - room, 0)) < 0.5:
        longer = 0 if lengths[0] > lengths[1] else 1
        lengths[longer] -= 1
        texts[longer][0 if at_front else 1] += 1 if at_front else -1
    return (texts[0][0], texts[0][1]), (texts[1][0], texts[1][1])
