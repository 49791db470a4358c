"""Functions of single positions against numbers from float64, and what they keep for their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from bioptimus_jax.model.pointwise import gelu, silu


@pytest.mark.parametrize(('dtype', 'error'), [(jnp.float32, 4e-7), (jnp.bfloat16, 2**-8)])
def test_gelu_and_its_slope_are_exact_to_the_last_bit_of_their_type(dtype, error):
    """Values far below 0 are among them, where x times the share below it is a small number made of numbers that nearly
    cancel."""
    values = jnp.linspace(-9, 9, 3001).astype(dtype)
    exact = np.asarray(values, np.float64)
    found, pull = jax.vjp(gelu, values)
    assert found.dtype == dtype
    (slopes,) = pull(jnp.ones_like(found))
    wanted = exact * special.ndtr(exact)
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted, rtol=error, atol=1e-6)
    slope = special.ndtr(exact) + exact * stats.norm.pdf(exact)
    np.testing.assert_allclose(np.asarray(slopes, np.float64), slope, rtol=error, atol=1e-6)


@pytest.mark.parametrize(('dtype', 'error'), [(jnp.float32, 4e-7), (jnp.bfloat16, 2**-8)])
def test_silu_and_its_slope_are_exact_to_the_last_bit_of_their_type(dtype, error):
    values = jnp.linspace(-9, 9, 3001).astype(dtype)
    exact = np.asarray(values, np.float64)
    found, pull = jax.vjp(silu, values)
    assert found.dtype == dtype
    (slopes,) = pull(jnp.ones_like(found))
    share = special.expit(exact)
    np.testing.assert_allclose(np.asarray(found, np.float64), exact * share, rtol=error, atol=1e-6)
    slope = share * (1 + exact * (1 - share))
    np.testing.assert_allclose(np.asarray(slopes, np.float64), slope, rtol=error, atol=1e-6)


@pytest.mark.parametrize('function', [gelu, silu])
def test_in_low_precision_nothing_is_kept_but_what_went_in(function):
    values = jnp.linspace(-3, 3, 512).astype(jnp.bfloat16)
    _, pull = jax.vjp(function, values)
    kept = [leaf for leaf in jax.tree.leaves(pull) if leaf.size > 1]
    assert [leaf.dtype for leaf in kept] == [jnp.bfloat16]
    assert sum(leaf.nbytes for leaf in kept) == values.nbytes
