"""Where arrays live: a mesh of three axes, and for every parameter the axes that it is split over.

`data`: rows of the batch; parameters are copies. `fsdp`: rows of the batch too, and parameters are split ("fully
sharded"). `tensor`: heads, the wide half of the feed-forward block, and the vocabulary.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import optax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.bert import parameter_shapes
from bioptimus_jax.trees import flatten, match_rules

AXES = ('data', 'fsdp', 'tensor')
ROWS_OF_A_STEP = 'config.pretrain.batch_rows / config.pretrain.micro_batches'
ROWS = ('data', 'fsdp')
LOGICAL = {'rows': ROWS, 'heads': 'tensor', 'vocabulary': 'tensor', None: None}

# Columns of a layer's first matrices and rows of its second ones are split over `tensor` (Megatron-LM,
# arXiv 1909.08053, section 3), so that a layer needs two sums over that axis. Every parameter must match a rule.
RULES: list[tuple[str, tuple[str | None, ...]]] = [
    (r'^embeddings/word_embeddings/embedding$', ('tensor', 'fsdp')),
    (r'^embeddings/.*/embedding$', (None, 'fsdp')),
    (r'/attention/self/(query|key|value)/kernel$', ('fsdp', 'tensor')),
    (r'/attention/self/(query|key|value)/bias$', ('tensor',)),
    (r'/attention/output/dense/kernel$', ('tensor', 'fsdp')),
    (r'/intermediate/dense/kernel$', ('fsdp', 'tensor')),
    (r'/intermediate/dense/bias$', ('tensor',)),
    (r'/\d+/output/dense/kernel$', ('tensor', 'fsdp')),
    (r'^cls/predictions/transform/dense/kernel$', ('fsdp', None)),
    (r'^cls/predictions/bias$', ('tensor',)),
    (r'/(bias|scale)$', (None,)),
]


def make_mesh(devices: int = 0, fsdp: int = 1, tensor: int = 1) -> Mesh:
    """A mesh over the first `devices` devices (0: all); what `fsdp` and `tensor` leave is `data`.

    Raises ConfigError where they do not divide the devices.
    """
    shape = planned_mesh(jax.device_count(), devices, fsdp, tensor).axis_sizes
    chosen = np.array(jax.devices()[: math.prod(shape)]).reshape(shape)
    return Mesh(chosen, AXES, axis_types=(AxisType.Auto,) * 3)


def planned_mesh(present: int, devices: int = 0, fsdp: int = 1, tensor: int = 1) -> AbstractMesh:
    """The shape of `make_mesh` where so many devices are `present`: none is started. Raises ConfigError."""
    count = devices or present
    if count > present:
        raise ConfigError(f'config.runtime.devices: {count} asked for, {present} present')
    if count % (fsdp * tensor):
        raise ConfigError(
            f'config.runtime.fsdp: {fsdp} x config.runtime.tensor={tensor} does not divide {count} devices'
        )
    return AbstractMesh((count // (fsdp * tensor), fsdp, tensor), AXES)


def check_fits(mesh: Mesh | AbstractMesh, architecture: Architecture, rows: int, name: str) -> None:
    """Every split must come out even. Raises ConfigError that names the key to change; `name` is that of the rows."""
    parts = row_shards(mesh)
    if rows % parts:
        raise ConfigError(f'{name}: {rows} rows are not a multiple of the {parts} devices that share them')
    if architecture.heads % mesh.shape['tensor']:
        raise ConfigError(
            f'config.runtime.tensor: {mesh.shape["tensor"]} does not divide {architecture.heads} attention heads'
        )
    shapes = parameter_shapes(architecture)
    for path, axes in flatten(match_rules(shapes, RULES)).items():
        for size, axis in zip(shapes[path], axes, strict=True):
            if axis and size % mesh.shape[axis]:
                raise ConfigError(
                    f'config.runtime.{axis}: {mesh.shape[axis]} does not divide {size} in {path} {shapes[path]}'
                )


def row_shards(mesh: Mesh | AbstractMesh) -> int:
    """Parts that the rows of a batch are split into."""
    return mesh.shape['data'] * mesh.shape['fsdp']


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """How a batch lies on a mesh: its rows over the axes of ROWS, all else whole."""
    return NamedSharding(mesh, PartitionSpec(ROWS))


def replicated(mesh: Mesh) -> NamedSharding:
    """How a value lies on a mesh that every device has whole."""
    return NamedSharding(mesh, PartitionSpec())


def state_shardings(state: Mapping[str, Any], optimizer: optax.GradientTransformation, mesh: Mesh) -> Any:
    """A tree like the train state that says where each leaf lives: moments lie where their parameters do."""
    everywhere = replicated(mesh)
    params = jax.tree.map(
        lambda axes: NamedSharding(mesh, PartitionSpec(*axes)),
        match_rules(state['params'], RULES),
        is_leaf=lambda leaf: isinstance(leaf, tuple),
    )
    moments = optax.tree.map_params(
        optimizer,
        lambda _, sharding: sharding,
        state['optimizer'],
        params,
        transform_non_params=lambda _: everywhere,
    )
    return {'params': params, 'optimizer': moments, 'step': everywhere}


def place_state(state: Any, shardings: Any) -> Any:
    """The train state on the mesh; every process brings the same values and keeps its own parts."""

    def place(leaf: Any, sharding: NamedSharding) -> jax.Array:
        values = np.asarray(leaf)
        return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])

    return jax.tree.map(place, state, shardings)


@dataclasses.dataclass(frozen=True)
class Place:
    """`Compute.place` on a mesh: a constraint that says how logical axes are split."""

    mesh: Mesh

    def __call__(self, values: jax.Array, *axes: str | None) -> jax.Array:
        spec = PartitionSpec(*(LOGICAL[axis] for axis in axes))
        return jax.lax.with_sharding_constraint(values, NamedSharding(self.mesh, spec))
