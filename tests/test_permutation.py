"""The seeded order of rows: a permutation of any number of them, the one that grain 0.2.18 has, in whole batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioptimus_jax.pretrain.order import Order, unmixed
from bioptimus_jax.pretrain.permutation import Epochs, permuted, round_keys

GRAINS = {
    (10, 7): [4, 0, 3, 7, 2, 9, 6, 8, 1, 5],
    (300, 0): [134, 133, 10, 287, 149, 273, 161, 115, 144, 294],
    (65_536, 7): [8812, 17398, 45604, 57751, 64428, 55397, 36544, 58272, 4760, 20879],
    (71_346, 4_294_967_295): [4613, 66028, 67352, 46723, 34976, 66539, 43132, 49965, 38428, 31432],
    (50_000_000, 7): [
        40636273,
        23071338,
        3681350,
        19933532,
        38632235,
        34294052,
        48405818,
        37158578,
        49454872,
        768741,
    ],
}
"""(rows, seed) -> where `grain.experimental.index_shuffle` with four rounds takes the first and the last five rows."""


@pytest.mark.parametrize(('rows', 'seed'), GRAINS)
def test_rows_go_where_grain_takes_them(rows, seed):
    places = np.r_[0:5, rows - 5 : rows]
    assert permuted(places, rows, seed).tolist() == GRAINS[rows, seed]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 2**32 - 1))
def test_every_row_is_taken_once(rows, seed):
    assert sorted(permuted(np.arange(rows), rows, seed).tolist()) == list(range(rows))


@pytest.mark.parametrize('rows', [65_535, 65_536, 65_537, 65_538, 262_144, 262_145])
def test_no_row_is_lost_where_the_cipher_needs_more_bits(rows):
    """There grain leaves one row out and reads another twice (findings/grain-shuffle.sh)."""
    found = np.zeros(rows, bool)
    found[permuted(np.arange(rows), rows, 7)] = True
    assert found.all()


def test_epochs_have_orders_of_their_own_and_a_batch_may_reach_into_the_next():
    order = Epochs(70_000, 3)
    whole = order(np.arange(3 * 70_000))
    first, second, third = whole.reshape(3, -1)
    for one, other in ((first, second), (second, third)):
        assert sorted(one) == sorted(other) == list(range(70_000))
        assert (one == other).mean() < 1e-3
    assert order(np.arange(69_990, 70_010)).tolist() == whole[69_990:70_010].tolist()
    assert (Epochs(70_000, 4)(np.arange(1000)) == first[:1000]).mean() < 1e-2


def test_rows_are_mixed_evenly():
    """Each tenth of the places goes to all tenths of the rows alike: chi-squared, 81 degrees of freedom, p > .001."""
    rows = permuted(np.arange(100_000), 100_000, 11)
    counts, _, _ = np.histogram2d(np.arange(100_000), rows, bins=10)
    assert ((counts - 1000) ** 2 / 1000).sum() < 126


def test_keys_are_those_of_the_standard_library_of_cpp():
    """std::seed_seq{7}, of which four words were written by a C++ program."""
    assert round_keys(7) == [3058802511, 457619115, 2864960031, 537765756]


def test_a_batch_of_the_only_corpus_is_a_slice_of_its_epochs():
    order = Order([300], 5, unmixed(8))
    assert order(41).tolist() == Epochs(300, 5)(np.arange(41 * 8, 42 * 8)).tolist()
