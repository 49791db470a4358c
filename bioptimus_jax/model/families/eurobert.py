"""EuroBERT (Boizard et al. 2025, arXiv 2503.05500): Llama's layers, which look to both sides, and no head but a table.

Norms without a mean, gated feed-forward blocks, rotary positions, no biases, fewer heads of keys and values than of
queries, and an output table of its own.

B rows, L positions, M slots, K slots of all rows, D hidden size, V padded vocabulary.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import Context, Rule
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.layers import RULES, SIZES, ModelPart
from bioptimus_jax.model.prenorm import Layer, LayerKind, PreNorm, RotaryAttention, WordEmbeddings
from bioptimus_jax.model.rotary import HEAD_SIZE, ROPE, Rope, check_head_size, rope_in, turned
from bioptimus_jax.storage.files import JsonObject


@dataclasses.dataclass(frozen=True)
class EuroBert(PreNorm):
    """A EuroBERT, whose head for masked language modelling is a table alone.

    `key_heads`: those of keys and values, each of them read by the same number of `heads`; 0: as many as `heads`.
    `dropout` is ours: of embeddings and of what each block adds. transformers has none but that of attention.
    """

    layer_norm_epsilon: float = 1e-5
    activation: str = 'silu'
    untied: bool = True
    key_heads: int = 0
    rope: Rope = Rope(250_000.0)

    model_type: ClassVar = 'eurobert'
    title: ClassVar = 'EuroBERT'
    centred: ClassVar = False
    hf_class: ClassVar = 'EuroBertForMaskedLM'
    config_keys: ClassVar = {
        **SIZES,
        'key_heads': 'num_key_value_heads',
        'layer_norm_epsilon': 'rms_norm_eps',
        'dropout': 'hidden_dropout',
        'attention_dropout': 'attention_dropout',
        'initializer_range': 'initializer_range',
        'activation': 'hidden_act',
    }
    supported: ClassVar = {'attention_bias': False, 'mlp_bias': False, 'is_decoder': False}
    hf_defaults: ClassVar = {'hidden_dropout': 0.0, 'attention_dropout': 0.0, 'tie_word_embeddings': False}
    token_keys: ClassVar = {
        'pad_token_id': 'pad',
        'bos_token_id': 'cls',
        'eos_token_id': 'sep',
        'mask_token_id': 'mask',
    }
    prefix: ClassVar = 'model.'
    modules: ClassVar = {
        'encoder/layer/': 'model/layers/',
        'encoder/final_norm/': 'model/norm/',
        'embeddings/word_embeddings/': 'model/embed_tokens/',
        'cls/predictions/decoder/': 'lm_head/',
    }
    ignored: ClassVar = re.compile(r'lm_head\.weight$|dense\.|classifier\.')
    tied: ClassVar = {'lm_head.weight': 'model.embed_tokens.weight'}
    gated: ClassVar = True
    output_bias: ClassVar[str | None] = None
    rules: ClassVar[Sequence[Rule]] = (
        Rule(r'/([qkv]|gate|up)_proj/kernel$', ('fsdp', 'tensor')),
        Rule(r'/(o|down)_proj/kernel$', ('tensor', 'fsdp')),
        *RULES,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.key_heads:
            object.__setattr__(self, 'key_heads', self.heads)
        if self.heads % self.key_heads:
            raise ValueError(f'{self.key_heads} heads of keys do not divide the {self.heads} of queries')

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; null is what transformers makes of a key that is missing."""
        given = {name: value for name, value in values.items() if value is not None}
        made = super().from_config(given, file)
        check_head_size(given, made.head_size, file)
        try:
            return dataclasses.replace(made, **cls._fields(given, made, file))
        except ValueError as error:
            raise InputError(f'{file}: {error}') from error

    @classmethod
    def _fields(cls, given: JsonObject, made: Self, file: Path) -> JsonObject:
        """How positions are turned."""
        return {'rope': rope_in(given, None, made.max_positions, file)}

    def to_config(self) -> JsonObject:
        return {**super().to_config(), HEAD_SIZE: self.head_size, ROPE: self.rope.to_config()}

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        return (LayerKind(None, self.rope),) * self.layers

    def embeddings(self, compute: Compute) -> nn.Module:
        return WordEmbeddings(self, compute)

    def layer(self, compute: Compute) -> nn.Module:
        return GroupedLayer(self, compute)

    def predictions(self, compute: Compute) -> nn.Module:
        return Plain(self, compute)


class GroupedAttention(RotaryAttention):
    """Attention in the document or its window, in which some heads of queries share one of keys and values."""

    @nn.compact
    def __call__(
        self,
        inner_BxLxD: jax.Array,
        batch: Context,
        kind: LayerKind,
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        a: Any = self.architecture
        turns, several = batch['rotations'][kind.rope], a.heads // a.key_heads

        def heads_of(name: str, number: int) -> jax.Array:
            columns = self.dense(number * a.head_size, inner_BxLxD, name)
            return columns.reshape(*inner_BxLxD.shape[:2], number, a.head_size)

        query, key = (
            turned(heads_of('q_proj', a.heads), *turns),
            turned(heads_of('k_proj', a.key_heads), *turns),
        )
        value = heads_of('v_proj', a.key_heads)
        # Kernels want as many heads of keys as of queries.
        key, value = (jnp.repeat(x, several, axis=2) if several > 1 else x for x in (key, value))
        query, key, value = (self.compute.place(x, 'rows', None, 'heads', None) for x in (query, key, value))
        change = self.dense(a.hidden, self.mixed(query, key, value, batch, kind, seed_2, slots), 'o_proj')
        # `dropout` takes a site and the number after it; the attention weights have these two.
        return self.drop(change, seed_2, 2)


class GatedFeedForward(ModelPart):
    """Wide columns, activated, times others."""

    @nn.compact
    def __call__(self, inner_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        a = self.architecture
        wide = self.gated(a.intermediate, inner_BxLxD)
        return self.drop(self.dense(a.hidden, wide, 'down_proj'), seed_2)


class GroupedLayer(Layer):
    """One encoder layer of these two, under transformers' names."""

    parts: ClassVar = (GroupedAttention, GatedFeedForward)
    names: ClassVar = ('input_layernorm', 'self_attn', 'post_attention_layernorm', 'mlp')


class Plain(ModelPart):
    """The states as they are, and a bias that is nothing but the mark of columns that are padding."""

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> tuple[jax.Array, jax.Array]:
        return hidden_BxMxD, self.without_padding(jnp.zeros(self.architecture.padded_vocab_size))


FAMILY = EuroBert
