"""Rows: nothing lost, best fit, cuts at sentences and words, the same for any number of workers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bioptimus_jax.rows.blocks import positions_and_segments
from bioptimus_jax.rows.packing import best_fit
from bioptimus_jax.rows.parts import cut_points
from bioptimus_jax.rows.words import white_space_starts


@settings(max_examples=60)
@given(st.lists(st.integers(3, 64), max_size=200))
def test_best_fit_places_every_part_once_and_never_overfills(lengths):
    rows = best_fit(lengths, 64)
    assert sorted(part for row in rows for part in row) == list(range(len(lengths)))
    assert all(sum(lengths[part] for part in row) <= 64 for row in rows)


def test_best_fit_takes_the_tightest_row():
    # 60 and 50 open rows with 4 and 14 left; 12 fits the second only, 4 then fits the first exactly.
    assert best_fit([60, 50, 12, 4], 64) == [[0, 3], [1, 2]]
    assert best_fit([61, 3], 64) == [[0, 1]]  # [CLS] piece [SEP], the shortest document


@settings(max_examples=60)
@given(st.integers(1, 300), st.integers(4, 40), st.integers(0, 2**31))
def test_cut_points_cover_the_document_without_gap(length, limit, seed):
    rng = np.random.default_rng(seed)
    tokens, starts = rng.integers(0, 20, length), rng.random(length) < 0.6
    spans = list(cut_points(tokens, starts, np.arange(20) == 7, limit))
    assert [b for b, _ in spans] == [0, *[e for _, e in spans[:-1]]]
    assert spans[-1][1] == length
    assert all(0 < e - b <= limit for b, e in spans)


def test_cut_points_prefer_sentence_ends_then_words():
    period = np.arange(10) == 9
    tokens = np.array([1, 1, 1, 1, 1, 9, 2, 2, 2, 2, 2, 2])
    every = np.ones(12, bool)
    assert list(cut_points(tokens, every, period, 8)) == [(0, 6), (6, 12)]
    no_period = np.where(tokens == 9, 1, tokens)
    inside_word = every.copy()
    inside_word[8] = False
    assert list(cut_points(no_period, inside_word, period, 8)) == [(0, 7), (7, 12)]


def test_positions_restart_and_padding_is_segment_zero():
    for xp in (np,):
        positions, segments = positions_and_segments(np.array([[3, 2, 0], [8, 0, 0]]), 8, xp)
        assert positions.tolist() == [[0, 1, 2, 0, 1, 0, 0, 0], list(range(8))]
        assert segments.tolist() == [[1, 1, 1, 2, 2, 0, 0, 0], [1] * 8]


def test_white_space_starts():
    text = 'beta-catenin (APC)'
    offsets = [(0, 4), (4, 5), (5, 12), (13, 14), (14, 17), (17, 18)]
    assert white_space_starts(text, offsets).tolist() == [True, False, False, True, False, False]
