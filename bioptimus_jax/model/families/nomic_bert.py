"""Nomic BERT (Nussbaum et al. 2024, arXiv 2402.01613): GTE's layers without a bias in any product, and BERT's head.

D hidden size.
"""

import dataclasses
import re
from pathlib import Path
from typing import ClassVar, Self

import flax.linen as nn
import jax

from bioptimus_jax.model import layers
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.families import gte
from bioptimus_jax.model.rotary import Rope
from bioptimus_jax.storage.files import JsonObject

FIRST_SPELLING = {
    'n_embd': 'hidden_size',
    'n_layer': 'num_hidden_layers',
    'n_head': 'num_attention_heads',
    'n_inner': 'intermediate_size',
    'n_positions': 'max_position_embeddings',
    'layer_norm_epsilon': 'layer_norm_eps',
    'resid_pdrop': 'hidden_dropout_prob',
    'attn_pdrop': 'attention_probs_dropout_prob',
    'rotary_emb_base': 'rope_theta',
}
"""Keys of the config.json that the first models were published with -> those of transformers."""
FIRST_SUPPORTED = {
    'activation_function': 'swiglu',
    'prenorm': False,
    'parallel_block': False,
    'use_rms_norm': False,
    'qkv_proj_bias': False,
    'mlp_fc1_bias': False,
    'mlp_fc2_bias': False,
    'rotary_emb_fraction': 1.0,
    'rotary_emb_interleaved': False,
    'rotary_emb_scale_base': None,
    'rotary_scaling_factor': None,
}
"""Other keys of that spelling, with the one value that transformers' own class computes."""


class Residual(layers.Unbiased, layers.Residual):
    """BERT's residual without a bias in its dense layer."""


class SelfAttention(layers.Unbiased, gte.SelfAttention):
    """GTE's self-attention without biases."""


class Attention(layers.Attention):
    """Self-attention with this residual."""

    residual: ClassVar = Residual


class Gated(gte.Gated):
    """GTE's gated product, without dropout."""

    def drop(self, values: jax.Array, seed_2: jax.Array | None, after: int = 0) -> jax.Array:
        del seed_2, after
        return values


class Layer(gte.Layer):
    """One encoder layer of these parts."""

    attention: ClassVar = Attention
    wide: ClassVar = Gated
    residual: ClassVar = Residual


@dataclasses.dataclass(frozen=True)
class NomicBert(gte.Gte):
    """A Nomic BERT with its masked-language-model head."""

    dropout: float = 0.0
    activation: str = 'silu'
    token_types: int = 2
    rope: Rope = Rope(1_000.0)

    model_type: ClassVar = 'nomic_bert'
    title: ClassVar = 'Nomic BERT'
    hf_class: ClassVar = 'NomicBertForMaskedLM'
    supported: ClassVar = {**gte.Gte.supported, **FIRST_SUPPORTED}
    head_activation: ClassVar = ''
    prefix: ClassVar = 'nomic_bert.'
    modules: ClassVar = {
        'cls/predictions/transform/LayerNorm/': 'cls/predictions/transform/layer_norm/',
        'cls/': 'cls/',
        '': 'nomic_bert/',
    }
    ignored: ClassVar = re.compile(r'pooler\.|cls\.predictions\.decoder\.|classifier\.|rotary_emb\.')
    tied: ClassVar = {
        'cls.predictions.decoder.weight': 'nomic_bert.embeddings.word_embeddings.weight',
        'cls.predictions.decoder.bias': 'cls.predictions.bias',
    }
    in_files: ClassVar = {
        r'^emb_ln\.': 'embeddings.LayerNorm.',
        r'^encoder\.layers\.': 'layers.',
        r'\.attn\.out_proj\.': '.self_attn.o_proj.',
        r'\.attn\.': '.self_attn.',
        r'\.mlp\.fc11\.': '.mlp.up_proj.',
        r'\.mlp\.fc12\.': '.mlp.gate_proj.',
        r'\.mlp\.fc2\.': '.mlp.down_proj.',
        r'\.norm1\.': '.post_attention_layernorm.',
        r'\.norm2\.': '.post_mlp_layernorm.',
    }
    stacked: ClassVar = {'self_attn.Wqkv': ('self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj')}
    self_attention: ClassVar = SelfAttention

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; the first models were published with other keys than transformers has."""
        given = {FIRST_SPELLING.get(name, name): value for name, value in values.items() if value is not None}
        return super().from_config(given, file)

    def layer(self, compute: Compute) -> nn.Module:
        return Layer(self, compute)


FAMILY = NomicBert
