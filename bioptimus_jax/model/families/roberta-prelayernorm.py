"""RoBERTa with its norms in front (as in fairseq; Wettig et al. 2023, arXiv 2202.08005, on how much to mask).

Its embeddings are RoBERTa's. Each block has its norm in front, the stack one behind the last layer. So the sum over
layers is not normalised, and stays float32.

B rows, L positions, D hidden size.
"""

import dataclasses
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.model import layers
from bioptimus_jax.model.architecture import Context
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.families.roberta import Roberta, under
from bioptimus_jax.model.norms_in_front import Normed, Sum
from bioptimus_jax.model.prenorm import FinalNorm

ENCODER, NORM = 'roberta_prelayernorm', 'LayerNorm'


@dataclasses.dataclass(frozen=True)
class RobertaPreLayerNorm(Roberta):
    """A RoBERTa-PreLayerNorm with its masked-language-model head."""

    model_type: ClassVar = 'roberta-prelayernorm'
    title: ClassVar = 'RoBERTa-PreLayerNorm'
    hf_class: ClassVar = 'RobertaPreLayerNormForMaskedLM'
    prefix: ClassVar = f'{ENCODER}.'
    modules: ClassVar = {f'encoder/{NORM}/': f'{ENCODER}/{NORM}/', **under(ENCODER, Roberta.modules)}
    tied: ClassVar = under(ENCODER, Roberta.tied)
    float32_sum: ClassVar = True

    def embeddings(self, compute: Compute) -> nn.Module:
        return Embeddings(self, compute)

    def layer(self, compute: Compute) -> nn.Module:
        return Layer(self, compute)

    def final_norm(self, compute: Compute) -> nn.Module:
        return FinalNorm(self, compute, NORM)


class Embeddings(layers.Embeddings):
    """RoBERTa's embeddings, as the beginning of a sum over all layers."""

    @nn.compact
    def __call__(self, batch: Context, seed_2: jax.Array | None, delta_BxLxD: jax.Array | None) -> jax.Array:
        return super().__call__(batch, seed_2, delta_BxLxD).astype(jnp.float32)


class Attention(Normed, layers.Attention):
    """Self-attention of what is normalised."""

    norm: ClassVar = NORM


class Wide(layers.Activated):
    """The wide half of the feed-forward block with the norm in front, which is part of it."""

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        return super().__call__(self.normal(hidden_BxLxD, NORM), seed_2)


class Layer(layers.Layer):
    """One encoder layer of two such blocks."""

    attention: ClassVar = Attention
    residual: ClassVar = Sum
    wide: ClassVar = Wide


FAMILY = RobertaPreLayerNorm
