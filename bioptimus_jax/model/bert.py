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

from bioptimus_jax.model.architecture import ACTIVATIONS, Architecture, dense, layer_norm
from bioptimus_jax.model.attention import dropout, layer_seed
from bioptimus_jax.model.compute import PLAIN, REMAT, Compute
from bioptimus_jax.model.heads import Predictions
from bioptimus_jax.trees import flatten, unflatten

# Parameters with one row per token, padded to a multiple that matrix units and sharding like.
PADDED = ('embeddings/word_embeddings/embedding', 'cls/predictions/bias')


class Embeddings(nn.Module):
    """Word, position and token-type rows, summed and normalised."""

    architecture: Architecture
    compute: Compute = PLAIN

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
        states_BxLxD = layer_norm(a)(total_BxLxD).astype(self.compute.dtype)
        return _drop(self, states_BxLxD, seed_2)

    def _table(self, rows: int, name: str) -> nn.Embed:
        return nn.Embed(rows, self.architecture.hidden, dtype=jnp.float32, name=name)


class SelfAttention(nn.Module):
    """Queries, keys and values of one layer, and what they attend to."""

    architecture: Architecture
    compute: Compute = PLAIN

    @nn.compact
    def __call__(
        self, hidden_BxLxD: jax.Array, segments_BxL: jax.Array, seed_2: jax.Array | None
    ) -> jax.Array:
        a, place = self.architecture, self.compute.place
        heads = (*hidden_BxLxD.shape[:2], a.heads, a.head_size)
        query, key, value = (
            place(
                dense(a.hidden, self.compute.dtype, n)(hidden_BxLxD).reshape(heads),
                'rows',
                None,
                'heads',
                None,
            )
            for n in ('query', 'key', 'value')
        )
        mixed_BxLxHxK = self.compute.attend(
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
    compute: Compute = PLAIN

    @nn.compact
    def __call__(self, inner: jax.Array, hidden_BxLxD: jax.Array, seed_2: jax.Array | None) -> jax.Array:
        change_BxLxD = dense(self.architecture.hidden, self.compute.dtype, 'dense')(inner)
        change_BxLxD = _drop(self, change_BxLxD, seed_2)
        states_BxLxD = layer_norm(self.architecture)(hidden_BxLxD + change_BxLxD)
        return self.compute.place(states_BxLxD.astype(self.compute.dtype), 'rows', None, None)


class Attention(nn.Module):
    """Self-attention with its residual, everywhere or (as 1xKxD) in slots alone."""

    architecture: Architecture
    compute: Compute = PLAIN

    @nn.compact
    def __call__(
        self,
        hidden_BxLxD: jax.Array,
        segments_BxL: jax.Array,
        seed_2: jax.Array | None,
        slots_K: jax.Array | None,
    ) -> jax.Array:
        mixed_BxLxD = SelfAttention(self.architecture, self.compute, name='self')(
            hidden_BxLxD, segments_BxL, seed_2
        )
        if slots_K is not None:
            mixed_BxLxD, hidden_BxLxD = (_at(states, slots_K) for states in (mixed_BxLxD, hidden_BxLxD))
        return Residual(self.architecture, self.compute, name='output')(mixed_BxLxD, hidden_BxLxD, seed_2)


class Intermediate(nn.Module):
    """The wide half of the feed-forward block."""

    architecture: Architecture
    compute: Compute = PLAIN

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array) -> jax.Array:
        wide = dense(self.architecture.intermediate, self.compute.dtype, 'dense')(hidden_BxLxD)
        return ACTIVATIONS[self.architecture.activation](wide)


class Layer(nn.Module):
    """One encoder layer; with `slots_K` nothing but attention is computed elsewhere."""

    architecture: Architecture
    compute: Compute = PLAIN

    @nn.compact
    def __call__(
        self,
        hidden_BxLxD: jax.Array,
        segments_BxL: jax.Array,
        seed_2: jax.Array | None,
        slots_K: jax.Array | None = None,
    ) -> jax.Array:
        options = (self.architecture, self.compute)
        hidden_BxLxD = Attention(*options, name='attention')(hidden_BxLxD, segments_BxL, seed_2, slots_K)
        wide = Intermediate(*options, name='intermediate')(hidden_BxLxD)
        return Residual(*options, name='output')(wide, hidden_BxLxD, seed_2)


def _drop(module: Embeddings | Residual, values: jax.Array, seed_2: jax.Array | None) -> jax.Array:
    return values if seed_2 is None else dropout(values, module.architecture.dropout, seed_2, _site(module))


def _at(states_BxLxD: jax.Array, slots_K: jax.Array) -> jax.Array:
    """The states in the slots, as 1xKxD."""
    flat = states_BxLxD.reshape(-1, states_BxLxD.shape[-1])
    return jnp.take(flat, slots_K, axis=0, mode='clip')[None]


def _site(module: nn.Module) -> int:
    return zlib.crc32('/'.join(module.path).encode())


@functools.cache
def parameter_shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """Path and shape of every parameter of encoder, embeddings and masked-language-model head."""

    def trace() -> dict[str, Any]:
        key = jax.random.key(0)  # traced: a process that only asks for shapes starts no device
        batch = {name: jnp.zeros((1, 1), jnp.int32) for name in ('tokens', 'segments', 'positions')}
        embeddings = Embeddings(architecture).init(key, batch, None, None)['params']
        hidden_1x1xD = jnp.zeros((1, 1, architecture.hidden))
        layer = Layer(architecture).init(key, hidden_1x1xD, batch['segments'], None)['params']
        head = Predictions(architecture).init(key, hidden_1x1xD)['params']
        layers = {str(number): layer for number in range(architecture.layers)}
        return {'embeddings': embeddings, 'encoder': {'layer': layers}, 'cls': {'predictions': head}}

    return {path: leaf.shape for path, leaf in flatten(jax.eval_shape(trace)).items()}


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
    compute: Compute = PLAIN,
    dropout_key: jax.Array | None = None,
    embedding_delta: jax.Array | None = None,
    all_layers: bool = False,
    slots_K: jax.Array | None = None,
) -> jax.Array | tuple[jax.Array, ...]:
    """The last layer's states BxLxD in `compute.dtype`; with `all_layers` those of every layer, embeddings first.

    With `slots_K`, places among the B * L pieces, the last layer's states there alone, KxD: most of that layer is
    then computed for these places only. Not with dropout, whose masks depend on the place.

    `batch` holds int32 BxL arrays: `tokens`; `segments`, 0 for padding, equal for the pieces of one document;
    `positions`, from 0 within each document; optionally `token_types`. A position beyond the table gives NaN.
    Without `dropout_key` nothing is dropped; with one the masks do not depend on the sharding.
    `embedding_delta` BxLxD is added to the word embeddings before they are normalised.
    """
    if slots_K is not None and (dropout_key is not None or all_layers):
        raise ValueError('slots are for the last layer, without dropout')
    seed_2 = None if dropout_key is None else jax.random.key_data(dropout_key).ravel()[:2]
    embeddings = Embeddings(architecture, compute)
    hidden_BxLxD = cast(
        jax.Array, embeddings.apply({'params': params['embeddings']}, batch, seed_2, embedding_delta)
    )
    hidden_BxLxD = compute.place(hidden_BxLxD, 'rows', None, None)

    @REMAT[compute.remat]
    def layer(hidden_BxLxD: jax.Array, number: Any, weights: Any, slots: Any = None) -> jax.Array:
        seed = None if seed_2 is None else layer_seed(seed_2, number)
        applied = Layer(architecture, compute).apply(
            {'params': weights}, hidden_BxLxD, batch['segments'], seed, slots
        )
        return cast(jax.Array, applied)

    layers = [params['encoder']['layer'][str(number)] for number in range(architecture.layers)]
    states = [hidden_BxLxD]
    if compute.scan_layers and not all_layers and slots_K is None:
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
        numbered = (jnp.arange(len(layers)), stacked)
        last_BxLxD, _ = jax.lax.scan(lambda hidden, x: (layer(hidden, *x), None), hidden_BxLxD, numbered)
        return last_BxLxD
    for number, weights in enumerate(layers):
        slots = slots_K if number == len(layers) - 1 else None
        states.append(layer(states[-1], number, weights, slots))
    if slots_K is not None:
        return states[-1][0]
    return tuple(states) if all_layers else states[-1]
