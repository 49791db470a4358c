#!/usr/bin/env bash
# flax 0.12.8, and 0.12.12 alike: `nnx.metrics.Welford` takes a mask and does not look at it. Padding counts for its
# mean, its standard deviation and its standard error.
#   - 100 losses between 1 and 3, in batches of 32. The last batch has 4 of them and 28 rows of padding with loss 0.
#     By MultiMetric(loss=Average(), spread=Welford()), updated with the values and a mask, the mean of `loss` is 2.10
#     and that of `spread` is 1.64. The standard deviation is 1.02, where .61 is right, and the error .090 for .061.
#   - Welford().update(values=..., mask=...) by itself gives the same numbers as without the mask. A mask of zeros alone
#     changes nothing either. `update` takes any keyword there is and reads `values` only.
#   - Average and Accuracy do look at the mask, so one object reports two means of the same losses.
# By the documentation of MultiMetric a mask is given to all the metrics that it holds, or to each its own, by name. The
# page of Welford has no word on masks, and update does not refuse one. Nothing is raised. Without padding nothing is
# wrong, and the spread and the error bars of an evaluation are what Welford is for.
# Remedy: give Welford what the mask leaves, outside of jit: `spread.update(values=losses[mask])`.
# Seen on 2026-11-30, in the newest version for Python 3.11, and in the newest one of all, 0.12.12.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install flax==0.12.8 jax==0.10.2 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import jax.numpy as jnp
import numpy as np
from flax import nnx

print('flax', version('flax'))
ROWS = 32
losses = np.random.default_rng(0).uniform(1, 3, 100).astype(np.float32)
both = nnx.MultiMetric(loss=nnx.metrics.Average(), spread=nnx.metrics.Welford())
alone, unmasked, remedy = nnx.metrics.Welford(), nnx.metrics.Welford(), nnx.metrics.Welford()
padded = []
for start in range(0, len(losses), ROWS):
    part = losses[start : start + ROWS]
    values = jnp.asarray(np.pad(part, (0, ROWS - len(part))))
    mask = jnp.arange(ROWS) < len(part)
    both.update(values=values, mask=mask)
    alone.update(values=values, mask=mask)
    unmasked.update(values=values)
    remedy.update(values=values[mask])
    padded.append(values)
padded = np.concatenate(padded)


def three(found):
    """Mean, standard deviation and standard error of what a Welford found."""
    return [float(found.mean), float(found.standard_deviation), float(found.standard_error_of_mean)]


def by_hand(values):
    """The same of an array, by numpy."""
    return [values.mean(), values.std(), values.std() / len(values) ** 0.5]


found = both.compute()
spread, right = three(found['spread']), by_hand(losses)
print('Average, masked:', round(float(found['loss']), 3))
print('Welford, masked:', [round(number, 3) for number in spread])
print('right:', [round(float(number), 3) for number in right])
assert np.isclose(float(found['loss']), right[0], rtol=1e-5), 'Average does not look at the mask now'
assert np.allclose(spread, by_hand(padded), rtol=1e-4), 'Welford looks at the mask now'
assert [round(number, 2) for number in spread] == [1.64, 1.02, 0.09]
assert [round(float(number), 2) for number in right] == [2.1, 0.61, 0.06]
assert three(alone.compute()) == three(unmasked.compute()) == spread
assert np.allclose(three(remedy.compute()), right, rtol=1e-4)

none = nnx.metrics.Welford()
none.update(values=jnp.ones(4), mask=jnp.zeros(4, bool))
print('four values of 1 and a mask of zeros:', float(none.compute().mean))
assert float(none.compute().mean) == 1.0
PYTHON
"$folder/env/bin/python" "$folder/try.py"
# 0.12.12 asks for Python 3.12, and this part of it runs with 3.11 as well.
"$folder/env/bin/pip" --quiet install --no-deps --ignore-requires-python flax==0.12.12
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: Welford does not look at the mask.'
