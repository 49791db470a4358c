"""Evaluation on frozen masks of the held-out documents.

The training loss jumps between phases and compares nothing. Here every document has one mask per setting, keyed by
(evaluation seed, document), the same in every run with the same vocabulary; scores count [MASK]ed positions only.
"""

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from bioptimus_jax.config import Experiment, Phase
from bioptimus_jax.pretrain.curriculum import setting_of
from bioptimus_jax.pretrain.masking import Masked, mask_batch, slot_count
from bioptimus_jax.pretrain.objective import masked_lm
from bioptimus_jax.pretrain.rows import Rows, positions_and_segments
from bioptimus_jax.pretrain.step import StepPlan, word_starts
from bioptimus_jax.run import atomic

FROZEN, FROZEN_WORDS = 'frozen', 'frozen_words'


@dataclasses.dataclass(frozen=True)
class FrozenMasks:
    """Held-out rows and, per setting, their masks; [N, B, ...] in N equal batches (the last one padded)."""

    segments_NxBxL: np.ndarray
    positions_NxBxL: np.ndarray
    masked: dict[str, Masked]


def freeze(rows: Rows, experiment: Experiment, plan: StepPlan, batch_rows: int = 64) -> FrozenMasks:
    """Masks for the frozen settings (tokens and whole words, all [MASK]) and for every phase of the curriculum."""
    count, shards = min(len(rows), experiment.evaluation.rows), plan.compute.row_shards
    batch_rows = -(-min(batch_rows, max(count, 1)) // shards) * shards
    numbers = np.linspace(0, len(rows) - 1, count).astype(int) if count else np.zeros(0, int)
    padded = -(-count // batch_rows) * batch_rows
    batch = {name: _pad(value, padded) for name, value in rows.read(numbers).items()}
    positions, segments = positions_and_segments(batch['segment_lengths'], rows.pieces)
    all_masked = (1.0, 0.0, 0.0)
    settings = {
        FROZEN: Phase('tokens', experiment.evaluation.rate, all_masked),
        FROZEN_WORDS: Phase('words', experiment.evaluation.rate, all_masked),
    }
    settings |= {name: experiment.phase[name] for name in experiment.phases}
    keys = _document_keys(experiment.evaluation.seed, batch['documents'][:, 0], batch['tokens'])
    starts = word_starts(batch, plan.vocabulary, plan.settings.word)
    longest = experiment.pretrain.max_word_pieces
    masked = {}
    for name, phase in settings.items():
        slots = slot_count(phase.rate, rows.pieces, longest)
        whole, _ = jax.jit(
            lambda b, s, starts, keys, setting, slots=slots: mask_batch(
                b, starts, s, setting, keys, plan.vocabulary, longest, slots
            )
        )(batch['tokens'], segments, starts, keys, setting_of(phase))
        masked[name] = jax.tree.map(lambda x: np.asarray(x).reshape(-1, batch_rows, *x.shape[1:]), whole)
    shape = (-1, batch_rows, rows.pieces)
    return FrozenMasks(segments.reshape(shape), positions.reshape(shape), masked)


def save(frozen: FrozenMasks, path: Path) -> None:
    """Store the masks, so that anybody can score exactly the same positions."""
    arrays = {'segments': frozen.segments_NxBxL, 'positions': frozen.positions_NxBxL}
    for name, masked in frozen.masked.items():
        arrays |= {f'{name}/{field}': getattr(masked, field) for field in masked._fields}
    with atomic(path, 'wb') as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def make_evaluate(plan: StepPlan) -> Callable:
    """`(params, masked, segments, positions) -> sums` on one batch, jitted, without dropout."""

    @jax.jit
    def evaluate(params: Any, masked: Masked, segments_BxL: Any, positions_BxL: Any) -> dict[str, jax.Array]:
        return masked_lm(
            params, plan.architecture, masked, segments_BxL, positions_BxL, compute=plan.compute
        )[1]

    return evaluate


def scores(
    evaluate: Callable, params: Any, frozen: FrozenMasks, every_setting: bool
) -> Iterator[tuple[str, float]]:
    """(name, value) pairs: `frozen_loss`, `frozen_accuracy` of pieces, `frozen_word_accuracy` of whole words and, if
    asked, `loss/<phase>` for every phase's setting."""
    for name, masked in frozen.masked.items():
        if name not in (FROZEN, FROZEN_WORDS) and not every_setting:
            continue
        totals: dict[str, float] = {}
        for number in range(len(frozen.segments_NxBxL)):
            part = jax.tree.map(lambda x, n=number: x[n], masked)
            sums = evaluate(params, part, frozen.segments_NxBxL[number], frozen.positions_NxBxL[number])
            for key, value in sums.items():
                totals[key] = totals.get(key, 0.0) + float(value)
        weight = totals.get('masked_weight', 0.0)
        if not weight:  # a setting without [MASK] has nothing to score
            continue
        loss = totals['masked_loss'] / weight
        if name == FROZEN:
            yield 'frozen_loss', loss
            yield 'frozen_accuracy', totals['masked_correct'] / weight
        elif name == FROZEN_WORDS:
            yield 'frozen_word_accuracy', totals['correct_units'] / totals['units']
        else:
            yield f'loss/{name}', loss


def _document_keys(seed: int, documents_B: np.ndarray, tokens_BxL: np.ndarray) -> jax.Array:
    """Keys from the document and the part's own text (parts of a cut document differ)."""
    part_B = (tokens_BxL.astype(np.uint64) * np.arange(1, tokens_BxL.shape[1] + 1, dtype=np.uint64)).sum(
        axis=1
    )
    words_Bx3 = np.stack([documents_B >> np.uint64(32), documents_B & np.uint64(0xFFFFFFFF), part_B], axis=1)
    words_Bx3 = (words_Bx3 & np.uint64(0xFFFFFFFF)).astype(np.uint32)

    def fold(words_3: Any) -> jax.Array:
        key = jax.random.key(seed, impl='threefry2x32')
        for at in range(3):
            key = jax.random.fold_in(key, words_3[at])
        return key

    return jax.vmap(fold)(words_Bx3)


def _pad(array: np.ndarray, count: int) -> np.ndarray:
    return np.pad(array, [(0, count - len(array))] + [(0, 0)] * (array.ndim - 1))
