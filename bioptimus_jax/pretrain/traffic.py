"""What a step does beside its products: bytes that devices send one another, and those that the update moves.

Estimated from shapes alone, for sums and gathers that send as little as they can (Chan et al. 2007, Collective
communication: theory, practice, and experience): of S bytes on n devices a gather sends S (n - 1) / n from each, and a
sum twice that. Between hosts only what each device of a host has of the sum is sent.
"""

import dataclasses
from typing import NamedTuple

from bioptimus_jax.hosts.devices import Device
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.memory import FLOAT, bytes_of, rows_of_a_device, width_of
from bioptimus_jax.pretrain.objective import arrays_of, planned_objective
from bioptimus_jax.pretrain.sharding import planned_mesh

UPDATED = 7
"""Numbers that the update moves for each parameter: it reads weight, gradient and two moments, and writes three."""
SUMS_OF_A_LAYER = 4
"""Sums of states over the axis `tensor`: behind attention and behind the feed-forward block, forward and backward."""


class Sent(NamedTuple):
    """Bytes that a device sends: to others of its host or slice, and to other hosts."""

    near: float = 0.0
    far: float = 0.0


@dataclasses.dataclass(frozen=True)
class Beside:
    """What a step on one device does: bytes `sent`, and seconds of sending and updating if nothing else goes on."""

    sent: Sent
    sending: float
    updating: float

    @property
    def seconds(self) -> float:
        """Both, one after the other."""
        return self.sending + self.updating


def sends(device: Device, devices: int) -> bool:
    """Whether it is known how fast so many devices send to one another."""
    return bool(device.link) and bool(device.network or not device.of_a_host or devices <= device.of_a_host)


def beside_products(config: HasTraining, architecture: Architecture, device: Device, devices: int) -> Beside:
    """What a step on so many devices, of which it is known how fast they send, does beside its products.

    Raises ConfigError where the devices do not divide the rows.
    """
    sent = sent_in_a_step(config, architecture, device, devices)
    objective = planned_objective(config, architecture)
    split = {'fsdp': config.runtime.fsdp, 'tensor': config.runtime.tensor}
    kept = bytes_of(arrays_of(objective).trained, split, objective.all_rules)
    sending = sent.near / device.link + (sent.far / device.network if sent.far else 0.0)
    return Beside(sent, sending, UPDATED * kept / device.bandwidth)


def sent_in_a_step(config: HasTraining, architecture: Architecture, device: Device, devices: int) -> Sent:
    """Bytes that each of so many devices sends in a step, as compilers for TPUs have it.

    Copies add gradients up once a step, of one micro-batch those of matrices in the type of the products. On `fsdp`
    matrices are gathered twice a step in that type and their gradients sent in every micro-batch, as table and sums of
    the table are. Raises ConfigError where the devices do not divide the rows.
    """
    runtime, parts = config.runtime, config.pretrain.micro_batches
    data, fsdp, tensor = planned_mesh(devices, 0, runtime.fsdp, runtime.tensor).axis_sizes
    objective = planned_objective(config, architecture)
    trained, split = arrays_of(objective).trained, {'fsdp': 1, 'tensor': tensor}
    tables = {path: shape for path, shape in trained.items() if path.endswith('embedding') or len(shape) < 2}
    of_tables, whole = (bytes_of(of, split, objective.all_rules) for of in (tables, trained))
    low = (whole - of_tables) * width_of(config, device.platform) / FLOAT
    states = rows_of_a_device(config, devices) * config.rows.row_pieces * architecture.hidden
    states *= width_of(config, device.platform)

    def over(size: float, members: int, stride: int) -> Sent:
        near = min(members, max(1, device.of_a_host // stride)) if device.of_a_host else members
        hosts = members / near
        return Sent(size * (near - 1) / near, size / near * (hosts - 1) / hosts)

    layers = over(2 * SUMS_OF_A_LAYER * parts * architecture.layers * states, tensor, 1)
    shards = over(2 * low + parts * (low + 3 * of_tables), fsdp, tensor)
    copies = over(2 * (low + of_tables if parts == 1 else whole) / fsdp, data, fsdp * tensor)
    return Sent(*map(sum, zip(layers, shards, copies, strict=True)))
