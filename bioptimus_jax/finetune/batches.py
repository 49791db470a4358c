"""Batches of windows: which of them go together, and padding."""

from collections.abc import Sequence

import numpy as np

BUCKET_BATCHES = 32  # batches of similar length are cut from pools of this many


def bucketed(lengths: Sequence[int], batch: int, seed: tuple[int, ...]) -> list[list[int]]:
    """All indices once, in random batches of similar length; the order is decided by the seed alone."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(lengths))
    pool = batch * BUCKET_BATCHES
    batches = []
    for start in range(0, len(order), pool):
        part = sorted(order[start : start + pool].tolist(), key=lambda i: lengths[i])
        batches += [part[i : i + batch] for i in range(0, len(part), batch)]
    return [batches[i] for i in generator.permutation(len(batches))]


def padded(rows: Sequence[Sequence[int]], padding: int) -> np.ndarray:
    """The rows as one array, as wide as the longest."""
    array = np.full((len(rows), max(map(len, rows))), padding, np.int64)
    for to, row in zip(array, rows, strict=True):
        to[: len(row)] = row
    return array
