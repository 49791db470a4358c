#!/usr/bin/env bash
# optax 0.2.8 (jax 0.10.2): in a batch without one of the classes, `losses.multiclass_generalized_dice_loss` looks at
# that class alone. A model that gets every token wrong has a loss of 0, as long as it does not predict that class.
#   - Four classes, a batch of 4 x 50 tokens in which the fourth does not occur: all tags right gives 0, and all wrong
#     gives 3e-10. Everything tagged as the first class gives 2e-10. The formula of the paper, over the classes that
#     occur, gives 0, 1 and .85, and dice_loss of optax gives 0, .70 and .42.
#   - The weight of a class is 1 / (n * n + 1e-7), with n its tokens in the batch. So a class without any has the
#     weight 10^7, and one with 20 tokens has .0025. Weights are then scaled to a mean of 1, and the others have 1e-9.
#   - A tagger for eight types of entities is trained on batches that each lack one of the types. It ends with a loss of
#     .02 and finds nothing of some types. The same tagger finds all of them when dice_loss trains it, or when each
#     batch has all types.
# The documentation says that the weights are there for classes that are out of balance, and names the paper by Sudre
# and others. It says nothing of classes that a batch lacks. Most batches of tagged text, or of images, lack some.
# Nothing is raised, and the loss falls as it should. How badly the model does shows in scores of single classes only.
# Remedy: dice_loss with `class_weights` from the whole corpus, or with weights of 0 for what the batch lacks.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install optax==0.2.8 jax==0.10.2 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
import optax

print('optax', version('optax'), 'with jax', jax.__version__)
draw = np.random.default_rng(0)
generalized = optax.losses.multiclass_generalized_dice_loss


def plain(logits, targets):
    """The loss of optax without weights."""
    return optax.losses.dice_loss(logits, targets).mean()


def by_paper(logits, targets):
    """The formula of Sudre and others, over the classes that occur, in numpy."""
    classes = targets.shape[-1]
    found, gold = np.asarray(jax.nn.softmax(logits)).reshape(-1, classes), np.asarray(targets).reshape(-1, classes)
    occur = gold.sum(0) > 0
    found, gold = found[:, occur], gold[:, occur]
    weights = 1 / gold.sum(0) ** 2
    return 1 - 2 * (weights * (found * gold).sum(0)).sum() / (weights * (found + gold).sum(0)).sum()


tags = jnp.asarray(draw.choice(3, size=(4, 50), p=(0.8, 0.12, 0.08)))
targets = jax.nn.one_hot(tags, 4)
assert targets.sum((0, 1))[3] == 0 and (targets.sum((0, 1))[:3] > 0).all()
CASES = (
    ('all right', tags, 0.0, 0.0),
    ('all wrong', (tags + 1) % 3, 1.0, 0.70),
    ('all of the first class', tags * 0, 0.85, 0.42),
)
for name, predicted, right, unweighted in CASES:
    logits = 20 * jax.nn.one_hot(predicted, 4)
    found, other, paper = float(generalized(logits, targets)), float(plain(logits, targets)), by_paper(logits, targets)
    print(f'{name}: {found:.2g}, without weights {other:.2f}, by the paper {paper:.2f}')
    assert found < 1e-8, 'a missing class does not take all weight now'
    assert round(other, 2) == unweighted and abs(paper - right) < 0.01

# With one token of the fourth class in the batch the same mistakes count.
rare = tags.at[0, 0].set(3)
found = float(generalized(20 * jax.nn.one_hot((tags + 1) % 3, 4), jax.nn.one_hot(rare, 4)))
print(f'all wrong, with one token of the fourth class in the batch: {found:.2f}')
assert found > 0.05

TYPES = 8
means = draw.normal(size=(TYPES + 1, 16))


def batch(types):
    """Features and tags of 4 x 64 tokens with so many types of entities, and 0 for all other words."""
    present = draw.choice(np.arange(1, TYPES + 1), types, replace=False)
    tags = np.where(draw.random((4, 64)) < 0.7, 0, draw.choice(present, (4, 64)))
    features = means[tags] + 0.5 * draw.normal(size=(*tags.shape, 16))
    return jnp.asarray(features, jnp.float32), jnp.asarray(tags)


def train(loss, types):
    """The loss at the end, and how much of each type is found."""
    optimizer = optax.adam(0.05)
    weights = {'kernel': jnp.zeros((16, TYPES + 1)), 'bias': jnp.zeros(TYPES + 1)}
    state = optimizer.init(weights)

    @jax.jit
    def step(weights, state, features, tags):
        def of(weights):
            return loss(features @ weights['kernel'] + weights['bias'], jax.nn.one_hot(tags, TYPES + 1))

        value, gradients = jax.value_and_grad(of)(weights)
        updates, state = optimizer.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, value

    values = []
    for _ in range(300):
        weights, state, value = step(weights, state, *batch(types))
        values.append(float(value))
    features, tags = batch(TYPES)
    right = (features @ weights['kernel'] + weights['bias']).argmax(-1) == tags
    return np.mean(values[-50:]), [float(right[tags == tag].mean()) for tag in range(1, TYPES + 1)]


RUNS = ('generalized', generalized, 8), ('generalized', generalized, 7), ('without weights', plain, 7)
for name, loss, types in RUNS:
    value, recall = train(loss, types)
    print(f'{types} of 8 types in each batch, {name}: loss {value:.4f}, found {[round(part, 2) for part in recall]}')
    assert value < 0.05
    if loss is plain or types == 8:
        assert min(recall) > 0.9
    else:
        assert min(recall) < 0.2, 'all types are found now'
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: a class that a batch lacks has all the weight.'
