"""Where arrays live: the device mesh, the sharding of a batch and of the train state."""

from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from bioptimus_jax.config import ConfigError


def make_mesh(batch_rows: int, devices: int = 0) -> Mesh:
    """One `data` axis over the first `devices` devices (0: all). ConfigError when they do not divide the batch."""
    count = devices or jax.device_count()
    if count > jax.device_count():
        raise ConfigError(f'config.runtime.devices: {count} asked for, {jax.device_count()} present')
    if batch_rows % count:
        raise ConfigError(
            f'config.pretrain.batch_rows: {batch_rows} is not a multiple of the {count} devices'
        )
    return Mesh(np.array(jax.devices()[:count]), ('data',))


def batch_sharding(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec('data'))


def replicated(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec())


def place_state(state: Any, mesh: Mesh) -> Any:
    """The train state on the mesh (every device holds all of it)."""
    return jax.device_put(state, replicated(mesh))
