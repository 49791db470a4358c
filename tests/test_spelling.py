"""Rows from characters: n-grams by hand, the solution of scikit-learn, no token teaches itself."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from toy_source import TABLE, WORD, built, make_run, make_source
from toy_spelling import FOUND, NEW, SPELLING, WORDS, occurrences

from bioptimus_jax.surgery import recovery, shared, spelling
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.material import gather
from bioptimus_jax.surgery.source import sum_states
from bioptimus_jax.surgery.synthesis import make
from bioptimus_jax.vocab.contexts import TokenContexts


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


def test_few_tokens_are_predicted_without_decomposing_all_grams_and_alike(words, monkeypatch):
    texts, rows_VxD = words
    predict = spelling.fitted(texts, rows_VxD)
    every = predict(texts)

    def decomposed(*given, **named):
        raise AssertionError('all n-grams were decomposed')

    monkeypatch.setattr('scipy.linalg.solve', decomposed)
    monkeypatch.setattr(spelling, 'GRAMS_FOR_ONE', 1)
    np.testing.assert_allclose(predict(texts), every, rtol=0, atol=1e-11)
    assert predict([]).shape == (0, rows_VxD.shape[1])


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


def test_likeness_by_hand():
    # <ab> and <ac> have ten n-grams each, and share <, a, > and <a.
    known = ['<ab>', '<zz>', 'q>']
    np.testing.assert_allclose(spelling.likeness(['<ab>', '<ac>', 'ωω'], known), [1, 0.4, 0])
    assert len(spelling.likeness([], known)) == 0


def test_weights_make_one_spread_of_likeness_like_another():
    draw = np.random.default_rng(0)
    here, there = draw.uniform(0.3, 1, 400), draw.uniform(0, 1, 500)
    weights = recovery.weights_like(here, there)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    edges = np.quantile(there, [0.2, 0.4, 0.6, 0.8])
    shares = np.bincount(np.searchsorted(edges, here, side='right'), weights, minlength=5)
    assert shares == pytest.approx([0, 0.25, 0.25, 0.25, 0.25])  # none of them is in the lowest fifth
    measured = {name: np.array([1.0, 2, 3, 4]) for name in recovery.MEASURES}
    summary = recovery.summary(measured, {}, 0, np.array([0.1, 0.1, 0.2, 0.6]))
    assert (summary.rank[0], summary.rank_weighted[0]) == (2.5, 4)
    equal = recovery.summary(measured, {}, 0, np.full(4, 0.25))
    assert equal.rank_weighted[0] == 2  # half of the weight is reached here
    assert recovery.summary(measured, {}, 0).rank_weighted is None


LETTERS_TOO = list(dict.fromkeys([*SPELLING, *WORDS[4:9], 'lymph', '##oma', 'kin', '##ase']))


def test_the_stage_writes_what_characters_predict(tmp_path):
    source = make_source(SPELLING)
    flat, report, tokens = built(make_run(tmp_path, source, NEW, FOUND, surgery__strategy='spelled'))
    assert report['strategy'] == 'spelled'
    known = source.subwords.drawn_N
    predict = spelling.fitted(spelling.with_borders(source.subwords, known), source.table()[known])
    for token in (t for t in NEW if t not in SPELLING and source.subwords.spell_token(t)):
        [expected] = predict([f'{"" if token.startswith("##") else "<"}{token.removeprefix("##")}>'])
        np.testing.assert_allclose(flat[TABLE][NEW.index(token)], expected, atol=1e-5)
    assert {t['kind'] for t in tokens} == {'copied', 'synthesised'}


def test_the_spelled_map_is_a_ridge_regression_of_states_beside_predicted_rows(monkeypatch):
    source = make_source(LETTERS_TOO, layers=2)
    monkeypatch.setattr(shared, 'RESPELLED_FOLDS', 1)
    settings = Surgery(map='spelled', scale='literal', shrinkage=0.0)
    contexts = TokenContexts(*_contexts(occurrences(WORD)))

    def sums(source_, read, layers, label):
        return sum_states(source_, read, 64, layers=layers)

    spelled_by = [source.subwords.spell_token(WORD)]
    written = [f'<{WORD}>']
    material = gather(source, [WORD], spelled_by, contexts, [settings], 0, sums, written)
    [one] = [make(settings, material, 0)]
    states_MxD, rows_MxD = material.pairs(material.respelled, settings)
    blocks = [states_MxD, material.spelled.anchors]
    scales = [np.sqrt(block.var(axis=0).mean()) for block in blocks]
    known = np.hstack([block / scale for block, scale in zip(blocks, scales, strict=True)])
    eigenvalues = np.linalg.eigvalsh(np.cov(known.T, bias=True) * len(known))
    other = Ridge(one.map.ridge * eigenvalues.mean()).fit(known, rows_MxD)
    inputs = material.inputs(settings, 0)
    new = np.hstack([inputs.sums / inputs.contexts[:, None] / scales[0], material.spelled.rows / scales[1]])
    np.testing.assert_allclose(one.rows, other.predict(new), rtol=1e-6)
    plain = make(dataclasses.replace(settings, map='respelled'), material, 0)
    assert not np.allclose(one.rows, plain.rows, rtol=0.01)


def _contexts(found):
    sentences = sorted({o[1] for o in found})
    columns = [np.array([o[i] for o in found]) for i in (2, 3, 4)]
    return sentences, [o[0] for o in found], np.array([sentences.index(o[1]) for o in found]), *columns


def test_hidden_tokens_teach_nothing():
    source = make_source(LETTERS_TOO)
    hidden = sorted(source.subwords.kind.respellable(source.subwords))[:3]
    without = source.subwords.without(hidden)
    assert set(source.subwords.drawn_N) - set(without.drawn_N) == set(hidden)
    table = np.array(source.table())
    before = spelling.spelled(without, table, ['<bro>'], np.zeros(0, np.int64), 0).rows
    table[hidden] += 100
    np.testing.assert_array_equal(
        before, spelling.spelled(without, table, ['<bro>'], np.zeros(0, np.int64), 0).rows
    )
