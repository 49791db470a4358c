"""Positions beyond those of the source: a longer table of learned ones, slower or wider turns of rotary ones.

P positions, D columns.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.rotary import ATTENTION, DEFAULT, FACTOR, ORIGINAL, YARN, Rope
from bioptimus_jax.model.trees import Params, flatten, unflatten
from bioptimus_jax.surgery.config import Longer
from bioptimus_jax.surgery.stretches import STRETCHES


def lengthened(settings: Longer, source: Architecture) -> Architecture:
    """The source's architecture with so many positions, turned so. Raises ConfigError for what it cannot have."""
    made, more = source, settings.positions - source.positions
    if settings.positions and more < 0:
        raise ConfigError(
            f'config.surgery.longer.positions: {settings.positions} are fewer than the {source.positions} of the '
            f'source; leave it at 0, and set config.rows.max_document_pieces={settings.positions}'
        )
    if settings.positions:
        made = dataclasses.replace(made, max_positions=source.max_positions + more)
        before, after = source.shapes(), made.shapes()
        if grown := sorted(
            path for path in after if path != source.position_table and after[path] != before[path]
        ):
            raise ConfigError(
                f'config.surgery.longer.positions: {grown[0]} of this {source.title} has a row for each distance up '
                f'to its {source.positions} positions; only tables of positions are made longer'
            )
    return turned(settings, made, 'config.surgery.longer', source)


def turned(
    settings: Longer, made: Architecture, key: str, source: Architecture | None = None
) -> Architecture:
    """An architecture whose rotary positions turn as the settings say.

    The factor is by how much they grow beyond those of the `source`, which may have grown itself; without one, by how
    much they have grown in all. Raises ConfigError, which names the `key`, for a model without rotary positions, and
    for a source whose positions have grown in another way.
    """
    if not (settings.rope_theta or settings.rope_type):
        return made
    rope = getattr(made, 'rope', None)
    if not isinstance(rope, Rope):
        raise ConfigError(
            f'{key}: a {made.title} has no rotary positions, so rope_theta and rope_type have no meaning; leave them '
            'out'
        )
    said: Mapping[str, Any] = {}
    before = round(made.positions / (settings.rope_factor or 1))
    if source:
        said, before = dict(rope.settings), source.positions
        if rope.kind != DEFAULT and settings.rope_type not in ('', DEFAULT, rope.kind):
            raise ConfigError(
                f'{key}.rope_type: {settings.rope_type}, but the positions of the source have grown by {rope.kind}; '
                f'set {rope.kind}'
            )
    return dataclasses.replace(made, rope=_turned(settings, rope, said, before))  # type: ignore[call-arg]


def _turned(settings: Longer, rope: Rope, said: Mapping[str, Any], positions: int) -> Rope:
    """`said`: what the rope of a source says, whose factor goes on; it had that many `positions`."""
    base, kind = settings.rope_theta or rope.base, settings.rope_type or rope.kind
    if not settings.rope_type:
        return rope._replace(base=base)
    if kind == DEFAULT:
        return Rope(base)
    # The factor of attention follows the whole factor, where nobody has set it for good.
    given = {name: value for name, value in said.items() if name != ATTENTION}
    given[FACTOR] = settings.rope_factor * given.get(FACTOR, 1.0)
    if kind == YARN:
        given.setdefault(ORIGINAL, positions)
    return Rope(base, kind, tuple(given.items()))


def stretched(settings: Longer, made: Architecture, parameters: Params) -> tuple[Params, list[str]]:
    """Parameters with a row for each position, and the paths of those that were made longer."""
    flat, path = dict(flatten(parameters)), made.position_table
    if path not in flat or len(flat[path]) == made.positions:
        return dict(parameters), []
    flat[path] = STRETCHES[settings.table].rows(np.asarray(flat[path]), made.positions)
    return unflatten(flat), [path]
