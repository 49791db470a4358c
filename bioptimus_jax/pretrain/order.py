"""Which rows a step reads: of one corpus, or of several by shares that change with the phase.

Each corpus gives the same number of every PATTERN rows of a stretch of steps, evenly spread. Each corpus is read in one
seeded order through all stretches, so a batch is a function of (seed, step), and a resumed run reads what it would have
read.

C corpora, P rows of a pattern, B rows of the global batch, which a stretch may change.
"""

import bisect
import dataclasses
from collections.abc import Sequence

import numpy as np

from bioptimus_jax.pretrain.permutation import Epochs
from bioptimus_jax.pretrain.shares import PATTERN


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A stretch of steps, start <= step < stop, in which corpus c gives `rows_C[c]` of every PATTERN rows.

    `stop` None: without an end. `corpus_P`: the corpus of each row; `before_PxC`: what each corpus gives before it.
    """

    start: int
    stop: int | None
    batch_rows: int
    rows_C: np.ndarray
    corpus_P: np.ndarray
    before_PxC: np.ndarray

    @classmethod
    def of(cls, start: int, rows_C: Sequence[int], stop: int | None, batch_rows: int) -> 'Pattern':
        """The j-th of the k rows of a corpus is as near as can be to (j + 1/2) / k of the pattern."""
        places = np.concatenate([(np.arange(k) + 0.5) / max(k, 1) for k in rows_C])
        corpus_P = np.repeat(np.arange(len(rows_C)), rows_C)[np.argsort(places, kind='stable')]
        given_PxC = np.cumsum(corpus_P[:, None] == np.arange(len(rows_C)), axis=0)
        before_PxC = np.vstack([0 * given_PxC[:1], given_PxC[:-1]])
        return cls(start, stop, batch_rows, np.array(rows_C), corpus_P, before_PxC)

    def given_C(self, rows: int) -> np.ndarray:
        """Rows of each corpus among the first so many of the stretch."""
        cycles, place = divmod(rows, PATTERN)
        return cycles * self.rows_C + self.before_PxC[place]


def unmixed(batch_rows: int) -> tuple[Pattern]:
    """All steps with so many rows of the only corpus."""
    return (Pattern.of(0, [PATTERN], None, batch_rows),)


class Order:
    """The rows of each step, numbered through all corpora; the stretches of `patterns` may leave steps out."""

    def __init__(self, sizes_C: Sequence[int], seed: int, patterns: Sequence[Pattern]):
        self.patterns = patterns
        self.offsets_C = np.cumsum([0, *sizes_C])[:-1]
        self.orders = [Epochs(size, seed) for size in sizes_C]
        self.given = [np.zeros(len(sizes_C), int)]  # of each corpus before each stretch
        for pattern in patterns[:-1]:
            assert pattern.stop is not None
            rows = (pattern.stop - pattern.start) * pattern.batch_rows
            self.given.append(self.given[-1] + pattern.given_C(rows))

    def __call__(self, step: int) -> np.ndarray:
        """The rows of the global batch at `step`, in order."""
        number = bisect.bisect_right([pattern.start for pattern in self.patterns], step) - 1
        pattern = self.patterns[number]
        at_B = (step - pattern.start) * pattern.batch_rows + np.arange(pattern.batch_rows)
        corpus_B, place_B = pattern.corpus_P[at_B % PATTERN], at_B % PATTERN
        # How many rows its corpus gave before each row: in whole patterns, in this pattern, in earlier stretches.
        index_B = at_B // PATTERN * pattern.rows_C[corpus_B] + pattern.before_PxC[place_B, corpus_B]
        index_B += self.given[number][corpus_B]
        row_B = np.empty_like(index_B)
        for corpus in np.unique(corpus_B):
            row_B[corpus_B == corpus] = self.orders[corpus](index_B[corpus_B == corpus])
        return row_B + self.offsets_C[corpus_B]
