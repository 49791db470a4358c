"""Heads on top of the encoder's states.

B rows, M masked slots, D hidden size, V padded vocabulary.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.model.architecture import ACTIVATIONS, Architecture, dense, layer_norm
from bioptimus_jax.model.compute import PLAIN, Compute


class Transform(nn.Module):
    """Dense layer, activation and LayerNorm in front of the output matrix."""

    architecture: Architecture
    compute: Compute = PLAIN

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> jax.Array:
        hidden_BxMxD = dense(self.architecture.hidden, self.compute.dtype, 'dense')(hidden_BxMxD)
        hidden_BxMxD = ACTIVATIONS[self.architecture.activation](hidden_BxMxD)
        return layer_norm(self.architecture)(hidden_BxMxD).astype(self.compute.dtype)


class Predictions(nn.Module):
    """BERT's masked-language-model head; its output matrix is the table of word embeddings."""

    architecture: Architecture
    compute: Compute = PLAIN

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> tuple[jax.Array, jax.Array]:
        states_BxMxD = Transform(self.architecture, self.compute, name='transform')(hidden_BxMxD)
        bias_V = self.param('bias', nn.initializers.zeros, (self.architecture.padded_vocab_size,))
        real_V = jnp.arange(self.architecture.padded_vocab_size) < self.architecture.vocab_size
        return states_BxMxD, jnp.where(real_V, bias_V, jnp.finfo(jnp.float32).min)


class OutputLayer(NamedTuple):
    """What the logits are made of: `states @ table.T + bias`."""

    states_BxMxD: jax.Array
    table_VxD: jax.Array
    bias_V: jax.Array


def output_layer(
    params: Mapping[str, Any],
    architecture: Architecture,
    hidden_BxMxD: jax.Array,
    compute: Compute = PLAIN,
) -> OutputLayer:
    """The transformed states, the table of word embeddings, and a bias of the lowest number for padded columns."""
    variables = {'params': params['cls']['predictions']}
    states_BxMxD, bias_V = cast(tuple, Predictions(architecture, compute).apply(variables, hidden_BxMxD))
    return OutputLayer(states_BxMxD, params['embeddings']['word_embeddings']['embedding'], bias_V)


def masked_lm_logits(
    params: Mapping[str, Any],
    architecture: Architecture,
    hidden_BxMxD: jax.Array,
    compute: Compute = PLAIN,
) -> jax.Array:
    """Logits BxMxV over the padded vocabulary, float32; padded columns hold about the lowest finite number."""
    states_BxMxD, table_VxD, bias_V = output_layer(params, architecture, hidden_BxMxD, compute)
    return logits_of(states_BxMxD, table_VxD.astype(compute.dtype), bias_V)


def logits_of(states_BxMxD: jax.Array, table_VxD: jax.Array, bias_V: jax.Array) -> jax.Array:
    """Logits BxMxV in float32 of an output layer whose states and table have the type of the products."""
    logits_BxMxV = jnp.einsum('bmd,vd->bmv', states_BxMxD, table_VxD, preferred_element_type=jnp.float32)
    return logits_BxMxV + bias_V[None, None]
