"""ELECTRA (Clark et al. 2020): BERT's encoder, with a table that may be narrower, as discriminator or as generator.

A discriminator says of each piece whether it was replaced; a generator is a masked language model. B rows, M slots,
D hidden size.
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self, cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.model.architecture import ACTIVATIONS, HEAD, Rule
from bioptimus_jax.model.compute import PLAIN_COMPUTE, Compute
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.layers import RULES, LikeBert, ModelPart
from bioptimus_jax.model.trees import Params
from bioptimus_jax.storage.files import JsonObject

MODULES = {'embeddings/embeddings_project/': 'electra/embeddings_project/', '': 'electra/'}


@dataclasses.dataclass(frozen=True)
class Electra(LikeBert):
    """An ELECTRA with the head of its generator, so a masked language model; `embedding_size` 0: the hidden size."""

    token_types: int = 2
    embedding_size: int = 0

    model_type: ClassVar = 'electra'
    title: ClassVar = 'ELECTRA'
    hf_class: ClassVar = 'ElectraForMaskedLM'
    config_keys: ClassVar = {**Bert.config_keys, 'embedding_size': 'embedding_size'}
    hf_defaults: ClassVar = {'embedding_size': 128, 'type_vocab_size': 2}
    head_activation: ClassVar = 'gelu'
    prefix: ClassVar = 'electra.'
    ignored: ClassVar = re.compile(
        r'embeddings\.position_ids$|discriminator_predictions\.|generator_lm_head\.weight$|classifier\.|qa_outputs\.'
    )
    own_output_table: ClassVar = ''
    tied: ClassVar = {'generator_lm_head.weight': 'electra.embeddings.word_embeddings.weight'}
    rules: ClassVar = (
        Rule(r'^embeddings/embeddings_project/kernel$', (None, 'fsdp')),
        Rule(r'^cls/predictions/dense(_prediction)?/kernel$', (None, None)),
        *RULES,
    )
    modules: ClassVar = {
        'cls/predictions/transform/': 'generator_predictions/',
        'cls/predictions/': 'generator_lm_head/',
        **MODULES,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.embedding_size:
            object.__setattr__(self, 'embedding_size', self.hidden)

    @property
    def width(self) -> int:
        return self.embedding_size

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; a discriminator's where config.json says that it is one."""
        found = super().from_config(values, file)
        if values.get('architectures') == [Discriminator.hf_class]:
            return cast(Self, found.discriminator())
        return found

    def masked_lm(self) -> 'Electra':
        """The encoder alone; a discriminator's head is no beginning for that of a masked language model."""
        return Electra(**dataclasses.asdict(self))

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """The head of a discriminator."""
        size, name = self.hidden, 'discriminator_predictions.dense'
        inner = {f'{name}.weight': (size, size), f'{name}.bias': (size,)}
        return {**inner, f'{name}_prediction.weight': (1, size), f'{name}_prediction.bias': (1,)}

    def discriminator(self) -> 'Discriminator':
        """The encoder with the head of a discriminator."""
        return Discriminator(**dataclasses.asdict(self))

    def generator(self, **shape: int) -> tuple['Electra', re.Pattern[str]]:
        """A generator that reads the tables and LayerNorm of this model and brings them to its own width; and what it
        reads."""
        fields = {**dataclasses.asdict(self), **shape, 'embedding_size': self.width}
        return Electra(**fields), re.compile('^embeddings/(?!embeddings_project/)')


@dataclasses.dataclass(frozen=True)
class Discriminator(Electra):
    """An ELECTRA with the head of its discriminator, of which `logits` [B, M] say that a piece was replaced."""

    hf_class: ClassVar = 'ElectraForPreTraining'
    purpose: ClassVar = 'discriminator'
    ignored: ClassVar = re.compile(
        r'embeddings\.position_ids$|generator_(predictions|lm_head)\.|classifier\.|qa_outputs\.'
    )
    tied: ClassVar = {}
    output_bias: ClassVar[str | None] = None
    modules: ClassVar = {'cls/predictions/': 'discriminator_predictions/', **MODULES}

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """Nothing: its head is trained."""
        return {}

    def predictions(self, compute: Compute) -> nn.Module:
        return Judgement(self, compute)

    def logits(self, params: Params, hidden_BxLxD: jax.Array, compute: Compute = PLAIN_COMPUTE) -> jax.Array:
        """Logits, for each piece, that it was replaced."""
        head = {'params': params[HEAD]['predictions']}
        return cast(jax.Array, self.predictions(compute).apply(head, hidden_BxLxD))


class Judgement(ModelPart):
    """Dense layer, activation, and one number a piece."""

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> jax.Array:
        a = self.architecture
        inner_BxMxD = ACTIVATIONS[a.activation](self.dense(a.hidden, hidden_BxMxD))
        return jnp.squeeze(self.dense(1, inner_BxMxD, 'dense_prediction'), -1).astype(jnp.float32)


FAMILY = Electra
