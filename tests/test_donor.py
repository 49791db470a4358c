"""Rows with a donor: pursuit and sparsemax by hand and by scikit-learn, word vectors, and the stage."""

import dataclasses
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import orthogonal_mp
from toy_source import SPECIAL, TABLE, WORD, built, make_run, make_source
from toy_spelling import NEW, SPELLING, WORDS, sentences

from bioptimus_jax.corpus.documents import Document, open_documents, write_documents
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model import tensors
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import write_json
from bioptimus_jax.surgery import donor, fasttext, graft, initialisations, pursuit
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.initialisations import Inputs


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Room for the parts of a few tokens: half a million buckets take a second and 600 MB."""
    monkeypatch.setattr(fasttext, 'BUCKETS', 1000)


# --- pursuit ---


def dense(chosen_BxK, weights_BxK, among: int) -> np.ndarray:
    found = np.zeros((len(chosen_BxK), among))
    np.add.at(found, (np.arange(len(found))[:, None], chosen_BxK), weights_BxK)
    return found


def test_pursuit_by_hand():
    anchors = np.array([[1.0, 0, 0], [0, 2, 0], [1, 1, 0], [0, 0, 0.5]])
    vectors = np.array([[3.0, 1, 0], [0, 0, 2], [0, 0, 0]])
    # (3, 1, 0): products 3, 2, 4 and 0, so (1, 1, 0) first; it leaves (1, -1, 0), with products 1, -2: then (0, 2, 0)
    chosen, weights = pursuit.pursue(vectors[:1], anchors, 2)
    assert chosen.tolist() == [[2, 1]]
    np.testing.assert_allclose(weights, [[3, -1]])
    np.testing.assert_allclose(dense(*pursuit.pursue(vectors[:1], anchors, 1), 4), [[0, 0, 2, 0]])
    np.testing.assert_allclose(dense(*pursuit.pursue(vectors, anchors, 3), 4)[1:], [[0, 0, 0, 4], [0] * 4])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 12), st.integers(1, 12))
def test_pursuit_is_that_of_scikit_learn(seed, among, width, most):
    draw = np.random.default_rng(seed)
    anchors, vectors = draw.normal(size=(among, width)), draw.normal(size=(7, width))
    most = min(most, among, width - 1)
    expected = orthogonal_mp(anchors.T, vectors.T, n_nonzero_coefs=most).reshape(among, 7).T
    found = dense(*pursuit.pursue(vectors, anchors, most), among)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert (np.count_nonzero(found, axis=1) <= most).all()


def test_what_is_left_is_orthogonal_to_what_was_chosen_and_a_sum_of_few_is_found():
    draw = np.random.default_rng(1)
    anchors = draw.normal(size=(300, 60))
    true = np.zeros((20, 300))
    for row in true:
        row[draw.choice(300, 4, replace=False)] = draw.choice([-1, 1], 4) * draw.uniform(1, 2, 4)
    found = dense(*pursuit.pursue(true @ anchors, anchors, 12), 300)
    np.testing.assert_allclose(found @ anchors, true @ anchors, atol=1e-9)
    left = draw.normal(size=(20, 60))
    chosen, weights = pursuit.pursue(left, anchors, 12)
    left = left - np.einsum('bk,bke->be', weights, anchors[chosen])
    assert np.abs(np.einsum('be,bke->bk', left, anchors[chosen])).max() < 1e-10
    assert all(len(set(row)) == 12 for row in chosen.tolist())


def test_equal_anchors_and_too_few_of_them_do_no_harm():
    anchors = np.repeat(np.eye(3)[:2], 3, axis=0)
    chosen, weights = pursuit.pursue(np.array([[2.0, 1, 1]]), anchors, 64)
    np.testing.assert_allclose(np.einsum('bk,bke->be', weights, anchors[chosen]), [[2, 1, 0]])
    assert chosen.shape == (1, 3)
    assert np.count_nonzero(weights) == 2


# --- rows ---


def inputs(vectors, anchors, rows, chosen: int = 64) -> Inputs:
    vectors, anchors, rows = (np.array(values, float) for values in (vectors, anchors, rows))
    read = {'donor_vectors': vectors, 'donor_anchors': anchors, 'donor_rows': rows}
    count = len(vectors)
    return Inputs(
        np.zeros((1, rows.shape[1])),
        [[0]] * count,
        np.zeros(count, int),
        Surgery(strategy='omp', anchors=chosen),
        0,
        **read,
    )


def test_focus_by_hand():
    anchors, rows = [[1.0, 0], [0, 5], [-1, 0]], [[1.0, 10], [2, 20], [3, 30]]
    # cosines .6, .8, -.6: the sparsemax of .6 and .8 is .4 and .6
    found = initialisations.focus(inputs([[3.0, 4], [np.nan, np.nan], [0, 9]], anchors, rows))
    np.testing.assert_allclose(found[0], [0.4 * 1 + 0.6 * 2, 0.4 * 10 + 0.6 * 20])
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[2], rows[1])


def test_omp_gives_the_coefficients_to_the_rows(monkeypatch):
    monkeypatch.setattr(pursuit, 'BLOCK', 2)
    draw, done = np.random.default_rng(0), []
    vectors, anchors, rows = (draw.normal(size=size) for size in ((5, 8), (20, 8), (20, 3)))
    vectors[1] = np.nan
    read = dataclasses.replace(inputs(vectors, anchors, rows, chosen=3), advance=done.append)
    found = initialisations.omp(read)
    known = [0, 2, 3, 4]
    expected = orthogonal_mp(anchors.T, vectors[known].T, n_nonzero_coefs=3).T @ rows
    np.testing.assert_allclose(found[known], expected, atol=1e-9)
    assert np.isnan(found[1]).all()
    assert done == [2, 2]
    # If a donor's vectors are the source's rows, turned and stretched, a sum of few rows comes back as it is.
    turn = 3 * np.linalg.qr(draw.normal(size=(8, 8)))[0]
    true = anchors[4] * 2 - anchors[7]
    again = initialisations.omp(inputs(true[None] @ turn, anchors @ turn, anchors, chosen=6))
    np.testing.assert_allclose(again, true[None], atol=1e-9)


# --- word vectors ---


def lines_of(texts: list[str], tokens: list[str]) -> list[np.ndarray]:
    return [np.array([tokens.index(word) for word in text.split()], np.int32) for text in texts]


def pairs(count: int) -> tuple[list[np.ndarray], list[str]]:
    """Lines of two subjects: words of one never occur with words of the other."""
    draw = random.Random(0)
    tokens = [f'{chr(97 + n)}{chr(107 + n)}{chr(98 + n)}' for n in range(12)] + ['rare']
    texts = [' '.join(draw.choices(tokens[(n % 2) :: 2][:6], k=12)) for n in range(count)]
    return lines_of([*texts, 'rare rare'], tokens), tokens


def test_word_vectors_know_what_occurs_together(monkeypatch):
    monkeypatch.setattr(fasttext, 'EPOCHS', 20)
    monkeypatch.setitem(fasttext.SETTINGS, 'sample', 0)  # of twelve words all are frequent
    lines, tokens = pairs(400)
    seen = []
    vectors = fasttext.word_vectors(lines, tokens, 0, seen.append)
    assert vectors.shape == (13, fasttext.DIMENSIONS)
    assert np.isnan(vectors[12]).all()  # it occurs twice
    assert sum(seen) == 20 * sum(map(len, lines))
    unit = initialisations.unit(vectors[:12])
    cosines = unit @ unit.T
    same = (np.arange(12)[:, None] - np.arange(12)) % 2 == 0
    assert cosines[same & ~np.eye(12, dtype=bool)].mean() > cosines[~same].mean() + 0.2


IN_A_PROCESS = """
import hashlib
import numpy as np
from bioptimus_jax.surgery import fasttext
fasttext.BUCKETS = 1000
lines = [np.arange(5, dtype=np.int32) * n % 7 for n in range(60)]
print(hashlib.sha256(fasttext.word_vectors(lines, list('abcdefg'), 5).tobytes()).hexdigest())
"""


def test_word_vectors_are_the_same_in_every_process():
    command = [sys.executable, '-c', IN_A_PROCESS]
    processes = [
        subprocess.Popen(
            command, env=os.environ | {'PYTHONHASHSEED': hash_seed}, stdout=subprocess.PIPE, text=True
        )
        for hash_seed in ('1', '2')
    ]
    one, other = (process.communicate()[0] for process in processes)
    assert len(one.strip()) == 64
    assert one == other
    lines, tokens = pairs(60)
    vectors, again, of_other_seed = (fasttext.word_vectors(lines, tokens, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(vectors, again)
    assert not np.array_equal(vectors, of_other_seed, equal_nan=True)


def test_training_stops_when_it_is_asked_to():
    lines, tokens = pairs(400)
    asked = []

    def stop(pieces: int) -> None:
        asked.append(pieces)
        if len(asked) == 50:
            raise Stopped

    with pytest.raises(Stopped):
        fasttext.word_vectors(lines, tokens, 0, stop)
    assert len(asked) == 50


# --- the stage ---


def with_corpus(run: Run, texts: list[str], content: str = 'corpus') -> Run:
    documents = [Document(f'd{i}', text) for i, text in enumerate(texts)]
    count = write_documents(run.workdir / 'corpus', 'train', documents, 1)
    write_json(run.workdir / 'corpus' / 'manifest.json', {'counts': {'train': count}, 'content': content})
    return run


def known_donor(folder: Path, vocabulary: list[str]) -> tuple[Path, np.ndarray]:
    """A model with the vocabulary, and its rows."""
    made = make_source(vocabulary, hidden=24, layers=2)
    made.subwords.save(folder / 'tokenizer', 32)
    tensors.write_folder(folder / 'donor', made.architecture, made.parameters, folder / 'tokenizer')
    return folder / 'donor', made.table()


OWN = [*SPECIAL, 'the', 'of', 'drug', 'x', WORD, 'lymphoma', 'ββ']


@pytest.mark.parametrize('strategy', ['focus', 'omp'])
def test_a_model_as_donor(strategy, tmp_path):
    folder, table = known_donor(tmp_path, [*SPECIAL, 'lymphoma', 'drug', 'the', 'other', 'x', WORD])
    source = make_source(SPELLING)
    changes = {'surgery__strategy': strategy, 'surgery__donor': folder, 'surgery__scale': 'literal'}
    changes |= {'surgery__anchors': 2} if strategy == 'omp' else {}
    run = make_run(tmp_path / 'run', source, OWN, **changes)
    new, report, records = built(run)
    anchors, vectors = table[[7, 6, 9]], table[[10, 5]]  # the, drug, x; the word, lymphoma
    rows = source.table()[[SPELLING.index(token) for token in ('the', 'drug', 'x')]]
    if strategy == 'omp':
        expected = orthogonal_mp(anchors.T.astype(float), vectors.T.astype(float), n_nonzero_coefs=2).T @ rows
    else:
        cosines = initialisations.unit(vectors) @ initialisations.unit(anchors).T
        expected = initialisations.sparsemax(cosines) @ rows
    np.testing.assert_allclose(new[TABLE][9:11], expected, rtol=1e-5, atol=1e-6)
    assert [record.get('fallback') for record in records[9:]] == [None, None, 'unknown_mean']
    assert report['tokens'] == {'copied': 9, 'synthesised': 3, 'fresh': 0}
    assert str(tmp_path) not in str(report)
    inputs_ = graft.external_inputs(run.config)
    assert {folder / 'config.json', folder / 'model.safetensors'} <= set(inputs_)
    assert STAGES['surgery'].needs(run.config) == ('vocab',)


@pytest.mark.parametrize('strategy', ['focus', 'omp'])
def test_word_vectors_of_the_corpus_in_the_stage(strategy, tmp_path, monkeypatch):
    def run(name: str) -> Run:
        made = make_run(tmp_path / name, make_source(SPELLING), NEW, surgery__strategy=strategy)
        return with_corpus(made, sentences(300))

    one, other = run('a'), run('b')
    assert STAGES['surgery'].needs(one.config) == ('vocab', 'corpus')
    assert graft.external_inputs(one.config) == graft.external_inputs(
        dataclasses.replace(one.config, surgery=Surgery())
    )
    first, _, records = built(one)
    second, _, _ = built(other)
    np.testing.assert_array_equal(first[TABLE], second[TABLE])
    assert [record.get('fallback') for record in records[7:]] == [None, None, 'unknown_mean']
    # the, of and other anchors: letters never occur, so rows are sums of two
    rows = make_source(SPELLING).table()[[SPELLING.index('the'), SPELLING.index('of')]]
    mixed = np.linalg.lstsq(rows.T, first[TABLE][7:9].T, rcond=None)[1]
    assert (mixed < 1e-8).all()

    # What was trained is kept until the stage is done, and is used only for the same corpus.
    def trained(*given):
        raise RuntimeError('trained again')

    monkeypatch.setattr(fasttext, 'word_vectors', trained)
    source = make_source(SPELLING).subwords
    kept = donor.donate(other, source, [WORD, 'lymphoma'])
    assert kept.seconds > 0
    assert kept.vectors.shape == (2, fasttext.DIMENSIONS)
    with_corpus(other, sentences(300)[:-1], 'another')
    with pytest.raises(RuntimeError, match='trained again'):
        donor.donate(other, source, [WORD])


def test_a_large_corpus_is_read_in_part(tmp_path, monkeypatch):
    run = make_run(tmp_path, make_source(SPELLING), NEW, surgery__strategy='focus')
    with_corpus(run, [f'{word} ' * 3 for word in WORDS * 5])
    known = make_source([*NEW, 'drug', 'x']).subwords
    documents = open_documents(run.folder('corpus'), 'train')

    def lines_of():
        return donor.lines_of(documents, known, run.config.seed, run.console.check_stop)

    whole = lines_of()
    monkeypatch.setattr(donor, 'DOCUMENTS', 5)
    monkeypatch.setattr(donor, 'LONGEST', 2)
    in_blocks = lines_of()
    pieces = [np.sort(np.concatenate(lines)) for lines in (whole, in_blocks)]
    np.testing.assert_array_equal(*pieces)
    assert max(map(len, in_blocks)) == 2
    monkeypatch.setattr(donor, 'MOST_PIECES', 20)
    some = lines_of()
    assert 20 <= sum(map(len, some)) < len(pieces[0])


@pytest.mark.parametrize(
    ('changes', 'error', 'message'),
    [
        ({'donor': '/no/where'}, InputError, r'config\.surgery\.donor must name'),
        ({'donor': 'some/model'}, ConfigError, r'set config\.surgery\.donor_revision'),
        ({'anchors': 300}, ConfigError, r'config\.surgery\.anchors: 300, but vectors of the corpus have 300'),
        ({'donor': '{known}', 'anchors': 24}, ConfigError, r'anchors: 24, but .* 24 dim.*set it below 24'),
        (
            {'donor': '{strange}', 'anchors': 2},
            InputError,
            r'know 0 of 3 new tokens and 1 token of the source',
        ),
        (
            {'donor': '{alone}', 'anchors': 2},
            InputError,
            r'know 1 of 3 new tokens and 0 tokens of the source',
        ),
        ({}, InputError, r'the corpus know 0 of 3 new tokens'),
    ],
)
def test_a_donor_that_cannot_help_is_refused(changes, error, message, tmp_path):
    places = {
        'known': known_donor(tmp_path / 'a', NEW)[0],
        'strange': known_donor(tmp_path / 'b', [*SPECIAL, 'the'])[0],
        'alone': known_donor(tmp_path / 'c', [*SPECIAL, WORD])[0],
    }
    changes = {f'surgery__{name}': str(value).format(**places) for name, value in changes.items()}
    run = make_run(tmp_path / 'run', make_source(SPELLING), NEW, surgery__strategy='omp', **changes)
    with_corpus(run, ['the of'] * 9)
    with pytest.raises(error, match=message):
        built(run)


def test_a_missing_package_is_one_line_before_any_work(tmp_path, monkeypatch):
    run = make_run(tmp_path, make_source(SPELLING), NEW, surgery__strategy='focus')
    monkeypatch.setitem(sys.modules, 'gensim', None)
    with pytest.raises(ConfigError, match=r"pip install 'bioptimus-jax\[donor\]', or name a model") as error:
        graft.check(run.config)
    assert '\n' not in str(error.value)
    named = known_donor(tmp_path, NEW)[0]
    graft.check(_with(run.config, donor=str(named)))


def _with(experiment: Experiment, **changes) -> Experiment:
    return dataclasses.replace(experiment, surgery=dataclasses.replace(experiment.surgery, **changes))


# --- what it costs ---
