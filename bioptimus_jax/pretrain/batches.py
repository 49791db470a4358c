"""A batch is a function of (seed, step): its rows, read where the devices need them."""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from bioptimus_jax.pretrain.order import Order, Pattern, unmixed
from bioptimus_jax.rows.blocks import MORE, WIDE
from bioptimus_jax.rows.stored import Rows


class Batches:
    """Global batches of B rows of one shape, read where the devices of this process need them.

    Resuming means knowing the step; the order is the same on any number of hosts and devices.
    """

    def __init__(
        self,
        rows: Rows,
        patterns: Sequence[Pattern] | int,
        seed: int,
        sharding: jax.sharding.Sharding,
        reads: Sequence[str] = ('tokens', 'word_starts', 'segment_lengths'),
    ):
        """`patterns`: which rows are read when, or the number of rows in every batch of the only corpus."""
        self.rows, self.sharding = rows, sharding
        # What only some rows say, of words of the tokenizer and of pairs, goes with the words of white space.
        told = tuple(name for name in MORE if name in rows.fields and 'word_starts' in reads)
        self.reads = (*reads, *told)
        patterns = unmixed(patterns) if isinstance(patterns, int) else patterns
        self.row_numbers = Order([len(part) for part in rows.parts], seed, patterns)

    def at(self, step: int) -> dict[str, jax.Array]:
        """The global batch at `step` as sharded arrays; each process reads only its own positions."""
        numbers_B = self.row_numbers(step)
        count = len(numbers_B)
        # jax asks for each array and device; devices along `tensor` have the same rows, which are read once.
        read: dict[tuple, dict[str, np.ndarray]] = {}

        def load(name: str, index: tuple[slice, ...]) -> np.ndarray:
            span = index[0].indices(count)
            if span not in read:
                read[span] = self.rows.read(numbers_B[slice(*span)])
            return read[span][name]

        return {
            name: jax.make_array_from_callback(
                (count, self.rows.pieces if name in WIDE else self.rows.segments),
                self.sharding,
                functools.partial(load, name),
            )
            for name in self.reads
        }


def stream(
    at: Callable[[int], dict[str, jax.Array]], start: int, stop: int
) -> Iterator[tuple[int, dict[str, jax.Array], float]]:
    """(step, batch, seconds waited for it) from `start` to `stop`; the next one is read while this one is used."""
    with ThreadPoolExecutor(1) as reader:
        following = reader.submit(at, start) if start < stop else None
        for step in range(start, stop):
            assert following is not None
            asked = time.monotonic()
            batch = following.result()
            waited = time.monotonic() - asked
            following = reader.submit(at, step + 1) if step + 1 < stop else None
            yield step, batch, waited
