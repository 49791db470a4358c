"""Masking strategies: which pieces are drawn together. One record each, and the table is all that names them.

Legend: L pieces a row.

This file does without jax, so that the schema can list the names. The arrays are numpy's or jax's.
"""

import dataclasses
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Strategy:
    """Where units begin, and how long a unit may be.

    `begins(words_L, draws_L)` is True where a unit begins: `words_L` is True where a word begins, `draws_L` is a number
    in [0, 1) for each piece, drawn for this alone. The step computes it for every row, under any phase, so it has
    operators on arrays and no `if`. Special tokens and padding part units whatever it says.
    `longest`: longer units are cut after so many pieces; 0: `config.pretrain.max_word_pieces`.
    """

    begins: Callable[[Any, Any], Any]
    longest: int = 0


MASKINGS: dict[str, Strategy] = {
    'tokens': Strategy(lambda words_L, draws_L: words_L | True, longest=1),
    'words': Strategy(lambda words_L, draws_L: words_L),
}
"""What `config.phase.NAME.masking` may be."""


def number_of(masking: str) -> int:
    """The strategy's number, by which the compiled step knows it."""
    return list(MASKINGS).index(masking)


def begins_of(masking: str, words_L: Any, draws_L: Any) -> Any:
    """Where the units of a strategy begin."""
    return MASKINGS[masking].begins(words_L, draws_L)


def longest_unit(masking: str, max_word_pieces: int) -> int:
    """Pieces of the strategy's longest unit."""
    return MASKINGS[masking].longest or max_word_pieces
