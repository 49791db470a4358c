"""What compilers make of a train step for devices that are not here: memory, operations, bytes, traffic.

    pip install 'jax[cuda13]'     for an H100: neither a driver nor a card is needed
    pip install libtpu            for TPUs: neither a TPU nor a host of one
    python benchmarks/compiled.py [--device=h100|v5e:2x4|...] [--size NAME] [--family NAME] [--objective NAME]
        [--layout NAME] [--rows N] [--fsdp N] [--tensor N] [--attention NAME] [--option NAME=VALUE ...]

Between matrix products a step waits for memory, so bytes say what a change of the code can bring before a device is at
hand. The table has the operations of the compiled program, equal ones of all layers together: how many, and the
milliseconds that their bytes take at the rate of the device's memory (an H100's is measured: 2.85 TB/s). Products and
attention take longer, as they have more to compute; what reads a slice of an array, as of scanned layers, is counted
with all of it, and takes less. Nothing is autotuned. Behind them: operations and bytes by the compiler's own count, and
what these take at the device's rates; collectives; and memory beside the estimate of `bioptimus plan`.
"""

import argparse
import collections
import dataclasses
import os
import re
import sys
from pathlib import Path
from typing import Any

# jax would ask the driver which CUDA it has, and there is none.
os.environ |= {'JAX_PLATFORMS': 'cpu', 'JAX_SKIP_CUDA_CONSTRAINTS_CHECK': '1'}

import jax
from jax.experimental import topologies
from workload import FAMILIES, SIZES, Shape, architecture, experiment, sized

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts.devices import DEVICES, Device, device_of_kind
from bioptimus_jax.hosts.topology import topology
from bioptimus_jax.model.compute import REMAT
from bioptimus_jax.pretrain.backends import KERNELS, PLAIN_ATTENTION, expected_attention
from bioptimus_jax.pretrain.compiled import (
    collectives_in,
    lowered,
    objective_for,
    planned_bytes,
    sizes_in,
    traced_step,
)
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.sharding import mesh_of

H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: 233472 shared_memory_per_block_optin: 232448
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 device_memory_size: 84978434048
  cuda_compute_capability { major: 9 minor: 0 }
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 19 patch: 0 }
runtime_version { major: 13 minor: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
"""The device as XLA wants it described (gpu_device_info.proto): NVIDIA's numbers of compute capability 9.0 and of this
card."""
MEASURED = {'h100': 2.85e12}
"""Bytes/s that were measured, where a device's maker says more."""
GIB = 2**30
SHOWN = 40
NOTHING_MOVED = ('parameter', 'get-tuple-element', 'tuple', 'bitcast', 'constant')
OPERATION = re.compile(r'\s+(?:ROOT )?%([\w.-]+) = (.*?) ([\w-]+)\((.*)$')


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument(
        '--device', default='h100', help="h100, or a slice in libtpu's words: v5e:2x4 (default h100)"
    )
    parser.add_argument(
        '--size', default='base-512', choices=SIZES, help='shape of workload.py (default base-512)'
    )
    parser.add_argument('--family', default='bert', choices=FAMILIES)
    parser.add_argument('--objective', default='mlm', help='default mlm')
    parser.add_argument('--layout', default='documents', help='config.rows.layout')
    parser.add_argument(
        '--rows', type=int, default=0, help='rows of a batch, in one part (default: those of the size)'
    )
    parser.add_argument('--fsdp', type=int, default=1, help='config.runtime.fsdp')
    parser.add_argument('--tensor', type=int, default=1, help='config.runtime.tensor')
    parser.add_argument('--attention', default='auto', choices=('auto', PLAIN_ATTENTION, *KERNELS))
    parser.add_argument('--remat', default='auto', choices=('auto', *REMAT), help='config.runtime.remat')
    parser.add_argument('--scan-layers', default='auto', choices=('auto', 'yes', 'no'), help='likewise')
    parser.add_argument('--option', action='append', default=[], help="XLA's, as xla_gpu_autotune_level=0")
    options = parser.parse_args()
    shape = sized(options.size, options.family, options.rows)
    shape = dataclasses.replace(shape, micro_batches=1, objective=options.objective, layout=options.layout)
    given = dict(option.split('=', 1) for option in options.option)
    keys = ('attention', 'remat', 'scan_layers', 'fsdp', 'tensor')
    devices = devices_of(options.device)
    wanted = {key: getattr(options, key) for key in keys}
    report(devices, *compile_step(shape, devices, wanted, typed(given)))


def devices_of(name: str) -> list[jax.Device]:
    """The devices of that name. SystemExit without the compiler for them."""
    try:
        if name != 'h100':
            return topology(name)
        return list(
            topologies.get_topology_desc(platform='cuda', target_config=H100, topology='1x1x1').devices
        )
    except ConfigError as error:
        sys.exit(f'compiled.py: {error}')
    except NotImplementedError:
        sys.exit("compiled.py: jax has no CUDA here; pip install 'jax[cuda13]'")


def typed(options: dict[str, str]) -> dict[str, Any]:
    """Options as XLA takes them from Python."""
    return {name: {'true': True, 'false': False}.get(text, text) for name, text in options.items()}


def compile_step(
    shape: Shape, devices: list[jax.Device], wanted: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, float]:
    """The step compiled for the devices, and the bytes that `bioptimus plan` estimates for one; `wanted`: of
    config.runtime."""
    on_gpu, planned = devices[0].platform == 'gpu', experiment(shape, Path())
    config = dataclasses.replace(planned, runtime=dataclasses.replace(planned.runtime, **wanted))
    if on_gpu:
        import jax._src.cudnn.fused_attention_stablehlo as cudnn

        cudnn.check_compute_capability = lambda _least: True  # it looks at a device
        options = {'xla_gpu_autotune_level': 0, **options}
    mesh = mesh_of(devices, 0, wanted['fsdp'], wanted['tensor'])
    model, platform = architecture(shape), devices[0].platform
    attention = expected_attention(config, model, platform, packs=on_gpu)
    step = traced_step(objective_for(config, model, mesh, attention), mesh)
    estimate = step_memory(config, model, platform, len(devices)).peak
    return lowered(step, platform).compile(compiler_options=options or None), estimate


def report(devices: list[jax.Device], compiled: Any, estimate: float) -> None:
    """Print what the compiler says of a step."""
    device = DEVICES['h100'] if devices[0].platform == 'gpu' else known(devices[0])
    rate = MEASURED.get(device.name, device.bandwidth)
    text = compiled.as_text()
    print(f'{"ms":>7} {"number":>6}  operation, and where it comes from')
    found = operations(text)
    for (kind, where), (moved, number) in found[:SHOWN]:
        print(f'{1e3 * moved / rate:7.3f} {number:6}  {kind:28} {where}')
    every = sum(moved for _, (moved, _) in found)
    print(f'{1e3 * every / rate:7.3f} {sum(n for _, (_, n) in found):6}  all, {every / 1e9:.1f} GB')
    costs = compiled.cost_analysis() or {}
    flops, moved = costs.get('flops', 0.0), costs.get('bytes accessed', 0.0)
    print(
        f'{device.name}, one of {len(devices)}: {flops / 1e12:.2f} TFLOP, {1e3 * flops / device.peak_flops:.1f} ms at '
        f'its peak; {moved / 1e9:.1f} GB, {1e3 * moved / rate:.1f} ms'
    )
    for kind, of in collectives_in(text).items():
        print(f'{of.number} {kind}, {of.moved / 1e6:.1f} MB')
    peak = planned_bytes(compiled)
    print(f'memory: {peak / GIB:.3f} GiB, estimated {estimate / GIB:.3f} ({estimate / peak:.2f} of it)')


def known(device: jax.Device) -> Device:
    """What is known of a TPU. SystemExit."""
    found = device_of_kind(device.device_kind)
    return found or sys.exit(
        f'compiled.py: the rates of a {device.device_kind} are not known (hosts/devices.py)'
    )


def operations(text: str) -> list[tuple[tuple[str, str], tuple[int, int]]]:
    """Operations of a program's main part, by kind and origin: bytes read and written, and how many there are.

    Most bytes first; a loop's body is not looked into.
    """
    sizes = dict[str, int]()
    moved, numbers = collections.Counter[tuple[str, str]](), collections.Counter[tuple[str, str]]()
    for line in text[text.index('\nENTRY ') :].splitlines():
        found = OPERATION.match(line)
        if not found:
            continue
        name, shape, kind, rest = found.groups()
        sizes[name] = sum(sizes_in(shape))
        if kind in NOTHING_MOVED:
            continue
        origin = re.search(r'op_name="([^"]*)"', line)
        where = re.sub(r'\d+', '#', origin[1] if origin else '')[-100:]
        what = re.sub(r'[.\d]+', '', name) if kind == 'fusion' else kind
        read = re.findall(r'%([\w.-]+)', rest.split('), ')[0])
        moved[what, where] += sizes[name] + sum(sizes.get(one, 0) for one in read)
        numbers[what, where] += 1
    return [(key, (size, numbers[key])) for key, size in moved.most_common()]


if __name__ == '__main__':
    main()
