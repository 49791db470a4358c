"""Rotary positions (Su et al. 2021, arXiv 2104.09864): queries and keys, turned by angles that grow with the position.

B rows, L positions, H heads, K size of a head, P pairs of columns.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import JsonObject

ROPE, SCALING, HEAD_SIZE = 'rope_parameters', 'rope_scaling', 'head_dim'
"""Keys of config.json."""
DEFAULT, LINEAR, YARN = 'default', 'linear', 'yarn'
FACTOR, ORIGINAL, ATTENTION, TRUNCATE = (
    'factor',
    'original_max_position_embeddings',
    'attention_factor',
    'truncate',
)
KEYS: dict[str, tuple[str, ...]] = {
    DEFAULT: (),
    LINEAR: (FACTOR,),
    YARN: (FACTOR, ORIGINAL, ATTENTION, 'beta_fast', 'beta_slow', 'mscale', 'mscale_all_dim', TRUNCATE),
}
"""rope_type -> keys that it has beside the base, the needed one first."""


class Rope(NamedTuple):
    """How fast the pairs of columns turn: the base, and with a `kind` how the angles of a longer context are made.

    `settings` are keys and values of config.json, in the order of KEYS.
    """

    base: float
    kind: str = DEFAULT
    settings: tuple[tuple[str, float], ...] = ()

    def to_config(self) -> JsonObject:
        """What config.json says of it, in the spelling of transformers 5."""
        return {'rope_type': self.kind, 'rope_theta': float(self.base), **dict(self.settings)}

    def frequencies_P(self, head_size: int) -> np.ndarray:
        """The angle that each pair is turned by from a position to the next, float32."""
        exponents_P = np.arange(0, head_size, 2, dtype=np.float32) / np.float32(head_size)
        plain_P: np.ndarray = np.float32(1) / np.float32(self.base) ** exponents_P
        if self.kind == DEFAULT:
            return plain_P
        slower_P = plain_P / np.float32(self._said(FACTOR, 1.0))
        return slower_P if self.kind == LINEAR else self._between(slower_P, plain_P, head_size)

    @property
    def scale(self) -> float:
        """The factor of cosines and sines, and so the root of that of all scores."""
        if self.kind != YARN:
            return 1.0
        if given := self._said(ATTENTION):
            return given
        factor, above, below = self._said(FACTOR, 1.0), self._said('mscale'), self._said('mscale_all_dim')
        return _grown(factor, above) / _grown(factor, below) if above and below else _grown(factor, 1.0)

    def _said(self, name: str, otherwise: float = 0.0) -> float:
        return dict(self.settings).get(name) or otherwise

    def _between(self, slower_P: np.ndarray, plain_P: np.ndarray, head_size: int) -> np.ndarray:
        """YaRN (Peng et al. 2023, arXiv 2309.00071): pairs that turn often in the original context keep
        their angles, those that turn less than once are slowed down, and those between them lie between."""

        def pair_of(turns: float) -> float:
            return (
                head_size * math.log(self._said(ORIGINAL) / (turns * 2 * math.pi)) / (2 * math.log(self.base))
            )

        low, high = pair_of(self._said('beta_fast', 32.0)), pair_of(self._said('beta_slow', 1.0))
        if dict(self.settings).get(TRUNCATE, True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, head_size - 1)
        width = high - low or 0.001
        ramp_P = np.clip(
            (np.arange(head_size // 2, dtype=np.float32) - np.float32(low)) / np.float32(width), 0, 1
        )
        return slower_P * ramp_P + plain_P * (1 - ramp_P)


def check_heads(head_size: int) -> None:
    """Raise ValueError for an odd number of columns in a head: rotary positions need pairs."""
    if head_size % 2:
        raise ValueError(f'heads of {head_size} columns cannot be rotated: an even number is needed')


def check_head_size(values: JsonObject, head_size: int, file: Path) -> None:
    """Raise InputError where config.json wants heads of another size than the hidden size divided by their number."""
    if values.get(HEAD_SIZE, head_size) != head_size:
        raise InputError(
            f'{file}: {HEAD_SIZE} is {values[HEAD_SIZE]!r}; only {head_size}, the hidden size divided by the attention '
            'heads, is supported'
        )


def rope_in(values: JsonObject, base: float | None, positions: int, file: Path) -> Rope:
    """The rotary positions of a model whose layers are alike, from the values of config.json that are not null.

    `base`: what transformers takes where none is given. Where both names of the object are there the older one counts,
    as in transformers. Raises InputError as `read` does.
    """
    name = SCALING if values.get(SCALING) else ROPE
    described = values.get(name, {})
    if isinstance(described, Mapping) and 'partial_rotary_factor' in values:
        described = {'partial_rotary_factor': values['partial_rotary_factor'], **described}
    return read(described, values.get('rope_theta', base), positions, file, name)


def read(given: Any, theta: Any, positions: Any, file: Path, name: str) -> Rope:
    """The rope that `given` describes, the object that `name` has in config.json.

    `theta`: the base where the object has none, `positions`: those of the model. Raises InputError, which names the
    file and the key, for a type that is not computed here, a base that is missing, and keys that the type has not.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f'{file}: {name} is {str(given)[:40]!r}; an object with rope_type and rope_theta is expected'
        )
    values = {key: value for key, value in given.items() if value is not None}
    kind = values.pop('rope_type', None) or values.pop('type', DEFAULT)
    values.pop('type', None)
    if not isinstance(kind, str) or kind not in KEYS:
        raise InputError(
            f'{file}: rope_type of {name} is {kind!r}; only {", ".join(map(repr, KEYS))} are supported'
        )
    base = values.pop('rope_theta', theta)
    if base is None:
        raise InputError(f'{file}: {name} has no rope_theta; give the one that the model was trained with')
    check_base(base, file, f'rope_theta of {name}')
    if values.pop('partial_rotary_factor', 1.0) != 1.0:
        raise InputError(
            f'{file}: partial_rotary_factor of {name} is not 1; only heads that are turned whole are read'
        )
    if kind == YARN:
        values.setdefault(ORIGINAL, positions)
    if unknown := sorted(values.keys() - set(KEYS[kind])):
        raise InputError(
            f'{file}: {name} has {unknown[0]!r}, which rope_type {kind!r} does not read; take it out'
        )
    for key in KEYS[kind][:1]:
        if key not in values:
            raise InputError(f'{file}: {name} has no {key!r}, which rope_type {kind!r} needs')
    for key, value in values.items():
        if not (isinstance(value, bool) if key == TRUNCATE else _is_number(value) and value > 0):
            expected = 'true or false' if key == TRUNCATE else 'a number above 0'
            raise InputError(f'{file}: {key} of {name} is {str(value)[:40]!r}; {expected} is expected')
    return Rope(float(base), kind, tuple((key, values[key]) for key in KEYS[kind] if key in values))


def check_base(base: Any, file: Path, name: str) -> None:
    """Raise InputError where a base is none."""
    if not _is_number(base) or base <= 1:
        raise InputError(f'{file}: {name} is {str(base)[:40]!r}; a number above 1 is expected')


def rotation(positions_BxL: jax.Array, rope: Rope, head_size: int, count: int) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine of the angle that every pair of columns is turned by: BxLx1xP, float32; NaN from `count` on."""
    frequencies_P = rope.frequencies_P(head_size)
    # No table ends here: NaN shows a position that the model was not made for, as a missing row does in BERT.
    known_BxL = jnp.where(positions_BxL < count, positions_BxL.astype(jnp.float32), jnp.nan)
    angles_BxLx1xP = known_BxL[:, :, None, None] * frequencies_P[None, None, None]
    cosine, sine = jnp.cos(angles_BxLx1xP), jnp.sin(angles_BxLx1xP)
    return (cosine, sine) if rope.scale == 1.0 else (cosine * rope.scale, sine * rope.scale)


def turned(heads_BxLxHxK: jax.Array, cosine_BxLx1xP: jax.Array, sine_BxLx1xP: jax.Array) -> jax.Array:
    """Column n and column n + K/2 turned as one point of the plane, in float32."""
    one, other = jnp.split(heads_BxLxHxK.astype(jnp.float32), 2, axis=-1)
    points = (one * cosine_BxLx1xP - other * sine_BxLx1xP, other * cosine_BxLx1xP + one * sine_BxLx1xP)
    return jnp.concatenate(points, axis=-1).astype(heads_BxLxHxK.dtype)


def _grown(factor: float, share: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * share * math.log(factor) + 1.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
