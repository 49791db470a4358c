#!/usr/bin/env bash
# equinox 0.13.8 (jax 0.10.2): `eqx.nn.RotaryPositionalEmbedding(size, theta)` takes the theta of whichever instance came
# first in the process. The angles are kept in one table for the whole process, and its key is (size, dtype), without theta.
#   - Two layers with theta 10,000 and 160,000 and heads of one size rotate alike, to the last bit. ModernBERT and Gemma 3
#     are such models: their local layers have another theta than their global ones.
#   - Which theta it is depends on what ran before: a model that is loaded beside another one gives other states than alone.
#   - A text that is longer than all before rebuilds the table with the theta of the layer that sees it first, and from
#     then on every layer reads that one. So the states of one text change after a longer one has been read.
#   - Under jit the angles are constants of the compiled function: it keeps those that were there when it was compiled, and
#     eager calls of the same layer differ from it.
# theta is a documented argument, the field of each instance shows the right number, shapes are right and a model trained so
# learns all the same; but weights from elsewhere are computed with wrong angles, and a comparison with one layer at a time
# passes. In a process that knows one theta nothing is wrong. The remedy is to rotate by one's own function, for which
# `RotaryPositionalEmbedding.precompute_freqs_cis(size, length, theta, dtype)` gives the right angles. Seen on 2026-11-29,
# in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install equinox==0.13.8 jax==0.10.2
cat > "$folder/try.py" <<'PYTHON'
import sys

import equinox as eqx
import jax
import jax.numpy as jnp

SIZE = 64
print('equinox', eqx.__version__)


def rotated(states, theta):
    """Rotary positions as the layer defines them, by angles that no table keeps."""
    cos, sin = eqx.nn.RotaryPositionalEmbedding.precompute_freqs_cis(SIZE, len(states), theta, jnp.float32)
    cos, sin = jnp.tile(cos, (1, 2)), jnp.tile(sin, (1, 2))
    return states * cos + eqx.nn.RotaryPositionalEmbedding.rotate_half(states) * sin


def apart(a, b):
    return float(jnp.abs(a - b).max())


local_layer = eqx.nn.RotaryPositionalEmbedding(SIZE, theta=10_000.0)
global_layer = eqx.nn.RotaryPositionalEmbedding(SIZE, theta=160_000.0)
states = jax.random.normal(jax.random.key(0), (256, SIZE))
right_local, right_global = rotated(states, 10_000.0), rotated(states, 160_000.0)
print(f'theta of the fields: {local_layer.theta}, {global_layer.theta}; right results lie {apart(right_local, right_global):.2f} apart')
assert apart(right_local, right_global) > 1

first, second = (local_layer, global_layer) if sys.argv[1] == 'local' else (global_layer, local_layer)
right_first, right_second = (right_local, right_global) if sys.argv[1] == 'local' else (right_global, right_local)
by_first, by_second = first(states), second(states)
print(f'{first.theta} comes first:  {apart(by_first, right_first):.1e} from what is right')
print(f'{second.theta} comes second: {apart(by_second, right_second):.2f} from what is right, {apart(by_second, by_first)} from the first')
assert apart(by_first, right_first) < 1e-4
assert apart(by_second, by_first) == 0.0, 'each theta has its own angles now'
assert apart(by_second, right_second) > 1

# A longer text, read by the second layer, rebuilds the table: now the first layer is the wrong one.
compiled = jax.jit(first)
before = compiled(states)
second(jax.random.normal(jax.random.key(1), (512, SIZE)))
after = first(states)
print(f'after a longer text the same states rotated by the first layer: {apart(after, by_first):.2f} from before')
assert apart(after, by_first) > 1, 'what was read before has no effect now'
assert apart(after, right_second) < 1e-4
print(f'the same layer compiled before that: {apart(compiled(states), after):.2f} from the eager call')
assert apart(compiled(states), before) == 0.0 and apart(before, after) > 1
PYTHON
for order in local global; do
    "$folder/env/bin/python" "$folder/try.py" "$order"
done
echo 'As stated: one theta for all layers, that of the layer which made the table.'
