"""Frozen states: a tagger in closed form against scipy and all paths, states against single sentences."""

import dataclasses
import functools
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from toy_families import SMALL, all_states, noisy
from toy_measures import PHASES

from bioptimus_jax.analysis.config import Analysis
from bioptimus_jax.config.fields import default_of
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.records.manifests import Claim
from bioptimus_jax.run.fingerprint import result_keys
from bioptimus_jax.run.manifests import differences
from bioptimus_jax.scoring import discriminant, frozen
from bioptimus_jax.scoring.score import score
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import from_spans
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

MODELS = ('initial', *PHASES)
LETTERS = 'abcdefghijklmnopqrstuvwxyz'
WORDS = make([*SPECIAL_TOKENS, *LETTERS, *('##' + c for c in LETTERS), 'the', 'drug', 'asp'], lowercase=True)


def sentences_of(number, seed=0, documents=1):
    """Random sentences of one to nine words, some with entities of two types."""
    rng = np.random.default_rng(seed)
    found = []
    for at in range(number):
        words = tuple(
            ''.join(rng.choice(list(LETTERS[:6]), rng.integers(1, 6))) for _ in range(rng.integers(1, 10))
        )
        starts = range(0, len(words) - 1, 3)
        mentions = [
            (str(rng.choice(['X', 'Y'])), i, i + int(rng.integers(2))) for i in starts if rng.random() < 0.6
        ]
        found.append(Sentence(words, from_spans(mentions, len(words)), at * documents // number))
    return found


def words_of(rng, sentences, tags, features):
    """Features, tags and beginnings of random sentences; the states of a tag are around a mean of its own."""
    lengths = rng.integers(1, 8, sentences)
    begins_N = np.zeros(lengths.sum(), bool)
    begins_N[np.cumsum(lengths) - lengths] = True
    tags_N = rng.integers(0, tags, len(begins_N))
    means_KxF = rng.normal(size=(tags, features))
    return means_KxF[tags_N] + rng.normal(size=(len(tags_N), features)), tags_N, begins_N


def test_states_that_tell_the_tags_give_f1_of_1():
    tagged = frozen.Tagged.of(sentences_of(60), WORDS)
    states_NxD = np.eye(8, dtype=np.float32)[tagged.tags_N]
    found = frozen.scored(tagged, states_NxD)
    assert (found['f1'], found['precision'], found['recall']) == (1, 1, 1)
    assert (
        found['gold']
        == score([s.tags for s in sentences_of(60)], [s.gold for s in tagged.sentences])['default']['gold']
        > 20
    )
    assert frozen.scored(tagged, np.zeros_like(states_NxD))['f1'] < 0.5, (
        'states that are all the same tell nothing'
    )


def test_log_likelihoods_are_those_of_normal_distributions_by_scipy():
    features_NxF, tags_N, begins_N = words_of(np.random.default_rng(0), 60, 3, 5)
    tagger = discriminant.Tagger.fitted(
        discriminant.moments(features_NxF, tags_N, begins_N, 4), shrinkage=0.2
    )
    means = [features_NxF[tags_N == tag].mean(0) for tag in range(3)]
    left_NxF = features_NxF - np.stack(means)[tags_N]
    covariance = 0.8 * left_NxF.T @ left_NxF / len(tags_N) + 0.2 * np.eye(5)
    wanted_NxK = np.stack([stats.multivariate_normal(m, covariance).logpdf(features_NxF) for m in means], 1)
    found_NxK = features_NxF @ tagger.weights_FxK + tagger.bias_K
    np.testing.assert_allclose(found_NxK[:, :3] - found_NxK[:, :1], wanted_NxK - wanted_NxK[:, :1], atol=1e-9)
    assert np.isneginf(found_NxK[:, 3]).all(), 'no word has this tag'
    follows = [(a, b) for a, b, begins in zip(tags_N, tags_N[1:], begins_N[1:], strict=False) if not begins]
    rows = [np.bincount([b for a, b in follows if a == tag], minlength=4) + 0.5 for tag in range(4)]
    rows.append(np.bincount(tags_N[begins_N], minlength=4) + 0.5)
    np.testing.assert_allclose(np.exp(tagger.steps_JxK), [row / row.sum() for row in rows])


@given(st.integers(0, 10**6))
@settings(max_examples=8)
def test_the_path_is_the_best_of_all_paths(seed):
    rng = np.random.default_rng(seed)
    features_NxF, tags_N, begins_N = words_of(rng, 5, 3, 2)
    tagger = discriminant.Tagger.fitted(discriminant.moments(features_NxF, tags_N, begins_N, 3))
    found_N = tagger.tags(features_NxF, begins_N)
    scores_NxK = features_NxF @ tagger.weights_FxK + tagger.bias_K
    edges = [*np.flatnonzero(begins_N), len(begins_N)]
    for first, stop in itertools.pairwise(edges):

        def likely(path, first=first):
            steps = [tagger.steps_JxK[a, b] for a, b in itertools.pairwise((3, *path))]
            return sum(steps) + sum(scores_NxK[first + i, tag] for i, tag in enumerate(path))

        best = max(map(likely, itertools.product(range(3), repeat=stop - first)))
        assert likely(found_N[first:stop]) == pytest.approx(best)


@given(st.integers(0, 10**6), st.integers(2, 6))
@settings(max_examples=15)
def test_moments_add_up_and_no_part_is_tagged_by_its_own_tags(seed, parts):
    rng = np.random.default_rng(seed)
    states_NxD, tags_N, begins_N = words_of(rng, 30, 3, 4)
    part_N = (np.cumsum(begins_N) - 1) * parts // 30
    features_NxF = discriminant.with_neighbours(states_NxD, begins_N)
    whole = discriminant.moments(features_NxF, tags_N, begins_N, 3)
    of_parts = [
        discriminant.moments(features_NxF[p], tags_N[p], begins_N[p], 3)
        for p in (part_N == number for number in range(parts))
    ]
    for name, value in dataclasses.asdict(functools.reduce(discriminant.Moments.__add__, of_parts)).items():
        np.testing.assert_allclose(value, getattr(whole, name), atol=1e-9)
    found_N = discriminant.cross_fitted(states_NxD, tags_N, begins_N, part_N, 3)
    last = part_N == parts - 1
    other_N = np.where(last, (tags_N + 1) % 3, tags_N)
    again_N = discriminant.cross_fitted(states_NxD, other_N, begins_N, part_N, 3)
    np.testing.assert_array_equal(found_N[last], again_N[last])


def test_neighbours_are_those_in_the_sentence():
    states_NxD, begins_N = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([True, False, True, False])
    found_NxF = discriminant.with_neighbours(states_NxD, begins_N)
    assert found_NxF.tolist() == [[1, 0, 2], [2, 1, 0], [3, 0, 4], [4, 3, 0]]


# Slow: test_model.py packs documents of every family, and compares them with each alone.
@pytest.mark.parametrize(
    'family', [pytest.param(n, marks=[pytest.mark.slow] * (n not in ('bert', 'deberta-v2'))) for n in SMALL]
)
def test_batches_rows_and_padding_change_no_state(family):
    """Every family: sentences packed into rows, however many, against each sentence alone; one that is cut too."""
    model = noisy(SMALL[family])
    long = Sentence(('abcde',) * 9, ('O',) * 9)
    sentences = [*sentences_of(6, seed=1), long]
    alone = [
        frozen.states(frozen.Tagged.of([s], WORDS, 32), model.architecture, model.params) for s in sentences
    ]
    on_device = jax.device_put(model.params)
    for batch_pieces in (96, 4096):
        tagged = frozen.Tagged.of(sentences, WORDS, 32, batch_pieces)
        found_NxD = frozen.states(tagged, model.architecture, on_device)
        assert found_NxD.shape[0] == sum(len(s.words) for s in sentences)
        assert found_NxD.shape[1] == model.architecture.hidden * min(model.architecture.layers, 2)
        np.testing.assert_allclose(found_NxD, np.concatenate(alone), atol=1e-4)


@pytest.mark.parametrize(
    ('layers', 'which', 'groups'),
    [
        (2, 'halves', [[1], [2]]),
        (3, 'halves', [[1], [2, 3]]),
        (1, 'halves', [[1]]),
        (2, 'upper', [[1, 2]]),
        (3, 'upper', [[1, 2, 3]]),
    ],
)
def test_the_state_has_the_means_of_the_scaled_halves_of_the_layers(layers, which, groups):
    model = noisy(dataclasses.replace(SMALL['bert'], layers=layers))
    tagged = frozen.Tagged.of([Sentence(('abc', '\u200b', 'drug'), ('B-X', 'O', 'O'))], WORDS, 32)
    assert tagged.place_N.tolist() == [0, 2], 'a word without a piece has no state'
    batch = tagged.layout.batch(0)
    rows = {'tokens': batch.tokens_BxL, 'segments': batch.segments_BxL, 'positions': batch.positions_BxL}
    every = [np.asarray(x) for x in all_states(*model, rows)]
    words = [1, 4]  # [CLS] a ##b ##c drug [SEP]
    means = [np.mean([stats.zscore(every[n][0, words], axis=1) for n in group], 0) for group in groups]
    found = frozen.states(tagged, model.architecture, model.params, layers=which)
    np.testing.assert_allclose(found, np.concatenate(means, 1), atol=1e-4)


def test_sentences_are_chosen_by_their_words_and_documents_stay_whole():
    sentences = sentences_of(50, documents=7)
    first = frozen.chosen(sentences, 20)
    assert len(first) == 20
    assert {s.words for s in frozen.chosen(sentences[::-1], 20)} == {s.words for s in first}
    assert set(first) <= set(frozen.chosen(sentences, 30))
    assert [sentences.index(s) for s in first] == sorted(sentences.index(s) for s in first)
    parts = frozen.parts_of(sentences)
    assert sorted(parts) == parts
    assert set(parts) == set(range(frozen.PARTS))
    assert len({(s.document, p) for s, p in zip(sentences, parts, strict=True)}) == 7
    assert frozen.parts_of(sentences_of(10)) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert frozen.scored(frozen.Tagged.of(sentences[:1], WORDS), np.zeros((9, 3)))['predicted'] == 0


def test_a_folder_from_before_the_key_is_up_to_date():
    asked = Claim(config={'analysis.frozen_sentences': Analysis().frozen_sentences})
    default = functools.partial(default_of, Experiment)
    assert not differences(Claim(config={}), asked, default)
    assert differences(asked, Claim(config={'analysis.frozen_sentences': 1000}))
    # Which layers are read is a difference only where any are.
    without, reading = (
        result_keys(
            dataclasses.replace(Experiment(), analysis=Analysis(frozen_sentences=most)), ('analysis',)
        )
        for most in (0, 1000)
    )
    older = {key: value for key, value in reading.items() if key != 'analysis.frozen_layers'}
    assert 'analysis.frozen_layers' not in without
    assert not differences(Claim(config=older), Claim(config=reading), default)
