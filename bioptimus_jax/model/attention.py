"""Attention within the documents of packed rows, and dropout.

B rows, L positions, H heads, K size of a head.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp


class Dropped(NamedTuple):
    """What of the attention weights is dropped: the arguments of `dropout`."""

    rate: float
    seed_2: jax.Array
    site: int


Attend: TypeAlias = Callable[..., jax.Array]
"""The signature of `attend`, of the kernels, and of what is put in their place."""


def attend(
    query_BxLxHxK: jax.Array,
    key_BxLxHxK: jax.Array,
    value_BxLxHxK: jax.Array,
    segments_BxL: jax.Array,
    dropped: Dropped | None = None,
) -> jax.Array:
    """Softmax attention among positions of equal segment id, as BxLxHxK in the type of the values.

    Padding is segment 0, a segment of its own: no document sees it, and its rows, which nobody reads, stay
    finite because a position always sees itself. Scores and softmax are in float32.
    """
    scale = query_BxLxHxK.shape[-1] ** -0.5
    query_BxHxLxK, key_BxHxLxK, value_BxHxLxK = (
        jnp.swapaxes(heads, 1, 2) for heads in (query_BxLxHxK, key_BxLxHxK, value_BxLxHxK)
    )
    scores_BxHxLxL = jnp.einsum(
        'bhqk,bhsk->bhqs', query_BxHxLxK, key_BxHxLxK, preferred_element_type=jnp.float32
    )
    same_Bx1xLxL = segments_BxL[:, None, :, None] == segments_BxL[:, None, None, :]
    scores_BxHxLxL = jnp.where(same_Bx1xLxL, scores_BxHxLxL * scale, jnp.finfo(jnp.float32).min)
    highest_BxHxLx1 = jax.lax.stop_gradient(scores_BxHxLxL.max(axis=-1, keepdims=True))
    weights_BxHxLxL = jnp.exp(scores_BxHxLxL - highest_BxHxLx1)
    total_BxHxLx1 = weights_BxHxLxL.sum(axis=-1, keepdims=True)
    weights_BxHxLxL = weights_BxHxLxL.astype(value_BxLxHxK.dtype)
    if dropped is not None:
        weights_BxHxLxL = dropout(weights_BxHxLxL, *dropped)
    mixed_BxHxLxK = jnp.einsum(
        'bhqs,bhsk->bhqk', weights_BxHxLxL, value_BxHxLxK, preferred_element_type=jnp.float32
    )
    # Divided here and not before: one pass less over LxL.
    return jnp.swapaxes(mixed_BxHxLxK / total_BxHxLx1, 1, 2).astype(value_BxLxHxK.dtype)


def dropout(values: jax.Array, rate: float, seed_2: jax.Array, site: int) -> jax.Array:
    """`values` with a share `rate` of zeros and the rest scaled up to keep the mean.

    Whether an element stays depends on the two words of `seed_2`, on `site`, which tells the places of a
    model apart, and on the element's place in the whole array: not on the sharding, and on nothing drawn
    before. The first axis is that of rows; places count within a row, so 32 bits suffice for any batch.
    """
    if rate == 0.0:
        return values
    axes = range(1, values.ndim)
    rows = jax.lax.broadcasted_iota(jnp.uint32, (values.shape[0],) + (1,) * len(axes), 0)
    steps = [jnp.uint32(math.prod(values.shape[axis + 1 :])) for axis in axes]
    within = (1, *values.shape[1:])
    places = sum(jax.lax.broadcasted_iota(jnp.uint32, within, axis) * step for axis, step in zip(axes, steps))
    first, second = (_mix(seed_2[n] ^ _mix(jnp.uint32(site + n))) for n in (0, 1))
    draws = _mix(_mix(places + _mix(rows + first)) + _mix(rows ^ second))
    kept = draws >= jnp.uint32(round(rate * 2**32))
    return jnp.where(kept, values / (1.0 - rate), 0).astype(values.dtype)


def layer_seed(seed_2: jax.Array, number: jax.Array | int) -> jax.Array:
    """The seed of one layer: another two words for every layer, which may be traced."""
    return _mix(seed_2 ^ _mix(jnp.uint32(number) + jnp.uint32(1)))


def _mix(words: jax.Array) -> jax.Array:
    """A bijection of 32-bit words in which every bit in changes every bit out with probability 1/2.

    Two rounds of multiply and shift (C. Wellons's constants 7feb352d, 846ca68b). It fuses into what reads it:
    on a CPU a mask costs 1/20 of the time, and of the compile time, of one from jax.random.
    """
    words = (words ^ (words >> 16)) * jnp.uint32(0x7FEB352D)
    words = (words ^ (words >> 15)) * jnp.uint32(0x846CA68B)
    return words ^ (words >> 16)
