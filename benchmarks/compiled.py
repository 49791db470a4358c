"""What XLA makes of a train step for an H100 that is not here: its memory, and the bytes that its operations move.

    pip install 'jax[cuda13]'                          neither a driver nor a card is needed
    python benchmarks/compiled.py [--size NAME] [--family NAME] [--rows N] [--attention NAME] [--option NAME=VALUE ...]

Between matrix products a step waits for memory, so bytes say what a change of the code can bring before a card is at
hand. The table has the operations of the compiled program, equal ones of all layers together: how many, and the
milliseconds that their bytes take at the rate of an H100 (measured: 2.85 TB/s). Products and attention take longer, as
they have more to compute; what reads a slice of an array, as of scanned layers, is counted with all of it, and takes
less. Nothing is autotuned. The last line is memory: XLA's own number beside the estimate of
`bioptimus plan`.
"""

import argparse
import collections
import dataclasses
import math
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

# jax would ask the driver which CUDA it has, and there is none.
os.environ |= {'JAX_PLATFORMS': 'cpu', 'JAX_SKIP_CUDA_CONSTRAINTS_CHECK': '1'}

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh
from pretrain import parts, planned_bytes
from workload import FAMILIES, SIZES, Shape, prepare, sized

from bioptimus_jax.model.attention import attend
from bioptimus_jax.model.compute import REMAT
from bioptimus_jax.pretrain import sharding
from bioptimus_jax.pretrain.backends import KERNELS, PLAIN_ATTENTION, Sharded, remat_of, scans
from bioptimus_jax.pretrain.memory import step_memory
from bioptimus_jax.pretrain.step import initial_state, jitted_step

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
BYTES_A_MS = 2.85e9
GIB = 2**30
SHOWN = 40
BYTES = {'f32': 4, 'bf16': 2, 's32': 4, 'u32': 4, 'pred': 1, 'f16': 2, 's8': 1, 'u8': 1, 's64': 8, 'u64': 8}
NOTHING_MOVED = ('parameter', 'get-tuple-element', 'tuple', 'bitcast', 'constant')


def main() -> None:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    parser.add_argument(
        '--size', default='base-512', choices=SIZES, help='shape of workload.py (default base-512)'
    )
    parser.add_argument('--family', default='bert', choices=FAMILIES)
    parser.add_argument(
        '--rows', type=int, default=0, help='rows of a batch, in one part (default: those of the size)'
    )
    parser.add_argument('--attention', default='cudnn_packed', choices=(PLAIN_ATTENTION, *KERNELS))
    parser.add_argument('--remat', default='auto', choices=('auto', *REMAT), help='config.runtime.remat')
    parser.add_argument('--scan-layers', default='auto', choices=('auto', 'yes', 'no'), help='likewise')
    parser.add_argument('--option', action='append', default=[], help="XLA's, as xla_gpu_autotune_level=0")
    options = parser.parse_args()
    shape = dataclasses.replace(sized(options.size, options.family, options.rows), micro_batches=1)
    given = dict(option.split('=', 1) for option in options.option)
    wanted = {'attention': options.attention, 'remat': options.remat, 'scan_layers': options.scan_layers}
    compiled, estimate = compile_step(shape, wanted, typed(given))
    print(f'{"ms":>7} {"number":>6}  operation, and where it comes from')
    for (kind, where), (moved, number) in operations(compiled.as_text())[:SHOWN]:
        print(f'{moved / BYTES_A_MS:7.3f} {number:6}  {kind:28} {where}')
    peak = planned_bytes(compiled)
    print(f'memory: {peak / GIB:.3f} GiB, estimated {estimate / GIB:.3f} ({estimate / peak:.2f} of it)')


def typed(options: dict[str, str]) -> dict[str, Any]:
    """Options as XLA takes them from Python."""
    return {name: {'true': True, 'false': False}.get(text, text) for name, text in options.items()}


def compile_step(shape: Shape, wanted: dict[str, str], options: dict[str, Any]) -> tuple[Any, float]:
    """The step compiled for one H100, and the bytes that `bioptimus plan` estimates; `wanted`: of config.runtime.

    SystemExit without CUDA's jax.
    """
    try:
        [card] = topologies.get_topology_desc(platform='cuda', target_config=H100, topology='1x1x1').devices
    except NotImplementedError:
        sys.exit("compiled.py: jax has no CUDA here; pip install 'jax[cuda13]'")
    import jax._src.cudnn.fused_attention_stablehlo as cudnn

    cudnn.check_compute_capability = lambda _least: True  # it looks at a device
    with tempfile.TemporaryDirectory(prefix='bioptimus-compiled-') as name:
        prepare(shape, Path(name), real=False)
        objective, table, batches, here, params = parts(shape, Path(name))
        batch = batches.at(0)
    mesh = Mesh(np.array([card]).reshape(here.devices.shape), here.axis_names)
    chosen = attend if wanted['attention'] == PLAIN_ATTENTION else Sharded(KERNELS[wanted['attention']], mesh)
    runtime = dataclasses.replace(objective.config.runtime, **wanted)
    compute = dataclasses.replace(
        objective.compute,
        dtype=jnp.dtype('bfloat16'),
        attend=chosen,
        remat=remat_of(runtime, shape.layers),
        scan_layers=scans(runtime, shape.layers),
    )
    config = dataclasses.replace(objective.config, runtime=runtime)
    objective = dataclasses.replace(objective, compute=compute, config=config)
    settings, rules = config.pretrain, objective.all_rules
    state = jax.eval_shape(lambda params: initial_state(params, settings, rules), params)
    jax.default_backend = lambda: 'gpu'  # what the step asks, to suit its platform
    step = jitted_step(objective, mesh, sharding.state_shardings(state, mesh, rules), {})
    batch, table = (jax.tree.map(shape_of, x) for x in (batch, table))
    lowered = step.trace(state, {}, batch, table).lower(lowering_platforms=('cuda',))
    estimate = step_memory(config, objective.architecture, 'gpu', 1).peak
    return lowered.compile(compiler_options={'xla_gpu_autotune_level': 0, **options}), estimate


def shape_of(array: Any) -> jax.ShapeDtypeStruct:
    """The array's shape and type, without the device that it lies on."""
    return jax.ShapeDtypeStruct(np.shape(array), np.asarray(array).dtype)


def operations(text: str) -> list[tuple[tuple[str, str], tuple[int, int]]]:
    """Operations of a program's main part, by kind and origin: bytes read and written, and how many there are.

    Most bytes first; a loop's body is not looked into.
    """
    sizes = dict[str, int]()
    moved, numbers = collections.Counter[tuple[str, str]](), collections.Counter[tuple[str, str]]()
    for line in text[text.index('\nENTRY ') :].splitlines():
        found = re.match(r'\s+(?:ROOT )?%([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$', line)
        if not found:
            continue
        name, shape, kind, rest = found.groups()
        sizes[name] = size_of(shape)
        if kind in NOTHING_MOVED:
            continue
        origin = re.search(r'op_name="([^"]*)"', line)
        where = re.sub(r'\d+', '#', origin[1] if origin else '')[-100:]
        what = re.sub(r'[.\d]+', '', name) if kind == 'fusion' else kind
        read = re.findall(r'%([\w.-]+)', rest.split('), ')[0])
        moved[what, where] += sizes[name] + sum(sizes.get(one, 0) for one in read)
        numbers[what, where] += 1
    return [(key, (size, numbers[key])) for key, size in moved.most_common()]


def size_of(shape: str) -> int:
    """Bytes of an array, or of all in a tuple, as `bf16[64,512]{1,0}`."""
    arrays = re.findall(r'(\w+)\[([\d,]*)\]', shape)
    return sum(
        BYTES.get(kind, 0) * math.prod(map(int, filter(None, sides.split(',')))) for kind, sides in arrays
    )


if __name__ == '__main__':
    main()
