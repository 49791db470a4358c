#!/usr/bin/env bash
# jax 0.10.2 with libtpu 0.0.42, compiling for a TPU v5e without one: gradients are added up over micro-batches in a scan,
# rows are shared by 8 devices, and a table is both looked up and, transposed, the output layer (as in BERT).
#   - XLA moves the all-reduce of a gradient behind the loop, so that it is sent once a step; of the table it does not. That
#     gradient is sent twice in every micro-batch: the lookups are scattered into all that was summed so far, which is
#     all-reduced, and what the output layer adds is all-reduced before that. With 32 micro-batches the table goes over the
#     links 64 times.
#   - If lookups are made from one table for every shard (broadcast, and placed on the shards), once in every micro-batch.
#   - If they read a copy of the table that is a parameter of its own, and both gradients are added behind the scan, the
#     table is sent once a step.
#   - The program is right in each case, and bytes_accessed counts a loop once, so nothing tells but the text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install jax==0.10.2 numpy
"$folder/env/bin/pip" --quiet install --no-deps libtpu==0.0.42
cd "$folder"
cat > try.py <<'PYTHON'
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES, PARTS, ROWS, LENGTH, VOCABULARY, WIDTH = 8, 4, 64, 128, 8192, 128
mesh = Mesh(np.array(topologies.get_topology_desc(platform='tpu', topology_name='v5e:2x4').devices), ('rows',))
whole, of_rows = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, 'rows'))


def looked_up(table, tokens, placed):
    """Rows of the table; `placed`: from one for every shard of the rows, each of which only its device changes."""
    if not placed:
        return table[tokens]
    tables = jnp.broadcast_to(table, (DEVICES, *table.shape))
    tables = jax.lax.with_sharding_constraint(tables, NamedSharding(mesh, P('rows')))
    rows = jax.vmap(lambda one, at: one[at])(tables, tokens.reshape(DEVICES, -1))
    return rows.reshape(*tokens.shape, WIDTH)


def step(params, batch, placed, copied):
    def loss(params, tokens):
        states = jnp.tanh(looked_up(params.get('copy', params['table']), tokens, placed) @ params['matrix'])
        logits = states @ params['table'].T
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1).sum()

    if copied:
        params = {**params, 'copy': params['table']}

    def part(total, tokens):
        return jax.tree.map(jnp.add, total, jax.grad(loss)(params, tokens)), None

    gradients, _ = jax.lax.scan(part, jax.tree.map(jnp.zeros_like, params), batch)
    copy = gradients.pop('copy', 0)
    return {**gradients, 'table': gradients['table'] + copy}


def sums(placed, copied):
    """All-reduces as large as the table, and of the matrix: in the loop over micro-batches, and behind it."""
    shapes = {'table': (VOCABULARY, WIDTH), 'matrix': (WIDTH, WIDTH)}
    params = {name: jax.ShapeDtypeStruct(shape, jnp.float32) for name, shape in shapes.items()}
    batch = jax.ShapeDtypeStruct((PARTS, ROWS, LENGTH), jnp.int32)
    jitted = jax.jit(lambda p, b: step(p, b, placed, copied), in_shardings=(whole, of_rows), out_shardings=whole)
    found, inside = {'in': [0, 0], 'behind': [0, 0]}, True
    for line in jitted.lower(params, batch).compile().as_text().splitlines():
        if line.startswith('ENTRY'):
            inside = False
        if made := re.match(r'\s+(?:ROOT )?%?[\w.-]+ = (.*?) all-reduce(?:-start)?\(', line):
            for number, shape in enumerate(shapes.values()):
                found['in' if inside else 'behind'][number] += made[1].count(f'f32[{shape[0]},{shape[1]}]')
    return found


plain, copied = sums(False, False), sums(False, True)
placed = sums(True, False)
print(f'one table: table and matrix are added up {plain["in"]} times in the loop, {plain["behind"]} behind it')
print(f'one table, a place for every shard: {placed["in"]} in the loop, {placed["behind"]} behind it')
print(f'a copy for the lookups: {copied["in"]} in the loop, {copied["behind"]} behind it')
assert plain == {'in': [2, 0], 'behind': [0, 1]}, 'other sums'
assert placed == {'in': [1, 0], 'behind': [0, 1]}, 'other sums with places'
assert copied == {'in': [0, 0], 'behind': [1, 1]}, 'other sums with a copy'
PYTHON
TPU_SKIP_MDS_QUERY=1 ALLOW_MULTIPLE_LIBTPU_LOAD=1 JAX_PLATFORMS=cpu "$folder/env/bin/python" try.py 2>/dev/null
