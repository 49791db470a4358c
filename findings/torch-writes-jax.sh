#!/usr/bin/env bash
# jax 0.10.2 and torch 2.13.0 on a CPU: an array of jax that torch reads without a copy is one that torch may write to.
#   - What `torch.from_dlpack` gives shares the memory of the array and says nothing of it: an operation in place, such as
#     the dropout or the activation of a head, changes the array. By numpy there is one warning, and it is written to as
#     well.
#   - jax.vjp keeps the states that it has given away: the gradient is then wrong, without an error. torch alone would
#     have raised "a variable needed for gradient computation has been modified by an inplace operation".
#   - While such a tensor lives the array cannot be donated, and nobody is told: the old weights stay beside the new ones.
# So states go over as a copy; what lies on an accelerator is one anyway.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install jax==0.10.2 torch==2.13.0 numpy
cd "$folder"
cat > try.py <<'PYTHON'
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import torch

warnings.simplefilter('error')
inputs = jnp.linspace(-2, 2, 1024)


def gradient(over):
    """The gradient of the sum of (tanh(x) / 2) squared: jax has the tanh, and torch halves it in place."""
    states, pull = jax.vjp(jnp.tanh, inputs)
    read = over(states)
    read.mul_(0.5)
    (found,) = pull(jnp.asarray(read.numpy()))
    return np.asarray(found)


wanted = jax.grad(lambda x: (jnp.tanh(x) ** 2 / 4).sum())(inputs)
copied, shared = gradient(lambda states: torch.from_numpy(np.array(states))), gradient(torch.from_dlpack)
np.testing.assert_allclose(copied, wanted, atol=1e-6)
wrong = abs(shared - wanted).max() / abs(wanted).max()
print(f'without a copy the gradient is wrong by {wrong:.0%} of its largest value')
assert wrong > 0.5, 'the gradient is right now'

leaf = torch.linspace(-2, 2, 1024, requires_grad=True)
try:
    torch.tanh(leaf).mul_(0.5).sum().backward()
    raise SystemExit('torch has changed')
except RuntimeError as error:
    assert 'modified by an inplace operation' in str(error)

with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter('always')
    array = jnp.zeros(1024)
    torch.from_numpy(np.asarray(array)).add_(1)
assert array.max() == 1
print(f'by numpy, which says: {str(said[0].message).split(",")[0]}')

step = functools.partial(jax.jit, donate_argnums=0)(lambda weights: weights * 0.9)
for looks in (False, True):
    weights = step(jnp.ones(1024)).block_until_ready()
    view = torch.from_dlpack(weights) if looks else None
    step(weights).block_until_ready()
    assert weights.is_deleted() == (not looks)
print('an array that torch looks at is not donated')
PYTHON
env/bin/python try.py
echo 'As stated: torch writes to arrays of jax, and gradients are wrong then.'
