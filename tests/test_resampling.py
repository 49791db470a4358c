"""Intervals and tests over items: by hand, against loops, and by how often they are wrong."""

import math

import numpy as np
import pytest

from bioptimus_jax.finetuning.config import TASKS
from bioptimus_jax.finetuning.overlap import overlap
from bioptimus_jax.finetuning.predictions import Predicted
from bioptimus_jax.finetuning.texts.measures import measure
from bioptimus_jax.records.statistics import ItemScore
from bioptimus_jax.scoring import resampling
from bioptimus_jax.scoring.comparison import holm
from bioptimus_jax.scoring.resampling import (
    Difference,
    bootstrap,
    macro,
    mean_score,
    paired,
    percentile_interval,
    resampled,
)
from bioptimus_jax.scoring.score import METRICS

ENTITY_F1 = METRICS['default']


def f1(correct, gold, predicted):
    return 2 * correct / (gold + predicted) if gold + predicted else 0.0


def simulate(generator, units, recall, seeds=1, gold=None, spurious=0.2):
    """counts_SxUx3 of a model that finds each gold mention with probability `recall`, alike in all seeds."""
    gold = generator.poisson(1.5, units) if gold is None else gold
    hard = generator.random((1, units)) < 0.3  # units differ, and seeds share what is hard
    found = generator.binomial(gold, np.where(hard, recall - 0.2, recall), (seeds, units))
    return np.stack(
        [found, np.broadcast_to(gold, found.shape), found + generator.poisson(spurious, found.shape)], -1
    )


def test_mean_f1_by_hand():
    seeds = np.array([[[1, 2, 1], [0, 0, 0]], [[0, 1, 1], [2, 2, 2]]])
    assert mean_score(ENTITY_F1, seeds) == pytest.approx((2 / 3 + 4 / 6) / 2)
    assert mean_score(ENTITY_F1, np.zeros((2, 5, 3), int)) == 0


def test_resampling_is_an_explicit_loop_over_drawn_units():
    counts = simulate(np.random.default_rng(3), 60, 0.7, seeds=3)
    counts[:, ::4] = 0  # sentences without a mention
    filled = [u for u in range(60) if counts[:, u].any()]
    generator = np.random.default_rng((5, resampling.BOOTSTRAP))
    drawn = generator.binomial(60, len(filled) / 60, 200)
    indices = iter(generator.integers(0, len(filled), drawn.sum()))
    expected = []
    for number in drawn:
        totals = np.zeros((3, 3), int)
        for _ in range(number):
            totals += counts[:, filled[next(indices)]]
        expected.append(np.mean([f1(*seed) for seed in totals]))
    np.testing.assert_allclose(bootstrap(ENTITY_F1, counts, 200, seed=5), expected, rtol=1e-12)


def test_small_pieces_are_put_together(monkeypatch):
    counts = simulate(np.random.default_rng(0), 50, 0.8, seeds=2)
    whole = resampled(counts, 4000)
    monkeypatch.setattr(resampling, 'CHUNK_CELLS', 1000)
    pieces = resampled(counts, 4000)
    assert pieces.shape == whole.shape == (4000, 2, 3)
    np.testing.assert_allclose(pieces.mean(0), counts.sum(1), rtol=0.02)
    np.testing.assert_allclose(whole.mean(0), counts.sum(1), rtol=0.02)


def counted(metric, gold, predicted):
    return metric.counts([(x,) for x in gold], [(x,) for x in predicted])


LABELS = ('1', 'a', 'b')
RARE = [
    # Three of 100 are positive (GAD's form), of a class, or differ from all others.
    (measure('micro_f1', ('1',)), ['1'] * 3 + ['0'] * 97),
    (measure('macro_f1', LABELS), ['1'] * 3 + ['a', 'b'] * 48 + ['a']),
    (measure('example_f1', LABELS), ['1'] * 3 + ['a'] * 97),
    (measure('pearson', ()), [1.0, 2.0, 3.0] + [0.0] * 97),
    (measure('spearman', ()), [1.0, 2.0, 3.0] + [0.0] * 97),
]


@pytest.mark.parametrize(('metric', 'gold'), RARE, ids=lambda x: getattr(x, 'title', ''))
def test_what_is_all_right_is_so_in_every_resample_that_has_a_score(metric, gold):
    counts_NxC = counted(metric, gold, gold)
    assert percentile_interval(bootstrap(metric, np.stack([counts_NxC] * 2), 500)) == pytest.approx((1, 1))
    assert metric.scores([(x,) for x in gold], [(x,) for x in gold])[metric.name] == pytest.approx(1)
    # Nothing at all has no score inside the bootstrap, and is reported as 0.
    nothing = np.zeros((1, 5, len(metric.columns)))
    assert np.isnan(bootstrap(metric, nothing, 50)).all()
    assert mean_score(metric, nothing) == 0


def test_items_of_a_class_are_scored_in_the_resamples_that_have_some():
    """Three of 100 texts are in the class, two of them right; others count 0, as in `overlap`."""
    inside, right = np.arange(100) < 3, np.arange(100) < 2
    counts_1xNx2 = np.stack([right, inside], -1)[None].astype(np.int64)
    texts = [Predicted((), ('1',), ('1' if at else '0',), 0) for at in range(3)] + [
        Predicted((), ('1',), ())
    ] * 97
    task = TASKS.load('classes').of('own')
    found = overlap(task, [texts], {'text': ['seen'] * 3 + ['unseen'] * 97})
    assert found['text']['seen'] == ItemScore(items=3, score=2 / 3, interval=(0, 1))
    assert overlap(task, [texts], {'text': ['', 'seen', 'seen'] + [''] * 97})['text']['seen'].interval == (
        1,
        1,
    )
    drawn_R = bootstrap(measure('accuracy', ()), counts_1xNx2, 4000)
    some = ~np.isnan(drawn_R)
    assert some.mean() == pytest.approx(1 - 0.97**100, abs=0.01)
    assert drawn_R[some].mean() == pytest.approx(2 / 3, abs=0.03)


def test_a_difference_is_bootstrapped_where_both_have_a_score():
    a = np.zeros((1, 100, 3), np.int64)
    a[:, :3] = 1
    b = a.copy()
    b[:, 0, 0] = b[:, 0, 2] = 0  # misses one of three
    [found] = paired(ENTITY_F1, [a], [b], 4000)
    assert found.observed == pytest.approx(0.8 - 1)
    undefined = np.isnan(found.bootstrapped_R)
    assert undefined.mean() == pytest.approx(0.97**100, abs=0.015)
    assert found.interval[1] == 0
    assert found.p == 1  # one sentence differs: half of all swaps are as large, and so are the others
    # Nothing in gold: one predicts an entity, the other nothing, which has a score of its own in no shuffle.
    a, b = np.zeros((2, 1, 9, 3), np.int64)
    b[0, 4, 2] = 1
    [found] = paired(ENTITY_F1, [a], [b], 100)
    assert (found.observed, found.p) == (0, 1)
    assert all(map(math.isnan, found.interval))
    # The mean over sets has a score where all of them have.
    other = Difference(0.1, np.full(100, 0.2), np.zeros(100))
    assert np.isnan(macro([found, other]).bootstrapped_R).all()


def test_the_interval_covers_the_true_score_about_as_often_as_it_says():
    truth = f1(1.5 * 0.7 * 0.85 + 1.5 * 0.3 * 0.65, 1.5, 1.5 * (0.7 * 0.85 + 0.3 * 0.65) + 0.2)
    covered = 0
    for at in range(300):
        low, high = percentile_interval(
            bootstrap(ENTITY_F1, simulate(np.random.default_rng(at), 150, 0.85, seeds=2), 500)
        )
        covered += low <= truth <= high
    assert 0.90 <= covered / 300 <= 0.985


def test_shuffling_is_an_explicit_loop_over_swapped_units():
    generator = np.random.default_rng(2)
    gold = generator.poisson(1.5, 40)
    a, b = (simulate(generator, 40, recall, 2, gold) for recall in (0.7, 0.8))
    different = [u for u in range(40) if (a[:, u] != b[:, u]).any()]
    swaps = np.random.default_rng((9, resampling.SHUFFLE)).integers(0, 2, (300, len(different)), np.uint8)
    expected = []
    for row in swaps:
        first, second = a.copy(), b.copy()
        for unit, swap in zip(different, row, strict=True):
            if swap:
                first[:, unit], second[:, unit] = b[:, unit], a[:, unit]
        expected.append(mean_score(ENTITY_F1, second) - mean_score(ENTITY_F1, first))
    [result] = paired(ENTITY_F1, [a], [b], 300, seed=9)
    np.testing.assert_allclose(result.shuffled_R, expected, atol=1e-12)
    assert result.observed == pytest.approx(mean_score(ENTITY_F1, b) - mean_score(ENTITY_F1, a))
    extreme = sum(abs(value) >= abs(result.observed) - 1e-12 for value in expected)
    assert result.p == pytest.approx((extreme + 1) / 301)


def test_equal_models_are_called_different_about_one_time_in_twenty():
    wrong = 0
    for at in range(400):
        generator = np.random.default_rng(at)
        gold = generator.poisson(1.5, 120)
        a, b = (simulate(generator, 120, 0.8, 3, gold) for _ in range(2))
        wrong += paired(ENTITY_F1, [a], [b], 300)[0].p < 0.05
    assert 0.02 <= wrong / 400 <= 0.085


def test_a_better_model_is_found():
    generator = np.random.default_rng(0)
    gold = generator.poisson(1.5, 400)
    a, b = (simulate(generator, 400, recall, 3, gold) for recall in (0.75, 0.85))
    [forth], [back] = paired(ENTITY_F1, [a], [b], 2000), paired(ENTITY_F1, [b], [a], 2000)
    assert forth.p == back.p == 1 / 2001
    assert 0 < forth.interval[0] < forth.observed < forth.interval[1]
    assert forth.observed == -back.observed


def test_a_model_does_not_differ_from_itself():
    a = simulate(np.random.default_rng(0), 50, 0.8, 2)
    [same] = paired(ENTITY_F1, [a], [a], 500)
    assert (same.observed, same.p, same.interval) == (0, 1, (0, 0))


def test_the_interval_of_a_difference_is_paired():
    """Two models that share their errors differ by less than either varies."""
    generator = np.random.default_rng(0)
    a = simulate(generator, 300, 0.7)
    b = a.copy()
    b[0, :6, 0] = b[0, :6, 1]
    [result] = paired(ENTITY_F1, [a], [b], 2000)
    alone = percentile_interval(bootstrap(ENTITY_F1, a, 2000))
    assert result.interval[1] - result.interval[0] < 0.5 * (alone[1] - alone[0])
    totals = resampled(np.concatenate([a, b]), 2000)
    expected = [f1(*t[1]) - f1(*t[0]) for t in totals]
    np.testing.assert_allclose(result.bootstrapped_R, expected, atol=1e-12)


def test_seeds_are_drawn_together_and_everything_is_repeatable():
    a = simulate(np.random.default_rng(0), 80, 0.8)
    twice = np.concatenate([a, a])
    np.testing.assert_allclose(bootstrap(ENTITY_F1, twice, 500), bootstrap(ENTITY_F1, a, 500), rtol=1e-12)
    np.testing.assert_array_equal(bootstrap(ENTITY_F1, a, 500), bootstrap(ENTITY_F1, a, 500))
    assert not np.array_equal(bootstrap(ENTITY_F1, a, 500), bootstrap(ENTITY_F1, a, 500, seed=1))


def test_sets_that_share_their_units_are_drawn_together():
    generator = np.random.default_rng(0)
    gold = generator.poisson(1.5, 200)
    a, b = (simulate(generator, 200, recall, 3, gold) for recall in (0.8, 0.82))
    alone = paired(ENTITY_F1, [a], [b], 1000)[0]
    first, second = paired(ENTITY_F1, [a, a[:2]], [b, b[:2]], 1000)
    assert first.observed == pytest.approx(alone.observed)
    assert second.observed == pytest.approx(mean_score(ENTITY_F1, b[:2]) - mean_score(ENTITY_F1, a[:2]))
    # The same set twice says no more than once; two sets with text of their own do.
    [one, same] = paired(ENTITY_F1, [a, a], [b, b], 1000)
    np.testing.assert_allclose(macro([one, same]).bootstrapped_R, one.bootstrapped_R, atol=1e-12)
    assert macro([one, same]).p == pytest.approx(one.p)
    other = paired(ENTITY_F1, [a], [b], 1000, seed=1)[0]
    assert np.std(macro([one, other]).bootstrapped_R) < 0.8 * np.std(one.bootstrapped_R)


def test_macro_by_hand():
    one = Difference(0.1, np.array([0.1, 0.2]), np.array([0.0, -0.1]))
    two = Difference(0.3, np.array([0.3, 0.2]), np.array([0.2, 0.5]))
    mean = macro([one, two])
    assert mean.observed == pytest.approx(0.2)
    np.testing.assert_allclose(mean.bootstrapped_R, [0.2, 0.2])
    np.testing.assert_allclose(mean.shuffled_R, [0.1, 0.2])
    assert mean.p == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ('p', 'expected'),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.6, 0.7], [1, 1]),
        ([0.01, 0.01, 0.9], [0.03, 0.03, 0.9]),
    ],
)
def test_holm_by_hand(p, expected):
    assert holm(p) == pytest.approx(expected)
