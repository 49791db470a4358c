"""Heads on top of the encoder's states.

B rows, M masked slots, D hidden size, V padded vocabulary.
"""

from collections.abc import Mapping
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from bioptimus_jax.model.architecture import ACTIVATIONS, Architecture, dense, layer_norm


class Transform(nn.Module):
    """Dense layer, activation and LayerNorm in front of the output matrix."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> jax.Array:
        hidden_BxMxD = dense(self.architecture.hidden, self.dtype, 'dense')(hidden_BxMxD)
        hidden_BxMxD = ACTIVATIONS[self.architecture.activation](hidden_BxMxD)
        return layer_norm(self.architecture)(hidden_BxMxD).astype(self.dtype)


class Predictions(nn.Module):
    """BERT's masked-language-model head; its output matrix is the table of word embeddings."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array, table_VxD: jax.Array) -> jax.Array:
        states_BxMxD = Transform(self.architecture, self.dtype, name='transform')(hidden_BxMxD)
        bias_V = self.param('bias', nn.initializers.zeros, (self.architecture.padded_vocab_size,))
        table_VxD = table_VxD.astype(self.dtype)
        logits_BxMxV = jnp.einsum('bmd,vd->bmv', states_BxMxD, table_VxD, preferred_element_type=jnp.float32)
        logits_BxMxV = logits_BxMxV + bias_V[None, None]
        real_V = jnp.arange(self.architecture.padded_vocab_size) < self.architecture.vocab_size
        return jnp.where(real_V[None, None], logits_BxMxV, jnp.finfo(jnp.float32).min)


def masked_lm_logits(
    params: Mapping[str, Any],
    architecture: Architecture,
    hidden_BxMxD: jax.Array,
    dtype: DTypeLike = jnp.float32,
) -> jax.Array:
    """Logits BxMxV over the padded vocabulary, float32; padded columns hold the lowest finite number."""
    variables = {'params': params['cls']['predictions']}
    table_VxD = params['embeddings']['word_embeddings']['embedding']
    return cast(jax.Array, Predictions(architecture, dtype).apply(variables, hidden_BxMxD, table_VxD))
