"""Rows from characters: n-grams by hand, the solution of scikit-learn, no token teaches itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from bioptimus_jax.surgery import spelling


def test_grams_by_hand():
    assert spelling.grams('<ab>') == {'<', 'a', 'b', '>', '<a', 'ab', 'b>', '<ab', 'ab>', '<ab>'}
    assert spelling.grams('a>') == {'a', '>', 'a>'}
    assert max(map(len, spelling.grams('<naloxone>'))) == spelling.LONGEST


@pytest.fixture(scope='module')
def words():
    generator = np.random.default_rng(0)
    stems = [''.join(generator.choice(list('abcdefgh'), 4)) for _ in range(60)]
    texts = [f'<{stem}{end}>' for stem in dict.fromkeys(stems) for end in ('', 's', 'ed')]
    of_gram = {g: generator.normal(size=5) for g in sorted({g for t in texts for g in spelling.grams(t)})}
    return texts, np.array([np.sum([of_gram[g] for g in sorted(spelling.grams(t))], axis=0) for t in texts])


def test_it_is_the_ridge_regression_of_another_library(words):
    texts, rows_VxD = words
    names = sorted({gram for text in texts for gram in spelling.grams(text)})
    assert len(names) < spelling.GRAMS
    dense = np.array([[gram in spelling.grams(text) for gram in names] for text in texts], float)
    dense /= np.linalg.norm(dense, axis=1, keepdims=True)
    other = Ridge(spelling.RIDGE, fit_intercept=False).fit(dense, rows_VxD - rows_VxD.mean(axis=0))
    expected = other.predict(dense) + rows_VxD.mean(axis=0)
    np.testing.assert_allclose(spelling.fitted(texts, rows_VxD)(texts), expected, rtol=1e-8)


def test_a_token_that_shares_nothing_gets_the_mean_row(words):
    texts, rows_VxD = words
    [row] = spelling.fitted([t[:-1] for t in texts], rows_VxD)(['ωψ'])
    np.testing.assert_allclose(row, rows_VxD.mean(axis=0))


def test_a_known_token_is_predicted_without_its_own_row(words):
    texts, rows_VxD = words
    wanted = np.arange(0, len(texts), 3)
    before = spelling.crossed(texts, rows_VxD, wanted, 0)
    other = rows_VxD.copy()
    other[wanted[0]] += 100  # the mean moves, and what the others learn of its grams; not what it gets itself
    after = spelling.crossed(texts, other, wanted, 0)
    np.testing.assert_array_equal(before[0], after[0])
    assert np.abs(before[1:] - after[1:]).max() > 0.1
    right = np.linalg.norm(before - rows_VxD[wanted], axis=1).mean()
    wrong = np.linalg.norm(before - rows_VxD[np.roll(wanted, 1)], axis=1).mean()
    assert right < 0.7 * wrong


@given(st.lists(st.text(max_size=9), min_size=1, max_size=8, unique=True))
def test_any_text_has_finite_rows_and_the_same_ones_in_any_order(texts):
    rows_VxD = np.arange(len(texts) * 2.0).reshape(-1, 2)
    made = spelling.fitted(texts, rows_VxD)(texts)
    assert np.isfinite(made).all()
    again = spelling.fitted(texts[::-1], rows_VxD[::-1])(texts)
    np.testing.assert_allclose(made, again, atol=1e-8)
