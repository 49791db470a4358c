"""Frozen masks of the held-out documents, for every objective that masks.

The training loss jumps between phases and compares nothing. Here every document has one mask per setting, keyed by
(evaluation seed, document), the same in every run with the same vocabulary.
"""

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bioptimus_jax.pretrain.config import HasTraining, Phase
from bioptimus_jax.pretrain.masking import Masked, Masker, MaskingParams, slot_count
from bioptimus_jax.pretrain.units import row_rates
from bioptimus_jax.rows.blocks import Block, RowPairs, positions_and_segments
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.storage.files import atomic
from bioptimus_jax.tokenizer.subwords import Vocabulary

FROZEN, FROZEN_WORDS = 'frozen', 'frozen_words'
BATCH_ROWS = 64
"""Held-out rows that are scored together."""


@dataclasses.dataclass(frozen=True)
class FrozenMasks:
    """Held-out rows and, per setting, their masks; [N, B, ...] in N equal batches (the last one padded)."""

    segments_NxBxL: np.ndarray
    positions_NxBxL: np.ndarray
    masked: dict[str, Masked]
    pairs: RowPairs | None = None

    def batches(self, name: str) -> Iterator[tuple]:
        """(masked, segments, positions) of each batch under one setting, and of rows of pairs also these."""
        arrays = (self.masked[name], self.segments_NxBxL, self.positions_NxBxL, *filter(None, [self.pairs]))
        for number in range(len(self.segments_NxBxL)):
            yield jax.tree.map(lambda x, n=number: x[n], arrays)

    def save(self, path: Path) -> None:
        """Store the masks, so that anybody can score exactly the same positions."""
        arrays = {'segments': self.segments_NxBxL, 'positions': self.positions_NxBxL}
        if self.pairs:
            arrays |= {'token_types': self.pairs.types_BxL, 'labels': self.pairs.labels_BxG}
        for name, masked in self.masked.items():
            arrays |= {f'{name}/{field}': getattr(masked, field) for field in masked._fields}
        with atomic(path, 'wb') as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Maskable:
    """Rows that can be masked under any setting, R of them in equal batches of B, with a key for each."""

    batch_rows: int
    tokens_RxL: np.ndarray
    starts_RxL: Any
    segments_RxL: np.ndarray
    positions_RxL: np.ndarray
    keys_R: jax.Array
    pairs: RowPairs | None

    @classmethod
    def of(cls, batch: Block, masker: Masker, seed: int, batch_rows: int, row_shards: int = 1) -> 'Maskable':
        """Batches from rows of one document each, as `Rows.read` gives them; the last batch is filled with empty
        rows."""
        batches = batches_of(batch, batch_rows, row_shards)
        batch_rows = batches['tokens'].shape[1]
        batch = {name: value.reshape(-1, *value.shape[2:]) for name, value in batches.items()}
        positions, segments = positions_and_segments(batch['segment_lengths'], batch['tokens'].shape[1])
        keys = _document_keys(seed, batch['documents'][:, 0], batch['tokens'])
        starts, pairs = masker.word_starts(batch), RowPairs.of(batch, positions, segments)
        return cls(batch_rows, batch['tokens'], starts, segments, positions, keys, pairs)

    def batches(self, array: Any) -> np.ndarray:
        """[R, ...] as [N, B, ...]."""
        return np.asarray(array).reshape(-1, self.batch_rows, *array.shape[1:])

    def under(
        self, settings: Mapping[str, MaskingParams], slots: Mapping[str, int], masker: Masker
    ) -> FrozenMasks:
        """The masks of each setting, by name, in so many slots."""
        arrays = (self.tokens_RxL, self.starts_RxL, self.segments_RxL, self.keys_R)
        masked = {
            n: jax.tree.map(self.batches, _mask(masker, *arrays, s, slots[n])) for n, s in settings.items()
        }
        places = self.batches(self.segments_RxL), self.batches(self.positions_RxL)
        return FrozenMasks(*places, masked, jax.tree.map(self.batches, self.pairs))


def freeze_masks(
    rows: Rows,
    experiment: HasTraining,
    scored: Sequence[str],
    vocabulary: Vocabulary,
    row_shards: int,
    batch_rows: int,
) -> FrozenMasks:
    """Masks for the frozen settings (tokens and whole words, all [MASK]) and for those of the phases to be scored."""
    all_masked = (1.0, 0.0, 0.0)
    phases = {
        FROZEN: Phase('tokens', experiment.evaluation.rate, all_masked),
        FROZEN_WORDS: Phase('words', experiment.evaluation.rate, all_masked),
    }
    phases |= {name: experiment.phase[name] for name in scored}
    # A curriculum without whole words trains with units of one piece; its words are evaluated all the same.
    pretrain = experiment.pretrain
    masker = Masker.of(vocabulary, pretrain, phases.values(), rows.pieces)
    settings = {name: MaskingParams.of(phase, pretrain.max_word_pieces) for name, phase in phases.items()}

    def slots_under(phase: Phase) -> int:
        return slot_count(row_rates(phase.masking, (phase.rate,))[1], rows.pieces, masker.longest)

    slots = {name: slots_under(phase) for name, phase in phases.items()}
    held_out = rows.read(chosen_rows(rows, experiment.evaluation.rows))
    maskable = Maskable.of(held_out, masker, experiment.evaluation.seed, batch_rows, row_shards)
    return maskable.under(settings, slots, masker)


def totals_of(batches: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The sums of all batches by name, on the host; empty without any batch."""
    totals: dict[str, float] = {}
    for sums in batches:
        for name, value in sums.items():
            totals[name] = totals.get(name, 0.0) + float(value)
    return totals


def chosen_rows(rows: Rows, count: int) -> np.ndarray:
    """The numbers of so many rows, evenly spread."""
    count = min(len(rows), count)
    return np.linspace(0, len(rows) - 1, count).astype(int) if count else np.zeros(0, int)


def batches_of(batch: Block, batch_rows: int, row_shards: int = 1) -> Block:
    """Arrays [R, ...] as [N, B, ...], the last batch filled with empty rows; B is a multiple of `row_shards`."""
    count = len(batch['tokens'])
    full, size = batches_and_rows(count, batch_rows, row_shards)
    missing = full * size - count

    def cut(array: np.ndarray) -> np.ndarray:
        padded = np.pad(array, [(0, missing)] + [(0, 0)] * (array.ndim - 1))
        return padded.reshape(full, size, *array.shape[1:])

    return {name: cut(array) for name, array in batch.items()}


def batches_and_rows(count: int, batch_rows: int = BATCH_ROWS, row_shards: int = 1) -> tuple[int, int]:
    """How many batches so many rows make, and the rows of each."""
    size = -(-min(batch_rows, max(count, 1)) // row_shards) * row_shards
    return -(-count // size), size


@functools.partial(jax.jit, static_argnums=(0, 6))  # compiled once for a masker and a number of slots
def _mask(
    masker: Masker, tokens: Any, starts: Any, segments: Any, keys: Any, setting: MaskingParams, count: int
) -> Masked:
    maskable = masker.maskable(tokens, segments)
    return dataclasses.replace(masker, slots=count).mask(tokens, starts, maskable, setting, keys)


def _document_keys(seed: int, documents_B: np.ndarray, tokens_BxL: np.ndarray) -> jax.Array:
    """Keys from the document and the part's own text (parts of a cut document differ)."""
    # Positions count too, or two orders of the same pieces would have one mask. It wraps at 2^64, which every host
    # does.
    part_B = (tokens_BxL.astype(np.uint64) * np.arange(1, tokens_BxL.shape[1] + 1, dtype=np.uint64)).sum(1)
    words_Bx3 = np.stack([documents_B >> np.uint64(32), documents_B & np.uint64(0xFFFFFFFF), part_B], axis=1)
    words_Bx3 = (words_Bx3 & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    def fold(words_3: Any) -> jax.Array:
        key = jax.random.key(seed, impl='threefry2x32')
        for at in range(3):
            key = jax.random.fold_in(key, words_3[at])
        return key

    return jax.vmap(fold)(words_Bx3)
