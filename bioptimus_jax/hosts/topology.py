"""Slices of TPUs that are not here: their devices, for which the compiler of libtpu works without any TPU."""

import importlib.util
import os
import re
from typing import TYPE_CHECKING

from bioptimus_jax.errors import ConfigError, reason_of

if TYPE_CHECKING:
    import jax

GRIDS = {
    'tpu-v5e': {1: '1x1', 4: '2x2', 8: '2x4', 16: '4x4', 32: '4x8', 64: '8x8', 128: '8x16', 256: '16x16'},
    'tpu-v5p': {
        4: '2x2x1',
        8: '2x2x2',
        16: '2x2x4',
        32: '2x4x4',
        64: '4x4x4',
        128: '4x4x8',
        256: '4x8x8',
        512: '8x8x8',
    },
}
GRIDS['tpu-v6e'] = GRIDS['tpu-v5e']
"""Device -> number of devices -> the slice of so many; pages "TPU v5e", "TPU v5p", "TPU v6e" of Cloud TPU."""
ALONE = {'TPU_SKIP_MDS_QUERY': '1', 'TPU_ACCELERATOR_TYPE': '', 'TPU_WORKER_HOSTNAMES': 'localhost'}
"""What libtpu would ask a server for that only a TPU's host has."""


def slice_devices(name: str, count: int) -> 'list[jax.Device]':
    """The devices of a slice of so many TPUs of that name, as the compiler describes them.

    Raises ConfigError without libtpu, and for slices that there are not.
    """
    grids = GRIDS.get(name)
    if grids is None:
        raise ConfigError(f'--compile: the compiler has no slices of {name}; it has {", ".join(GRIDS)}')
    if count not in grids:
        sizes = ', '.join(map(str, grids))
        raise ConfigError(f'--devices={count}: there is no slice of so many {name}; there are {sizes}')
    return topology(f'{name.removeprefix("tpu-")}:{grids[count]}')


def topology(name: str) -> 'list[jax.Device]':
    """The devices of a topology, as libtpu names it: v5e:2x4. Raises ConfigError."""
    if importlib.util.find_spec('libtpu') is None:
        raise ConfigError("--compile: compiling for TPUs needs libtpu: pip install 'bioptimus-jax[tpu]'")
    for variable, value in ALONE.items():
        os.environ.setdefault(variable, value)
    from jax.experimental import topologies

    sides = [int(side) for side in re.findall(r'\d+', name.partition(':')[2])]
    # By default a host has four chips, and a slice is made of hosts.
    alone = {'chips_per_host_bounds': [1, 1, 1]} if sides == [1, 1] else {}
    try:
        return list(topologies.get_topology_desc(platform='tpu', topology_name=name, **alone).devices)
    except Exception as error:  # jax's own, or one of libtpu
        raise ConfigError(f'--compile: no topology {name} ({reason_of(error)})') from error
