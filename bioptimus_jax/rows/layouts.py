"""What a row is packed of: documents, or pairs of texts with two token types. One record each.

The pairs are those of next sentence prediction (Devlin et al. 2019, section 3.1, and the code published with it).
This file does without jax, so that the schema can list the names. A document is its *bounds*: 0, and where each of its
sentences ends, counted in pieces.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bioptimus_jax.config.plugins import Table

TRIES = 10  # to draw another document than the one that the first text is from
SPECIAL = 3  # of a pair: [CLS] A [SEP] B [SEP]


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
    `labelled`: whether there is a choice, so that it can be learned.
    """

    meaning: str
    is_random: Callable[[int, int, float], bool] | None = None
    labelled: bool = False


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
    },
)
"""What `config.rows.layout` may be."""
PAIRED = LAYOUTS.those(lambda one: one.is_random)
"""Layouts of pairs."""


def layout_of(name: str) -> Layout:
    """The record of that name."""
    return LAYOUTS[name]


def make_pairs(
    bounds: Sequence[Sequence[int]],
    longest: int,
    short: float,
    is_random: Callable[[int, int, float], bool],
    generator: np.random.Generator,
) -> Iterator[Pair]:
    """The pairs of some documents, of at most `longest` pieces with the special ones, document after document.

    A chunk is as many sentences as reach the target: all the room or, with probability `short`, a length that is
    drawn once for a document. Its first text is a random number of its sentences. What a random second text replaces
    is not lost: the next chunk begins there. A single sentence that may not have a random one is cut in two.
    """
    room, surplus = longest - SPECIAL, 0
    for document, own in enumerate(bounds):
        target = int(generator.integers(2, room, endpoint=True)) if generator.random() < short else room
        at = 0
        while at < len(own) - 1:
            stop = _reaching(own, at, target)
            sentences = stop - at
            turn = at + (int(generator.integers(1, sentences)) if sentences > 1 else 1)
            random = is_random(sentences, surplus, float(generator.random()))
            surplus += 1 if random else -1
            first, other, second = (own[at], own[turn]), document, (own[turn], own[stop])
            if random:
                other, second = _elsewhere(bounds, document, target - (first[1] - first[0]), generator)
                stop = turn
            elif sentences == 1 and first[1] - first[0] > 1:
                cut = int(generator.integers(first[0] + 1, first[1]))
                first, second = (first[0], cut), (cut, first[1])
            first, second = _cut_to(room, first, second, generator)
            yield Pair(document, first, other, second, random)
            at = stop


def _reaching(bounds: Sequence[int], start: int, wanted: int) -> int:
    """The sentence behind those from `start` that reach so many pieces; one at least, and none beyond the document."""
    stop = start + 1
    while stop < len(bounds) - 1 and bounds[stop] - bounds[start] < wanted:
        stop += 1
    return stop


def _elsewhere(
    bounds: Sequence[Sequence[int]], document: int, wanted: int, generator: np.random.Generator
) -> tuple[int, tuple[int, int]]:
    """Another document, if one is found, and some sentences of it from a random one on."""
    for _ in range(TRIES):
        other = int(generator.integers(len(bounds)))
        if other != document:
            break
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
