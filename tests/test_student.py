"""Student's t: a two-way table by hand, what cannot be tested, and the size of both tests."""

import numpy as np
import pytest
from scipy import stats

from bioptimus_jax.scoring.resampling import paired
from bioptimus_jax.scoring.score import METRICS
from bioptimus_jax.scoring.student import TwoWay

RESIDUAL = 0.46
"""Percent F1: how far one training of an arm lies from arm and seed, mean of two sets, in the sweep of orders."""


def test_three_arms_and_two_seeds_by_hand():
    """Means of arms 2, 5 and 8, of seeds 4 and 6: what is left is 0, -1, 1 and 0, 1, -1, so 4 with 2 degrees of
    freedom; variance 2, and a difference of two means of two has the error sqrt(2 (1/2 + 1/2))."""
    scores = {'a': {0: 1.0, 1: 3.0}, 'b': {0: 3.0, 1: 7.0}, 'c': {0: 8.0, 1: 8.0}}
    effect = TwoWay(scores).contrast('c', 'a')
    assert (effect.observed, effect.freedom) == (pytest.approx(6), 2)
    assert effect.high - effect.observed == pytest.approx(4.302653 * 2**0.5, rel=1e-6)
    assert effect.p == pytest.approx(2 * stats.t.sf(6 / 2**0.5, 2))


def test_what_cannot_be_said_is_not_said():
    one = TwoWay({'a': {0: 60.0}, 'b': {0: 61.0}}).contrast('b', 'a')
    assert (one.observed, one.p, one.freedom) == (pytest.approx(1), None, 0)
    assert TwoWay({'a': {0: 60.0, 1: 61.0}, 'b': {2: 61.0, 3: 60.0}}).contrast('b', 'a') is None
    alike = {0: 60.1, 1: 61.3, 2: 59.7}
    assert TwoWay({'a': alike, 'b': alike}).contrast('b', 'a').p is None
    shifted = {seed: score + 0.5 for seed, score in alike.items()}
    effect = TwoWay({'a': alike, 'b': shifted}).contrast('b', 'a')
    assert (effect.p, effect.freedom) == (None, 2)
    assert (one.untested, effect.untested) == ('one seed', 'every seed gives the same difference')
    assert np.isnan(effect.ends).all()


def test_the_size_of_the_test_over_seeds_and_of_that_over_test_items():
    """Seven arms that differ in nothing, three trainings each, a residual as measured, nominal 5 %.

    Over seeds it is 5 %. The randomisation over test items takes the trained models as they are; with the error that
    it has on two sets, 0.27, it finds a difference three times as often.
    """
    generator = np.random.default_rng(7)
    rejected = []
    for _ in range(1000):
        scores_AxS = generator.normal(0, RESIDUAL, (7, 3)) + generator.normal(0, 1, 3)
        fitted = TwoWay({str(arm): dict(enumerate(row)) for arm, row in enumerate(scores_AxS)})
        rejected += [fitted.contrast(str(arm), '0').p < 0.05 for arm in range(1, 7)]
    assert 0.035 < np.mean(rejected) < 0.065
    # A tenth of the items, so that every deviation is sqrt(10) times as large. One mention a unit, a fifth of them
    # found by chance; a training also has luck with those. The two together leave the residual.
    units, tries, found = 460, 300, 0
    unsure_U = np.arange(units) < units // 5
    by_items = (0.05 / units) ** 0.5
    luck = ((10**0.5 * RESIDUAL / 100) ** 2 - by_items**2) ** 0.5 / 0.2
    errors = []
    for number in range(tries):
        sides = np.ones((2, 3, units, 3), np.int64)
        chance_2xSxU = np.where(unsure_U, 0.5 + generator.normal(0, luck, (2, 3, 1)), 1)
        sides[..., 0] = generator.random((2, 3, units)) < chance_2xSxU
        [difference] = paired(METRICS['default'], [sides[0]], [sides[1]], resamples=200, seed=number)
        errors.append(100 * difference.bootstrapped_R.std() / 10**0.5)
        found += difference.p < 0.05
    assert np.mean(errors) == pytest.approx(0.27, abs=0.02)  # as in the sweep
    assert 0.10 < found / tries < 0.22
