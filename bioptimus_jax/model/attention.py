"""Attention within the documents of packed rows, or in a window of them, and dropout.

B rows, L positions, G documents of a row, H heads, K size of a head; N blocks of C queries, S keys of a block.
"""

import dataclasses
import functools
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


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=('start_BxL', 'end_BxL', 'lengths_BxG'),
    meta_fields=('window', 'one_sided'),
)
@dataclasses.dataclass(frozen=True)
class Ranges:
    """What positions attend to: those of their document, from `start` to before `end`, or a window of them.

    `window` counts the places to either side; None: the whole document. `one_sided`: nothing behind the position.
    One interface for all backends: `bounds_BxL` are the keys of each query, and `start_BxL` tells documents apart where
    a kernel takes segment ids. `lengths_BxG`: the pieces of every document, 0 for none, where they are known: packed
    from the first place on, with padding behind them.
    """

    start_BxL: jax.Array
    end_BxL: jax.Array
    window: int | None = None
    one_sided: bool = False
    lengths_BxG: jax.Array | None = None

    @classmethod
    def of(
        cls, segments_BxL: jax.Array, window: int | None = None, lengths_BxG: jax.Array | None = None
    ) -> 'Ranges':
        """The ranges of segment ids: equal ones side by side are a document.

        Padding is segment 0, a document of its own: no other one sees it, and its rows, which nobody reads, stay
        finite because a position always sees itself.
        """
        segments_BxL = jnp.asarray(segments_BxL)
        length, changes = segments_BxL.shape[1], segments_BxL[:, 1:] != segments_BxL[:, :-1]
        places_L = jnp.arange(length, dtype=jnp.int32)
        first_BxL = jnp.pad(changes, ((0, 0), (1, 0)), constant_values=True)
        last_BxL = jnp.pad(changes, ((0, 0), (0, 1)), constant_values=True)
        start_BxL = jax.lax.cummax(jnp.where(first_BxL, places_L[None], 0), axis=1)
        past_BxL = jnp.where(last_BxL, places_L[None] + 1, length)
        end_BxL = jax.lax.cummin(past_BxL, axis=1, reverse=True)
        return cls(start_BxL, end_BxL, window, lengths_BxG=lengths_BxG)

    def within(self, window: int | None) -> 'Ranges':
        """The same documents with another window."""
        return dataclasses.replace(self, window=window)

    @property
    def bounds_BxL(self) -> tuple[jax.Array, jax.Array]:
        """First key of each query, and the place behind its last one."""
        length = self.start_BxL.shape[1]
        behind = 0 if self.one_sided else length if self.window is None else self.window
        if behind == length:
            return self.start_BxL, self.end_BxL
        places_1xL = jnp.arange(length, dtype=jnp.int32)[None]
        before = length if self.window is None else self.window
        first_BxL = jnp.maximum(self.start_BxL, places_1xL - before)
        return first_BxL, jnp.minimum(self.end_BxL, places_1xL + behind + 1)

    @property
    def mask_Bx1xLxL(self) -> jax.Array:
        """Whether each query sees each key."""
        first_BxL, past_BxL = self.bounds_BxL
        places = jnp.arange(first_BxL.shape[1])[None, None, None]
        return (first_BxL[:, None, :, None] <= places) & (places < past_BxL[:, None, :, None])


@dataclasses.dataclass(frozen=True)
class Causal:
    """An attention that sees nothing behind a position; with the signature of `attend`, and static under jit."""

    attend: 'Attend'

    def __call__(
        self,
        query_BxLxHxK: jax.Array,
        key_BxLxHxK: jax.Array,
        value_BxLxHxK: jax.Array,
        ranges: Ranges,
        dropped: Dropped | None = None,
        **terms: jax.Array,
    ) -> jax.Array:
        ranges = dataclasses.replace(ranges, one_sided=True)
        return self.attend(query_BxLxHxK, key_BxLxHxK, value_BxLxHxK, ranges, dropped, **terms)


Attend: TypeAlias = Callable[..., jax.Array]
"""The signature of `attend`, of the kernels, and of what is put in their place."""
SMALLEST_BLOCK = 16  # queries: smaller products are not worth their start


def attend(
    query_BxLxHxK: jax.Array,
    key_BxLxHxK: jax.Array,
    value_BxLxHxK: jax.Array,
    ranges: Ranges,
    dropped: Dropped | None = None,
    bias_BxHxLxL: jax.Array | None = None,
) -> jax.Array:
    """Softmax attention in `ranges`, as BxLxHxK in the type of the values. Scores and softmax are in float32.

    `bias_BxHxLxL`: a term that is added to the scaled scores, which no kernel has; B is 1 where it is that of all rows.

    Where rows are much longer than the window, a query's scores are computed with the keys of three blocks alone, and
    of two where nothing behind it is seen; not with a bias.
    """
    rows, length, heads, head_size = query_BxLxHxK.shape
    if bias_BxHxLxL is not None or attended_keys(length, ranges.window) == length:
        query, key, value = (jnp.swapaxes(x, 1, 2) for x in (query_BxLxHxK, key_BxLxHxK, value_BxLxHxK))
        mixed_BxHxLxK = _weighted(query, key, value, ranges.mask_Bx1xLxL, dropped, bias_BxHxLxL)
        return jnp.swapaxes(mixed_BxHxLxK, 1, 2).astype(value_BxLxHxK.dtype)

    size = _block(ranges.window or 0)
    blocks = -(-length // size)

    def cut(values_BxL: jax.Array) -> jax.Array:
        """Blocks of a whole number of rows: BxNxHxCxK of heads, BxNx1xCx1 of bounds."""
        beyond = ((0, 0), (0, blocks * size - length)) + ((0, 0),) * (values_BxL.ndim - 2)
        shape = (rows, blocks, size, *(values_BxL.shape[2:] or (1, 1)))
        return jnp.swapaxes(jnp.pad(values_BxL, beyond).reshape(shape), 2, 3)

    def with_neighbours(values_BxLxHxK: jax.Array) -> jax.Array:
        """BxNxHxSxK: each block between the one before it and the one after it, if that can be seen."""
        own = cut(values_BxLxHxK)
        none = jnp.zeros_like(own[:, :1])
        before, after = jnp.concatenate((none, own[:, :-1]), 1), jnp.concatenate((own[:, 1:], none), 1)
        return jnp.concatenate([before, own] if ranges.one_sided else [before, own, after], 3)

    first, past = (cut(bound_BxL) for bound_BxL in ranges.bounds_BxL)
    seen = jnp.arange((2 if ranges.one_sided else 3) * size)
    # Keys begin with the block before: in the first block at -C, where no range begins.
    places_NxS = size * (jnp.arange(blocks)[:, None] - 1) + seen[None]
    places = places_NxS[None, :, None, None, :]
    sees_BxNx1xCxS = (first <= places) & (places < past)
    keys, values = with_neighbours(key_BxLxHxK), with_neighbours(value_BxLxHxK)
    mixed_BxNxHxCxK = _weighted(cut(query_BxLxHxK), keys, values, sees_BxNx1xCxS, dropped)
    mixed_BxNCxHxK = jnp.swapaxes(mixed_BxNxHxCxK, 2, 3).reshape(rows, blocks * size, heads, head_size)
    return mixed_BxNCxHxK[:, :length].astype(value_BxLxHxK.dtype)


def attended_keys(length: int, window: int | None) -> int:
    """Keys that plain attention computes the scores of a query with, seen or not."""
    return length if window is None else min(length, 3 * _block(window))


def _block(window: int) -> int:
    """Queries of a block: its own keys and those of its neighbours hold the window of each.

    As few as that allows was fastest on a CPU: for 64 places and 512 pieces 3.7 times plain attention, for 4,096 pieces
    13 times; twice as many were half as fast.
    """
    return max(window, SMALLEST_BLOCK)


def _weighted(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    sees: jax.Array,
    dropped: Dropped | None,
    bias: jax.Array | None = None,
) -> jax.Array:
    """What each query makes of the values whose keys it sees, in float32; the last two axes are places and K."""
    scores = jnp.einsum('...qk,...sk->...qs', query, key, preferred_element_type=jnp.float32)
    scores = scores * query.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    # Not -inf: queries that only fill up a block see no key, and would turn into NaN.
    scores = jnp.where(sees, scores, jnp.finfo(jnp.float32).min)
    # It cancels out in the quotient below, so it needs no gradient.
    highest = jax.lax.stop_gradient(scores.max(axis=-1, keepdims=True))
    weights = jnp.exp(scores - highest)
    # Before dropout, which acts on the softmax: what is dropped still counts in the sum.
    total = weights.sum(axis=-1, keepdims=True)
    weights = weights.astype(value.dtype)
    if dropped is not None:
        weights = dropout(weights, *dropped)
    mixed = jnp.einsum('...qs,...sk->...qk', weights, value, preferred_element_type=jnp.float32)
    return mixed / total  # here and not before: one pass less over all pairs


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
    first, second = (mix_words(seed_2[n] ^ mix_words(jnp.uint32(site + n))) for n in (0, 1))
    draws = mix_words(mix_words(places + mix_words(rows + first)) + mix_words(rows ^ second))
    kept = draws >= jnp.uint32(round(rate * 2**32))
    return jnp.where(kept, values / (1.0 - rate), 0).astype(values.dtype)


def layer_seed(seed_2: jax.Array, number: jax.Array | int) -> jax.Array:
    """The seed of one layer: another two words for every layer, which may be traced."""
    return mix_words(seed_2 ^ mix_words(jnp.uint32(number) + jnp.uint32(1)))


def mix_words(words: jax.Array) -> jax.Array:
    """A bijection of 32-bit words in which every bit in changes every bit out with probability 1/2.

    Two rounds of multiply and shift (C. Wellons's constants 7feb352d, 846ca68b). It fuses into what reads it:
    on a CPU a mask costs 1/20 of the time, and of the compile time, of one from jax.random.
    """
    words = (words ^ (words >> 16)) * jnp.uint32(0x7FEB352D)
    words = (words ^ (words >> 15)) * jnp.uint32(0x846CA68B)
    return words ^ (words >> 16)
