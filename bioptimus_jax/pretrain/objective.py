"""Masked language modelling on the prediction slots: sums, never means, so that they can be divided once, globally."""

from typing import Any, cast

import jax
import jax.numpy as jnp

from bioptimus_jax.model.bert import Architecture, encode
from bioptimus_jax.model.heads import masked_lm_logits
from bioptimus_jax.pretrain.masking import MASKED, Masked

SUMS = ('weight', 'correct', 'masked_loss', 'masked_weight', 'masked_correct')


def masked_lm(
    params: Any,
    architecture: Architecture,
    masked: Masked,
    segments_BxL: jax.Array,
    positions_BxL: jax.Array,
    *,
    dtype: Any = jnp.float32,
    dropout_key: jax.Array | None = None,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Summed cross-entropy over the slots and sums for metrics (`weight`, `correct`, and both on [MASK] alone)."""
    batch = {'tokens': masked.inputs_L, 'segments': segments_BxL, 'positions': positions_BxL}
    hidden_BxLxD = cast(jax.Array, encode(params, architecture, batch, dtype=dtype, dropout_key=dropout_key))
    hidden_BxMxD = jnp.take_along_axis(hidden_BxLxD, masked.slots_M[..., None], axis=1)
    logits_BxMxV = masked_lm_logits(params, architecture, hidden_BxMxD, dtype=dtype)
    true_BxM = jnp.take_along_axis(logits_BxMxV, masked.targets_M[..., None], axis=-1)[..., 0]
    losses_BxM = jax.nn.logsumexp(logits_BxMxV, axis=-1) - true_BxM
    correct_BxM = (true_BxM >= logits_BxMxV.max(axis=-1)).astype(jnp.float32)
    weights_BxM = masked.weights_M
    hidden_weights_BxM = weights_BxM * (masked.kinds_M == MASKED)
    sums = {
        'weight': weights_BxM.sum(),
        'correct': (correct_BxM * weights_BxM).sum(),
        'masked_loss': (losses_BxM * hidden_weights_BxM).sum(),
        'masked_weight': hidden_weights_BxM.sum(),
        'masked_correct': (correct_BxM * hidden_weights_BxM).sum(),
    }
    return (losses_BxM * weights_BxM).sum(), sums
