"""The one comparer: from scores by set, model and seeds to comparisons, over trainings and on other items."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import bioptimus_jax
from bioptimus_jax.scoring.comparison import Contrast, Pairing, compare, holm, paired_differences
from bioptimus_jax.scoring.resampling import macro, paired
from bioptimus_jax.scoring.score import METRICS

A = {'genes': (60.0, 61.5, 60.4), 'drugs': (70.2, 71.0, 69.1)}
B = {'genes': (62.5, 62.9, 63.1), 'drugs': (70.9, 71.2, 70.3)}
SETS = tuple(A)
EACH = [Contrast('b', 'a', (name,)) for name in SETS]
MEAN = Contrast('b', 'a', SETS)


def by_seed(values):
    return {(seed,): value for seed, value in enumerate(values)}


def scores(**more):
    return {name: {'a': by_seed(A[name]), 'b': by_seed(B[name]), **more} for name in SETS}


def pairing(dataset, text, seed):
    gold, metric = np.random.default_rng(0).poisson(1.0, 30), METRICS['default']
    found = np.random.default_rng(seed).binomial(gold, 0.8, (2, 3, 30))
    sides = np.stack([found, np.broadcast_to(gold, found.shape), found], -1)
    return Pairing(dataset, metric, (0, 1, 2), 'sentences', text, *sides)


def test_over_trainings_it_is_scipys_paired_test_and_single_sets_are_corrected_apart_from_means():
    *of_sets, mean = compare(scores(), [*EACH, MEAN])
    tests = [stats.ttest_rel(B[name], A[name]) for name in SETS]
    assert [one.over_trainings.p for one in of_sets] == pytest.approx([test.pvalue for test in tests])
    low, high = sorted(test.pvalue for test in tests)
    corrected = {low: 2 * low, high: max(2 * low, high)}
    assert [one.over_trainings.holm for one in of_sets] == pytest.approx(
        [corrected[test.pvalue] for test in tests]
    )
    assert of_sets[0].by_seed == pytest.approx(np.subtract(B['genes'], A['genes']))
    over_all = stats.ttest_rel(*(np.mean(list(side.values()), 0) for side in (B, A)))
    assert (mean.name, mean.sets) == ('mean of the sets', SETS)
    assert mean.over_trainings.p == mean.over_trainings.holm == pytest.approx(over_all.pvalue)
    assert mean.over_trainings.ends == pytest.approx(tuple(over_all.confidence_interval()))
    assert (of_sets[0].over_trainings.sign, of_sets[1].over_trainings.sign) == (
        int(corrected[tests[0].pvalue] < 0.05),
        int(corrected[tests[1].pvalue] < 0.05),
    )
    assert mean.on_items is None


def test_fine_tunings_of_a_training_are_one_and_noise_is_that_of_all_models():
    twice = {
        name: {
            (seed, tuned): value + way
            for seed, value in enumerate(A[name])
            for tuned, way in ((0, -1), (1, 1))
        }
        for name in SETS
    }
    given = {name: {**of_set, 'a': twice[name]} for name, of_set in scores().items()}
    given = {
        name: {**s, 'b': {(k[0], t): v for k, v in s['b'].items() for t in (0, 1)}}
        for name, s in given.items()
    }
    for one, other in zip(compare(given, [*EACH, MEAN]), compare(scores(), [*EACH, MEAN]), strict=True):
        assert one.over_trainings.p == pytest.approx(other.over_trainings.p)
        assert one.by_seed == pytest.approx(other.by_seed)
    [pooled, _] = compare(scores(c=by_seed((50.0, 51.0, 50.2))), EACH)
    assert pooled.over_trainings.freedom == 4


def test_fine_tunings_that_one_model_alone_has_do_not_count():
    model = {(0, 0): 1.0, (0, 1): 3.0, (1, 0): 2.0}
    reference = {(0, 0): 0.0, (1, 0): 1.5, (1, 1): 9.0}
    [one] = compare({'x': {'a': reference, 'b': model}}, [Contrast('b', 'a', ('x',))])
    assert one.by_seed == (1.0, 0.5)
    assert one.over_trainings.observed == pytest.approx(0.75)


def test_a_model_without_a_seed_of_training_is_beside_all_of_them_and_not_tested():
    given = {
        'genes': {'a': {(None, 5): 60.0, (None, 6): 61.0}, 'b': {(0, 5): 62.0, (1, 5): 63.0, (1, 6): 65.0}}
    }
    [one] = compare(given, EACH[:1])
    assert one.by_seed == (2.0, 3.5)
    assert (one.over_trainings.observed, one.over_trainings.p, one.over_trainings.untested) == (
        2.75,
        None,
        'one seed',
    )
    assert np.isnan(one.over_trainings.ends).all()


def test_what_no_seed_links_is_left_out_and_sets_of_other_seeds_have_a_mean_without_a_test():
    assert compare({'genes': {'a': {(0,): 60.0}, 'b': {(1,): 61.0}}}, EACH[:1]) == []
    apart = {'genes': scores()['genes'], 'drugs': {x: {(7,): s} for x, s in (('a', 70.0), ('b', 72.0))}}
    [mean] = compare(apart, [MEAN])
    genes = np.mean(np.subtract(B['genes'], A['genes']))
    assert mean.over_trainings.observed == pytest.approx((genes + 2) / 2)
    assert (mean.over_trainings.p, mean.over_trainings.untested) == (None, 'no seed has all sets')


def test_on_other_items_sets_of_one_text_are_drawn_together_and_a_mean_needs_all_sets():
    known = [pairing('genes', 'one text', 1), pairing('drugs', 'another', 2), pairing('both', 'one text', 3)]
    given = {**scores(), 'both': scores()['genes']}
    asked = [*EACH, Contrast('b', 'a', ('both',)), MEAN]
    *of_sets, mean = compare(given, asked, {('b', 'a'): known})
    first, second, third = ((p.reference_SxUxC, p.model_SxUxC) for p in known)
    together = paired(METRICS['default'], [first[0], third[0]], [first[1], third[1]], seed=0)
    [alone] = paired(METRICS['default'], [second[0]], [second[1]], seed=1)
    expected = [together[0], alone, together[1], macro([together[0], alone])]
    found = [one.on_items for one in (*of_sets, mean)]
    assert [effect.p for effect in found] == [difference.p for difference in expected]
    assert [effect.ends for effect in found] == [tuple(100 * x for x in d.interval) for d in expected]
    assert found[-1].holm == found[-1].p
    assert [effect.holm for effect in found[:3]] == holm([effect.p for effect in found[:3]])
    assert compare(given, [MEAN], {('b', 'a'): known[:1]})[0].on_items is None


def test_differences_are_of_the_seeds_that_both_have_and_have_no_nan():
    assert paired_differences({0: 5.0, 1: 7.0, 2: np.nan, 3: 1.0}, {1: 6.5, 0: 5.5, 2: 1.0}) == [-0.5, 0.5]


def test_nobody_else_tests_or_corrects():
    package = Path(bioptimus_jax.__file__).parent
    own = {'comparison.py', 'student.py', 'resampling.py'}
    statistics = re.compile(
        r'\b(?:TwoWay|holm|permutation_test|ttest_\w+)\(|resampling import .*\b(?:paired|macro)\b'
    )
    others = {
        str(file.relative_to(package)): found
        for file in package.rglob('*.py')
        if (found := statistics.findall(file.read_text('utf-8')))
        and not (file.parent.name == 'scoring' and file.name in own)
    }
    assert others == {}
