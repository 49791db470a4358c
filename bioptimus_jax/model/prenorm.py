"""Modules of families with a norm in front of each block instead of behind it, and rotary positions instead of a table.

B rows, L positions, H heads, K size of a head (of slots their number), D hidden size.
"""

import abc
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import Context
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.layers import LikeBert, ModelPart, at_slots
from bioptimus_jax.model.rotary import ROPE, TRUNCATE, Rope, check_heads, read, rotation

FULL, SLIDING = 'full_attention', 'sliding_attention'
"""Types of layers in layer_types and rope_parameters of config.json."""


class LayerKind(NamedTuple):
    """What makes a layer differ: its window (None: the whole document), its turns, and a norm before attention."""

    window: int | None
    rope: Rope
    norm: bool = True


def ropes_of_types(
    described: Any,
    thetas: Mapping[str, Any],
    types: Collection[str],
    usual: Mapping[str, Rope],
    positions: int,
    file: Path,
) -> dict[str, Rope]:
    """How each type of layers turns positions, by rope_parameters of config.json, which has an object for each.

    `thetas`: bases for objects without one; `usual`: ropes of types that are neither described nor among `types`.
    Raises InputError, which names the file and the key.
    """
    if not isinstance(described, Mapping) or described.keys() - usual.keys():
        raise InputError(
            f'{file}: {ROPE} must have an object for {FULL} and one for {SLIDING}, and nothing else'
        )
    found = dict(usual)
    for kind in usual:
        if kind in described or kind in types:
            name = f'{ROPE}.{kind}'
            found[kind] = read(described.get(kind, {}), thetas.get(kind), positions, file, name)
            if (
                dict(found[kind].settings).get(TRUNCATE) is False
            ):  # transformers looks for it in another place
                raise InputError(f'{file}: {TRUNCATE} of {name} is false, which transformers does not read')
    return found


class PreNorm(LikeBert):
    """A family of such layers; `kinds` says what each of them sees and how it turns positions."""

    biases: ClassVar = False
    float32_sum: ClassVar = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_heads(self.head_size)

    @property
    @abc.abstractmethod
    def kinds(self) -> tuple[LayerKind, ...]:
        """The kind of each layer."""

    @property
    def windows(self) -> tuple[int | None, ...]:
        return tuple(kind.window for kind in self.kinds)

    def context(self, batch: Mapping[str, jax.Array]) -> Context:
        """The context with the cosines and sines of each way to turn positions."""
        ropes = dict.fromkeys(kind.rope for kind in self.kinds)
        turns = {rope: rotation(batch['positions'], rope, self.head_size, self.positions) for rope in ropes}
        return {**super().context(batch), 'rotations': turns}

    def final_norm(self, compute: Compute) -> nn.Module:
        return FinalNorm(self, compute)


class RotaryAttention(ModelPart):
    """What a family's attention does with its queries, keys and values once positions are turned."""

    def mixed(
        self,
        query_BxLxHxK: jax.Array,
        key_BxLxHxK: jax.Array,
        value_BxLxHxK: jax.Array,
        batch: Context,
        kind: LayerKind,
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        """The values that each piece attends to in its document or its window, BxLxD; with slots in these alone."""
        ranges = batch['ranges'].within(kind.window)
        mixed_BxLxD = self.attended(query_BxLxHxK, key_BxLxHxK, value_BxLxHxK, ranges, seed_2)
        return mixed_BxLxD if slots is None else at_slots(mixed_BxLxD, slots)


class Layer(ModelPart):
    """One encoder layer; with `slots` nothing but attention is computed elsewhere. The sum over layers is float32.

    A family says which parts it has, and what it calls them in transformers.
    """

    parts: ClassVar[tuple[type[ModelPart], type[ModelPart]]]
    names: ClassVar[tuple[str, str, str, str]] = ('attn_norm', 'attn', 'mlp_norm', 'mlp')

    @nn.compact
    def __call__(
        self,
        hidden_BxLxD: jax.Array,
        batch: Context,
        kind: LayerKind,
        seed_2: jax.Array | None,
        slots: jax.Array | None,
    ) -> jax.Array:
        options, (attention, feed_forward) = (self.architecture, self.compute), self.parts
        before, attn, between, mlp = self.names
        inner = self.normal(hidden_BxLxD, before) if kind.norm else hidden_BxLxD.astype(self.compute.dtype)
        change = attention(*options, name=attn)(inner, batch, kind, seed_2, slots)
        if slots is not None:
            hidden_BxLxD = at_slots(hidden_BxLxD, slots)
        hidden_BxLxD = self.compute.place(hidden_BxLxD + change, 'rows', None, None)
        change = feed_forward(*options, name=mlp)(self.normal(hidden_BxLxD, between), seed_2)
        return self.compute.place(hidden_BxLxD + change, 'rows', None, None)


class FinalNorm(ModelPart):
    """The norm behind the last layer; `called`: the end of its parameters' path."""

    called: str = 'final_norm'

    @nn.compact
    def __call__(self, hidden_BxLxD: jax.Array) -> jax.Array:
        return self.normal(hidden_BxLxD, self.called)


class WordEmbeddings(ModelPart):
    """Word rows, normalised or not: the beginning of a sum over all layers that stays float32."""

    norm: bool = False

    @nn.compact
    def __call__(self, batch: Context, seed_2: jax.Array | None, delta_BxLxD: jax.Array | None) -> jax.Array:
        words_BxLxD = self.words(batch, delta_BxLxD)
        begun_BxLxD = self.normal(words_BxLxD) if self.norm else words_BxLxD
        return self.drop(begun_BxLxD, seed_2).astype(jnp.float32)
