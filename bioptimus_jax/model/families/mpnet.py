"""MPNet (Song et al. 2020): RoBERTa without token types, with a term for the distance of two pieces in every score.

The table of these terms is one for all layers. Positions are counted from 2 on, as in RoBERTa, but transformers takes
id 1 for padding here whatever config.json says.

O distances of two places of a row, H heads, L places.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.model.architecture import Context, Rule
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.families.roberta import POSITIONS, Roberta, under
from bioptimus_jax.model.layers import RULES, ModelPart, SelfAttention
from bioptimus_jax.model.relative import distances_O, spread, t5_buckets
from bioptimus_jax.storage.files import JsonObject

PAD = 1
"""The id from which transformers counts positions, whatever pad_token_id says."""
BUCKETS = 32
"""Rows of the table of distances: transformers computes with these, whatever relative_attention_num_buckets says."""
THEIRS = {
    'attention/self/query/': 'attention/attn/q/',
    'attention/self/key/': 'attention/attn/k/',
    'attention/self/value/': 'attention/attn/v/',
    'attention/output/dense/': 'attention/attn/o/',
    'attention/output/LayerNorm/': 'attention/LayerNorm/',
}
"""Parts of our paths -> parts of theirs."""


class Distances(ModelPart):
    """The term of every pair of places for each head, 1xHxLxL: a row of a table for the bucket of their distance."""

    @nn.compact
    def __call__(self, batch: Context) -> jax.Array:
        length, heads = batch['tokens'].shape[1], self.architecture.heads
        numbers_O = jnp.asarray(t5_buckets(distances_O(length), BUCKETS), jnp.int32)
        terms_OxH = nn.Embed(BUCKETS, heads, dtype=jnp.float32, name='relative_attention_bias')(numbers_O)
        terms_HxLxO = jnp.broadcast_to(terms_OxH.T[:, None], (heads, length, 2 * length - 1))
        return spread(terms_HxLxO)[None]


class DistanceAttention(SelfAttention):
    """Self-attention with these terms."""

    def terms(self, batch: Context) -> dict[str, jax.Array]:
        return {'bias_BxHxLxL': batch['of_all_layers']}


@dataclasses.dataclass(frozen=True)
class MPNet(Roberta):
    """An MPNet with its masked-language-model head; `max_positions` are the rows of transformers' table."""

    model_type: ClassVar = 'mpnet'
    title: ClassVar = 'MPNet'
    hf_class: ClassVar = 'MPNetForMaskedLM'
    only_pad: ClassVar = PAD
    biased_scores: ClassVar = True
    config_keys: ClassVar = {field: key for field, key in Roberta.config_keys.items() if field != 'pad'}
    supported: ClassVar = {
        **Roberta.supported,
        'pad_token_id': PAD,
        'relative_attention_num_buckets': BUCKETS,
    }
    hf_defaults: ClassVar = {'layer_norm_eps': 1e-12}
    prefix: ClassVar = 'mpnet.'
    modules: ClassVar = under('mpnet', Roberta.modules)
    tied: ClassVar = under('mpnet', Roberta.tied)
    rules: ClassVar[Sequence[Rule]] = (
        Rule(r'^encoder/relative_attention_bias/embedding$', (None, 'tensor')),
        *RULES,
    )
    self_attention: ClassVar = DistanceAttention

    @classmethod
    def tensor_name(cls, path: str) -> str:
        for ours, theirs in THEIRS.items():
            path = path.replace(ours, theirs)
        return super().tensor_name(path)

    def padded_with(self, pad: int) -> 'MPNet':
        return self

    def to_config(self) -> JsonObject:
        values = super().to_config()
        del values['type_vocab_size']
        return {**values, 'pad_token_id': self.only_pad, 'relative_attention_num_buckets': BUCKETS}

    def to_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Tensors with the two rows of positions that transformers wants and no piece reads."""
        name = self.prefix + POSITIONS
        return {**tensors, name: np.pad(tensors[name], [(self.pad + 1, 0), (0, 0)])}

    def of_all_layers(self, compute: Compute) -> nn.Module:
        return Distances(self, compute)


FAMILY = MPNet
