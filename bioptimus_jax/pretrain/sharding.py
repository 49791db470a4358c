"""Where arrays live: a mesh of three axes, and for every parameter the axes that it is split over.

`data`: rows of the batch; parameters are copies. `fsdp`: rows of the batch too, and parameters are split ("fully
sharded"). `tensor`: heads, the wide half of the feed-forward block, and the vocabulary.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from jax.typing import DTypeLike

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.architecture import Architecture, Rule
from bioptimus_jax.model.trees import Params, flatten, match_rules, unflatten
from bioptimus_jax.pretrain.state import TrainState

AXES = ('data', 'fsdp', 'tensor')
ROWS_OF_A_STEP = 'config.pretrain.batch_rows / config.pretrain.micro_batches'
ROWS = ('data', 'fsdp')
OF_LAYERS = re.compile(r'(^|/)encoder/layer/\d+/')
"""Paths of parameters that a layer makes whole itself, while it is computed."""
LOGICAL = {'rows': ROWS, 'heads': 'tensor', 'vocabulary': 'tensor', None: None}


def make_mesh(devices: int = 0, fsdp: int = 1, tensor: int = 1) -> Mesh:
    """A mesh over the first `devices` devices (0: all); what `fsdp` and `tensor` leave is `data`.

    Raises ConfigError where they do not divide the devices.
    """
    return mesh_of(jax.devices(), devices, fsdp, tensor)


def mesh_of(present: Sequence[jax.Device], devices: int = 0, fsdp: int = 1, tensor: int = 1) -> Mesh:
    """`make_mesh` where these are present, here or in a topology. Raises ConfigError."""
    shape = planned_mesh(len(present), devices, fsdp, tensor).axis_sizes
    chosen = np.array(present[: math.prod(shape)]).reshape(shape)
    # Auto: what nobody has constrained is left to the compiler.
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
    # Tensor is the last axis: its collectives come in every layer, so they stay between neighbouring devices.
    return AbstractMesh((count // (fsdp * tensor), fsdp, tensor), AXES)


def platform_of(mesh: Mesh) -> str:
    """What jax calls the platform of the devices: cpu, gpu or tpu."""
    return str(mesh.devices.flat[0].platform)


def mesh_in_words(mesh: Mesh | AbstractMesh) -> str:
    """The mesh in words, such as 'data 4 x fsdp 2 x tensor 1'."""
    return ' x '.join(f'{axis} {size}' for axis, size in mesh.shape.items())


def check_fits(mesh: Mesh | AbstractMesh, architecture: Architecture, rows: int, name: str) -> None:
    """Every split must come out even. Raises ConfigError that names the key to change; `name` is that of the rows."""
    rows_of_a_part(mesh, rows, name)
    if architecture.heads % mesh.shape['tensor']:
        raise ConfigError(
            f'config.runtime.tensor: {mesh.shape["tensor"]} does not divide {architecture.heads} attention heads'
        )
    # jax refuses an uneven split too, but names neither the key nor the parameter.
    shapes = architecture.shapes()
    for path, axes in axes_of(shapes, architecture.rules).items():
        for size, axis in zip(shapes[path], axes, strict=True):
            if axis and size % mesh.shape[axis]:
                raise ConfigError(
                    f'config.runtime.{axis}: {mesh.shape[axis]} does not divide {size} in {path} {shapes[path]}'
                )


def rows_of_a_part(mesh: Mesh | AbstractMesh, rows: int, name: str) -> int:
    """Rows of each of the parts that they are split into. Raises ConfigError where they do not come out even."""
    parts = row_shards(mesh)
    if rows % parts:
        raise ConfigError(f'{name}: {rows} rows are not a multiple of the {parts} devices that share them')
    return rows // parts


def row_shards(mesh: Mesh | AbstractMesh) -> int:
    """Parts that the rows of a batch are split into."""
    return mesh.shape['data'] * mesh.shape['fsdp']


def batch_sharding(mesh: Mesh) -> NamedSharding:
    """How a batch lies on a mesh: its rows over the axes of ROWS, all else whole."""
    return NamedSharding(mesh, PartitionSpec(ROWS))


def replicated(mesh: Mesh) -> NamedSharding:
    """How a value lies on a mesh that every device has whole."""
    return NamedSharding(mesh, PartitionSpec())


def axes_of(parameters: Params, rules: Sequence[Rule]) -> dict[str, tuple[str | None, ...]]:
    """Path -> the axes that a parameter is split over. Raises ValueError for one that no rule covers."""
    return flatten(match_rules(parameters, [(rule.pattern, rule.axes) for rule in rules]))


def shardings_of(params: Params, mesh: Mesh, rules: Sequence[Rule]) -> Any:
    """A tree like the parameters that says where each one is kept."""
    axes = axes_of(params, rules)
    return unflatten({path: NamedSharding(mesh, PartitionSpec(*split)) for path, split in axes.items()})


def state_shardings(state: TrainState, mesh: Mesh, rules: Sequence[Rule]) -> Any:
    """A tree like the train state that says where each leaf is kept: what is of a parameter, with the parameter."""
    everywhere, of_param = replicated(mesh), flatten(shardings_of(state['params'], mesh, rules))

    def sharding(path: tuple[Any, ...], leaf: Any) -> NamedSharding:
        # Moments are trees like the parameters, or parts of one: their paths end as those do.
        names = jax.tree_util.keystr(path, simple=True, separator='/').split('/')
        ends = ('/'.join(names[first:]) for first in range(len(names)))
        return next((of_param[end] for end in ends if end in of_param), everywhere)

    return jax.tree_util.tree_map_with_path(sharding, state)


def place_state(state: Any, shardings: Any) -> Any:
    """The train state, or a part of it, on the mesh; every process brings the same values and keeps its own parts."""

    def place(leaf: Any, sharding: NamedSharding) -> jax.Array:
        # Each process makes the parts of its own devices, so no values travel between hosts.
        values = np.asarray(leaf)
        return jax.make_array_from_callback(values.shape, sharding, lambda index: values[index])

    return jax.tree.map(place, state, shardings)


def gathered(params: Any) -> Any:
    """Arrays on a mesh of which this process has all: on the host if there are several processes, all of which must ask
    at the same place."""
    return multihost_utils.process_allgather(params, tiled=True) if jax.process_count() > 1 else params


@dataclasses.dataclass(frozen=True)
class Place:
    """`Compute.place` on a mesh: a constraint that says how logical axes are split."""

    mesh: Mesh

    def __call__(self, values: jax.Array, *axes: str | None) -> jax.Array:
        spec = PartitionSpec(*(LOGICAL[axis] for axis in axes))
        return jax.lax.with_sharding_constraint(values, NamedSharding(self.mesh, spec))


@dataclasses.dataclass(frozen=True)
class Gather:
    """`Compute.gather` on a mesh: a matrix is turned into `dtype` and sent to all devices of `fsdp`, a table as it is.

    Left to itself the compiler for TPUs takes products apart to send parts of a matrix in between
    (findings/tpu-sharded-products.sh), and BERT-base moves 1.7 times the bytes that it moves with copies.
    """

    mesh: Mesh
    dtype: DTypeLike

    def __call__(self, params: Params, rules: Sequence[Rule]) -> Any:
        """Parameters by path or in nested dicts, whole but for the axis `tensor`."""
        flat = dict(flatten(params))
        for path in flat:
            axes = next((rule.axes for rule in rules if re.search(rule.pattern, path)), ())
            if 'fsdp' in axes:
                whole = PartitionSpec(*(None if axis == 'fsdp' else axis for axis in axes))
                low = flat[path] if path.endswith('embedding') else flat[path].astype(self.dtype)
                flat[path] = jax.lax.with_sharding_constraint(low, NamedSharding(self.mesh, whole))
        return unflatten(flat)


def beside_layers(params: Any, gather: Callable[..., Any], rules: Sequence[Rule]) -> Any:
    """The parameters, those beside the layers whole."""
    flat = flatten(params)
    beside = {path: leaf for path, leaf in flat.items() if not OF_LAYERS.search(path)}
    return unflatten({**flat, **flatten(gather(unflatten(beside), rules))})
