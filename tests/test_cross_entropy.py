"""The chunked loss over the vocabulary against the plain one."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioptimus_jax.model.compute import Compute
from bioptimus_jax.pretrain import cross_entropy as module
from bioptimus_jax.pretrain.cross_entropy import chunk_slots, cross_entropy

LOWEST = np.finfo(np.float32).min


def problem(rows, slots, filled, seed=0, dtype=jnp.float32):
    """States, table, bias with two padded columns, targets and weights; `filled` slots of every row count."""
    rng = np.random.default_rng(seed)
    bias = np.concatenate([rng.normal(size=28), [LOWEST, LOWEST]])
    return (
        jnp.asarray(rng.normal(size=(rows, slots, 16)), dtype),
        jnp.asarray(rng.normal(size=(30, 16)), jnp.float32),
        jnp.asarray(bias, jnp.float32),
        jnp.asarray(rng.integers(0, 28, (rows, slots))),
        jnp.asarray(np.arange(slots) < np.asarray(filled)[:, None], jnp.float32),
    )


@jax.jit
def plain(states, table, bias, targets, weights):
    """The same by jax.nn, all slots at once."""
    logits = jnp.einsum('bmd,vd->bmv', states.astype(jnp.float32), table) + bias[None, None]
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)[..., 0]
    return (losses * weights).sum(), losses, targets == logits.argmax(-1)


@jax.jit
def plain_gradients(*arguments):
    """Gradients of three times the plain loss by states, table and bias."""
    return jax.grad(lambda *a: 3 * plain(*a, *arguments[3:])[0], argnums=(0, 1, 2))(*arguments[:3])


@functools.partial(jax.jit, static_argnums=1)
def chunked(arguments, compute):
    return jax.value_and_grad(
        lambda *a: (lambda out: (3 * out[0], out[1:]))(cross_entropy(*a, *arguments[3:], compute)),
        argnums=(0, 1, 2),
        has_aux=True,
    )(*arguments[:3])


@settings(max_examples=25)
@given(
    filled=st.lists(st.integers(0, 40), min_size=3, max_size=3),
    slots=st.sampled_from([7, 40]),
    seed=st.integers(0, 99),
)
def test_loss_and_gradients_equal_the_plain_ones(filled, slots, seed):
    """Slots are in one chunk, and in five."""
    arguments = problem(3, slots, filled, seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(module.POSITIONS_PER_CHUNK, 'cpu', 24)
        (total, (losses, correct)), found = chunked(arguments, Compute())
    expected, plain_losses, plain_correct = plain(*arguments)
    gradients = plain_gradients(*arguments)
    np.testing.assert_allclose(total, 3 * expected, rtol=1e-5, atol=1e-5)
    real = np.asarray(arguments[4]) > 0
    np.testing.assert_allclose(losses[real], plain_losses[real], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(correct[real], plain_correct[real])
    for one, two in zip(found, gradients, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('waits', [True, False])
def test_a_host_that_would_wait_for_the_loop_knows_its_end(waits, monkeypatch):
    """A bound from the weights is on the device: a GPU's host begins nothing before it has seen it."""
    monkeypatch.setitem(module.POSITIONS_PER_CHUNK, 'cpu', 16)
    monkeypatch.setattr(module, 'WAITING', ('cpu',) * waits)
    arguments = problem(2, 56 + 8 * waits, [9, 3])  # shapes of its own: nothing is compiled for them yet
    text = chunked.lower(arguments, Compute()).compile().as_text()
    loops = [line for line in text.splitlines() if ' while(' in line]
    assert loops
    assert all('known_trip_count' in line for line in loops) == waits
    (total, _), gradients = chunked(arguments, Compute())
    np.testing.assert_allclose(total, 3 * plain(*arguments)[0], rtol=1e-5)
    wanted = plain_gradients(*arguments)
    for one, two in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-4)


def test_chunks_beyond_the_last_filled_slot_are_not_computed(monkeypatch):
    monkeypatch.setitem(module.POSITIONS_PER_CHUNK, 'cpu', 16)
    states, *rest = problem(2, 48, [9, 3])  # a shape of its own: nothing compiled for it yet
    assert chunk_slots(2, 48) == 8
    poisoned = (states.at[:, 16:].set(jnp.nan), *rest)
    (total, _), (change, *_) = chunked(poisoned, Compute())
    np.testing.assert_allclose(total, 3 * plain(states, *rest)[0], rtol=1e-5)
    assert np.isfinite(change).all()
    (reached, _), _ = chunked((states.at[:, 15].set(jnp.nan), *rest), Compute())
    assert np.isnan(reached)  # slot 15 lies in the last chunk that is


@pytest.mark.parametrize(
    ('rows', 'slots'), [(1, 8), (4, 72), (16, 72), (64, 120), (256, 120), (3, 5), (2, 200)]
)
def test_a_chunk_is_a_multiple_of_eight_and_never_more_than_all(rows, slots):
    size = chunk_slots(rows, slots)
    assert size == slots or size % 8 == 0
    assert 1 <= size <= slots
    assert size <= 8 or size * rows <= 128


def test_parts_of_the_rows_on_their_own_devices_give_the_same_gradients():
    mesh = jax.make_mesh((4,), ('data',), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:4])
    spread = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('data'))
    states, table, bias, *rest = problem(8, 24, [20, 9, 24, 0, 3, 17, 8, 1])
    expected = chunked((states, table, bias, *rest), Compute())
    split = (jax.device_put(states, spread), table, bias, *(jax.device_put(x, spread) for x in rest))
    found = chunked(split, Compute(row_shards=4))
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-5)


def test_bfloat16_stays_near_float32():
    arguments = problem(2, 16, [16, 9], dtype=jnp.bfloat16)
    (total, _), found = chunked(arguments, Compute(dtype=jnp.bfloat16))
    gradients = plain_gradients(*arguments)
    assert total == pytest.approx(float(3 * plain(*arguments)[0]), rel=2e-2)
    assert [g.dtype for g in found] == [jnp.bfloat16, jnp.float32, jnp.float32]
    for one, two in zip(found, gradients, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float32), two, atol=0.1)
