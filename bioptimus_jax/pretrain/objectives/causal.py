"""Causal language modelling: every piece but a document's last tells the next one, and sees nothing behind itself.

The detour of a masked language model (arXiv 2605.12438): a phase of this, then one that masks. The head is that of
masked language modelling; what is exported is an encoder, which sees both sides again.

B rows, L pieces a row, G documents of a row, D hidden size.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.pretrain.cross_entropy import cross_entropy
from bioptimus_jax.pretrain.evaluate import BATCH_ROWS, batches_of, chosen_rows, totals_of
from bioptimus_jax.pretrain.objective import Example, Key, Objective, Records, Setting, Tensors, Told, means
from bioptimus_jax.pretrain.throughput import training_flops_per_token
from bioptimus_jax.rows.blocks import positions_and_segments
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.storage.files import atomic


class CausalRows(NamedTuple):
    """Packed rows: tokens, which document a piece belongs to (0: padding), and its place there, BxL each.

    `lengths_BxG`: the pieces of every document.
    """

    tokens_BxL: Any
    segments_BxL: Any
    positions_BxL: Any
    lengths_BxG: Any


class CausalLM(Objective):
    """The mean cross-entropy over all pieces that have a next one in their document."""

    reads = ('tokens', 'segment_lengths')
    causal = True
    does = 'every piece of a document is told from those before it'
    heldout_loss = 'nats per piece of a document, told from those before it'

    def example(self, batch: Tensors, setting: Setting, keys_B: jax.Array) -> Example:
        """The rows as they are."""
        tokens_BxL = batch['tokens']
        lengths_BxG = batch['segment_lengths']
        positions_BxL, segments_BxL = positions_and_segments(lengths_BxG, tokens_BxL.shape[1], jnp)
        rows = CausalRows(tokens_BxL, segments_BxL, positions_BxL, lengths_BxG)
        return Example(rows, {'pieces': _has_next(rows.segments_BxL).sum()}, {})

    def loss(self, params: Any, frozen: Any, rows: CausalRows, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """Summed cross-entropy, and how many pieces there were and were right."""
        names = ('tokens', 'segments', 'positions', 'lengths')
        batch = dict(zip(names, rows, strict=True))
        states_BxLxD = self.architecture.encode(params, batch, compute=self.compute, dropout_key=dropout_key)
        output = self.architecture.output_layer(params, states_BxLxD, self.compute)
        # The last place of a row gets the first token, but no weight: `_has_next` is False there.
        next_BxL = jnp.roll(rows.tokens_BxL, -1, axis=1)
        weights_BxL = _has_next(rows.segments_BxL).astype(jnp.float32)
        loss, _, correct_BxL = cross_entropy(*output, next_BxL, weights_BxL, self.compute)
        sums = {'weight': weights_BxL.sum(), 'correct': (correct_BxL * weights_BxL).sum()}
        return {'pieces': loss}, {**sums, 'loss': jax.lax.stop_gradient(loss)}

    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """The share of pieces that were right."""
        return {'accuracy': sums['correct'] / jnp.maximum(sums['weight'], 1), 'predicted': sums['weight']}

    def record(self, steps: Records, finite: Records) -> Told:
        """The accuracy."""
        return means(finite, ['accuracy'])

    def flops_per_piece(self, attended: float, predicted: float) -> float:
        """Operations for one piece, which attends to those before it and to itself: half of its document."""
        return training_flops_per_token(self.architecture, (attended + 1) / 2, predicted, sides=1)

    def evaluation(self, rows: Rows, batch_rows: int = BATCH_ROWS) -> 'HeldOut':
        """The held-out documents, without masks."""
        read = rows.read(chosen_rows(rows, self.config.evaluation.rows))
        arrays = {name: read[name] for name in self.reads}
        return HeldOut(self, batches_of(arrays, batch_rows, self.compute.row_shards))

    @functools.partial(jax.jit, static_argnums=0)
    def sums(self, params: Any, frozen: Any, batch: Tensors) -> Tensors:
        """Sums of `loss` over a batch, jitted, without dropout."""
        return self.loss(params, frozen, self.example(batch, {}, jnp.zeros(0)).rows, None)[1]


OBJECTIVE = CausalLM


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Held-out rows in equal batches, NxBx...; the last one is filled with empty rows."""

    objective: CausalLM
    arrays: Mapping[str, np.ndarray]

    def save(self, folder: Path) -> None:
        """Write heldout.npz: the rows that are scored."""
        with atomic(folder / 'heldout.npz', 'wb') as file:
            np.savez_compressed(file, **self.arrays)  # type: ignore[arg-type]

    def scores(self, params: Any, frozen: Any, every_setting: bool) -> Iterator[tuple[str, float]]:
        """`frozen_loss` in nats and `frozen_accuracy`, of pieces that have a next one."""
        batches = (dict(zip(self.arrays, arrays)) for arrays in zip(*self.arrays.values(), strict=True))
        totals = totals_of(self.objective.sums(params, frozen, batch) for batch in batches)
        yield 'frozen_loss', totals['loss'] / totals['weight']
        yield 'frozen_accuracy', totals['correct'] / totals['weight']


def _has_next(segments_BxL: jax.Array) -> jax.Array:
    """Whether the next piece is of the same document."""
    following_BxL = jnp.pad(segments_BxL[:, 1:], ((0, 0), (0, 1)))
    return (segments_BxL > 0) & (segments_BxL == following_BxL)
