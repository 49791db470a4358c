"""Relative positions: a term of attention's scores that depends on how far a key is from its query.

L places of a row, O = 2L - 1 distances from a query to a key, those from 1 - L to L - 1, H heads. Places tell the
distance: the pieces of a document lie side by side, and what is between two documents is not attended to.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np


def distances_O(length: int) -> np.ndarray:
    """The distances from a query to a key in a row of that many places, the farthest before it first."""
    return np.arange(1 - length, length)


def spread(terms_xLxO: jax.Array) -> jax.Array:
    """Terms of queries and keys, [..., L, L], of those of queries and distances."""
    *others, length, count = terms_xLxO.shape
    # A row that is one longer than there are distances begins one place later each time: no gather, whose gradient
    # would add up all pairs one by one.
    rows = jnp.pad(terms_xLxO, [(0, 0)] * (len(others) + 1) + [(0, 1)])
    flat = rows.reshape(*others, length * (count + 1))[..., length - 1 : length - 1 + length * count]
    return flat.reshape(*others, length, count)[..., :length]


def t5_buckets(distances: np.ndarray, buckets: int, farthest: int = 128) -> np.ndarray:
    """T5's bucket of each distance (Raffel et al. 2020), in MPNet's order: keys behind a query come last.

    Half of the buckets of a side are of one distance each; the others grow, and the last has all from `farthest` on.
    """
    of_side = buckets // 2
    exact = of_side // 2
    far = np.abs(distances)
    # As in PyTorch: float32 throughout, and cut off.
    grown = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(exact)) / np.float32(
        math.log(farthest / exact)
    )
    log_buckets = exact + (grown * np.float32(of_side - exact)).astype(np.int32)
    within = np.where(far < exact, far, np.minimum(log_buckets, of_side - 1))
    return np.asarray(within + (distances > 0) * of_side)


def log_buckets(distances: np.ndarray, buckets: int, farthest: int) -> np.ndarray:
    """DeBERTa's row of each distance (He et al. 2021, arXiv 2111.09543), from 0 for keys far behind a query.

    As many `buckets` to each side; half of them are of one distance each, the others grow up to `farthest`. With 0
    buckets every distance below `farthest` has its own row.
    """
    before = -distances
    side, exact = buckets or farthest, buckets // 2
    if buckets and farthest - 1 > exact:
        far = np.abs(before)
        grown = np.log(np.maximum(far, exact).astype(np.float32) / np.float32(exact)) / np.log(
            np.float32((farthest - 1) / exact)
        )
        rounded = np.ceil(grown * np.float32(exact - 1)) + exact
        before = np.where(far <= exact, before, rounded * np.sign(before)).astype(np.int64)
    return np.asarray(np.clip(before + side, 0, 2 * side - 1))
