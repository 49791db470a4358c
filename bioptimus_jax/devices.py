"""Accelerators: peak and memory of one device, as their makers state them."""

import dataclasses

from bioptimus_jax.errors import ConfigError

GIB = 2**30
# Share of the peak that plans count on. Of public encoders only MLPerf's and NVIDIA's reach more (45-48 %); ModernBERT
# has 25 %, padded Hugging Face BERT 24 %. We have not measured ours yet.
MFU = 0.35


@dataclasses.dataclass(frozen=True)
class Device:
    """`kinds`: parts of what jax calls it; `peak_flops`: dense bfloat16, FLOP/s; `memory_bytes`: of one device.

    A device is what jax counts as one: of TPU v4 and v5p a chip with both of its cores.
    """

    name: str
    platform: str
    kinds: tuple[str, ...]
    peak_flops: float
    memory_bytes: int


# NVIDIA: data sheets of A100 (2020, 2021), H100 SXM (2023) and H200 SXM (2024), tensor cores without sparsity; the
# memory that drivers report for what is sold as 40, 80 and 141 GB. Google: Cloud TPU documentation, pages "TPU v4" to
# "TPU v6e" of its system architecture.
DEVICES = {
    device.name: device
    for device in (
        Device('a100-40', 'gpu', ('A100',), 312e12, 40 * GIB),
        Device('a100-80', 'gpu', ('A100',), 312e12, 80 * GIB),
        Device('h100', 'gpu', ('H100',), 989e12, 80 * GIB),
        Device('h200', 'gpu', ('H200',), 989e12, 140 * GIB),
        Device('tpu-v4', 'tpu', ('TPU v4',), 275e12, 32 * GIB),
        Device('tpu-v5e', 'tpu', ('TPU v5 lite', 'TPU v5e'), 197e12, 16 * GIB),
        Device('tpu-v5p', 'tpu', ('TPU v5', 'TPU v5p'), 459e12, 95 * GIB),
        Device('tpu-v6e', 'tpu', ('TPU v6',), 918e12, 32 * GIB),
    )
}


def device_named(name: str) -> Device:
    """The device of that name, in any case, `tpu-` left out or not. Raises ConfigError that names the known ones."""
    known = DEVICES.get(name.lower()) or DEVICES.get(f'tpu-{name.lower()}')
    if known is None:
        raise ConfigError(f'--device={name}: no such device; known: {", ".join(DEVICES)}')
    return known


def peak_of_kind(kind: str) -> float | None:
    """Peak FLOP/s of a device by what jax calls it (`device_kind`), None where it is not known (a CPU)."""
    found = [
        (len(part), d.peak_flops)
        for d in DEVICES.values()
        for part in d.kinds
        if part.lower() in kind.lower()
    ]
    return max(found)[1] if found else None
