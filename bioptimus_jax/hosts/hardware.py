"""Accelerators that the machine itself shows, whatever jax and PyTorch find of them."""

import contextlib
import dataclasses
import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

SMI = ('nvidia-smi', '--query-gpu=name,memory.total,driver_version', '--format=csv,noheader')
SMI_SECONDS = 20
NVIDIA, PCI = Path('/proc/driver/nvidia/gpus'), Path('/sys/bus/pci/devices')
GOOGLE, PROCESSING = '0x1ae0', '0x1200'
"""What a TPU says on the PCI bus: its vendor, and the first half of its class."""
CUDA13_DRIVER = 580
"""The oldest major version of NVIDIA's driver that runs CUDA 13; CUDA 12 runs from 525 on (CUDA release notes)."""


@dataclasses.dataclass(frozen=True)
class Hardware:
    """`platform` as JAX_PLATFORMS has it (cuda, tpu); `names` of the devices; `driver`, `memory`: '' if not known."""

    platform: str
    names: tuple[str, ...]
    memory: str = ''
    driver: str = ''

    def __str__(self) -> str:
        kinds = ', '.join(f'{self.names.count(name)} x {name}' for name in dict.fromkeys(self.names))
        known = [self.memory, f'driver {self.driver}' * bool(self.driver)]
        return f'{kinds} ({", ".join(filter(None, known))})' if any(known) else kinds

    @property
    def extra(self) -> str:
        """The extra of this package whose jax computes on it."""
        if self.platform != 'cuda':
            return self.platform
        major = self.driver.partition('.')[0]
        return 'cuda12' if major.isdigit() and int(major) < CUDA13_DRIVER else 'cuda13'


@functools.cache
def accelerators() -> Hardware | None:
    """NVIDIA GPUs or TPUs of this machine; None without."""
    if shutil.which(SMI[0]):
        listed = ''
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(SMI, capture_output=True, text=True, timeout=SMI_SECONDS, check=True)
            listed = done.stdout
        if rows := [line.split(', ') for line in listed.splitlines() if line.count(', ') == 2]:
            return Hardware('cuda', tuple(name for name, _, _ in rows), f'{rows[0][1]} each', rows[0][2])
    if found := len([*NVIDIA.glob('*')]):  # without the program, or with one that fails
        return Hardware('cuda', ('NVIDIA GPU',) * found)
    chips = [p for p in PCI.glob('*') if _says(p / 'vendor', GOOGLE) and _says(p / 'class', PROCESSING)]
    return Hardware('tpu', ('TPU chip',) * len(chips)) if chips else None


def unused(on: str, find: Callable[[], Hardware | None] = accelerators) -> str:
    """What is there and not used by what computes `on` the CPU, unless that was asked for; else ''.

    It is looked for on the CPU alone: GPUs that are used answer a listing after a second.
    """
    asked = os.environ.get('JAX_PLATFORMS') == 'cpu' or os.environ.get('CUDA_VISIBLE_DEVICES') == ''
    found = None if asked or 'cpu' not in on.split() else find()
    return f'on the CPU, although this machine has {found}' if found else ''


def _says(file: Path, beginning: str) -> bool:
    try:
        return file.read_text().startswith(beginning)
    except OSError:
        return False
