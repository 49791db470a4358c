#!/usr/bin/env bash
# jax 0.10.2 with libtpu 0.0.42, compiling for a TPU v5e of 2 x 4 chips without one: a matrix that is kept in parts makes
# a step move more memory than one that is copied, until the program says that it is to be made whole.
#   - Rows are split over eight devices, and so are the matrices. The compiler takes each product apart, and sends the parts
#     of a matrix round between the pieces (collective-permute) instead of gathering it: more bytes of memory are read and
#     written than with copies, which the saved memory does not tell.
#   - With `with_sharding_constraint(matrix, P())` before each product nothing is permuted, and the bytes are fewer than with
#     copies. Gradients follow: their sum is whole for a moment, and every device keeps its part.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install jax==0.10.2 numpy
"$folder/env/bin/pip" --quiet install --no-deps libtpu==0.0.42
cd "$folder"
cat > try.py <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

devices = topologies.get_topology_desc(platform='tpu', topology_name='v5e:2x4').devices
mesh = Mesh(np.array(devices), ('fsdp',))
rows, whole = NamedSharding(mesh, P('fsdp')), NamedSharding(mesh, P())
halves = NamedSharding(mesh, P('fsdp', None)), NamedSharding(mesh, P(None, 'fsdp'))


WAYS = {
    'copies': lambda matrix, kept: matrix,
    'parts': lambda matrix, kept: matrix,
    'made whole': lambda matrix, kept: jax.lax.with_sharding_constraint(matrix, whole),
}


def compiled(name):
    kept = (whole, whole) if name == 'copies' else halves

    def loss(matrices, states):
        for wide, narrow in matrices:
            inner = jax.nn.relu(states @ WAYS[name](wide, kept[0]))
            states = states + inner @ WAYS[name](narrow, kept[1])
        return (states.astype(jnp.float32) ** 2).mean()

    matrices = [
        tuple(jax.ShapeDtypeStruct(s, jnp.bfloat16) for s in ((768, 3072), (3072, 768))) for _ in range(3)
    ]
    states = jax.ShapeDtypeStruct((131_072, 768), jnp.bfloat16)
    step = jax.jit(jax.grad(loss), in_shardings=([kept] * 3, rows), out_shardings=[kept] * 3)
    program = step.lower(matrices, states).compile()
    text = program.as_text()
    return program.cost_analysis()['bytes accessed'] / 1e9, text.count(' collective-permute')


found = {name: compiled(name) for name in WAYS}
for name, (moved, permuted) in found.items():
    print(f'{name:10} {moved:6.2f} GB, {permuted} permutations')
moved = {name: one for name, (one, _) in found.items()}
assert found['copies'][1] == found['made whole'][1] == 0
assert found['parts'][1] > 0, 'the compiler no longer splits products'
assert moved['parts'] > 1.4 * moved['copies'], 'parts no longer move more'
assert moved['made whole'] < moved['copies']
PYTHON
TPU_SKIP_MDS_QUERY=1 ALLOW_MULTIPLE_LIBTPU_LOAD=1 JAX_PLATFORMS=cpu "$folder/env/bin/python" try.py 2>/dev/null
