"""GTE (Zhang et al. 2024, arXiv 2407.19669): a BERT with rotary positions and gated feed-forward blocks.

B rows, L positions, H heads, K size of a head, D hidden size.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import flax.linen as nn
import jax
import numpy as np

from bioptimus_jax.model import layers
from bioptimus_jax.model.architecture import IN_LAYER, Context, Rule
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.families.bert import Bert, pooler
from bioptimus_jax.model.rotary import (
    ROPE,
    Rope,
    check_head_size,
    check_heads,
    rope_in,
    rotation,
    turned,
)
from bioptimus_jax.storage.files import JsonObject

TYPES = 'type_vocab_size'
THEIRS = {
    'attention/self/query/': 'self_attn/q_proj/',
    'attention/self/key/': 'self_attn/k_proj/',
    'attention/self/value/': 'self_attn/v_proj/',
    'attention/output/dense/': 'self_attn/o_proj/',
    'attention/output/LayerNorm/': 'post_attention_layernorm/',
    'intermediate/': 'mlp/',
    'output/dense/': 'mlp/down_proj/',
    'output/LayerNorm/': 'post_mlp_layernorm/',
}
"""Parts of our paths in a layer -> parts of theirs; the first that fits decides."""


class SelfAttention(layers.SelfAttention):
    """Self-attention with rotary positions."""

    def with_positions(self, heads_BxLxHxK: jax.Array, batch: Context) -> jax.Array:
        """Queries or keys, turned."""
        return turned(heads_BxLxHxK, *batch['rotation'])


class Gated(layers.Unbiased, layers.Activated):
    """The gated product, without biases."""

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        return self.drop(self.gated(self.features, hidden_BxLxD), seed_2)


class Layer(layers.Layer):
    """BERT's layer with such a feed-forward block."""

    wide: ClassVar = Gated


@dataclasses.dataclass(frozen=True)
class Gte(layers.LikeBert):
    """A GTE with its masked-language-model head; `token_types` may be 0."""

    attention_dropout: float = 0.0
    token_types: int = 1
    rope: Rope = Rope(160_000.0)

    model_type: ClassVar = 'gte'
    title: ClassVar = 'GTE'
    hf_class: ClassVar = 'GteForMaskedLM'
    config_keys: ClassVar = {**Bert.config_keys, 'token_types': TYPES}
    head_activation: ClassVar = 'gelu'
    prefix: ClassVar = 'gte.'
    modules: ClassVar = {
        'cls/predictions/transform/dense/': 'lm_head/dense/',
        'cls/predictions/transform/LayerNorm/': 'lm_head/layer_norm/',
        'cls/predictions/decoder/': 'lm_head/decoder/',
        'cls/predictions/bias': 'lm_head/decoder/bias',
        '': 'gte/',
    }
    ignored: ClassVar = re.compile(r'pooler\.|lm_head\.decoder\.weight$|classifier\.|rotary_emb\.')
    tied: ClassVar = {'lm_head.decoder.weight': 'gte.embeddings.word_embeddings.weight'}
    gated: ClassVar = True
    position_table: ClassVar = ''
    self_attention: ClassVar = SelfAttention
    rules: ClassVar[Sequence[Rule]] = (
        Rule(r'/intermediate/(gate|up)_proj/kernel$', ('fsdp', 'tensor')),
        *layers.RULES,
    )
    # Parts of names in files, which transformers renames as it reads and writes them -> those of its parameters.
    in_files: ClassVar[Mapping[str, str]] = {
        r'^new\.': '',
        r'^encoder\.layer\.': 'layers.',
        r'\.attention\.': '.self_attn.',
        r'\.attn_ln\.': '.post_attention_layernorm.',
        r'\.mlp_ln\.': '.post_mlp_layernorm.',
        r'^lm_head\.norm\.': 'lm_head.layer_norm.',
    }
    # Modules in files that hold several of its parameters, one below the other.
    stacked: ClassVar[Mapping[str, tuple[str, ...]]] = {
        'self_attn.qkv_proj': ('self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'),
        'mlp.up_gate_proj': ('mlp.up_proj', 'mlp.gate_proj'),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.head_size)

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; null is what transformers makes of a key that is missing."""
        given = {name: value for name, value in values.items() if value is not None}
        untyped = given.get(TYPES) == 0
        made = super().from_config({**given, TYPES: 1} if untyped else given, file)
        check_head_size(given, made.head_size, file)
        rope = rope_in(given, cls.rope.base, made.max_positions, file)
        return dataclasses.replace(made, rope=rope, token_types=0 if untyped else made.token_types)

    def to_config(self) -> JsonObject:
        return {**super().to_config(), ROPE: self.rope.to_config()}

    @classmethod
    def tensor_name(cls, path: str) -> str:
        if in_layer := IN_LAYER.match(path):
            number, inner = in_layer.groups()
            ours = next(part for part in THEIRS if inner.startswith(part))
            path = f'layers/{number}/{THEIRS[ours]}{inner.removeprefix(ours)}'
        return super().tensor_name(path)

    @classmethod
    def plain_name(cls, name: str) -> str:
        """A tensor's name without the prefix; files that transformers writes have others than its own parameters."""
        plain = super().plain_name(name)
        for theirs, own in cls.in_files.items():
            plain = re.sub(theirs, own, plain)
        return plain

    def from_hf_tensors(self, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Tensors with those apart that lie one below the other in files."""
        apart: dict[str, np.ndarray] = {}
        for name, tensor in tensors.items():
            several = next((end for end in self.stacked if f'.{end}.' in name), '')
            parts = self.stacked.get(several, ())
            if parts and len(tensor) % len(parts) == 0:
                pieces = np.split(tensor, len(parts))
                apart |= {name.replace(several, part): piece for part, piece in zip(parts, pieces)}
            else:  # of parts that do not come out even the names are unknown, and so they are refused
                apart[name] = tensor
        return apart

    def untouched(self) -> Mapping[str, tuple[int, ...]]:
        """The pooler, which classifiers of transformers read."""
        return pooler(self)

    def context(self, batch: Mapping[str, jax.Array]) -> Context:
        """The context with the cosines and sines of all positions."""
        turns = rotation(batch['positions'], self.rope, self.head_size, self.positions)
        return {**super().context(batch), 'rotation': turns}

    def embeddings(self, compute: Compute) -> nn.Module:
        return layers.Embeddings(self, compute, self.token_types, positioned=False)

    def layer(self, compute: Compute) -> nn.Module:
        return Layer(self, compute)


FAMILY = Gte
