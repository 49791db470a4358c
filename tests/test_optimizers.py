"""Optimisers against plain numpy, their reset and where their states are kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bioptimus_jax.model.architecture import Rule
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.trees import flatten, unflatten
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.optimizer import make_optimizer, moved, reset_where
from bioptimus_jax.pretrain.optimizers import OPTIMIZERS
from bioptimus_jax.pretrain.sharding import make_mesh, shardings_of, state_shardings
from bioptimus_jax.pretrain.step import initial_state

RULES = (Rule('/kernel$', (None, None)), Rule('/bias$', (None,), decays=False))
SHAPES = {
    'encoder/wide/kernel': (4, 7),
    'encoder/tall/kernel': (6, 3),
    'cls/kernel': (3, 3),
    'encoder/tall/bias': (3,),
}
DECAY, EPSILON = 0.1, 1e-8


def draws(steps):
    rng = np.random.default_rng(0)
    params = {path: rng.normal(size=shape) for path, shape in SHAPES.items()}
    gradients = [{path: rng.normal(size=shape) for path, shape in SHAPES.items()} for _ in range(steps)]
    gradients[-1]['cls/kernel'] *= 30  # a spike
    return params, gradients


def adam(gradients, beta1=0.9, beta2=0.95):
    """The update at the last step, and the bias-corrected second moment."""
    first = second = 0.0
    for gradient in gradients:
        first = beta1 * first + (1 - beta1) * gradient
        second = beta2 * second + (1 - beta2) * gradient**2
    count = len(gradients)
    second = second / (1 - beta2**count)
    return first / (1 - beta1**count) / (np.sqrt(second) + EPSILON), second


def orthogonal(matrix):
    """Five steps of Newton and Schulz by the singular values: the polynomial acts on each alone."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    values = values / np.sqrt((values**2).sum())
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return left * values @ right * 0.2 * np.sqrt(max(matrix.shape))


def muon(path, gradients):
    if not path.startswith('encoder/') or not path.endswith('/kernel'):
        return adam(gradients)[0]
    momentum = 0.0
    for gradient in gradients:
        momentum = 0.95 * momentum + gradient
    return orthogonal(gradient + 0.95 * momentum)


def stable(path, gradients):
    update, second = adam(gradients)
    return update, max(1.0, np.sqrt((gradients[-1] ** 2 / second).mean()))


@pytest.mark.parametrize('name', ['muon', 'stable_adamw'])
def test_updates_are_those_of_plain_numpy(name):
    params, gradients = draws(3)
    settings = Pretrain(
        optimizer=name, weight_decay=DECAY, clip_norm=0.0, beta1=0.9, beta2=0.95, epsilon=EPSILON
    )
    tree = unflatten({path: value.astype('float32') for path, value in params.items()})
    optimizer = make_optimizer(settings, tree, RULES)
    state, update = optimizer.init(tree), jax.jit(optimizer.update)
    for gradient in gradients:
        given = unflatten({path: value.astype('float32') for path, value in gradient.items()})
        updates, state = update(given, state, tree)
    largest = 1.0
    for path, found in flatten(updates).items():
        of_path = [gradient[path] for gradient in gradients]
        decay = DECAY * params[path] * path.endswith('/kernel')
        if name == 'muon':
            wanted = muon(path, of_path) + decay
        else:
            wanted, divisor = stable(path, of_path)
            wanted, largest = (wanted + decay) / divisor, max(largest, divisor)
        np.testing.assert_allclose(found, wanted, atol=2e-4, rtol=1e-3, err_msg=path)
    assert largest > 1.5 or name == 'muon'  # something was clipped


def test_a_head_that_the_source_lacks_is_trained_alone_in_the_first_steps():
    tree = {name: {'kernel': np.ones(3, 'float32')} for name in ('embeddings', 'encoder', 'cls', 'pooler')}
    settings = Pretrain(head_steps=2)
    shares = []
    for step in range(5):
        after = moved(settings, tree, tree, jnp.float32(0.5), jnp.int32(step))
        for name in ('cls', 'pooler'):
            np.testing.assert_array_equal(after[name]['kernel'], np.full(3, 0.5))
        np.testing.assert_array_equal(after['encoder']['kernel'], after['embeddings']['kernel'])
        shares.append(2 * (1 - float(after['encoder']['kernel'][0])))
    assert shares == [0, 0, 0.5, 1, 1]  # it comes to its rate within as many steps
    at_once = moved(Pretrain(), tree, tree, jnp.float32(0.5), jnp.int32(0))
    assert {float(part['kernel'][0]) for part in at_once.values()} == {0.5}


@pytest.mark.parametrize('name', OPTIMIZERS)
def test_a_reset_is_step_0_and_moments_are_kept_with_their_parameters(name):
    model = Bert(200, 16, 1, 2, 16, 32)
    params = model.initial_parameters(jax.random.key(0))
    settings = Pretrain(optimizer=name, ema=0.5)
    state = initial_state(params, settings, model.rules)
    fresh = make_optimizer(settings, params, model.rules).init(params)
    reset = reset_where(True, jax.tree.map(np.ones_like, state['optimizer']), fresh)
    for again, before in zip(jax.tree.leaves(reset), jax.tree.leaves(state['optimizer'])):
        np.testing.assert_array_equal(again, before)
    mesh = make_mesh(8, fsdp=2, tensor=2)
    wanted = flatten(shardings_of(params, mesh, model.rules))
    found = jax.tree_util.tree_flatten_with_path(state_shardings(state, mesh, model.rules))[0]
    leaves = jax.tree_util.tree_flatten_with_path(state)[0]
    moments = 0
    for (path, sharding), (_, leaf) in zip(found, leaves, strict=True):
        name = jax.tree_util.keystr(path, simple=True, separator='/')
        of_param = [one for one in wanted if name.endswith(f'/{one}')]
        moments += bool(of_param)
        assert tuple(sharding.spec) == (tuple(wanted[max(of_param, key=len)].spec) if of_param else ()), name
        sharding.shard_shape(leaf.shape)  # it divides the leaf
    assert moments > 2 * len(wanted)
