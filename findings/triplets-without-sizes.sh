#!/usr/bin/env bash
# optax 0.2.8 (jax 0.10.2): `optax.losses.triplet_margin_loss(..., norm_degree=1)` does not measure the Manhattan
# distance. It adds up the differences with their signs, so its distances may be zero or less for points far apart.
#   - Anchor (0, 0), positive (1, -1), negative (3, 3): the distances are 2 and 6, and here 0 and -6. With a margin of
#     1 the loss is 7, and 0 if positive and negative are exchanged. By definition it is 0 and 5.
#   - 1,000 triplets whose positive is much nearer than the negative: half have a loss. The same with the two
#     exchanged: half have none. The loss hardly depends on which is nearer.
#   - The slope is -1 or 0 for all numbers of a positive, wherever the anchor is. So training adds the same to all
#     numbers of the positives, takes the same from those of the negatives, and the loss falls.
#   - norm_degree=3 gives nan where a sum is negative. 2 and 4 are right.
# The documentation says of norm_degree: "The norm degree for distance calculation (default is 2 for Euclidean
# distance)", and a norm takes absolute values. The examples have the default. PyTorch's TripletMarginLoss(p=1), the
# model for this loss, takes them too. With 1 nothing is raised. Remedy: `jnp.maximum(jnp.abs(a - p).sum(-1) -
# jnp.abs(a - n).sum(-1) + margin, 0)`. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install optax==0.2.8 jax==0.10.2 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
import optax

print('optax', optax.__version__, 'with jax', jax.__version__)


def by_definition(anchors, positives, negatives, degree):
    def distances(others):
        return (np.abs(np.float64(anchors) - np.float64(others)) ** degree).sum(-1) ** (1 / degree)

    return np.maximum(distances(positives) - distances(negatives) + 1, 0)


def by_optax(anchors, positives, negatives, degree):
    return np.array(optax.losses.triplet_margin_loss(anchors, positives, negatives, norm_degree=degree, margin=1.0))


anchor, near, far = (jnp.array([point]) for point in ((0.0, 0.0), (1.0, -1.0), (3.0, 3.0)))
for degree, expected in ((1, (7, 0)), (2, (0, None)), (3, (np.nan, np.nan))):
    for positive, negative, value in ((near, far, expected[0]), (far, near, expected[1])):
        found, right = (function(anchor, positive, negative, degree)[0] for function in (by_optax, by_definition))
        print(f'degree {degree}, positive {positive[0]}, negative {negative[0]}: {found:.3f}, rightly {right:.3f}')
        assert np.isclose(found, right if value is None else value, atol=1e-3, equal_nan=True), 'it is a norm now'

random = np.random.default_rng(0)
anchors, close, distant = (random.normal(size=(1000, 64)).astype(np.float32) * scale for scale in (1, 0.5, 2))
close, distant = anchors + close, anchors + distant
for degree in (1, 2, 4):
    losses = by_optax(anchors, close, distant, degree), by_optax(anchors, distant, close, degree)
    right = by_definition(anchors, close, distant, degree), by_definition(anchors, distant, close, degree)
    shares = [float((loss > 0).mean()) for loss in losses + right]
    print(f'degree {degree}: a loss have {shares[0]:.2f} of good and {shares[1]:.2f} of bad triplets,', end=' ')
    print(f'by definition {shares[2]:.2f} and {shares[3]:.2f}')
    if degree == 1:
        assert shares[2:] == [0, 1] and all(0.4 < share < 0.6 for share in shares[:2]), 'absolute values are taken now'
    else:
        assert all(np.allclose(loss, other, atol=1e-3) for loss, other in zip(losses, right))

slopes = jax.grad(
    lambda points: optax.losses.triplet_margin_loss(anchors, points[0], points[1], norm_degree=1).sum()
)((close, distant))
slopes = [sorted(set(np.array(slope).flatten().tolist())) for slope in slopes]
print('slopes of positives and negatives:', slopes)
assert slopes == [[-1, 0], [0, 1]]
mine = jnp.maximum(jnp.abs(anchors - distant).sum(-1) - jnp.abs(anchors - close).sum(-1) + 1, 0)
assert np.allclose(mine, by_definition(anchors, distant, close, 1), atol=1e-3)
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: differences keep their signs.'
