"""Rows as the model sees them: pieces and words, new tokens, and what each phase hides of the same rows.

B rows, L pieces a row, M slots.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.pretrain import curriculum, mixture
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.masking import MASKED, REPLACED, Masked, Masker, MaskingParams, row_keys, seed_key
from bioptimus_jax.pretrain.objective import masking_of
from bioptimus_jax.pretrain.order import Order
from bioptimus_jax.rows.blocks import positions_and_segments
from bioptimus_jax.rows.config import RowShape
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.tokenizer.subwords import load as load_subwords
from bioptimus_jax.vocab.build import read_new_tokens

HIDDEN, RANDOM, KEPT, NEW = 'hidden', 'random', 'kept', 'new'
LEGEND = {
    NEW: 'a token that the source does not have',
    HIDDEN: 'predicted, behind the mask token',
    RANDOM: 'predicted, behind a random token',
    KEPT: 'predicted, and left as it is',
}


@dataclasses.dataclass(frozen=True)
class Piece:
    """A piece as it is shown: `text`, what it is `marked` as ('' or a key of LEGEND), whether a word begins there."""

    text: str
    marked: str
    begins: bool


@dataclasses.dataclass(frozen=True)
class ShownRow:
    """A row of the first step: its documents, pieces and, by phase, what the model reads of the same pieces."""

    number: int
    documents: int
    pieces: int
    plain: list[Piece]
    phases: dict[str, list[Piece]]


def first_rows(
    config: HasTraining, by_shape: Mapping[RowShape, Rows], vocab: Path, count: int, most: int
) -> Iterator[ShownRow]:
    """The first rows of step 0, of each at most so many pieces, out of what `mixture.open_rows` gives.

    A phase is shown as if step 0 were its own: the masks of the first phase are those of the training. Nothing is
    hidden in phases whose objective does not mask, or does not say how. `vocab` is the folder of that stage.
    """
    subwords, new = load_subwords(vocab), set(read_new_tokens(vocab))
    schedule = curriculum.make_schedule(config, mixture.counts_of(config, by_shape))
    shape = curriculum.stretches(schedule, config)[0].shape.rows
    rows, patterns = by_shape[shape], mixture.patterns_of(config, schedule, shape)
    numbers_B = Order([len(part) for part in rows.parts], config.seed, patterns)(0)[:count]
    batch = rows.read(numbers_B)
    masker = Masker.of(subwords, config.pretrain, config.trained_phases, rows.pieces)
    starts_BxL = np.asarray(masker.word_starts(batch))
    _, segments_BxL = positions_and_segments(batch['segment_lengths'], rows.pieces, np)
    maskable_BxL = masker.maskable(batch['tokens'], segments_BxL)
    keys_B = row_keys(seed_key(config.seed), jnp.int32(0), len(numbers_B))
    mask = jax.jit(masker.mask)  # one program for all phases

    def masked_in(name: str) -> Masked | None:
        if not masking_of(config, name):
            return None
        setting = MaskingParams.of(config.phase[name], config.pretrain.max_word_pieces)
        return jax.device_get(mask(batch['tokens'], starts_BxL, maskable_BxL, setting, keys_B))

    masked = {name: masked_in(name) for name in config.phases}
    for at, number in enumerate(numbers_B):
        tokens_L = batch['tokens'][at]
        filled = int(batch['segment_lengths'][at].sum())
        shown = min(filled, most)
        plain = [
            Piece(text, NEW * (text in new), bool(starts_BxL[at, i]))
            for i, text in enumerate(subwords.tokens[n] for n in tokens_L[:shown])
        ]
        documents = int((batch['segment_lengths'][at] > 0).sum())
        phases = {name: _read(plain, subwords, one, at) for name, one in masked.items()}
        yield ShownRow(int(number), documents, filled, plain, phases)


def _read(plain: list[Piece], subwords: Subwords, masked: Masked | None, row: int) -> list[Piece]:
    """The pieces that the model reads in place of the `plain` ones."""
    if masked is None:
        return plain
    inputs_L = masked.inputs_L[row]
    slots = zip(masked.slots_M[row], masked.kinds_M[row], masked.weights_M[row], strict=True)
    kinds = {int(slot): int(kind) for slot, kind, weight in slots if weight}
    marks = {MASKED: HIDDEN, REPLACED: RANDOM}
    return [
        Piece(subwords.tokens[inputs_L[i]], marks.get(kinds[i], KEPT), piece.begins)
        if i in kinds
        else Piece(piece.text, '', piece.begins)
        for i, piece in enumerate(plain)
    ]
