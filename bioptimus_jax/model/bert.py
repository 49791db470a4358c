"""BERT's encoder over packed rows (Devlin et al. 2019), with parameter paths spelled like Hugging Face's.

B rows, L positions, D hidden size, H heads, K size of a head, V padded vocabulary.
"""

import functools
import zlib
from collections.abc import Mapping
from typing import Any, cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from bioptimus_jax.model.architecture import ACTIVATIONS, Architecture, dense, layer_norm
from bioptimus_jax.model.attention import attend, dropout
from bioptimus_jax.model.heads import Predictions
from bioptimus_jax.trees import flatten, unflatten

# Parameters with one row per token, padded to a multiple that matrix units and sharding like.
PADDED = ('embeddings/word_embeddings/embedding', 'cls/predictions/bias')


class Embeddings(nn.Module):
    """Word, position and token-type rows, summed and normalised."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self, batch: Mapping[str, jax.Array], seed_2: jax.Array | None, delta_BxLxD: jax.Array | None
    ) -> jax.Array:
        a = self.architecture
        words_BxLxD = self._table(a.padded_vocab_size, 'word_embeddings')(batch['tokens'])
        if delta_BxLxD is not None:
            words_BxLxD = words_BxLxD + delta_BxLxD
        positions = self._table(a.max_positions, 'position_embeddings')
        types = self._table(a.token_types, 'token_type_embeddings')
        # One row for everything where no types are given: its gradient is a plain sum, not a scatter.
        types_BxLxD = types(batch.get('token_types', jnp.zeros((1, 1), jnp.int32)))
        total_BxLxD = words_BxLxD + types_BxLxD + positions(batch['positions'] + a.position_offset)
        states_BxLxD = layer_norm(a)(total_BxLxD).astype(self.dtype)
        return _drop(self, states_BxLxD, seed_2)

    def _table(self, rows: int, name: str) -> nn.Embed:
        return nn.Embed(rows, self.architecture.hidden, dtype=jnp.float32, name=name)


class SelfAttention(nn.Module):
    """Queries, keys and values of one layer, and what they attend to."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self, hidden_BxLxD: jax.Array, segments_BxL: jax.Array, seed_2: jax.Array | None
    ) -> jax.Array:
        a = self.architecture
        heads = (*hidden_BxLxD.shape[:2], a.heads, a.head_size)
        query, key, value = (
            dense(a.hidden, self.dtype, n)(hidden_BxLxD).reshape(heads) for n in ('query', 'key', 'value')
        )
        mixed_BxLxHxK = attend(
            query,
            key,
            value,
            segments_BxL,
            dropout_rate=a.attention_dropout,
            dropout_seed=seed_2,
            dropout_site=_site(self),
        )
        return mixed_BxLxHxK.reshape(hidden_BxLxD.shape)


class Residual(nn.Module):
    """Dense layer and dropout, added to what went in, normalised."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(self, inner: jax.Array, hidden_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        change_BxLxD = dense(self.architecture.hidden, self.dtype, 'dense')(inner)
        change_BxLxD = _drop(self, change_BxLxD, seed_2)
        return layer_norm(self.architecture)(hidden_BxLxD + change_BxLxD).astype(self.dtype)


class Attention(nn.Module):
    """Self-attention with its residual."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self, hidden_BxLxD: jax.Array, segments_BxL: jax.Array, seed_2: jax.Array | None
    ) -> jax.Array:
        mixed_BxLxD = SelfAttention(self.architecture, self.dtype, name='self')(
            hidden_BxLxD, segments_BxL, seed_2
        )
        return Residual(self.architecture, self.dtype, name='output')(mixed_BxLxD, hidden_BxLxD, seed_2)


class Intermediate(nn.Module):
    """The wide half of the feed-forward block."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array) -> jax.Array:
        wide = dense(self.architecture.intermediate, self.dtype, 'dense')(hidden_BxLxD)
        return ACTIVATIONS[self.architecture.activation](wide)


class Layer(nn.Module):
    """One encoder layer."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self, hidden_BxLxD: jax.Array, segments_BxL: jax.Array, seed_2: jax.Array | None
    ) -> jax.Array:
        options = (self.architecture, self.dtype)
        hidden_BxLxD = Attention(*options, name='attention')(hidden_BxLxD, segments_BxL, seed_2)
        wide = Intermediate(*options, name='intermediate')(hidden_BxLxD)
        return Residual(*options, name='output')(wide, hidden_BxLxD, seed_2)


class Layers(nn.Module):
    """All layers in turn; gives the states after each."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self, hidden_BxLxD: jax.Array, segments_BxL: jax.Array, seed_2: jax.Array | None
    ) -> list[jax.Array]:
        states = [hidden_BxLxD]
        for number in range(self.architecture.layers):
            layer = Layer(self.architecture, self.dtype, name=str(number))
            states.append(layer(states[-1], segments_BxL, seed_2))
        return states


class Encoder(nn.Module):
    """The folder `encoder/layer` of Hugging Face's names."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self, hidden_BxLxD: jax.Array, segments_BxL: jax.Array, seed_2: jax.Array | None
    ) -> list[jax.Array]:
        return Layers(self.architecture, self.dtype, name='layer')(hidden_BxLxD, segments_BxL, seed_2)


class Bert(nn.Module):
    """Embeddings and encoder."""

    architecture: Architecture
    dtype: DTypeLike

    @nn.compact
    def __call__(
        self,
        batch: Mapping[str, jax.Array],
        seed_2: jax.Array | None = None,
        delta_BxLxD: jax.Array | None = None,
    ) -> list[jax.Array]:
        hidden_BxLxD = Embeddings(self.architecture, self.dtype, name='embeddings')(
            batch, seed_2, delta_BxLxD
        )
        return Encoder(self.architecture, self.dtype, name='encoder')(hidden_BxLxD, batch['segments'], seed_2)


def _drop(module: Embeddings | Residual, values: jax.Array, seed_2: jax.Array | None) -> jax.Array:
    return values if seed_2 is None else dropout(values, module.architecture.dropout, seed_2, _site(module))


def _site(module: nn.Module) -> int:
    return zlib.crc32('/'.join(module.path).encode())


@functools.cache
def parameter_shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Path and shape of every parameter of encoder, embeddings and masked-language-model head."""

    def trace(key: jax.Array) -> dict[str, Any]:
        batch = {name: jnp.zeros((1, 1), jnp.int32) for name in ('tokens', 'segments', 'positions')}
        params = Bert(architecture, jnp.float32).init(key, batch)['params']
        hidden_BxMxD = jnp.zeros((1, 1, architecture.hidden))
        table_VxD = params['embeddings']['word_embeddings']['embedding']
        head = Predictions(architecture, jnp.float32).init(key, hidden_BxMxD, table_VxD)['params']
        return {**params, 'cls': {'predictions': head}}

    return {path: leaf.shape for path, leaf in flatten(jax.eval_shape(trace, jax.random.key(0))).items()}


def initial_parameters(architecture: Architecture, key: jax.Array) -> dict[str, Any]:
    """Random float32 parameters of encoder, embeddings and masked-language-model head, as nested dicts.

    Matrices and tables N(0, initializer_range), biases 0, LayerNorm scales 1; the rows that pad the
    vocabulary to `padded_vocab_size` are 0. Leaves are called kernel, bias, embedding and scale. A tensor
    depends on the key and on its own path only; it is drawn by numpy, alike on every platform.
    """
    words = np.asarray(jax.random.key_data(key)).ravel().tolist()
    params: dict[str, jax.Array] = {}
    for path, shape in parameter_shapes(architecture).items():
        if path.endswith(('/kernel', '/embedding')):
            generator = np.random.Generator(np.random.Philox([*words, zlib.crc32(path.encode())]))
            drawn = generator.standard_normal(shape, np.float32) * np.float32(architecture.initializer_range)
            if path in PADDED:
                drawn[architecture.vocab_size :] = 0
            params[path] = jnp.asarray(drawn)
        else:
            params[path] = jnp.ones(shape) if path.endswith('/scale') else jnp.zeros(shape)
    return unflatten(params)


def encode(
    params: Mapping[str, Any],
    architecture: Architecture,
    batch: Mapping[str, jax.Array],
    *,
    dtype: DTypeLike = jnp.float32,
    dropout_key: jax.Array | None = None,
    embedding_delta: jax.Array | None = None,
    all_layers: bool = False,
) -> jax.Array | tuple[jax.Array, ...]:
    """The last layer's states BxLxD in `dtype`; with `all_layers` those of every layer, embeddings first.

    `batch` holds int32 BxL arrays: `tokens`; `segments`, 0 for padding, equal for the pieces of one document;
    `positions`, from 0 within each document; optionally `token_types`. A position beyond the table gives NaN.
    Without `dropout_key` nothing is dropped; with one the masks do not depend on the sharding.
    `embedding_delta` BxLxD is added to the word embeddings before they are normalised.
    """
    variables = {'params': {name: params[name] for name in ('embeddings', 'encoder')}}
    seed_2 = None if dropout_key is None else jax.random.key_data(dropout_key).ravel()[:2]
    states = cast(list, Bert(architecture, dtype).apply(variables, batch, seed_2, embedding_delta))
    return tuple(states) if all_layers else states[-1]
