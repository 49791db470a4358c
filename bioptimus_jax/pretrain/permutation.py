"""A seeded order of any number of rows in which every place is computed for itself: nothing as long as the corpus is
made or kept.

The places are encrypted by a block cipher of as many bits as they need, and again until the result is a place
(cycle-walking: Black and Rogaway 2002, Ciphers with arbitrary finite domains, section 3). The cipher is Simon (Beaulieu
et al. 2013, eprint 2013/404, section 3) with four rounds, whose keys are drawn from the seed. So it mixes, and hides
nothing.

B places of a batch, R rows.
"""

import functools
from collections.abc import Sequence

import numpy as np

FEWEST_BITS = 16  # in fewer the cipher leaves patterns
ROUNDS = 4
WORD = 2**32 - 1


class Epochs:
    """The order of so many rows through all epochs, each in an order of its own."""

    def __init__(self, rows: int, seed: int):
        self.rows = rows
        self.seed = int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])

    def __call__(self, index_B: np.ndarray) -> np.ndarray:
        """The row at each of those places, counted through all epochs."""
        epoch_B, place_B = np.divmod(index_B, self.rows)
        row_B = np.empty_like(place_B)
        for epoch in np.unique(epoch_B):
            here = epoch_B == epoch
            row_B[here] = permuted(place_B[here], self.rows, (self.seed + int(epoch)) & WORD)
        return row_B


def permuted(place_B: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Where a seeded permutation of 0 .. rows - 1 takes those places."""
    if rows <= 2**FEWEST_BITS:
        return _table(rows, seed)[place_B]
    bits, keys = _bits(rows), round_keys(seed)
    row_B = _encrypted(place_B, bits, keys)
    while (beyond_B := row_B >= rows).any():
        row_B[beyond_B] = _encrypted(row_B[beyond_B], bits, keys)
    return row_B


@functools.lru_cache(maxsize=16)  # a batch may end one epoch and begin the next, of each of several corpora
def _table(rows: int, seed: int) -> np.ndarray:
    """The whole permutation. Few rows are a small part of what the fewest bits can say, so a walk is long; here all
    walks that have not ended go on from where they are as far as the one that begins there has come."""
    row_R = _encrypted(np.arange(2**FEWEST_BITS), FEWEST_BITS, round_keys(seed))
    while (row_R[:rows] >= rows).any():
        row_R = np.where(row_R >= rows, row_R[row_R], row_R)
    return row_R[:rows].copy()


def _bits(rows: int) -> int:
    """Bits of a block: as many as the last place needs, in two halves."""
    bits = (rows - 1).bit_length()
    return max(FEWEST_BITS, bits + bits % 2)


def _encrypted(value_B: np.ndarray, bits: int, keys: Sequence[int]) -> np.ndarray:
    half, mask = bits // 2, 2 ** (bits // 2) - 1

    def turned(word_B: np.ndarray, by: int) -> np.ndarray:
        return ((word_B << by) | (word_B >> (half - by))) & mask

    def mixed(word_B: np.ndarray) -> np.ndarray:
        return (turned(word_B, 1) & turned(word_B, 8)) ^ turned(word_B, 2)

    left_B, right_B = value_B >> half, value_B & mask
    for first, second in zip(keys[::2], keys[1::2], strict=True):
        left_B = left_B ^ mixed(right_B) ^ (first & mask)
        right_B = right_B ^ mixed(left_B) ^ (second & mask)
    return (left_B << half) | right_B


def round_keys(seed: int, count: int = ROUNDS) -> list[int]:
    """Numbers of 32 bits drawn from one: the seed sequence of C++ (ISO C++17, [rand.util.seedseq]) for few of them."""
    shift = (count - 1) // 2
    near, far = (count - shift) // 2, (count - shift) // 2 + shift
    words = [0x8B8B8B8B] * count

    def folded(word: int) -> int:
        return word ^ (word >> 27)

    for k in range(max(2, count)):
        at = k % count
        drawn = 1664525 * folded(words[at] ^ words[(at + near) % count] ^ words[at - 1]) & WORD
        own = (drawn + (1, at + seed)[k] if k < 2 else drawn + at) & WORD
        words[(at + near) % count] = (words[(at + near) % count] + drawn) & WORD
        words[(at + far) % count] = (words[(at + far) % count] + own) & WORD
        words[at] = own
    for k in range(max(2, count), max(2, count) + count):
        at = k % count
        summed = (words[at] + words[(at + near) % count] + words[at - 1]) & WORD
        drawn = 1566083941 * folded(summed) & WORD
        own = (drawn - at) & WORD
        words[(at + near) % count] ^= drawn
        words[(at + far) % count] ^= own
        words[at] = own
    return words
