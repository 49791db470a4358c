"""What this machine computes on and with: devices, versions, attention, speed of a matrix product, disk."""

import dataclasses
import importlib.util
import os
import platform
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bioptimus_jax.hosts.devices import GIB, Present, peak_of_kind, present
from bioptimus_jax.hosts.hardware import Hardware, accelerators, unused
from bioptimus_jax.progress.console import in_units, numbered
from bioptimus_jax.run.manifests import versions
from bioptimus_jax.storage.files import existing

EXTRAS = {
    'pynvml': ('cuda13', 'energy of NVIDIA GPUs'),
    'obstore': ('remote', 'run folders and inputs in buckets'),
    'distributed': ('distributed', 'a dask cluster'),
    'onnxruntime': ('onnx', 'models as ONNX'),
    'gensim': ('donor', 'word vectors that new rows are made by'),
    'peft': ('lora', 'adapters in fine-tuning'),
}
"""Modules that only some users need: the extra that brings one, and what for."""
SIDE = {'cpu': 1024}
"""Side of the square matrices that are multiplied; 8,192 on accelerators, where small ones measure no more than a
start."""
HEADS, HEAD_SIZE, PIECES, ROWS = 12, 64, 512, 16
"""Sizes of BERT-base, which the attention is chosen for, with so many rows on each device."""
LITTLE = 20 * GIB
"""Little room on a disk: a run of a base model keeps about as much (`bioptimus plan`)."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """`what` and what was found; `remedy`: what to do about it. `bad`: work would go wrong, or on the wrong device."""

    what: str
    found: str
    remedy: str = ''
    bad: bool = False


def examine(folder: Path) -> Iterator[Finding]:
    """Findings, one after the other; `folder`: where runs will be. Raises ConfigError as `present` does."""
    yield Finding('Python', f'{platform.python_version()}, {platform.platform()}')
    yield Finding('packages', ', '.join(f'{name} {version}' for name, version in versions().items()))
    found, here = accelerators(), present()
    yield Finding(
        'machine', f'{numbered(os.cpu_count() or 1, "core")}, {found or "no NVIDIA GPU and no TPU"}'
    )
    yield _jax(here, found)
    yield _torch(here, found)
    yield _attention()
    yield _product(here)
    free = shutil.disk_usage(existing(folder)).free
    yield Finding(
        'disk', f'{in_units(free, 1024)} free at {folder}', 'choose a larger disk' * (free < LITTLE)
    )
    for module, (extra, purpose) in EXTRAS.items():
        if importlib.util.find_spec(module) is None and (module != 'pynvml' or found):
            yield Finding(
                f'extra {extra}', 'not installed', f"for {purpose}: pip install 'bioptimus-jax[{extra}]'"
            )


def _jax(here: Present, found: Hardware | None) -> Finding:
    memory = f', {here.memory_bytes / GIB:.0f} GiB each' if here.platform != 'cpu' else ''
    wrong = unused(str(here), lambda: found)
    remedy = f"{wrong}: pip install 'bioptimus-jax[{found.extra}]'" if wrong and found else ''
    return Finding('jax', f'{here}{memory}', remedy, bool(wrong))


def _torch(here: Present, found: Hardware | None) -> Finding:
    from bioptimus_jax.finetuning.cards import by_devices, torch_build, torch_device
    from bioptimus_jax.finetuning.config import JAX

    on = torch_device()
    wrong = unused(on, lambda: found if found and found.platform == 'cuda' else None)
    remedy = f'{wrong}: install the PyTorch that is built for CUDA, as pytorch.org has it' if wrong else ''
    bridged = by_devices(here.platform, on.split()[0]) == JAX
    found_here = f'{on}, built for {torch_build()}{", so jax computes encoders in fine-tuning" * bridged}'
    return Finding('PyTorch', found_here, remedy, bool(wrong) and not bridged)


def _attention() -> Finding:
    import jax

    from bioptimus_jax.hosts.config import Runtime
    from bioptimus_jax.model.compute import Compute
    from bioptimus_jax.pretrain.backends import AttentionSpec, MeasuredAttention, choose, dtype_of
    from bioptimus_jax.pretrain.config import Pretrain
    from bioptimus_jax.pretrain.sharding import make_mesh

    said: list[str] = []
    mesh = make_mesh(0, 1, 1)
    measured = MeasuredAttention(ROWS * mesh.size)
    dtype = dtype_of(Pretrain(), jax.default_backend())
    spec = AttentionSpec(mesh, HEADS, HEAD_SIZE, (PIECES,), dtype, (None,))
    chosen = choose(Runtime.attention, spec, 0.0, said.append, measured)
    times = f' ({measured.line()})' * bool(measured.made)
    found = f'{Compute(attend=chosen).attention}, at {PIECES} pieces{times}'
    return Finding('attention', found, '; '.join(said))


def product_rate(platform: str) -> tuple[float, str, int]:
    """FLOP/s of a large matrix product on the first device of a platform, the type of its factors, and their side."""
    import jax
    import jax.numpy as jnp

    on = jax.local_devices(backend=platform)[0]
    side, kind = SIDE.get(platform, 8192), jnp.float32 if platform == 'cpu' else jnp.bfloat16
    first, second = jax.device_put(jax.random.normal(jax.random.key(0), (2, side, side)).astype(kind), on)
    multiply, seconds = jax.jit(jnp.matmul), []
    for _ in range(6):  # the first one compiles
        started = time.perf_counter()
        multiply(first, second).block_until_ready()
        seconds.append(time.perf_counter() - started)
    return 2 * side**3 / statistics.median(seconds[1:]), jnp.dtype(kind).name, side


def _product(here: Present) -> Finding:
    rate, kind, side = product_rate(here.platform)
    peak = peak_of_kind(here.kind)
    share = f', {rate / peak:.0%} of the peak of {here.kind}' if peak else ''
    return Finding('matrix product', f'{rate / 1e12:,.2f} TFLOP/s in {kind}, {side:,} square{share}')
