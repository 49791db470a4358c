"""Devices: peak and memory of accelerators as their makers state them, and what jax finds on this machine."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from bioptimus_jax.config.fields import meant
from bioptimus_jax.errors import USAGE, ConfigError, reason_of
from bioptimus_jax.progress.console import numbered

GIB = 2**30
# Share of the peak that plans count on. Of public encoders only MLPerf's and NVIDIA's reach more (45-48 %); ModernBERT
# has 25 %, padded Hugging Face BERT 24 %. Ours has 34.5 % with a base model on an H200, and 26.8 % with a large one.
MFU = 0.35


@dataclasses.dataclass(frozen=True)
class Device:
    """`kinds`: words of what jax calls it; `peak_flops`: dense bfloat16, FLOP/s; `memory_bytes`: of one device.

    `bandwidth`: of its memory, bytes/s. `link`: bytes/s that it sends to others of its host or slice, over all links
    together; `of_a_host`: how many are linked so, 0 for a slice that is linked as a whole; `network`: bytes/s to other
    hosts, 0 where every maker of hosts has another. `packs`: whether attention computes nothing between documents that
    share a row (cuDNN, on Hopper). A device is what jax counts as one: of TPU v4 and v5p a chip with both of its cores.
    """

    name: str
    platform: str
    kinds: tuple[str, ...]
    peak_flops: float
    memory_bytes: int
    bandwidth: float
    link: float = 0.0
    of_a_host: int = 0
    network: float = 0.0
    packs: bool = False


# NVIDIA: data sheets of T4 (2019; it has no bfloat16, so the peak is that of float32, in which it is computed), L4
# (2023), A10 (2021), A10G (AWS's, 2021), GeForce RTX 4090 (the white paper of Ada, 2022, sums in float32), A100 (2020,
# 2021), H100 SXM (2023) and H200 SXM (2024), tensor cores without sparsity; the memory that drivers report for what is
# sold as 16, 24, 40, 80 and 141 GB; half of what their links carry in both directions; the network of DGX A100 (200
# Gbit/s a card) and DGX H100 (400). Google: Cloud TPU documentation, pages "TPU v4" to "TPU v6e" of its system
# architecture.
DEVICES = {
    device.name: device
    for device in (
        Device('t4', 'gpu', ('T4',), 8.1e12, 15 * GIB, 320e9, 16e9, 8),
        Device('l4', 'gpu', ('L4',), 121e12, 22 * GIB, 300e9, 32e9, 8),
        Device('a10', 'gpu', ('A10',), 125e12, 22 * GIB, 600e9, 32e9, 8),
        Device('a10g', 'gpu', ('A10G',), 70e12, 22 * GIB, 600e9, 32e9, 8),
        Device('rtx-4090', 'gpu', ('RTX 4090',), 165e12, 24 * GIB, 1008e9, 32e9, 8),
        Device('a100-40', 'gpu', ('A100',), 312e12, 40 * GIB, 1555e9, 300e9, 8, 25e9),
        Device('a100-80', 'gpu', ('A100',), 312e12, 80 * GIB, 2039e9, 300e9, 8, 25e9),
        Device('h100', 'gpu', ('H100',), 989e12, 80 * GIB, 3350e9, 450e9, 8, 50e9, packs=True),
        Device('h200', 'gpu', ('H200',), 989e12, 140 * GIB, 4800e9, 450e9, 8, 50e9, packs=True),
        Device('tpu-v4', 'tpu', ('TPU v4',), 275e12, 32 * GIB, 1200e9, 300e9),
        Device('tpu-v5e', 'tpu', ('TPU v5 lite', 'TPU v5e'), 197e12, 16 * GIB, 819e9, 200e9),
        Device('tpu-v5p', 'tpu', ('TPU v5', 'TPU v5p'), 459e12, 95 * GIB, 2765e9, 600e9),
        Device('tpu-v6e', 'tpu', ('TPU v6', 'TPU v6e'), 918e12, 32 * GIB, 1640e9, 400e9),
    )
}


OTHERS = re.compile(r'(?i)\bH\d+ (?:PCIe|NVL)\b|\bMIG\b|\bLaptop\b|\bMax-Q\b|\bRTX \d+ D\b')
"""GPUs that share a name with a faster one. An A100 for PCIe has the peak of the others."""


def device_named(name: str) -> Device:
    """The device of that name, in any case, `tpu-` and `rtx-` left out or not.

    Raises ConfigError that names the known ones.
    """
    low = re.sub(r'[ _]', '-', name.lower())
    known = DEVICES.get(low) or DEVICES.get(f'tpu-{low}') or DEVICES.get(f'rtx-{low}')
    if known is None:
        alike = [one for one in DEVICES if name[:1].lower() in (one[0], '')]  # a B200 is no H200
        raise ConfigError(
            f'--device={name}: no such device; known: cpu, {", ".join(DEVICES)}{meant(name.lower(), alike)}'
        )
    return known


def device_of_kind(kind: str) -> Device | None:
    """The device that jax calls so (`device_kind`), None where it is not known (a CPU).

    The name of an A100 does not tell its memory: the larger one is taken. Slower cards of the same name, and parts of
    cards, are not known.
    """
    if OTHERS.search(kind):
        return None
    found = [
        (len(part), device.memory_bytes, device.name)
        for device in DEVICES.values()
        for part in device.kinds
        if re.search(rf'(?i)\b{re.escape(part)}\b', kind)
    ]
    return DEVICES[max(found)[-1]] if found else None


def peak_of_kind(kind: str) -> float | None:
    """Peak FLOP/s of a device by what jax calls it (`device_kind`), None where it is not known (a CPU)."""
    found = device_of_kind(kind)
    return found.peak_flops if found else None


MEMORY_LIMITS = ('/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes')  # of a container
NEEDS = {
    'cuda': "an NVIDIA GPU, its driver and pip install 'bioptimus-jax[cuda13]' (drivers before 580: cuda12)",
    'tpu': "a TPU and pip install 'bioptimus-jax[tpu]'",
}


@dataclasses.dataclass(frozen=True)
class Present:
    """What jax computes on: how many devices of a platform (cpu, gpu, tpu) and kind, `local` ones on this machine.

    `memory_bytes`: of one device, and of the machine where CPUs share it; 0: not known.
    """

    platform: str
    kind: str
    count: int
    local: int
    memory_bytes: int

    def __str__(self) -> str:
        kind = f' ({self.kind})' if self.kind != self.platform else ''
        return f'{numbered(self.count, f"{self.platform} device")}{kind}'


def present() -> Present:
    """What jax computes on here; starts it. Raises ConfigError where it cannot compute on what JAX_PLATFORMS names."""
    import jax  # late: the command line stays light

    try:
        devices = jax.devices()
    except Exception as error:  # an AssertionError without a word for cuda without its plugin
        wanted = os.environ.get('JAX_PLATFORMS', '')
        needed = NEEDS.get('cuda' if wanted == 'gpu' else wanted, 'a platform jax knows: cpu, cuda or tpu')
        raise ConfigError(
            f'JAX_PLATFORMS={wanted}: jax cannot compute on it here ({reason_of(error)}); it needs {needed}; or unset '
            'JAX_PLATFORMS'
        ) from error
    first = devices[0]
    limit = (first.memory_stats() or {}).get('bytes_limit', 0) if first.platform != 'cpu' else host_memory()
    return Present(first.platform, first.device_kind, len(devices), jax.local_device_count(), limit)


def look() -> Present:
    """The devices that are present, found in a process of its own, so that work that needs no device holds no memory of
    one.

    Where jax works in this process already it is asked directly.
    """
    if _begun():
        return present()
    # In a session of its own: a signal to the whole group is for the program, which stops in order.
    done = subprocess.run(
        [sys.executable, '-m', __name__], capture_output=True, text=True, start_new_session=True
    )
    if done.returncode == USAGE:
        raise ConfigError(done.stderr.strip().splitlines()[-1])
    if done.returncode:
        raise RuntimeError(f'looking for devices ended with {done.returncode}: {done.stderr[-2000:]}')
    return Present(**json.loads(done.stdout.strip().splitlines()[-1]))


AFRESH = 'BIOPTIMUS_AFRESH'
"""An environment variable: the process that was replaced by itself, so that jax holds nothing, and when it began."""


def replaced_since() -> float | None:
    """The time.time() at which this process began, where it was replaced by itself; else None."""
    process, _, began = os.environ.get(AFRESH, '').partition(' ')
    return float(began) if process == str(os.getpid()) else None


def held() -> bool:
    """Whether jax holds memory of accelerators in this process.

    It takes three quarters of every device at once, or what it needs little by little (XLA_PYTHON_CLIENT_PREALLOCATE),
    into a pool of its own, and no array that is deleted gives a byte of it back. Only the end of the process does.
    """
    return _begun() and present().platform != 'cpu'


def _begun() -> bool:
    """Whether jax has looked for devices in this process."""
    if 'jax' not in sys.modules:
        return False
    from jax._src.xla_bridge import backends_are_initialized  # has no public name

    return backends_are_initialized()


def host_memory() -> int:
    """Bytes of memory that this machine, or the container that this is, has."""
    found = [os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')]
    for name in MEMORY_LIMITS:
        if Path(name).is_file() and (text := Path(name).read_text().strip()).isdigit():
            found.append(int(text))
    return min(found)


if __name__ == '__main__':
    try:
        print(json.dumps(dataclasses.asdict(present())))
    except ConfigError as error:
        print(error, file=sys.stderr)
        sys.exit(USAGE)
