"""Masking strategies: which pieces are drawn together, and how often. One record each, and the table names them all.

Legend: L pieces a row.

This file does without jax, so that the schema can list the names. The arrays are numpy's or jax's.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.config.plugins import Table
from bioptimus_jax.pretrain.unit_weights import Weights


@dataclasses.dataclass(frozen=True)
class Strategy:
    """Where units begin, how long a unit may be, and, if these are not all alike, how often each is taken.

    `unit_starts(words_L, draws_L)` is True where a unit begins: `words_L` is True where a word begins, `draws_L` is a
    number in [0, 1) for each piece, drawn for this alone. The step computes it for every row, under any of its phases,
    so it has operators on arrays and no `if`. Special tokens and padding part units whatever it says.

    One of these says how long a unit is at most, and longer ones are cut. `words`: so many words, and no unit begins or
    ends within a word; a word of more than `config.pretrain.max_word_pieces` pieces counts as several words of so many.
    `pieces`: so many pieces, wherever words begin.

    `weights`: of the next unit to be taken each one that is left is as likely as its weight, the mean over its pieces,
    says (`unit_weights`). What weighs 0 is never taken, and parts units as special tokens do: a word all of whose
    pieces weigh 0, or, where units have so many `pieces`, a piece. `rate(rate, draw)`: the masking rate of a row, given
    that of the phase and a number in [0, 1) that is drawn for this alone.
    """

    unit_starts: Callable[[Any, Any], Any]
    words: int = 0
    pieces: int = 0
    weights: Weights | None = None
    rate: Callable[[Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        """Raise ValueError unless one of the two lengths is given."""
        if (self.words > 0) == (self.pieces > 0):
            raise ValueError('a masking strategy has either `words` or `pieces`: how many a unit has at most')


NEWTON_STEPS = 12
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
    return MASKINGS[masking].unit_starts(words_L, draws_L)


def strategy_of(masking: str) -> Strategy:
    """The record of that name."""
    return MASKINGS[masking]


def limits(masking: str, max_word_pieces: int) -> tuple[int, int]:
    """Pieces of the longest part, a word or a single piece, which is never cut, and parts of the longest unit."""
    strategy = MASKINGS[masking]
    return (max_word_pieces, strategy.words) if strategy.words else (1, strategy.pieces)


def longest_unit(masking: str, max_word_pieces: int) -> int:
    """Pieces of the strategy's longest unit."""
    part, parts = limits(masking, max_word_pieces)
    return part * parts


def row_rates(masking: str, rates: Sequence[float]) -> tuple[float, float]:
    """The mean and the highest masking rate of rows, where that of the phase goes from the first of these to the last.

    By many draws for each of many rates, so that a strategy has nothing to say but its function.
    """
    of_row = MASKINGS[masking].rate
    if of_row is None:
        return sum(rates) / len(rates), max(rates)
    draws = np.linspace(0, 1, 2001)
    found = np.stack([of_row(rate, draws) + 0 * draws for rate in np.linspace(rates[0], rates[-1], 21)])
    return float(found.mean()), float(found.max())


def weight_files(maskings: Iterable[str]) -> list[Path]:
    """The files that the weights of those strategies are read from. Raises InputError for one that is malformed."""
    files = list[Path]()
    for masking in maskings:
        if weights := MASKINGS[masking].weights:
            weights.check()
            files += weights.files
    return files


def overshoot(weights_L: Any, lengths_L: Any, taken: Any, xp: Any) -> Any:
    """The mean number of pieces by which weighted units overshoot a budget of `taken` pieces.

    `weights_L`: those of each piece's unit, 0 where it may not be taken; `lengths_L`: its length; `xp`: numpy or jax's.
    """
    # Each unit waits for a time that is exponential in its weight, and those that come first are taken. Where t is the
    # time when so many pieces are expected to be taken, a piece's unit is the next to come with the odds
    # weight * exp(-weight * t). What is taken is a concave function of t, so Newton's steps rise to t from below.
    weights_L = weights_L / xp.maximum(weights_L.sum() / xp.maximum((weights_L > 0).sum(), 1), 1e-30)
    wanted, time = xp.minimum(taken, 0.999 * (weights_L > 0).sum()), 0.0
    for _ in range(NEWTON_STEPS):
        left_L = xp.exp(-weights_L * time)
        rate = xp.maximum((weights_L * left_L).sum(), 1e-30)
        time = time + (wanted - (1 - left_L).sum()) / rate
    odds_L = weights_L * xp.exp(-weights_L * time)
    return (odds_L * (lengths_L - 1)).sum() / xp.maximum(odds_L.sum(), 1e-30) / 2


def apart(maskable_L: Any, xp: Any) -> Any:
    """True at what may not be masked and behind it: there units begin, whatever a strategy says."""
    return ~maskable_L | ~xp.pad(maskable_L[:-1], (1, 0))


def limited_starts(
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
