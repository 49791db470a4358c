"""Batches of windows: packed into rows of few lengths, and the places of the pieces whose states are read.

W: windows, E: entries of a reading, P: different pieces among them, B: rows of a batch, L: pieces a row, S: devices
("shards") that share the rows of a batch, K: slots of a shard.
"""

import dataclasses

import numpy as np

from bioptimus_jax.rows.packing import best_fit
from bioptimus_jax.surgery.reading import StateReading

ROW_LENGTHS = (128, 256, 512)
SLOT_STEPS = 16  # numbers of slots that a shape can have: few, because each is compiled


@dataclasses.dataclass(frozen=True)
class WindowBatch:
    """Rows, the slots of each shard, and for every entry that the batch answers the slot, of all S * K, of its piece.

    A slot is a place among the pieces of its shard, row after row; `segments` is 0 for padding and another number
    for every window. `windows`: how many the batch holds.
    """

    tokens_BxL: np.ndarray
    segments_BxL: np.ndarray
    positions_BxL: np.ndarray
    slots_SxK: np.ndarray
    entries: np.ndarray
    slot_of_entry: np.ndarray
    windows: int


class BatchLayout:
    """The batches of a reading, each made when it is asked for; a function of the arguments alone.

    A batch has at most `batch_pieces` places, but one row a shard at least. All batches of one row length have one
    shape. `longest`: pieces of a window at most.
    """

    def __init__(self, reading: StateReading, batch_pieces: int, longest: int, shards: int):
        self.reading, self.shards = reading, shards
        self.lengths_W = np.array([len(window) for window in reading.windows], np.int64)
        numbers = np.arange(len(reading.windows) + 1)
        self.by_window_E = np.argsort(reading.window, kind='stable')
        self.entry_edges = np.searchsorted(reading.window[self.by_window_E], numbers)
        # A piece that is read for two tokens has one slot.
        pieces_E = reading.window * longest + reading.position
        pieces_P, self.piece_E = np.unique(pieces_E, return_inverse=True)
        self.piece_edges = np.searchsorted(pieces_P, numbers * longest)
        self.position_P = pieces_P % longest
        self.slot_P = np.zeros(len(pieces_P), np.int64)  # of the batch that is being made
        self.planned: list[tuple[list[np.ndarray], int, int, int]] = []  # windows of each row, B, L, K
        self._plan(batch_pieces, longest)

    def __len__(self) -> int:
        return len(self.planned)

    def windows_before(self, number: int) -> int:
        """Windows in the batches before that one."""
        return sum(len(row) for rows, *_ in self.planned[:number] for row in rows)

    def _plan(self, batch_pieces: int, longest: int) -> None:
        allowed = sorted({min(length, longest) for length in ROW_LENGTHS} | {longest})
        pieces_W = np.diff(self.piece_edges)
        row_length_W = np.searchsorted(allowed, self.lengths_W)
        for index, length in reversed(list(enumerate(allowed))):
            members = np.flatnonzero(row_length_W == index)
            rows = [members[row] for row in best_fit(self.lengths_W[members].tolist(), length)]
            # Rows of a shard: what the places allow, but no more than all rows shared out evenly. Consecutive rows
            # lie on one shard, so `filled` counts the pieces of each.
            share = max(min(batch_pieces // length, len(rows) + self.shards - 1) // self.shards, 1)
            filled = [sum(pieces_W[r].sum() for r in rows[i : i + share]) for i in range(0, len(rows), share)]
            # All batches of a length have as many slots as the fullest, rounded up: one shape, compiled once.
            step = -(-share * length // SLOT_STEPS)
            slots = -(-max(filled, default=0) // step) * step
            count = share * self.shards
            self.planned += [(rows[i : i + count], count, length, slots) for i in range(0, len(rows), count)]

    def batch(self, number: int) -> WindowBatch:
        """The batch of that number."""
        rows, count, length, slots = self.planned[number]
        windows = np.concatenate(rows)
        lengths = self.lengths_W[windows]
        row = np.repeat(np.arange(len(rows)), [len(members) for members in rows])
        # Where a window begins: behind those before it in its row, whose lengths are summed over all rows first.
        begun = np.cumsum(lengths) - lengths
        first = np.searchsorted(row, np.arange(len(rows)))
        at = row * length + begun - begun[first][row]
        places = _spans(at, lengths)
        tokens, segments, positions = columns = np.zeros((3, count * length), np.int32)
        tokens[places] = np.concatenate([self.reading.windows[window] for window in windows])
        segments[places] = np.repeat(np.arange(1, len(windows) + 1), lengths)
        positions[places] = _spans(np.zeros_like(at), lengths)
        pieces = _members(self.piece_edges, windows)
        places = np.repeat(at, np.diff(self.piece_edges)[windows]) + self.position_P[pieces]
        shard, place = np.divmod(places, count // self.shards * length)
        nth = np.arange(len(pieces)) - np.searchsorted(shard, shard)  # among the pieces of its shard
        slots_SxK = np.zeros((self.shards, slots), np.int32)
        slots_SxK[shard, nth] = place
        self.slot_P[pieces] = shard * slots + nth
        entries = self.by_window_E[_members(self.entry_edges, windows)]
        slot_of_entry = self.slot_P[self.piece_E[entries]]
        tokens_BxL, segments_BxL, positions_BxL = columns.reshape(3, count, length)
        return WindowBatch(
            tokens_BxL, segments_BxL, positions_BxL, slots_SxK, entries, slot_of_entry, len(windows)
        )


def _members(edges: np.ndarray, windows: np.ndarray) -> np.ndarray:
    return _spans(edges[windows], np.diff(edges)[windows])


def _spans(firsts: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """first, first + 1, ... for every span, one span after the other."""
    ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(firsts - (ends - counts), counts)
