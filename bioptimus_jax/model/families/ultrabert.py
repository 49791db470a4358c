"""UltraBERT (2026): EuroBERT's layers, most of which look at a window, and a head of two layers without a norm.

M slots, D hidden size, V padded vocabulary.
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
from bioptimus_jax.model.architecture import Rule
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.families.eurobert import EuroBert
from bioptimus_jax.model.layers import ModelPart
from bioptimus_jax.model.prenorm import FULL, SLIDING, LayerKind, ropes_of_types
from bioptimus_jax.model.rotary import DEFAULT, ROPE, Rope
from bioptimus_jax.storage.files import JsonObject

TYPES, WINDOW, WINDOWS, THETAS = 'layer_types', 'sliding_window', 'attention_windows', 'rope_theta'
USUAL = (SLIDING, SLIDING, FULL)


@dataclasses.dataclass(frozen=True)
class UltraBert(EuroBert):
    """An UltraBERT with its masked-language-model head.

    `pattern`: the types of its layers, again and again. Those that slide attend to `sliding_window` places on either
    side, and turn positions by `local_rope`.
    """

    layer_norm_epsilon: float = 1e-6
    rope: Rope = Rope(2_560_000.0)
    local_rope: Rope = Rope(10_000.0)
    sliding_window: int = 128
    pattern: tuple[str, ...] = USUAL
    prediction_head: int = 768

    model_type: ClassVar = 'ultrabert'
    title: ClassVar = 'UltraBERT'
    hf_class: ClassVar = 'UltrabertForMaskedLM'
    config_keys: ClassVar = {
        **EuroBert.config_keys,
        'sliding_window': WINDOW,
        'prediction_head': 'prediction_head_size',
    }
    supported: ClassVar = {**EuroBert.supported, 'rope_scaling': None, 'partial_rotary_factor': None}
    hf_defaults: ClassVar = {**EuroBert.hf_defaults, 'rms_norm_eps': 1e-6}
    token_keys: ClassVar = {'pad_token_id': 'pad', 'bos_token_id': 'cls', 'eos_token_id': 'sep'}
    modules: ClassVar = {'cls/predictions/': 'head/', **EuroBert.modules}
    ignored: ClassVar = re.compile(r'head\.decoder\.weight$|classifier\.|qa_outputs\.')
    tied: ClassVar = {'head.decoder.weight': 'model.embed_tokens.weight'}
    rules: ClassVar[Sequence[Rule]] = (
        Rule(r'^cls/predictions/linear[12]/kernel$', ('fsdp', None)),
        *EuroBert.rules,
    )

    @classmethod
    def from_config(cls, values: JsonObject, file: Path) -> Self:
        """The architecture; the first spelling of config.json has a window and a base for each layer."""
        given = {name: value for name, value in values.items() if value is not None}
        if WINDOWS in given:
            widths = given.pop(WINDOWS)
            if not isinstance(widths, list) or len({width for width in widths if width}) > 1:
                raise InputError(
                    f'{file}: {WINDOWS} must list one width for all layers with a window, 0 for others'
                )
            given[WINDOW] = next((width for width in widths if width), given.get(WINDOW, cls.sliding_window))
            given.setdefault(TYPES, [SLIDING if width else FULL for width in widths])
        return super().from_config(given, file)

    @classmethod
    def _fields(cls, given: JsonObject, made: Self, file: Path) -> JsonObject:
        types = given.get(TYPES, list(_repeated(USUAL, made.layers)))
        if not isinstance(types, list) or len(types) != made.layers or set(types) - {FULL, SLIDING}:
            raise InputError(
                f'{file}: {TYPES} must name {FULL} or {SLIDING} for each of the {made.layers} layers'
            )
        described = given.get(ROPE) or _of_layers(given.get(THETAS), types, file)
        usual = {FULL: cls.rope, SLIDING: cls.local_rope}
        ropes = ropes_of_types(described, {}, types, usual, made.max_positions, file)
        return {'rope': ropes[FULL], 'local_rope': ropes[SLIDING], 'pattern': _shortest(types)}

    @classmethod
    def plain_name(cls, name: str) -> str:
        """A tensor's name without the prefix; files that transformers writes have others than its own parameters."""
        return (
            'head.decoder.weight'
            if name == 'cls.weight'
            else super().plain_name(name.removeprefix('ultrabert.'))
        )

    def to_config(self) -> JsonObject:
        described = {FULL: self.rope.to_config(), SLIDING: self.local_rope.to_config()}
        return {**super().to_config(), TYPES: list(_repeated(self.pattern, self.layers)), ROPE: described}

    @property
    def kinds(self) -> tuple[LayerKind, ...]:
        of_type = {FULL: LayerKind(None, self.rope), SLIDING: LayerKind(self.sliding_window, self.local_rope)}
        return tuple(of_type[name] for name in _repeated(self.pattern, self.layers))

    def predictions(self, compute: Compute) -> nn.Module:
        return TwoLayers(self, compute)


class TwoLayers(ModelPart):
    """Two dense layers, each of them activated, in front of the output matrix."""

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array) -> tuple[jax.Array, jax.Array]:
        a: Any = self.architecture
        states = hidden_BxMxD
        for name, columns in (('linear1', a.prediction_head), ('linear2', a.hidden)):
            states = jax.nn.gelu(self.dense(columns, states, name), approximate=True)
        return states, self.without_padding(jnp.zeros(a.padded_vocab_size))


def _repeated(pattern: tuple[str, ...], layers: int) -> tuple[str, ...]:
    return (pattern * layers)[:layers]


def _shortest(types: list[str]) -> tuple[str, ...]:
    """What is repeated in the types of layers: the usual where it fits, else the fewest."""
    tried = (USUAL, *(tuple(types[:count]) for count in range(1, len(types) + 1)))
    return next(pattern for pattern in tried if list(_repeated(pattern, len(types))) == types)


def _of_layers(thetas: Any, types: list[str], file: Path) -> dict[str, Any]:
    """rope_parameters of bases that are listed layer by layer; without a list transformers' own."""
    if thetas is None:
        return {FULL: UltraBert.rope.to_config(), SLIDING: UltraBert.local_rope.to_config()}
    if (
        not isinstance(thetas, list)
        or len(thetas) != len(types)
        or len({*zip(types, map(str, thetas))}) > len({*types})
    ):
        raise InputError(f'{file}: {THETAS} must list a base for each layer, one for all layers of a type')
    return {kind: {'rope_type': DEFAULT, THETAS: theta} for kind, theta in zip(types, thetas)}


FAMILY = UltraBert
