"""Modules that families share: BERT's embeddings, its layer, normalised after each sum, and its masked-LM head.

B rows, L positions, M slots, K slots of all rows, D hidden size, V padded vocabulary.
"""

import zlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.model.architecture import ACTIVATIONS, Architecture, Context, Rule
from bioptimus_jax.model.attention import Dropped, Ranges, dropout
from bioptimus_jax.model.compute import PLAIN_COMPUTE, Compute

# Rules of these modules and of tables. Columns of a layer's first matrices and rows of its second ones are split over
# `tensor` (Megatron-LM, arXiv 1909.08053, section 3), so that a layer needs two sums over that axis. Weights decay as
# in BERT's own code: matrices and tables, not biases and LayerNorm.
RULES = (
    Rule(r'^(embeddings/word_embeddings|cls/predictions/decoder)/embedding$', ('tensor', 'fsdp')),
    Rule(r'^embeddings/.*/embedding$', (None, 'fsdp')),
    Rule(r'/attention/self/(query|key|value)/kernel$', ('fsdp', 'tensor')),
    Rule(r'/attention/self/(query|key|value)/bias$', ('tensor',), decays=False),
    Rule(r'/attention/output/dense/kernel$', ('tensor', 'fsdp')),
    Rule(r'/intermediate/dense/kernel$', ('fsdp', 'tensor')),
    Rule(r'/intermediate/dense/bias$', ('tensor',), decays=False),
    Rule(r'/\d+/output/dense/kernel$', ('tensor', 'fsdp')),
    Rule(r'^cls/predictions/transform/dense/kernel$', ('fsdp', None)),
    Rule(r'^cls/predictions/bias$', ('tensor',), decays=False),
    Rule(r'/(bias|scale)$', (None,), decays=False),
)


DOWN, UP = 'adapter_down', 'adapter_up'
"""Matrices that an adapter puts beside the kernel of a dense layer."""


@jax.custom_vjp
def adapted(values_xD: jax.Array, kernel_DxE: jax.Array, down_DxR: jax.Array, up_RxE: jax.Array) -> jax.Array:
    """The values times the kernel, and times `down` and `up`, summed. The kernel has no gradient.

    So its gradient is not computed at all, as it would be if the product of the other two were added to it first. And
    it is one product, of which the backward pass keeps one result: of a sum of two it would keep both.
    """
    return _adapted(values_xD, kernel_DxE, down_DxR, up_RxE)[0]


def _adapted(values_xD: jax.Array, kernel_DxE: jax.Array, down_DxR: jax.Array, up_RxE: jax.Array) -> tuple:
    narrow_xR = values_xD @ down_DxR
    both = jnp.concatenate([values_xD, narrow_xR], -1) @ jnp.concatenate([kernel_DxE, up_RxE])
    return both, (values_xD, narrow_xR, kernel_DxE, down_DxR, up_RxE)


def _adapted_backward(kept: tuple, change_xE: jax.Array) -> tuple:
    values_xD, narrow_xR, kernel_DxE, down_DxR, up_RxE = kept
    of_narrow_xR = change_xE @ up_RxE.T
    of_values_xD = change_xE @ kernel_DxE.T + of_narrow_xR @ down_DxR.T
    of_down_DxR = jnp.einsum('...d,...r->dr', values_xD, of_narrow_xR)
    return of_values_xD, None, of_down_DxR, jnp.einsum('...r,...e->re', narrow_xR, change_xE)


adapted.defvjp(_adapted, _adapted_backward)


class Dense(nn.Dense):
    """A dense layer, with an adapter where it has the two matrices of one beside its kernel."""

    @nn.compact
    def __call__(self, values: jax.Array) -> jax.Array:
        if not self.has_variable('params', DOWN):
            return super().__call__(values)
        low = {n: jnp.asarray(leaf, self.dtype) for n, leaf in self.variables['params'].items()}
        made = adapted(values.astype(self.dtype), low['kernel'], low[DOWN], low[UP])
        return made + jnp.expand_dims(low['bias'], range(made.ndim - 1)) if self.use_bias else made


LOOKED_UP = 'looked_up'
"""A copy of a table beside it, for its rows alone, so that they have a gradient of their own."""


class Table(nn.Embed):
    """Rows by their numbers, from the copy of the table beside it where there is one."""

    compute: Compute = PLAIN_COMPUTE

    def __call__(self, numbers: jax.Array) -> jax.Array:
        shards = self.compute.row_shards
        if shards == 1 or len(numbers) % shards:
            return super().__call__(numbers)
        beside = self.has_variable('params', LOOKED_UP)
        table_VxD = self.get_variable('params', LOOKED_UP) if beside else self.embedding
        # A table for every shard of the rows, so that the rows of a device change its own, and are added up across
        # devices once, as what the output layer adds (`pretrain/cross_entropy.py`). Otherwise the compiler adds them to
        # all that the step has summed, and sends that besides.
        tables_SxVxD = jnp.broadcast_to(table_VxD, (shards, *table_VxD.shape))
        placed_SxVxD = self.compute.place(tables_SxVxD, 'rows', 'vocabulary', None)
        rows_SxNxD = jax.vmap(lambda table, at: jnp.take(table, at, axis=0))(
            placed_SxVxD, numbers.reshape(shards, -1)
        )
        return rows_SxNxD.reshape(*numbers.shape, self.features)


class ModelPart(nn.Module):
    """A part of a model: its parameters are float32, its matrix products are of `compute.dtype`."""

    architecture: Architecture
    compute: Compute

    @property
    def site(self) -> int:
        """A number for the place of the part in the model: no two places drop alike."""
        return zlib.crc32('/'.join(self.path).encode())

    @property
    def biased(self) -> bool:
        """Whether its dense layers have biases."""
        return self.architecture.biases

    def dense(self, features: int, values: jax.Array, name: str = 'dense') -> jax.Array:
        """The values times a matrix, with a bias if the part has them."""
        return Dense(features, use_bias=self.biased, dtype=self.compute.dtype, name=name)(values)

    def gated(self, features: int, values: jax.Array) -> jax.Array:
        """Wide columns, activated, times as many others."""
        gate, wide = (self.dense(features, values, name) for name in ('gate_proj', 'up_proj'))
        return ACTIVATIONS[self.architecture.activation](gate) * wide

    def embedding(self, rows: int, numbers: jax.Array, name: str) -> jax.Array:
        """Rows of a table."""
        return Table(rows, self.architecture.width, dtype=jnp.float32, name=name, compute=self.compute)(
            numbers
        )

    def normal(self, values: jax.Array, name: str = 'LayerNorm') -> jax.Array:
        """The family's norm in float32, then `compute.dtype`; the two-pass variance is PyTorch's, and the safer one."""
        a = self.architecture
        if not a.centred:
            root_mean_square = nn.RMSNorm(epsilon=a.layer_norm_epsilon, dtype=jnp.float32, name=name)
            return root_mean_square(values).astype(self.compute.dtype)
        norm = nn.LayerNorm(
            epsilon=a.layer_norm_epsilon,
            dtype=jnp.float32,
            use_bias=a.biases,
            use_fast_variance=False,
            name=name,
        )
        return norm(values).astype(self.compute.dtype)

    def drop(self, values: jax.Array, seed_2: jax.Array | None, after: int = 0) -> jax.Array:
        """Dropout; without a seed the values as they are. `after`: how many numbers of its site are taken already."""
        if seed_2 is None:
            return values
        return dropout(values, self.architecture.dropout, seed_2, self.site + after)

    def words(self, batch: Context, delta_BxLxD: jax.Array | None) -> jax.Array:
        """The rows of the words, and what is added to them."""
        rows_BxLxD = self.embedding(self.architecture.padded_vocab_size, batch['tokens'], 'word_embeddings')
        return rows_BxLxD if delta_BxLxD is None else rows_BxLxD + delta_BxLxD

    def attended(
        self,
        query_BxLxHxK: jax.Array,
        key_BxLxHxK: jax.Array,
        value_BxLxHxK: jax.Array,
        ranges: Ranges,
        seed_2: jax.Array | None,
        **terms: jax.Array,
    ) -> jax.Array:
        """The values that each piece attends to in these ranges, BxLxD; `terms`: see `attend`."""
        a = self.architecture
        dropped = None if seed_2 is None else Dropped(a.attention_dropout, seed_2, self.site)
        mixed_BxLxHxK = self.compute.attend(
            query_BxLxHxK, key_BxLxHxK, value_BxLxHxK, ranges, dropped, **terms
        )
        return mixed_BxLxHxK.reshape(*mixed_BxLxHxK.shape[:2], a.hidden)

    def without_padding(self, bias_V: jax.Array) -> jax.Array:
        """The output layer's bias, the lowest number in columns that are padding."""
        a = self.architecture
        real_V = jnp.arange(a.padded_vocab_size) < a.vocab_size
        return jnp.where(real_V, bias_V, jnp.finfo(jnp.float32).min)


class Unbiased(ModelPart):
    """A part whose dense layers have no biases, in a family that has them elsewhere."""

    @property
    def biased(self) -> bool:
        return False


class Embeddings(ModelPart):
    """Word, position and, where there are any, token-type rows, summed, normalised and made as wide as the model."""

    token_types: int = 0
    positioned: bool = True

    @nn.compact
    def __call__(self, batch: Context, seed_2: jax.Array | None, delta_BxLxD: jax.Array | None) -> jax.Array:
        a = self.architecture
        states_BxLxD = self.drop(self.normal(self.summed(batch, delta_BxLxD)), seed_2)
        return self.dense(a.hidden, states_BxLxD, 'embeddings_project') if a.projects else states_BxLxD

    def summed(self, batch: Context, delta_BxLxD: jax.Array | None) -> jax.Array:
        """The sum of the rows for words, token types and positions, and of what is added to words."""
        a = self.architecture
        summed_BxLxD = self.words(batch, delta_BxLxD)
        if self.token_types:
            # One row for everything where no types are given: its gradient is a plain sum, not a scatter.
            types = batch.get('token_types', jnp.zeros((1, 1), jnp.int32))
            summed_BxLxD = summed_BxLxD + self.embedding(self.token_types, types, 'token_type_embeddings')
        if self.positioned:
            summed_BxLxD = summed_BxLxD + self.embedding(
                a.positions, batch['positions'], 'position_embeddings'
            )
        return summed_BxLxD


class SelfAttention(ModelPart):
    """Queries, keys and values of one layer, and what they attend to."""

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array, batch: Context, seed_2: jax.Array | None) -> jax.Array:
        query, key, value = (
            self.heads_of(self.dense(self.architecture.hidden, hidden_BxLxD, name))
            for name in ('query', 'key', 'value')
        )
        query, key = (self.with_positions(heads, batch) for heads in (query, key))
        return self.attended(query, key, value, batch['ranges'], seed_2, **self.terms(batch))

    def with_positions(self, heads_BxLxHxK: jax.Array, batch: Context) -> jax.Array:
        """Queries or keys; a family with rotary positions turns them here."""
        del batch
        return heads_BxLxHxK

    def terms(self, batch: Context) -> dict[str, jax.Array]:
        """What the family's scores have beside products of queries and keys, by the names of `attend`'s arguments."""
        del batch
        return {}

    def heads_of(self, columns_BxLxD: jax.Array) -> jax.Array:
        """The columns of each head, BxLxHxK."""
        a = self.architecture
        heads_BxLxHxK = columns_BxLxD.reshape(*columns_BxLxD.shape[:2], a.heads, a.head_size)
        return cast(jax.Array, self.compute.place(heads_BxLxHxK, 'rows', None, 'heads', None))


class Residual(ModelPart):
    """Dense layer and dropout, added to what went in, normalised."""

    @nn.compact
    def __call__(self, inner: jax.Array, hidden_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        change_BxLxD = self.drop(self.dense(self.architecture.hidden, inner), seed_2)
        return self.compute.place(self.closed(hidden_BxLxD + change_BxLxD), 'rows', None, None)

    def closed(self, summed_BxLxD: jax.Array) -> jax.Array:
        """The sum, as the next block gets it."""
        return self.normal(summed_BxLxD)


class Block(ModelPart):
    """A part of a layer that ends with a residual; a family may put a norm in front of it."""

    residual: ClassVar[type[Residual]] = Residual

    def opened(self, hidden_BxLxD: jax.Array) -> jax.Array:
        """The states, as the block reads them."""
        return hidden_BxLxD


class Attention(Block):
    """Self-attention with its residual, everywhere or in slots alone."""

    @nn.compact
    def __call__(
        self,
        hidden_BxLxD: jax.Array,
        batch: Context,
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        options = (self.architecture, self.compute)
        self_attention = getattr(self.architecture, 'self_attention', SelfAttention)
        mixed_BxLxD = self_attention(*options, name='self')(self.opened(hidden_BxLxD), batch, seed_2)
        if slots is not None:
            mixed_BxLxD, hidden_BxLxD = (at_slots(states, slots) for states in (mixed_BxLxD, hidden_BxLxD))
        return self.residual(*options, name='output')(mixed_BxLxD, hidden_BxLxD, seed_2)


class Activated(ModelPart):
    """A dense layer and the activation: the wide half of the feed-forward block."""

    features: int

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        del seed_2  # BERT drops nothing here
        return ACTIVATIONS[self.architecture.activation](self.dense(self.features, hidden_BxLxD))


class Layer(Block):
    """One encoder layer; with `slots` nothing but attention is computed elsewhere. Its `kind` is its window."""

    attention: ClassVar[type[Attention]] = Attention
    wide: ClassVar[type[Activated]] = Activated

    @nn.compact
    def __call__(
        self,
        hidden_BxLxD: jax.Array,
        batch: Context,
        kind: int | None,
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        a, options = self.architecture, (self.architecture, self.compute)
        batch = {**batch, 'ranges': batch['ranges'].within(kind)}
        attention = self.attention(*options, name='attention')
        hidden_BxLxD = attention(hidden_BxLxD, batch, seed_2, slots)
        wide = self.wide(*options, a.intermediate, name='intermediate')
        activated = wide(self.opened(hidden_BxLxD), seed_2)
        return self.residual(*options, name='output')(activated, hidden_BxLxD, seed_2)


class Transform(ModelPart):
    """Dense layer, activation and LayerNorm in front of the output matrix, as wide as that."""

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> jax.Array:
        a = self.architecture
        return self.normal(ACTIVATIONS[a.head_activation or a.activation](self.dense(a.width, hidden_BxMxD)))


class Predictions(ModelPart):
    """The masked-language-model head but for its output matrix: the table of word embeddings, or one of its own."""

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> tuple[jax.Array, jax.Array]:
        a = self.architecture
        states_BxMxD = Transform(a, self.compute, name='transform')(hidden_BxMxD)
        bias_V = self.param('bias', nn.initializers.zeros, (a.padded_vocab_size,))
        return states_BxMxD, self.without_padding(bias_V)


SIZES = {
    'vocab_size': 'vocab_size',
    'hidden': 'hidden_size',
    'layers': 'num_hidden_layers',
    'heads': 'num_attention_heads',
    'intermediate': 'intermediate_size',
    'max_positions': 'max_position_embeddings',
}
"""Fields and the keys that most families have for them in config.json."""


class LikeBert(Architecture):
    """A family with these modules and BERT's parameter paths; it may replace a module by its own."""

    supported: ClassVar[Mapping[str, Any]] = {
        'position_embedding_type': 'absolute',
        'is_decoder': False,
    }
    table: ClassVar = 'embeddings/word_embeddings/embedding'
    position_table: ClassVar = 'embeddings/position_embeddings/embedding'
    own_output_table: ClassVar = 'cls/predictions/decoder/embedding'
    output_bias: ClassVar[str | None] = 'cls/predictions/bias'
    rules: ClassVar[Sequence[Rule]] = RULES
    # The attention in a layer of these parts.
    self_attention: ClassVar[type[SelfAttention]] = SelfAttention

    @property
    def kinds(self) -> tuple[Hashable, ...]:
        return self.windows

    def embeddings(self, compute: Compute) -> nn.Module:
        return Embeddings(self, compute, getattr(self, 'token_types', 0))

    def layer(self, compute: Compute) -> nn.Module:
        return Layer(self, compute)

    def predictions(self, compute: Compute) -> nn.Module:
        return Predictions(self, compute)


def at_slots(states_BxLxD: jax.Array, slots: jax.Array) -> jax.Array:
    """The states in places of each row, BxM, as BxMxD; or in places among all B * L, K, as 1xKxD."""
    # Slots are always inside. The default mode would compare every one of them, to fill with NaN.
    if slots.ndim == 2:  # every device keeps to its own rows
        return jnp.take_along_axis(states_BxLxD, slots[..., None], axis=1, mode='clip')
    flat = states_BxLxD.reshape(-1, states_BxLxD.shape[-1])
    return jnp.take(flat, slots, axis=0, mode='clip')[None]
