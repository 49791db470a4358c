"""ModernBERT (Warner et al. 2024, arXiv 2412.13663), as are Ettin and BioClinical ModernBERT, over packed rows.

Rotary positions in place of a table, a window of the document in most layers, gated feed-forward blocks, norms in front
of each block instead of behind it, no biases.

B rows, L positions, K slots of all rows, D hidden size.
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import ACTIVATIONS, Context, Rule
from bioptimus_jax.model.attention import dropout
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.layers import RULES, SIZES, ModelPart
from bioptimus_jax.model.prenorm import (
    FULL,
    SLIDING,
    Layer,
    LayerKind,
    PreNorm,
    RotaryAttention,
    WordEmbeddings,
    ropes_of_types,
)
from bioptimus_jax.model.rotary import ROPE, Rope, check_base, turned
from bioptimus_jax.storage.files import JsonObject

BASES = {FULL: 'global_rope_theta', SLIDING: 'local_rope_theta'}
EVERY = 'global_attn_every_n_layers'


@dataclasses.dataclass(frozen=True)
class ModernBert(PreNorm):
    """A ModernBERT with its masked-language-model head, whose output matrix is the table of word embeddings.

    Every `global_every`-th layer from the first attends to the whole document, the others to `local_attention // 2`
    places on either side; the two kinds turn positions by `rope` and by `local_rope`. `dropout` is that of embeddings
    and feed-forward blocks, which config.json has apart.
    """

    layer_norm_epsilon: float = 1e-5
    global_every: int = 3
    local_attention: int = 128
    rope: Rope = Rope(160_000.0)
    local_rope: Rope = Rope(10_000.0)

    model_type: ClassVar = 'modernbert'
    title: ClassVar = 'ModernBERT'
    hf_class: ClassVar = 'ModernBertForMaskedLM'
    config_keys: ClassVar = {
        **SIZES,
        'layer_norm_epsilon': 'norm_eps',
        'dropout': 'embedding_dropout',
        'attention_dropout': 'attention_dropout',
        'initializer_range': 'initializer_range',
        'activation': 'hidden_activation',
        'global_every': EVERY,
        'local_attention': 'local_attention',
    }
    supported: ClassVar = {
        'classifier_activation': 'gelu',
        'attention_bias': False,
        'mlp_bias': False,
        'norm_bias': False,
        'classifier_bias': False,
        'decoder_bias': True,
        'rope_scaling': None,
    }
    hf_defaults: ClassVar = {'embedding_dropout': 0.0, 'attention_dropout': 0.0}
    head_activation: ClassVar = 'gelu'
    prefix: ClassVar = 'model.'
    modules: ClassVar = {
        'encoder/layer/': 'model/layers/',
        'encoder/': 'model/',
        'embeddings/word_embeddings/': 'model/embeddings/tok_embeddings/',
        'embeddings/LayerNorm/': 'model/embeddings/norm/',
        'cls/predictions/transform/dense/': 'head/dense/',
        'cls/predictions/transform/LayerNorm/': 'head/norm/',
        'cls/predictions/decoder/': 'decoder/',
        'cls/predictions/bias': 'decoder/bias',
    }
    token_keys: ClassVar = {
        'pad_token_id': 'pad',
        'bos_token_id': 'cls',
        'cls_token_id': 'cls',
        'eos_token_id': 'sep',
        'sep_token_id': 'sep',
    }
    ignored: ClassVar = re.compile(r'decoder\.weight$|classifier\.')
    tied: ClassVar = {'decoder.weight': 'model.embeddings.tok_embeddings.weight'}
    gated: ClassVar = True
    rules: ClassVar = (
        # Whole on every device of `tensor`: a cut would follow neither heads nor the pairs of gate and value.
        Rule(r'/(Wqkv|Wi)/kernel$', ('fsdp', None)),
        Rule(r'/Wo/kernel$', ('tensor', 'fsdp')),
        *RULES,
    )

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; what newer versions of transformers write (rope_parameters, layer_types) goes first."""
        given = dict(values)
        if types := given.get('layer_types'):
            usual = given.get(EVERY, cls.global_every)
            found = (n for n in (usual, *range(1, len(types) + 1)) if types == _layer_types(len(types), n))
            given[EVERY] = next(found, None)
            if given[EVERY] is None or len(types) != given.get('num_hidden_layers'):
                raise InputError(
                    f'{file}: layer_types must be {FULL} in every n-th of its layers from the first, and {SLIDING} in '
                    'all others'
                )
        made = super().from_config(given, file)
        described, own = given.get(ROPE) or {}, {FULL: cls.rope, SLIDING: cls.local_rope}
        if isinstance(described, Mapping):  # as null is what transformers makes of a key that is missing
            described = {kind: one for kind, one in described.items() if one is not None}
        # A base that is missing in both spellings is transformers' own, but for an object that should have one.
        thetas = {kind: None if kind in described else rope.base for kind, rope in own.items()}
        for kind, name in BASES.items():
            if given.get(name) is not None:
                check_base(given[name], file, name)
                thetas[kind] = given[name]
        ropes = ropes_of_types(described, thetas, (*BASES,), own, made.max_positions, file)
        return dataclasses.replace(made, rope=ropes[FULL], local_rope=ropes[SLIDING])

    def to_config(self) -> JsonObject:
        """The values of config.json, for old versions of transformers and for new ones."""
        ropes = {FULL: self.rope, SLIDING: self.local_rope}
        bases = {name: ropes[kind].base for kind, name in BASES.items()}
        return {
            **super().to_config(),
            **{name: int(base) if base == int(base) else base for name, base in bases.items()},
            'mlp_dropout': self.dropout,
            'layer_types': _layer_types(self.layers, self.global_every),
            ROPE: {kind: rope.to_config() for kind, rope in ropes.items()},
        }

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        of_all, near = (
            LayerKind(None, self.rope),
            LayerKind(self.local_attention // 2, self.local_rope),
        )
        types = _layer_types(self.layers, self.global_every)
        first, *others = (of_all if name == FULL else near for name in types)
        return first._replace(norm=False), *others  # the embeddings are normalised already

    def embeddings(self, compute: Compute) -> nn.Module:
        return WordEmbeddings(self, compute, norm=True)

    def layer(self, compute: Compute) -> nn.Module:
        return ModernLayer(self, compute)

    def drawn_parameters(self, key: jax.Array) -> dict[str, np.ndarray]:
        """Random parameters; matrices behind which sums grow are smaller by the root of twice the layers.

        They are drawn from the whole normal distribution, not from the part of it within two deviations.
        """
        scale = np.float32((2.0 * self.layers) ** -0.5)
        ends = ('/Wo/kernel', '/transform/dense/kernel')
        drawn = super().drawn_parameters(key)
        return {path: value * scale if path.endswith(ends) else value for path, value in drawn.items()}


def _layer_types(layers: int, every: Any) -> list[str]:
    return [SLIDING if number % every else FULL for number in range(layers)]


class Attention(RotaryAttention):
    """Attention in the document or its window, with queries and keys turned by their positions."""

    @nn.compact
    def __call__(
        self,
        inner_BxLxD: jax.Array,
        batch: Context,
        kind: LayerKind,
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        a = self.architecture
        heads = (*inner_BxLxD.shape[:2], 3, a.heads, a.head_size)
        together = self.dense(3 * a.hidden, inner_BxLxD, 'Wqkv').reshape(heads)
        query, key, value = (
            self.compute.place(together[:, :, n], 'rows', None, 'heads', None) for n in range(3)
        )
        query, key = (turned(x, *batch['rotations'][kind.rope]) for x in (query, key))
        change_BxLxD = self.dense(a.hidden, self.mixed(query, key, value, batch, kind, seed_2, slots), 'Wo')
        if seed_2 is None:
            return change_BxLxD
        # `dropout` takes a site and the number after it; the attention weights have these two.
        return dropout(change_BxLxD, a.attention_dropout, seed_2, self.site + 2)


class FeedForward(ModelPart):
    """One half of the wide columns, activated, times the other half."""

    @nn.compact
    def __call__(self, inner_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        a = self.architecture
        wide, gate = jnp.split(self.dense(2 * a.intermediate, inner_BxLxD, 'Wi'), 2, axis=-1)
        return self.dense(a.hidden, self.drop(ACTIVATIONS[a.activation](wide) * gate, seed_2), 'Wo')


class ModernLayer(Layer):
    """One encoder layer of these two."""

    parts: ClassVar = (Attention, FeedForward)


FAMILY = ModernBert
