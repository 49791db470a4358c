"""Megatron-BERT (Shoeybi et al. 2019, arXiv 1909.08053, section 5.3), as is GatorTron: a BERT with its norms in front.

It has no norm behind the embeddings, one in front of each block, and one behind the last layer. So the sum over layers
is not normalised, and stays float32.

B rows, L positions, D hidden size.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.model import layers
from bioptimus_jax.model.architecture import Context
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.families.bert import Bert, judge
from bioptimus_jax.model.norms_in_front import Normed
from bioptimus_jax.model.prenorm import FinalNorm


@dataclasses.dataclass(frozen=True)
class MegatronBert(layers.LikeBert):
    """A Megatron-BERT with its masked-language-model head."""

    token_types: int = 2

    model_type: ClassVar = 'megatron-bert'
    title: ClassVar = 'Megatron-BERT'
    hf_class: ClassVar = 'MegatronBertForMaskedLM'
    config_keys: ClassVar = Bert.config_keys
    prefix: ClassVar = Bert.prefix
    modules: ClassVar = Bert.modules
    ignored: ClassVar = Bert.ignored
    tied: ClassVar = Bert.tied
    float32_sum: ClassVar = True

    def embeddings(self, compute: Compute) -> nn.Module:
        return SummedEmbeddings(self, compute, self.token_types)

    def layer(self, compute: Compute) -> nn.Module:
        return Layer(self, compute)

    def final_norm(self, compute: Compute) -> nn.Module:
        return FinalNorm(self, compute, Normed.norm)

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Pooler and head of next sentences."""
        return judge(self)


class SummedEmbeddings(layers.Embeddings):
    """BERT's embeddings without their norm."""

    @nn.compact
    def __call__(self, batch: Context, seed_2: jax.Array | None, delta_BxLxD: jax.Array | None) -> jax.Array:
        return self.drop(self.summed(batch, delta_BxLxD), seed_2).astype(jnp.float32)


class Attention(Normed, layers.Attention):
    """Self-attention of such a block."""


class Layer(Normed, layers.Layer):
    """One encoder layer of two such blocks."""

    attention: ClassVar = Attention


FAMILY = MegatronBert
