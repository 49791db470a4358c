"""A batch is a function of (seed, step): its rows, read where the devices need them."""

import functools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

from bioptimus_jax.pretrain.order import UNMIXED, Order, Pattern
from bioptimus_jax.rows.blocks import MORE, WIDE
from bioptimus_jax.rows.stored import Rows


class Batches:
    """Global batches of B rows, read where the devices of this process need them.

    Resuming means knowing the step; the order is the same on any number of hosts and devices.
    """

    def __init__(
        self,
        rows: Rows,
        batch_rows: int,
        seed: int,
        sharding: jax.sharding.Sharding,
        reads: Sequence[str] = ('tokens', 'word_starts', 'segment_lengths'),
        patterns: Sequence[Pattern] = UNMIXED,
    ):
        self.rows, self.batch_rows, self.sharding = rows, batch_rows, sharding
        # What only some rows say, of words of the tokenizer and of pairs, goes with the words of white space.
        told = tuple(name for name in MORE if name in rows.fields and 'word_starts' in reads)
        self.reads = (*reads, *told)
        self.row_numbers = Order([len(part) for part in rows.parts], batch_rows, seed, patterns)

    def at(self, step: int) -> dict[str, jax.Array]:
        """The global batch at `step` as sharded arrays; each process reads only its own positions."""
        numbers_B = self.row_numbers(step)
        # jax asks for each array and device; devices along `tensor` have the same rows, which are read once.
        read: dict[tuple, dict[str, np.ndarray]] = {}

        def load(name: str, index: tuple[slice, ...]) -> np.ndarray:
            span = index[0].indices(self.batch_rows)
            if span not in read:
                read[span] = self.rows.read(numbers_B[slice(*span)])
            return read[span][name]

        return {
            name: jax.make_array_from_callback(
                (self.batch_rows, self.rows.pieces if name in WIDE else self.rows.segments),
                self.sharding,
                functools.partial(load, name),
            )
            for name in self.reads
        }

    def stream(self, start: int, stop: int) -> Iterator[tuple[int, dict[str, jax.Array], float]]:
        """(step, batch, seconds waited for it) from `start` to `stop`; the next one is read while this one is used."""
        with ThreadPoolExecutor(1) as reader:
            following = reader.submit(self.at, start) if start < stop else None
            for step in range(start, stop):
                assert following is not None
                asked = time.monotonic()
                batch = following.result()
                waited = time.monotonic() - asked
                following = reader.submit(self.at, step + 1) if step + 1 < stop else None
                yield step, batch, waited
