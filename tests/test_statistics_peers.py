"""Every statistic of scores against scipy, scikit-learn or all that can happen, on 1,000 random inputs each.

Among them are ties, constants, resamples without anything in them, and one seed. Shapes: I inputs, N items, U units.
"""

import itertools
import warnings

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from bioptimus_jax.finetuning.texts.measures import measure
from bioptimus_jax.scoring import student
from bioptimus_jax.scoring.comparison import holm
from bioptimus_jax.scoring.metrics import rates
from bioptimus_jax.scoring.resampling import bootstrap, mean_score, paired, percentile_interval
from bioptimus_jax.scoring.score import METRICS

INPUTS = 1000
ENTITY_F1 = METRICS['default']
UNLIKELY = 1e-7
"""How often a right test may be further from what is exact, for one of all inputs."""


def off(draws):
    """How far shares of so many draws may be from what they estimate (Dvoretzky, Kiefer, Wolfowitz)."""
    return (np.log(2 / UNLIKELY) / (2 * draws)) ** 0.5


def answers(values):
    return [(value,) for value in values.tolist()]


def numbers(generator, size, kind):
    """Rows of plain numbers, of ties, that hardly differ, or some of which are constant."""
    rows_IxN = generator.normal(size=(INPUTS // 20, size))
    if kind == 'ties':
        return rows_IxN.round()
    if kind == 'near':
        return 738000 + 1e-3 * rows_IxN
    if kind == 'constant':
        return np.where(generator.random((len(rows_IxN), 1)) < 0.5, 0.1, rows_IxN)
    return rows_IxN


@pytest.mark.parametrize('name', ['pearson', 'spearman'])
def test_correlations_are_scipys(name):
    r, theirs, generator = measure(name, ()), getattr(scipy.stats, f'{name}r'), np.random.default_rng(0)
    for size, kind in itertools.product((3, 4, 6, 9, 30), ('plain', 'ties', 'near', 'constant')):
        x_IxN, y_IxN = numbers(generator, size, kind), numbers(generator, size, kind)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # of constants
            theirs_I = [theirs(x, y).statistic for x, y in zip(x_IxN, y_IxN)]
        sums_Ix6 = np.stack([r.counts(answers(x), answers(y)).sum(0) for x, y in zip(x_IxN, y_IxN)])
        np.testing.assert_allclose(r.value(sums_Ix6), theirs_I, atol=1e-9)
        assert np.isnan(theirs_I).any() >= (kind == 'constant')
        assert not np.isnan(theirs_I).all()


def test_correlations_of_resamples_are_scipys_of_the_drawn_items():
    r, generator = measure('pearson', ()), np.random.default_rng(1)
    for kind in ('plain', 'ties', 'near', 'constant'):
        x_IxN, y_IxN = (numbers(generator, 6, kind) for _ in range(2))
        for x_N, y_N in zip(x_IxN, y_IxN):
            drawn_RxN = generator.integers(0, 6, (INPUTS // 200, 6))
            sums_Rx6 = r.counts(answers(x_N), answers(y_N))[drawn_RxN].sum(1)
            with warnings.catch_warnings():
                warnings.simplefilter('ignore')
                theirs_R = scipy.stats.pearsonr(x_N[drawn_RxN], y_N[drawn_RxN], axis=1).statistic
            np.testing.assert_allclose(r.value(sums_Rx6), theirs_R, atol=1e-7)


@pytest.mark.parametrize('items', [1, 4, 12])
def test_f1_accuracy_precision_and_recall_are_those_of_scikit_learn(items):
    generator, labels = np.random.default_rng(items), ('a', 'b', 'c')
    gold_IxN, given_IxN = generator.choice([*labels, 'none'], (2, INPUTS, items), p=(0.3, 0.2, 0.02, 0.48))
    sides = [np.stack([side == label for label in labels], -1) for side in (gold_IxN, given_IxN)]
    # A column for each input and label: scikit-learn scores them all at once.
    columns = [side.transpose(1, 0, 2).reshape(items, -1) for side in sides]
    one, two = ({'average': None, 'zero_division': x} for x in (np.nan, 0.0))
    theirs_IxK = sklearn.metrics.f1_score(*columns, **one).reshape(INPUTS, -1)
    precision, recall = (
        of(*columns, **two).reshape(INPUTS, -1)
        for of in (sklearn.metrics.precision_score, sklearn.metrics.recall_score)
    )
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # where nothing has a label
        macro_I = np.nanmean(theirs_IxK, 1)
    found = {
        name: [
            of.value(of.counts(answers(gold), answers(given)).sum(0))
            for gold, given in zip(gold_IxN, given_IxN)
        ]
        for name, of in (
            ('a', measure('micro_f1', ('a',))),
            ('macro', measure('macro_f1', labels)),
            ('accuracy', measure('accuracy', ())),
        )
    }
    np.testing.assert_allclose(found['a'], theirs_IxK[:, 0])
    np.testing.assert_allclose(found['macro'], macro_I)
    np.testing.assert_allclose(found['accuracy'], (gold_IxN == given_IxN).mean(1))
    sums_Ix3 = np.stack([(sides[0] & sides[1]).sum(1), sides[0].sum(1), sides[1].sum(1)], -1)[:, 0]
    shown = [rates(*row) for row in sums_Ix3.tolist()]
    np.testing.assert_allclose([x['precision'] for x in shown], precision[:, 0])
    np.testing.assert_allclose([x['recall'] for x in shown], recall[:, 0])
    np.testing.assert_allclose([x['f1'] for x in shown], np.nan_to_num(theirs_IxK[:, 0]))


def units(generator, seeds, of=4):
    """counts_SxUx3 over one gold standard; many units have nothing."""
    gold_U = generator.poisson(0.5, of)
    found_SxU = generator.binomial(gold_U, 0.7, (seeds, of))
    return np.stack(
        [found_SxU, np.tile(gold_U, (seeds, 1)), found_SxU + generator.poisson(0.2, (seeds, of))], -1
    )


def f1_of_all(sums_xSx3):
    """The mean over seeds; NaN where one of them has nothing."""
    with np.errstate(invalid='ignore'):
        return (2 * sums_xSx3[..., 0] / (sums_xSx3[..., 1] + sums_xSx3[..., 2])).mean(-1)


def test_the_bootstrap_has_the_distribution_of_all_that_can_be_drawn():
    """Four units have 256 draws, as likely as each other."""
    generator, draws = np.random.default_rng(2), 400
    times_RxU = np.stack([np.bincount(x, minlength=4) for x in itertools.product(range(4), repeat=4)])
    some = 0
    for at in range(INPUTS):
        counts = units(generator, seeds=1 + at % 3)
        every_R = f1_of_all(np.einsum('ru,suc->rsc', times_RxU, counts))
        drawn_R = bootstrap(ENTITY_F1, counts, draws, seed=at)
        assert np.isnan(drawn_R).mean() == pytest.approx(np.isnan(every_R).mean(), abs=off(draws))
        some += 0 < np.isnan(every_R).mean() < 1
        # Both as steps at all values that there are; what has no value is above all of them.
        ends = np.unique(every_R[~np.isnan(every_R)]) + 1e-9
        shares = [
            np.searchsorted(np.sort(np.nan_to_num(x, nan=9.0)), ends) / len(x) for x in (every_R, drawn_R)
        ]
        assert np.abs(shares[0] - shares[1]).max(initial=0) < off(draws)
    assert some > INPUTS / 10, 'too few inputs have resamples without anything'


def test_intervals_are_the_quantiles_of_scipy():
    generator = np.random.default_rng(3)
    values_IxR = generator.normal(size=(INPUTS, 25)).round(1)
    values_IxR[generator.random(values_IxR.shape) < 0.2] = np.nan
    values_IxR[:10] = np.nan
    values_IxR[10:20] = 0.5
    tails = np.array([[0.025], [0.975]])
    theirs_2xI = scipy.stats.quantile(values_IxR.T, tails, axis=0, nan_policy='omit')
    np.testing.assert_allclose([percentile_interval(row) for row in values_IxR], theirs_2xI.T, atol=1e-12)


def test_holm_is_the_closed_test_of_bonferroni():
    """A hypothesis is rejected where every set of hypotheses with it in is, so its p is the largest of theirs."""
    generator = np.random.default_rng(4)
    for size in (1, 2, 3, 5, 6):
        p_IxD = (generator.random((INPUTS // 5, size)) ** 3).round(2)  # ties, 0 and 1
        theirs_IxD = np.zeros_like(p_IxD)
        for inside in itertools.product((False, True), repeat=size):
            if any(inside):
                at = np.flatnonzero(inside)
                of_set_I = np.minimum(1, len(at) * p_IxD[:, at].min(1))
                theirs_IxD[:, at] = np.maximum(theirs_IxD[:, at], of_set_I[:, None])
        np.testing.assert_allclose([holm(row) for row in p_IxD.tolist()], theirs_IxD)


def test_two_arms_are_scipys_paired_t_test_or_not_tested():
    generator, tested = np.random.default_rng(5), 0
    for seeds in (1, 2, 3, 5):
        a_IxS, b_IxS = generator.normal(60, 1, (2, INPUTS // 4, seeds)).round(0)
        b_IxS[:20] = a_IxS[:20] + 0.7  # the same difference with every seed
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            theirs = scipy.stats.ttest_rel(b_IxS, a_IxS, axis=1)
            low_I, high_I = theirs.confidence_interval()
        alike_I = np.ptp(b_IxS - a_IxS, axis=1) < 1e-9
        for at, (a, b) in enumerate(zip(a_IxS.tolist(), b_IxS.tolist())):
            effect = student.TwoWay({'a': dict(enumerate(a)), 'b': dict(enumerate(b))}).contrast('b', 'a')
            assert effect.observed == pytest.approx(np.mean(b) - np.mean(a), abs=1e-9)
            if alike_I[at]:
                assert effect.p is None
                assert np.isnan(effect.ends).all()
                assert effect.untested
                continue
            tested += 1
            assert effect.p == pytest.approx(theirs.pvalue[at])
            assert effect.ends == pytest.approx((low_I[at], high_I[at]), abs=1e-9)
    assert tested > INPUTS / 2


def test_arms_that_lack_seeds_are_a_regression():
    """Against least squares of numpy on a design without the first arm and the first seed."""
    generator, tested = np.random.default_rng(6), 0
    for _ in range(INPUTS):
        has_AxS = generator.random((3, 3)) < 0.8
        score_AxS = generator.normal(60, 1, (3, 3)).round(0)
        places = [(int(a), int(s)) for a, s in zip(*has_AxS.nonzero())]
        arms = {a: {s: float(score_AxS[a, s]) for b, s in places if a == b} for a in {a for a, _ in places}}
        if not {0, 1} <= arms.keys():
            continue
        effect = student.TwoWay(arms).contrast(1, 0)
        design = np.array([[1, a == 1, a == 2, s == 1, s == 2] for a, s in places], float)
        solved, _, rank, _ = np.linalg.lstsq(design, np.array([score_AxS[x] for x in places]))
        # The contrast is known if another design of the same span gives the same.
        contrast = np.array([0, 1.0, 0, 0, 0])
        known = np.allclose(np.linalg.lstsq(design.T, contrast)[0] @ design, contrast)
        assert (effect is not None) == known
        if effect is None:
            continue
        assert effect.observed == pytest.approx(solved[1], abs=1e-7)
        left = np.array([score_AxS[x] for x in places]) - design @ solved
        freedom = len(places) - rank
        assert effect.freedom == freedom
        if not freedom or np.abs(left).max() < 1e-9:
            assert effect.p is None
            continue
        error = (left @ left / freedom * (contrast @ np.linalg.pinv(design.T @ design) @ contrast)) ** 0.5
        assert effect.p == pytest.approx(2 * scipy.stats.t.sf(abs(solved[1]) / error, freedom), abs=1e-9)
        tested += 1
    assert tested > INPUTS / 2


def test_intervals_of_a_mean_are_scipys():
    generator = np.random.default_rng(7)
    for size in (2, 3, 5, 20):
        values_IxN = generator.normal(3, 1, (INPUTS // 4, size)).round(1)
        varies_I = np.ptp(values_IxN, axis=1) > 0
        low_I, high_I = scipy.stats.ttest_1samp(values_IxN[varies_I], 0, axis=1).confidence_interval()
        found = [student.interval(row.tolist()) for row in values_IxN[varies_I]]
        np.testing.assert_allclose(
            [(mean - half, mean + half) for mean, half in found], np.stack([low_I, high_I], 1)
        )
    assert student.interval([3.0]) == (3.0, 0.0)


def test_randomisation_has_the_p_of_all_swaps():
    """Four units can change places in 16 ways, all of which are counted here."""
    generator, shuffles = np.random.default_rng(8), 1000
    swaps_RxU = np.array(list(itertools.product((0, 1), repeat=4)))
    for at in range(INPUTS):
        a, b = (units(generator, seeds=1 + at % 2) for _ in range(2))
        b[..., 1] = a[..., 1]
        b[..., 0] = np.minimum(b[..., 0], a[..., 1])
        b[..., 2] = np.maximum(b[..., 2], b[..., 0])
        moved = np.einsum('ru,suc->rsc', swaps_RxU, b - a)
        every_R = f1_of_all(b.sum(1) - moved) - f1_of_all(a.sum(1) + moved)
        every_R = every_R[~np.isnan(every_R)]
        [found] = paired(ENTITY_F1, [a], [b], shuffles, seed=at)
        assert found.observed == pytest.approx(mean_score(ENTITY_F1, b) - mean_score(ENTITY_F1, a))
        exact = np.mean(np.abs(every_R) >= abs(found.observed) - 1e-12) if len(every_R) else 1
        # Where shuffles without a score are left out, fewer are counted.
        counted = max(1, (~np.isnan(found.shuffled_R)).sum())
        assert found.p == pytest.approx(exact, abs=off(counted) + 1 / (counted + 1))
