"""The machine that a run is planned for: the one that this is, measured where no table has it, or devices by name."""

import dataclasses
import statistics
import time
from typing import TYPE_CHECKING

import numpy as np

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts.devices import (
    MFU,
    Device,
    Present,
    device_named,
    device_of_kind,
    host_memory,
    present,
)
from bioptimus_jax.hosts.topology import slice_devices
from bioptimus_jax.start.doctor import product_rate

if TYPE_CHECKING:
    import jax

CPU = 'cpu'
"""What `--device` calls the CPU of this machine."""
USABLE = 0.9
"""Share of a device's memory that jax takes."""
COPIED = 2**27
"""Bytes that are copied to measure the memory of a CPU."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """A number of devices of one kind. `measured`: what one that no table has was found to do here, in a sentence."""

    device: Device
    count: int
    measured: str = ''

    @property
    def name(self) -> str:
        return f'{self.count} x {self.device.name}'

    @property
    def rate(self) -> float:
        """FLOP/s that training reaches on all devices together, as plans count on them."""
        return self.device.peak_flops * MFU * self.count

    @property
    def here(self) -> Present:
        """The devices as jax would find them; the memory is what jax takes of them."""
        device = self.device
        memory = device.memory_bytes * (1 if device.platform == CPU else USABLE)
        return Present(device.platform, device.name, self.count, self.count, int(memory))


def machine(name: str, count: int = 0) -> Machine:
    """The devices of that name, by default one of them; without a name those of this machine, by default all.

    Raises ConfigError.
    """
    if name and name.lower() != CPU:
        return Machine(device_named(name), count or 1)
    here = present()
    known = None if name else device_of_kind(here.kind)
    if known:
        device = dataclasses.replace(
            known, memory_bytes=int(here.memory_bytes / USABLE) or known.memory_bytes
        )
        return Machine(device, count or here.count)
    platform = CPU if name else here.platform
    rate, kind, side = product_rate(platform)
    memory = here.memory_bytes if platform == here.platform else host_memory()
    copied = f' and memory at {copy_rate() / 1e9:,.0f} GB/s' if platform == CPU else ''
    measured = f'{rate / 1e12:,.2f} TFLOP/s in {kind}, {side:,} square{copied}, measured now on this machine'
    own = count or (here.count if platform == here.platform else 1)
    # What jax calls devices of a CPU are shares of it: the product has used them all.
    shared = own if platform == CPU else 1
    device = Device(platform, platform, (here.kind,), rate / shared, memory // shared, copy_rate() / shared)
    return Machine(device, own, measured)


def compiled_for(one: Machine) -> 'list[jax.Device]':
    """The devices of a machine that the compiler works for: those that are here, or a slice of TPUs that is not.

    Raises ConfigError for other devices that are not here.
    """
    import jax

    if one.device.platform == 'tpu':
        return slice_devices(one.device.name, one.count)
    here = [found for found in jax.devices() if _is(one.device, found)]
    if len(here) < one.count:
        raise ConfigError(
            f'--compile: {one.name} are not here, and without them steps are compiled for TPUs alone; leave '
            '--compile out, or ask on that machine'
        )
    return here[: one.count]


def _is(device: Device, found: 'jax.Device') -> bool:
    """Whether that is what jax calls the device."""
    known = device_of_kind(found.device_kind)
    return found.device_kind in device.kinds or (known is not None and known.kinds == device.kinds)


def copy_rate() -> float:
    """Bytes a second that the memory of the host reads and writes in a copy."""
    source, to = np.ones(COPIED, np.uint8), np.empty(COPIED, np.uint8)
    seconds = []
    for _ in range(4):  # the first one is given its pages
        started = time.perf_counter()
        np.copyto(to, source)
        seconds.append(time.perf_counter() - started)
    return 2 * COPIED / statistics.median(seconds[1:])
