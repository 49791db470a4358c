"""Megatron-BERT (Shoeybi et al. 2019, arXiv 1909.08053, section 5.3), as is GatorTron: a BERT with its norms in front.

It has no norm behind the embeddings, one in front of each block, and one behind the last layer. So the sum over layers
is not normalised, and stays float32.

B rows, L positions, D hidden size.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.families.bert import Bert, pooler
from bioptimus_jax.model.layers import Activated, Embeddings, LikeBert, ModelPart, SelfAttention, at_slots
from bioptimus_jax.model.prenorm import FinalNorm

NORM = 'ln'


@dataclasses.dataclass(frozen=True)
class MegatronBert(LikeBert):
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

    def embeddings(self, compute: Compute) -> nn.Module:
        return SummedEmbeddings(self, compute, self.token_types)

    def layer(self, compute: Compute) -> nn.Module:
        return Layer(self, compute)

    def final_norm(self, compute: Compute) -> nn.Module:
        return FinalNorm(self, compute, NORM)

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Pooler and head of next sentences."""
        head = 'cls.seq_relationship'
        return {**pooler(self), f'{head}.weight': (2, self.hidden), f'{head}.bias': (2,)}


class SummedEmbeddings(Embeddings):
    """BERT's embeddings without their norm."""

    @nn.compact
    def __call__(
        self, batch: Mapping[str, jax.Array], seed_2: jax.Array | None, delta_BxLxD: jax.Array | None
    ) -> jax.Array:
        return self.drop(self.summed(batch, delta_BxLxD), seed_2).astype(jnp.float32)


class Change(ModelPart):
    """What a block adds: a dense layer and dropout."""

    @nn.compact
    def __call__(self, inner: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        return self.drop(self.dense(self.architecture.hidden, inner), seed_2)


class Attention(ModelPart):
    """Norm and self-attention, added to the states, everywhere or in slots alone."""

    @nn.compact
    def __call__(
        self,
        hidden_BxLxD: jax.Array,
        batch: Mapping[str, Any],
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        options = (self.architecture, self.compute)
        mixed_BxLxD = SelfAttention(*options, name='self')(self.normal(hidden_BxLxD, NORM), batch, seed_2)
        if slots is not None:
            mixed_BxLxD, hidden_BxLxD = (at_slots(states, slots) for states in (mixed_BxLxD, hidden_BxLxD))
        changed_BxLxD = hidden_BxLxD + Change(*options, name='output')(mixed_BxLxD, seed_2)
        return self.compute.place(changed_BxLxD, 'rows', None, None)


class Layer(ModelPart):
    """One encoder layer; with `slots` nothing but attention is computed elsewhere."""

    @nn.compact
    def __call__(
        self,
        hidden_BxLxD: jax.Array,
        batch: Mapping[str, Any],
        kind: None,
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        del kind  # all layers are alike
        a, options = self.architecture, (self.architecture, self.compute)
        hidden_BxLxD = Attention(*options, name='attention')(hidden_BxLxD, batch, seed_2, slots)
        inner_BxLxD = self.normal(hidden_BxLxD, NORM)
        wide = Activated(*options, a.intermediate, name='intermediate')(inner_BxLxD)
        changed_BxLxD = hidden_BxLxD + Change(*options, name='output')(wide, seed_2)
        return self.compute.place(changed_BxLxD, 'rows', None, None)


FAMILY = MegatronBert
