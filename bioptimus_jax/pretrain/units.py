"""Masking strategies: which pieces are drawn together. One record each, and the table is all that names them.

Legend: L pieces a row.

This file does without jax, so that the schema can list the names. The arrays are numpy's or jax's.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bioptimus_jax.config.plugins import Table


@dataclasses.dataclass(frozen=True)
class Strategy:
    """Where units begin, and how long a unit may be.

    `begins(words_L, draws_L)` is True where a unit begins: `words_L` is True where a word begins, `draws_L` is a number
    in [0, 1) for each piece, drawn for this alone. The step computes it for every row, under any of its phases, so it
    has operators on arrays and no `if`. Special tokens and padding part units whatever it says.

    One of these says how long a unit is at most, and longer ones are cut. `words`: so many words, and no unit begins or
    ends within a word; a word of more than `config.pretrain.max_word_pieces` pieces counts as several words of so many.
    `pieces`: so many pieces, wherever words begin.
    """

    begins: Callable[[Any, Any], Any]
    words: int = 0
    pieces: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError unless one of the two lengths is given."""
        if (self.words > 0) == (self.pieces > 0):
            raise ValueError('a masking strategy has either `words` or `pieces`: how many a unit has at most')


MASKINGS: Table[Strategy] = Table(
    'MASKINGS',
    {
        'tokens': Strategy(lambda words_L, draws_L: words_L | True, pieces=1),
        'words': Strategy(lambda words_L, draws_L: words_L, words=1),
    },
)
"""What `config.phase.NAME.masking` may be."""


def number_of(masking: str) -> int:
    """The strategy's number, by which the compiled step knows it."""
    return list(MASKINGS).index(masking)


def in_order(maskings: Iterable[str]) -> tuple[str, ...]:
    """The names, each once, in the order of the table."""
    return tuple(sorted({*maskings}, key=number_of))


def begins_of(masking: str, words_L: Any, draws_L: Any) -> Any:
    """Where the units of a strategy begin."""
    return MASKINGS[masking].begins(words_L, draws_L)


def limits(masking: str, max_word_pieces: int) -> tuple[int, int]:
    """Pieces of the longest part, a word or a single piece, which is never cut, and parts of the longest unit."""
    strategy = MASKINGS[masking]
    return (max_word_pieces, strategy.words) if strategy.words else (1, strategy.pieces)


def longest_unit(masking: str, max_word_pieces: int) -> int:
    """Pieces of the strategy's longest unit."""
    part, parts = limits(masking, max_word_pieces)
    return part * parts


def unit_starts(
    begins_L: Any, words_L: Any, apart_L: Any, part: Any, parts: Any, cummax: Callable[[Any], Any]
) -> Any:
    """True where a unit begins that is cut to the `limits` of its strategy, `part` pieces and `parts` of these.

    `begins_L`: what the strategy says; `words_L`: where a word begins; `apart_L`: where both begin, whatever they say;
    `cummax`: the largest so far, of numpy or jax.
    """
    index_L = np.arange(len(words_L))
    parts_L = words_L | apart_L
    parts_L = parts_L | ((index_L - cummax(parts_L * index_L)) % part == 0)
    if isinstance(parts, int) and parts == 1:  # known before anything is compiled
        return parts_L
    # Where a part is a word, no unit begins within it.
    starts_L = (begins_L & parts_L) | apart_L
    number_L = parts_L.cumsum()
    return starts_L | (parts_L & ((number_L - cummax(starts_L * number_L)) % parts == 0))
