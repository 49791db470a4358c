#!/usr/bin/env bash
# optax 0.2.8 (jax 0.10.2): `optax.adafactor(rate, weight_decay_rate=0.01)` takes 0.01 of each weight away at every step,
# whatever the learning rate is. adamw, lion, lamb, lars and novograd multiply their weight_decay by the learning rate, so the
# same number means thousands of times as much here.
#   - After 500 steps with a rate of 1e-4 and gradients of zero, a weight of 1 is .9995 with adamw(weight_decay=0.01), and .0066
#     with adafactor(weight_decay_rate=0.01).
#   - A schedule has no effect on it: weights shrink at full speed during warm-up, at the end of a decay to zero, and with a
#     learning rate of zero.
# The documentation says "Optional rate at which to decay weights". A run neither stops nor gives NaN: training works against
# the decay, and pre-trained weights that get little gradient (rare rows of the embedding) are gone after some hundred steps.
# What is meant is rate * 0.01, which with a schedule needs add_decayed_weights before the learning rate in a chain of one's own.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install optax==0.2.8 jax==0.10.2
"$folder/env/bin/python" - <<'PYTHON'
import jax.numpy as jnp
import optax

STEPS = 500


def left(optimizer):
    """What is left of a weight of 1 after steps with gradients of zero."""
    weights = {'table': jnp.ones((4, 4))}
    state = optimizer.init(weights)
    for _ in range(STEPS):
        updates, state = optimizer.update({'table': jnp.zeros((4, 4))}, state, weights)
        weights = optax.apply_updates(weights, updates)
    return float(weights['table'][0, 0])


adamw = left(optax.adamw(1e-4, weight_decay=0.01))
adafactor = left(optax.adafactor(1e-4, weight_decay_rate=0.01))
print(f'after {STEPS} steps with a rate of 1e-4: adamw {adamw:.4f}, adafactor {adafactor:.4f}')
assert abs(adamw - (1 - 1e-4 * 0.01) ** STEPS) < 1e-3
expected = (1 - 0.01) ** STEPS
assert abs(adafactor - expected) < 1e-3, 'the decay is multiplied by the learning rate now'
for named, rate in (
    ('zero', 0.0),
    ('1e-2', 1e-2),
    ('a schedule from zero to zero', optax.warmup_cosine_decay_schedule(0.0, 1e-3, 100, STEPS)),
):
    found = left(optax.adafactor(rate, weight_decay_rate=0.01, multiply_by_parameter_scale=False))
    print(f'adafactor with a learning rate of {named}: {found:.4f}')
    assert abs(found - expected) < 1e-3, 'the learning rate decides now'
for named, optimizer in (
    ('lion', optax.lion(1e-4, weight_decay=0.01)),
    ('lamb', optax.lamb(1e-4, weight_decay=0.01)),
    ('lars', optax.lars(1e-4, weight_decay=0.01)),
    ('novograd', optax.novograd(1e-4, weight_decay=0.01)),
):
    found = left(optimizer)
    print(f'{named} with a rate of 1e-4: {found:.4f}')
    assert found > 0.9
PYTHON
echo 'As stated: the decay of adafactor does not know the learning rate.'
