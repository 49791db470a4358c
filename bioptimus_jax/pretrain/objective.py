"""Masked language modelling on the prediction slots: sums, never means, so that they can be divided once, globally.

B rows, L pieces a row, M slots, D hidden size.
"""

from typing import Any

import jax
import jax.numpy as jnp

from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.compute import PLAIN, Compute
from bioptimus_jax.pretrain.cross_entropy import cross_entropy
from bioptimus_jax.pretrain.masking import MASKED, Masked

SUMS = ('weight', 'correct', 'units', 'correct_units', 'masked_loss', 'masked_weight', 'masked_correct')


def masked_lm(
    params: Any,
    architecture: Architecture,
    masked: Masked,
    segments_BxL: jax.Array,
    positions_BxL: jax.Array,
    *,
    compute: Compute = PLAIN,
    dropout_key: jax.Array | None = None,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Summed cross-entropy over the slots and sums for metrics.

    `weight` and `correct` count pieces, `units` and `correct_units` the words (or pieces) that were drawn: a word is
    right where all of its pieces are. `masked_*` count the pieces behind [MASK] alone.
    """
    loss, losses_BxM, correct_BxM = slot_losses(
        params,
        architecture,
        masked,
        segments_BxL,
        positions_BxL,
        compute=compute,
        dropout_key=dropout_key,
    )
    weights_BxM = masked.weights_M
    losses_BxM, right_BxM = jax.lax.stop_gradient(losses_BxM), correct_BxM * weights_BxM
    hidden_weights_BxM = weights_BxM * (masked.kinds_M == MASKED)
    begins_BxM = masked.begins_M * weights_BxM
    sums = {
        'weight': weights_BxM.sum(),
        'correct': right_BxM.sum(),
        'units': begins_BxM.sum(),
        'correct_units': _right_units(weights_BxM - right_BxM, begins_BxM).sum(),
        'masked_loss': (losses_BxM * hidden_weights_BxM).sum(),
        'masked_weight': hidden_weights_BxM.sum(),
        'masked_correct': (right_BxM * hidden_weights_BxM).sum(),
    }
    return loss, sums


def slot_losses(
    params: Any,
    architecture: Architecture,
    masked: Masked,
    segments_BxL: jax.Array,
    positions_BxL: jax.Array,
    *,
    compute: Compute = PLAIN,
    dropout_key: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Summed cross-entropy, the loss of every slot in nats [B, M] (without gradients), and whether it was right."""
    batch = {'tokens': masked.inputs_L, 'segments': segments_BxL, 'positions': positions_BxL}
    hidden_BxLxD = architecture.encode(params, batch, compute=compute, dropout_key=dropout_key)
    hidden_BxMxD = jnp.take_along_axis(hidden_BxLxD, masked.slots_M[..., None], axis=1)
    output = architecture.output_layer(params, hidden_BxMxD, compute)
    return cross_entropy(*output, masked.targets_M, masked.weights_M, compute)


def _right_units(wrong_BxM: jax.Array, begins_BxM: jax.Array) -> jax.Array:
    """1 at the first slot of every unit, whose slots lie side by side, that has no wrong slot."""
    unit_BxM = jnp.cumsum(begins_BxM, axis=1).astype(jnp.int32) - 1
    count = wrong_BxM.shape[1]
    errors_BxM = jax.vmap(lambda wrong_M, unit_M: jax.ops.segment_sum(wrong_M, unit_M, count)[unit_M])
    return begins_BxM * (errors_BxM(wrong_BxM, jnp.maximum(unit_BxM, 0)) == 0)
