"""Masked language modelling: what was hidden is predicted in a static number of slots.

B rows, L pieces a row, G documents of a row, M slots, N batches of held-out rows, D hidden size.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.model.architecture import OutputLayer
from bioptimus_jax.pretrain import perplexity
from bioptimus_jax.pretrain.config import HasTraining, Phase
from bioptimus_jax.pretrain.cross_entropy import cross_entropy
from bioptimus_jax.pretrain.curriculum import RateRamp
from bioptimus_jax.pretrain.evaluate import (
    BATCH_ROWS,
    FROZEN,
    FROZEN_WORDS,
    FrozenMasks,
    freeze_masks,
    totals_of,
)
from bioptimus_jax.pretrain.masking import MASKED, Masked, Masker, MaskingParams, slots_of
from bioptimus_jax.pretrain.objective import (
    Advance,
    Example,
    Key,
    Objective,
    Records,
    Tensors,
    Told,
    masking_of,
    means,
)
from bioptimus_jax.pretrain.units import row_rates, strategy_of
from bioptimus_jax.records.curriculum import OfSetting
from bioptimus_jax.rows.blocks import Block, RowPairs, positions_and_segments
from bioptimus_jax.rows.stored import Rows

SlotLosses: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]


class MaskedRows(NamedTuple):
    """Masked rows, and which piece belongs to which document, at which position of it; of rows of pairs also these.

    `lengths_BxG`: the pieces of every document, where they are known.
    """

    masked: Masked
    segments_BxL: Any
    positions_BxL: Any
    pairs: RowPairs | None = None
    lengths_BxG: Any = None


def inputs(rows: Any) -> Tensors:
    """Masked rows as a model reads them: the batch of `Architecture.encode`."""
    return {
        'tokens': rows.masked.inputs_L,
        'segments': rows.segments_BxL,
        'positions': rows.positions_BxL,
        **({'token_types': rows.pairs.types_BxL} if rows.pairs else {}),
        **({} if rows.lengths_BxG is None else {'lengths': rows.lengths_BxG}),
    }


class MaskedLM(Objective):
    """The mean cross-entropy over all slots that hold something."""

    does = 'masked language modelling'
    heldout_loss = 'one frozen mask, nats per [MASK]ed piece'
    last_in_slots = True

    @functools.cached_property
    def masker(self) -> Masker:
        """What is masked, and where, under the phases that are trained."""
        return Masker.of(self.vocabulary, self.config.pretrain, self.phases_of(self.config), self.row_pieces)

    @staticmethod
    def masking(phase: Phase) -> tuple[str, ...]:
        """The maskings of a phase: the one that it names."""
        rates = ' to '.join(dict.fromkeys(f'{rate:.0%}' for rate in phase.rates))
        if strategy_of(phase.masking).rate:
            rates = f'a rate for each row, {row_rates(phase.masking, phase.rates)[0]:.0%} on average'
        return phase.masking, rates, '-'.join(f'{100 * share:.0f}' for share in phase.corruption)

    @staticmethod
    def columns(phase: Phase, config: HasTraining) -> MaskingParams:
        """The masking setting; its rate may move."""
        first, last = phase.rates
        rate = RateRamp(np.float32(first), np.float32(last), np.int32(phase.rate_parts))
        return MaskingParams.of(phase, config.pretrain.max_word_pieces)._replace(rate=rate)

    @staticmethod
    def share(phase: Phase) -> float:
        """The mean masking rate."""
        return row_rates(phase.masking, phase.rates)[0]

    @classmethod
    def places(cls, config: HasTraining) -> int:
        """The slots."""
        return slots_of(config.pretrain, cls.phases_of(config), config.rows.row_pieces)

    def example(self, batch: Tensors, setting: MaskingParams, keys_B: jax.Array) -> Example:
        """Rows that are masked anew in every step."""
        tokens_BxL, starts_BxL = batch['tokens'], self.masker.word_starts(batch)
        lengths_BxG, pieces = batch['segment_lengths'], tokens_BxL.shape[1]
        positions_BxL, segments_BxL = positions_and_segments(lengths_BxG, pieces, jnp)
        maskable_BxL = self.masker.maskable(tokens_BxL, segments_BxL)
        masked = self.masker.mask(tokens_BxL, starts_BxL, maskable_BxL, setting, keys_B)
        pairs = RowPairs.of(batch, positions_BxL, segments_BxL, jnp)
        rows = MaskedRows(masked, segments_BxL, positions_BxL, pairs, lengths_BxG)
        weights = {'slots': masked.weights_M.sum()}
        return Example(rows, weights, self.masker.by_length(masked, starts_BxL, maskable_BxL))

    def loss(self, params: Any, frozen: Any, rows: MaskedRows, dropout_key: Key) -> tuple[Tensors, Tensors]:
        """Summed cross-entropy over the slots, and `slot_sums`."""
        states_BxMxD = self.states(params, rows, dropout_key, rows.masked.slots_M)
        loss, *of_slots = self.slot_losses(params, states_BxMxD, rows.masked)
        return {'slots': loss}, self.slot_sums(rows.masked, *of_slots)

    def slot_sums(self, masked: Masked, losses_BxM: jax.Array, correct_BxM: jax.Array) -> Tensors:
        """Sums for metrics.

        `weight` and `correct` count pieces, `units` and `correct_units` the words (or pieces) that were drawn: a word
        is right where all of its pieces are. `masked_*` count the pieces behind [MASK] alone.
        """
        weights_BxM = masked.weights_M
        losses_BxM, right_BxM = jax.lax.stop_gradient(losses_BxM), correct_BxM * weights_BxM
        hidden_weights_BxM = weights_BxM * (masked.kinds_M == MASKED)
        begins_BxM = masked.begins_M * weights_BxM
        return {
            'weight': weights_BxM.sum(),
            'correct': right_BxM.sum(),
            'units': begins_BxM.sum(),
            'correct_units': _right_units(weights_BxM - right_BxM, begins_BxM).sum(),
            'masked_loss': (losses_BxM * hidden_weights_BxM).sum(),
            'masked_weight': hidden_weights_BxM.sum(),
            'masked_correct': (right_BxM * hidden_weights_BxM).sum(),
        }

    def states(
        self, params: Any, rows: MaskedRows, dropout_key: Key = None, slots_BxM: jax.Array | None = None
    ) -> jax.Array:
        """The last states of the masked rows, BxLxD; with slots BxMxD, and then most of the last layer is for them
        alone."""
        options: Any = dict(compute=self.compute, dropout_key=dropout_key, slots=slots_BxM)
        return cast(jax.Array, self.architecture.encode(params, inputs(rows), **options))

    def slot_losses(self, params: Any, states_BxMxD: jax.Array, masked: Masked) -> SlotLosses:
        """Summed cross-entropy, the loss of every slot in nats [B, M] (without gradients), and whether it was right."""
        output = self.output(params, states_BxMxD)
        return cross_entropy(*output, masked.targets_M, masked.weights_M, self.compute)

    def output(self, params: Any, states_BxMxD: jax.Array) -> OutputLayer:
        """What the logits of the slots are made of.

        Only they go through the output layer: at 15 % it would be most of a small model's work.
        """
        return self.architecture.output_layer(params, states_BxMxD, self.compute)

    def metrics(self, example: Example, sums: Tensors) -> Tensors:
        """Shares of pieces and of words that were right, and what was masked."""
        weight = jnp.maximum(sums['weight'], 1)
        return {
            'accuracy': sums['correct'] / weight,
            'word_accuracy': sums['correct_units'] / jnp.maximum(sums['units'], 1),
            'units': sums['units'],
            'predicted': sums['weight'],
            **example.counts,
        }

    def record(self, steps: Records, finite: Records) -> Told:
        """Accuracies; realised masking; `unit_pieces`, the mean length of what was drawn: pieces, words or others."""
        selected = np.sum([metrics['selected_by_length'] for metrics in steps], axis=0)
        maskable = np.sum([metrics['maskable_by_length'] for metrics in steps], axis=0)
        units = sum(float(metrics['units']) for metrics in steps)
        return {
            **means(finite, ('accuracy', 'word_accuracy')),
            'realised_rate': round(float(selected.sum() / max(maskable.sum(), 1)), 5),
            'realised_rate_by_length': {
                n: round(float(selected[n] / maskable[n]), 4) for n in range(1, len(maskable)) if maskable[n]
            },
            'unit_pieces': round(float(selected.sum() / max(units, 1)), 4),
        }

    @functools.cached_property
    def scored(self) -> tuple[str, ...]:
        """The phases by whose masks phase ends are scored: those asked for, else all that mask."""
        c = self.config
        return c.evaluation.settings or tuple(n for n in c.phases if self.trains(c, n) or masking_of(c, n))

    def evaluation(self, rows: Rows, batch_rows: int = BATCH_ROWS) -> 'FrozenEvaluation':
        """Evaluation on masks that are the same in every run with the same vocabulary."""
        masks = freeze_masks(
            rows, self.config, self.scored, self.vocabulary, self.compute.row_shards, batch_rows
        )
        return FrozenEvaluation(self, masks)

    @functools.partial(jax.jit, static_argnums=0)
    def sums(self, params: Any, frozen: Any, rows: MaskedRows) -> Tensors:
        """Sums of `loss` over one batch, jitted, without dropout."""
        return self.loss(params, frozen, rows, None)[1]

    def frozen_scores(self, totals: Mapping[str, float]) -> dict[str, float]:
        """What the sums of `loss` over all held-out rows under the frozen mask come to."""
        weight = totals['masked_weight']
        return {
            'frozen_loss': totals['masked_loss'] / weight,
            'frozen_accuracy': totals['masked_correct'] / weight,
        }

    def difficulty(self, params: Any, batch: Block, advance: Advance) -> dict[str, OfSetting]:
        """Phase -> perplexity under its masking."""
        losses, shards = self.scorer(params), self.compute.row_shards
        return perplexity.by_setting(losses, batch, self.masker, self.config, advance, row_shards=shards)

    def scorer(self, params: Any) -> perplexity.SlotLosses:
        """The loss of every slot by these parameters, on their devices, jitted, without dropout."""

        @jax.jit
        def losses(params: Any, rows: MaskedRows) -> jax.Array:
            states_BxMxD = self.states(params, rows, slots_BxM=rows.masked.slots_M)
            return self.slot_losses(params, states_BxMxD, rows.masked)[1]

        placed = jax.device_put(params)
        return lambda *parts: losses(placed, MaskedRows(*parts))


OBJECTIVE = MaskedLM


@dataclasses.dataclass(frozen=True)
class FrozenEvaluation:
    """The loss on frozen masks, of [MASK]ed positions only."""

    objective: MaskedLM
    masks: FrozenMasks

    def save(self, folder: Path) -> None:
        """Write frozen_masks.npz."""
        self.masks.save(folder / 'frozen_masks.npz')

    def scores(self, params: Any, frozen: Any, every_setting: bool) -> Iterator[tuple[str, float]]:
        """`frozen_loss`, `frozen_accuracy` of pieces, `frozen_word_accuracy` of whole words and, if asked,
        `loss/<phase>` for every phase's setting."""
        for name in self.masks.masked:
            if name not in (FROZEN, FROZEN_WORDS) and not every_setting:
                continue
            batches = (MaskedRows(*parts) for parts in self.masks.batches(name))
            totals = totals_of(self.objective.sums(params, frozen, rows) for rows in batches)
            weight = totals.get('masked_weight', 0.0)
            if not weight:  # a setting without [MASK] has nothing to score
                continue
            if name == FROZEN:
                yield from self.objective.frozen_scores(totals).items()
            elif name == FROZEN_WORDS:
                yield 'frozen_word_accuracy', totals['correct_units'] / totals['units']
            else:
                yield f'loss/{name}', totals['masked_loss'] / weight


def plain_evaluation(objective: MaskedLM, rows: Rows, batch_rows: int = BATCH_ROWS) -> FrozenEvaluation:
    """`evaluation` of masked language modelling, for objectives that add terms to it: no noise, no teacher."""
    o = objective
    plain = MaskedLM(o.config, o.architecture, o.vocabulary, o.row_pieces, o.compute)
    return plain.evaluation(rows, batch_rows)


def _right_units(wrong_BxM: jax.Array, begins_BxM: jax.Array) -> jax.Array:
    """1 at the first slot of every unit, whose slots lie side by side, that has no wrong slot."""
    # Empty slots at the end count to the last unit, and do no harm: weight 0, so never wrong.
    unit_BxM = jnp.cumsum(begins_BxM, axis=1).astype(jnp.int32) - 1
    count = wrong_BxM.shape[1]
    errors_BxM = jax.vmap(lambda wrong_M, unit_M: jax.ops.segment_sum(wrong_M, unit_M, count)[unit_M])
    return begins_BxM * (errors_BxM(wrong_BxM, jnp.maximum(unit_BxM, 0)) == 0)
