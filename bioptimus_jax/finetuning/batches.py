"""Batches of windows: which of them go together, how a batch is computed with little padding, and padding."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

PART_COST = 32  # one more part costs about as much as this many pieces (MiniLM, two cores)


def drawn(windows: int, batch: int, seed: tuple[int, ...]) -> list[list[int]]:
    """All indices below `windows` once, in random batches; the seed alone decides.

    Batches of similar length need less padding, but length tells something about the answer, and the papers draw theirs
    at random: scores would not compare.
    """
    order = np.random.default_rng(seed).permutation(windows).tolist()
    return [order[start : start + batch] for start in range(0, windows, batch)]


def parts(lengths: Sequence[int]) -> list[list[int]]:
    """The indices of a batch in parts of similar length: those that cost least to compute one after the other."""
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    # An exact cut by dynamic programming: an optimal one is contiguous in the order of lengths.
    # For the 0, 1, 2 ... shortest windows: the least cost, and where the last part then begins.
    least, begins = [0], [0]
    for end, last in enumerate(order, 1):
        # The last window of a part is its longest, so all of them are padded to it.
        cost, begin = min((least[b] + (end - b) * lengths[last] + PART_COST, b) for b in range(end))
        least.append(cost)
        begins.append(begin)
    cut, end = [], len(order)
    while end:
        cut.append(order[begins[end] : end])
        end = begins[end]
    return cut[::-1]


def by_length(lengths: Sequence[int], most: int, most_pieces: float = math.inf) -> Iterator[list[int]]:
    """All indices in batches of similar length, of at most so many windows, and padded pieces where there are two."""
    assert most > 0, 'the keys that follow the model are numbers by now'
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if batch and (len(batch) == most or (len(batch) + 1) * lengths[i] > most_pieces):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]], padding: int) -> np.ndarray:
    """The rows as one array, as wide as the longest."""
    array = np.full((len(rows), max(map(len, rows))), padding, np.int64)
    for to, row in zip(array, rows, strict=True):
        to[: len(row)] = row
    return array
