"""Variants of the paper's initialisation and the comparators: each by hand, and in the stage."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_families import all_states
from toy_source import OLD, SPECIAL, TABLE, WORD, built, contexts_of, ids, make_run, make_source
from toy_spelling import FOUND, NEW, SPELLING, WORDS, occurrences

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run import manifests
from bioptimus_jax.run.fingerprint import StageOfRun
from bioptimus_jax.run.folder import Run
from bioptimus_jax.surgery import bias, initialisations, linear, reading, rows, shared, source
from bioptimus_jax.surgery.config import PAPER_ROWS, Surgery
from bioptimus_jax.surgery.initialisations import INITIALISATIONS, Inputs
from bioptimus_jax.surgery.material import gather
from bioptimus_jax.surgery.synthesis import make
from bioptimus_jax.tokenizer.kinds import wordpiece
from bioptimus_jax.vocab import frequency
from bioptimus_jax.vocab.contexts import TokenContexts


def seen(layers: tuple[int, ...], tokens, positions, slots) -> np.ndarray:
    """States in the slots that show (token id, position), n + 1 times as long in layer n."""
    states = np.stack([tokens, positions], axis=-1).astype(np.float32)
    return in_slots(np.concatenate([(n + 1) * states for n in layers], axis=-1), slots)


def in_slots(states_BxLxD, slots_SxK) -> np.ndarray:
    parts = np.split(np.asarray(states_BxLxD), len(slots_SxK))
    flat = [p.reshape(-1, p.shape[-1])[k] for p, k in zip(parts, np.asarray(slots_SxK), strict=True)]
    return np.concatenate(flat)


@pytest.fixture
def visible(monkeypatch):
    """A source of three layers whose states can be computed by hand."""

    def read(layers, parameters, architecture, dtype, mesh, tokens, segments, positions, slots):
        return seen(layers or (3,), tokens, positions, slots)

    monkeypatch.setattr(source, '_read', read)
    return make_source(OLD, hidden=2, heads=1, layers=3)


def sums(source_, read, layers, label):
    last = tuple(layers) == (source_.architecture.layers,)
    return source.sum_states(source_, read, 64, layers=() if last else layers)


def found(*occurrences: tuple[str, str, int, int, int]) -> TokenContexts:
    """Contexts of (token, sentence, start, end, rank)."""
    sentences = sorted({o[1] for o in occurrences})
    columns = [np.array([o[i] for o in occurrences]) for i in (2, 3, 4)]
    numbers = np.array([sentences.index(o[1]) for o in occurrences])
    return TokenContexts(sentences, [o[0] for o in occurrences], numbers, *columns)


def papers(**changes):
    """The paper's rows, but for the changes."""
    return Surgery(**{**PAPER_ROWS, **changes})


def spelled_by(source_, *tokens):
    return [source_.subwords.spell_token(token) for token in tokens]


def made(source_, contexts, *settings: Surgery, tokens=(WORD,)):
    material = gather(source_, list(tokens), spelled_by(source_, *tokens), contexts, settings, 0, sums)
    return [make(each, material, 0) for each in settings]


# "bronchoconstriction" has the source's ids 5..10; behind "the" they stand at 2..7, at the beginning at 1..6.
PAPER = found((WORD, f'the {WORD} of drugs', 4, 23, 0), (WORD, WORD, 0, 19, 1))


@pytest.mark.parametrize(
    ('changes', 'expected'),
    [
        ({}, (4 * 7.5, 4 * 4.0)),
        ({'layers': (0,)}, (7.5, 4.0)),
        ({'layers': (1, 2)}, (2.5 * 7.5, 2.5 * 4.0)),
        ({'layers': (0, -1)}, (2.5 * 7.5, 2.5 * 4.0)),
        ({'layers': ()}, (3.5 * 7.5, 3.5 * 4.0)),  # the middle of three: 2 and 3
        ({'layers': (0,), 'pooling': 'first'}, (5, 1.5)),
        ({'layers': (0,), 'pooling': 'last'}, (10, 6.5)),
        ({'layers': (0,), 'max_contexts': 1}, (7.5, 4.5)),
        (
            {'layers': (0,), 'shrinkage': 1.0},
            (7.5, (4.5 + 3.5 + 3.5) / 3),
        ),  # alone: 1..6, as at the beginning
        ({'layers': (0,), 'shrinkage': 2.0}, (7.5, 3.75)),
        ({'layers': (0,), 'strategy': 'averaged_last'}, (7.5, 3.5)),
        ({'layers': (2,), 'strategy': 'averaged_last', 'pooling': 'first'}, (15, 3)),
    ],
)
def test_the_papers_example_in_every_variant(visible, changes, expected):
    settings = papers(**changes)
    [one] = made(visible, PAPER, settings)
    np.testing.assert_allclose(one.rows, [expected])
    everything = [settings, papers(), papers(layers=(3,), pooling='first'), papers(max_contexts=1)]
    np.testing.assert_allclose(made(visible, PAPER, *everything)[0].rows, [expected])


def test_shrinkage_of_one_is_one_context_more_and_leaves_tokens_without_contexts():
    def shrunk(k):
        read = {'isolated': np.array([[1.0], [7.0], [0.0]]), 'sums': np.array([[10.0], [0.0], [10.0]])}
        spelled = [[0], [0], []]  # the last cannot be fed alone, so there is nothing to shrink it to
        given = Inputs(np.zeros((1, 1)), spelled, np.array([2, 0, 2]), Surgery(shrinkage=k), 0, **read)
        return initialisations.contextualized(given)

    np.testing.assert_allclose(shrunk(1.0), [[(10 + 1) / 3], [np.nan], [5.0]])
    np.testing.assert_allclose(shrunk(0.0), [[5.0], [np.nan], [5.0]])
    np.testing.assert_allclose(shrunk(1e9), [[1.0], [np.nan], [5.0]], rtol=1e-6)


def test_layers_are_those_of_the_model():
    made_ = make_source(OLD, layers=2)
    read = contexts_of(made_, [WORD, f'the {WORD}'], {0: {0: [(0, 19)]}, 1: {1: [(4, 23)]}}, 2)
    both = source.sum_states(made_, read, 64, layers=(0, 1, 2))
    assert both.shape == (2, 48)
    np.testing.assert_allclose(both[:, 32:], source.sum_states(made_, read, 64), atol=1e-6)
    window = read.windows[0][None, :]
    batch = {
        'tokens': jnp.asarray(window),
        'segments': jnp.ones(window.shape, jnp.int32),
        'positions': jnp.arange(window.shape[1])[None, :],
    }
    states = all_states(made_.architecture, made_.parameters, batch)
    for layer in (0, 1):
        expected = np.asarray(states[layer])[0, 1:-1].mean(axis=0)
        np.testing.assert_allclose(both[0, 16 * layer : 16 * (layer + 1)], expected, atol=1e-5)


def test_the_middle_layers_of_a_deep_source_need_no_others():
    deep = make_source(OLD, layers=6)
    contexts = found((WORD, f'the {WORD} of drugs', 4, 23, 0))
    for strategy, layers in (('averaged_last', (6,)), ('contextualized', (3, 4))):
        [usual] = made(deep, contexts, papers(strategy=strategy, layers=()))
        [numbered] = made(deep, contexts, papers(strategy=strategy, layers=layers))
        np.testing.assert_array_equal(usual.rows, numbered.rows)


def test_pooling_of_a_span_that_is_cut_takes_the_last_piece_that_is_there():
    small = make_source(OLD, hidden=2, heads=1, max_positions=6)  # four pieces a window
    spans = {0: {0: [(0, 19)]}}
    read = reading.read_contexts(small.subwords, small.capacity, [WORD], spans, 1, {0: 'last'})
    assert read.position.tolist() == [4]
    assert reading.read_alone(small.subwords, 4, [[5, 6, 7, 8, 9]], 'last').position.tolist() == [4]


def test_a_bound_on_contexts_comes_before_the_draw():
    assert reading.contexts_wanted('drug', 20, 'all', 0, 5) == 5
    assert reading.contexts_wanted('drug', 3, 'all', 0, 5) == 3
    drawn = {reading.contexts_wanted(f't{i}', 20, 'uniform', 0, 5) for i in range(200)}
    assert drawn == {1, 2, 3, 4, 5}


# --- the map ---


def test_the_ridge_map_by_hand():
    states, wanted = np.array([[4.0], [6.0]]), np.array([[1.0], [5.0]])  # centred: -1, 1 and -2, 2
    [(weights, state, row)] = linear._solved(states, wanted, (1.0,))
    assert (weights.item(), state.item(), row.item()) == pytest.approx((4 / (2 + 2), 5, 3))


def test_the_map_finds_a_linear_relation_and_shrinks_noise():
    draw = np.random.default_rng(0)
    states, true = draw.normal(size=(400, 5)), draw.normal(size=(5, 5))
    exact = linear.fit(states, states @ true + 3, 0)
    assert exact.ridge == min(linear.RIDGES)
    assert exact.explained > 0.999
    np.testing.assert_allclose(exact(states), states @ true + 3, atol=1e-2)
    noise = linear.fit(states, draw.normal(size=(400, 5)), 0)
    assert noise.ridge >= 1
    assert noise.explained < 0.02
    again = linear.fit(states, states @ true + 3, 0)
    np.testing.assert_array_equal(again.weights_DxD, exact.weights_DxD)
    with pytest.raises(InputError, match=r'only 9 tokens.*map=none'):
        linear.fit(states[:9], states[:9], 0)


def affine(made_, monkeypatch):
    """States that are the piece's own input row, mapped: rows can be read off them exactly."""
    table = made_.table().astype(np.float64)
    mix = np.random.default_rng(1).normal(size=(table.shape[1], table.shape[1]))

    def read(layers, parameters, architecture, dtype, mesh, tokens, segments, positions, slots):
        return in_slots((table[np.asarray(tokens)] @ mix + 5).astype(np.float32), slots)

    monkeypatch.setattr(source, '_read', read)


def test_a_map_undoes_what_the_encoder_does_to_single_pieces(monkeypatch):
    made_ = make_source(SPELLING, hidden=4, heads=1)
    affine(made_, monkeypatch)
    contexts = found(*occurrences(WORD))
    mapped, literal, plain = made(
        made_, contexts, papers(map='linear'), papers(), papers(strategy='averaged_input')
    )
    np.testing.assert_allclose(mapped.rows, plain.rows, atol=0.01)
    assert not np.allclose(literal.rows, plain.rows, atol=0.5)
    assert mapped.map.explained > 0.99
    assert mapped.map.tokens > linear.LEAST_TOKENS


def test_the_respelled_map_is_fitted_on_tokens_that_are_spelled_without_themselves(monkeypatch):
    vocabulary = dict.fromkeys([*SPELLING, *WORDS[4:9], 'lymph', '##oma', 'kin', '##ase'])
    made_ = make_source(list(vocabulary), hidden=4, heads=1)
    monkeypatch.setattr(shared, 'RESPELLED_FOLDS', 1)
    read = []

    def watched(source_, reading_, layers, label):
        read.append((label, source_, reading_))
        return sums(source_, reading_, layers, label)

    contexts = found(*occurrences(WORD))
    material = gather(made_, [WORD], spelled_by(made_, WORD), contexts, [papers(map='respelled')], 0, watched)
    [(_, hiding, windows)] = [r for r in read if r[0].startswith('respelled')]
    fold = material.respelled.ids.tolist()
    assert len(fold) >= linear.LEAST_TOKENS
    assert not {int(i) for w in windows.windows for i in w} & set(fold)
    assert hiding.vocabulary == made_.vocabulary
    assert material.anchors is None
    [one] = [make(papers(map='respelled'), material, 0)]
    again = gather(made_, [WORD], spelled_by(made_, WORD), contexts, [papers(map='respelled')], 0, sums)
    np.testing.assert_array_equal(one.rows, make(papers(map='respelled'), again, 0).rows)


# --- tokens of the source in the sentences ---


def test_pieces_of_sentences_and_where_they_stand():
    tokenizer = make_source(OLD).subwords
    found_ = shared.piece_occurrences(tokenizer, ['the drugs of the zz', 'not read'], [0], 0)
    expected = {'the': [(0, 3), (13, 16)], 'drug': [(4, 8)], '##s': [(8, 9)], 'of': [(10, 12)]}
    assert found_ == {0: {ids(token)[0]: spans for token, spans in expected.items()}}


def test_pieces_are_bounded_in_contexts_and_in_number(monkeypatch):
    tokenizer = make_source(OLD).subwords
    texts = ['the of'] * 30 + ['drug'] * 3
    found_ = shared.piece_occurrences(tokenizer, texts, range(33), 0)
    used = [token for spans_of in found_.values() for token in spans_of]
    assert [used.count(i) for i in ids('the', 'of', 'drug')] == [shared.CONTEXTS_EACH] * 2 + [3]
    monkeypatch.setattr(shared, 'TOKENS', 2)
    few = shared.piece_occurrences(tokenizer, texts, range(33), 0)
    assert len({token for spans_of in few.values() for token in spans_of}) == 2


@given(
    st.lists(st.sampled_from([*WORDS, 'nst', 'bronchus', 'na-ive']), min_size=1, max_size=8),
    st.integers(0, 99),
)
def test_hidden_tokens_are_never_among_the_pieces(words, seed):
    made_ = make_source(SPELLING)
    usable = sorted(made_.subwords.kind.respellable(made_.subwords))
    hidden = np.random.default_rng(seed).choice(usable, 5, replace=False).tolist()
    without = made_.subwords.without(hidden)
    assert without.drawn_N.tolist() == [i for i in made_.subwords.drawn_N.tolist() if i not in hidden]
    text = ' '.join(words)
    pieces = without.tokenizer.encode(text, add_special_tokens=False)
    assert not set(pieces.ids) & set(hidden)
    assert '[UNK]' not in pieces.tokens
    assert ''.join(wordpiece.KIND.text(t) for t in pieces.tokens) == text.replace(' ', '')
    for token in (t for t in SPELLING if SPELLING.index(t) not in hidden):
        assert without.tokenizer.token_to_id(token) == SPELLING.index(token)


def test_respellable_are_tokens_whose_characters_are_tokens():
    tokens = [*SPECIAL, 'd', '##r', '##u', '##g', 'drug', '##drug', '##rug', 'ug', 'r', '##x']
    tokenizer = make_source(tokens).subwords
    assert {tokens[i] for i in tokenizer.kind.respellable(tokenizer)} == {
        'drug',
        '##rug',
    }  # no ##d, no u at the beginning


# --- comparators ---


def test_mean_resizing_has_the_mean_and_a_billionth_of_the_covariance():
    draw = np.random.default_rng(2)
    table = (draw.normal(size=(500, 3)) @ draw.normal(size=(3, 3)) + [1, 2, 3]).astype(np.float32)
    drawn = initialisations.gaussian(table, 40_000, 0, initialisations.MEAN_RESIZING_VARIANCE)
    np.testing.assert_allclose(drawn.mean(axis=0), table.mean(axis=0, dtype=np.float64), atol=1e-6)
    wanted = np.cov(table.T.astype(np.float64), bias=True)
    np.testing.assert_allclose(np.cov(drawn.T) * 1e9, wanted, atol=0.05 * np.abs(wanted).max())
    np.testing.assert_array_equal(
        drawn, initialisations.gaussian(table, 40_000, 0, initialisations.MEAN_RESIZING_VARIANCE)
    )
    drawn = initialisations.gaussian(table, 40_000, 0)
    np.testing.assert_allclose(drawn.mean(axis=0), table.mean(axis=0, dtype=np.float64), atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), wanted, atol=0.05 * np.abs(wanted).max())


@given(st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_dealt_rows_are_the_same_rows_and_none_is_where_it_was(count, seed):
    made_NxD = np.arange(count * 3.0).reshape(count, 3)
    dealt_NxD = rows.shuffled(made_NxD, seed)
    assert (dealt_NxD != made_NxD).all()
    np.testing.assert_array_equal(np.sort(dealt_NxD, axis=0), made_NxD)
    np.testing.assert_array_equal(dealt_NxD, rows.shuffled(made_NxD, seed))
    np.testing.assert_array_equal(rows.shuffled(made_NxD[:1], seed), made_NxD[:1])


def test_dealt_rows_in_the_stage(tmp_path):
    right, _, _, _ = stage(tmp_path / 'a', surgery__strategy='averaged_input')
    dealt, _, records, _ = stage(tmp_path / 'b', surgery__strategy='averaged_input', surgery__dealt='true')
    new = slice(7, 10)
    np.testing.assert_array_equal(dealt[TABLE][:7], right[TABLE][:7])
    assert sorted(map(tuple, dealt[TABLE][new])) == sorted(map(tuple, right[TABLE][new]))
    assert all((dealt[TABLE][i] != right[TABLE][i]).any() for i in range(7, 10))
    assert all(record['cosine'] < 0.999 for record in records[7:])


def test_sparsemax_by_hand():
    found_ = initialisations.sparsemax(np.array([[1.0, 0.5, -1.0], [0.0, 0.0, 0.0], [3.0, 0.0, 1.0]]))
    np.testing.assert_allclose(found_, [[0.75, 0.25, 0], [1 / 3] * 3, [1, 0, 0]])


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=12))
def test_sparsemax_is_the_nearest_point_of_the_simplex(scores):
    scores = np.array([scores])
    weights = initialisations.sparsemax(scores)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= 0
    # optimal: what is kept has lost the same, and nothing that was dropped deserved to stay
    lost = (scores - weights)[0]
    kept = weights[0] > 0
    assert np.ptp(lost[kept]) < 1e-9
    assert (lost[~kept] <= lost[kept].max() + 1e-9).all()


def test_similarity_copies_the_row_of_the_same_context_and_mixes_equals():
    known = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]]) + 4
    table = np.array([[1.0, 10], [2, 20], [3, 30]])
    contexts, sums = np.array([2, 0, 1]), np.array([[12.0, 8, 8], [0, 0, 0], [5, 5, 4]])
    read = {'sums': sums, 'anchor_states': known, 'anchor_rows': table}
    given = Inputs(np.zeros((1, 2)), [[0]] * 3, contexts, Surgery(), 0, **read)
    copied, nothing, mixed = initialisations.similarity(given)
    np.testing.assert_allclose(copied, table[0])
    assert np.isnan(nothing).all()
    np.testing.assert_allclose(mixed, table[:2].mean(axis=0))


# --- bias ---


def test_bias_by_hand():
    values = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(bias.mean_bias(values, [[0, 1], [], [2]]), [1.5, 3, 6])
    counts, shared_ = np.array([1, 10, 0, 100, 1000, 0]), np.array([0, 1, 2, -1, -1, -1])
    source_bias = np.array([3.0, 2 * np.log(10) + 3, 99.0])  # the third does not occur
    found_, slope, level = bias.log_count_bias(source_bias, shared_, counts, np.array([3, 4, 5]))
    assert (slope, level) == pytest.approx((2, 3))
    np.testing.assert_allclose(found_, [2 * np.log(100) + 3, 2 * np.log(1000) + 3, 3])
    found_, slope, level = bias.log_count_bias(source_bias, shared_, np.zeros(6, int), np.array([3]))
    assert (slope, found_.item()) == (0, pytest.approx(source_bias.mean()))
    found_, slope, level = bias.log_count_bias(source_bias, shared_, np.full(6, 7), np.array([3]))
    assert (slope, found_.item()) == (0, pytest.approx(source_bias.mean()))


def test_tokens_are_counted_in_the_words_of_the_corpus(tmp_path):
    frequency.write(tmp_path, {'drugs': 5, 'drugss': 3, 'the': 7, WORD: 2, 'once': 1}, {'drugs': 100}, 1.0)
    counts = bias.token_counts(tmp_path, make_source(OLD).subwords)
    expected = {'drug': 5 + 3, '##s': 5 + 2 * 3, 'the': 7, 'bro': 2, '##tion': 2, 'of': 0}
    assert {t: counts[OLD.index(t)] for t in expected} == expected
    with pytest.raises(InputError, match=r'words\.parquet.*vocab --replace'):
        bias.token_counts(tmp_path / 'nowhere', make_source(OLD).subwords)


# --- the stage ---


def stage(folder, **changes):
    run = make_run(folder, make_source(SPELLING), NEW, FOUND, **changes)
    frequency.write(run.workdir / 'vocab', {'the': 90, 'of': 30, WORD: 8, 'lymphoma': 3}, {}, 1.0)
    return *built(run), run


@pytest.mark.parametrize('name', ['linear', 'respelled', 'spelled'])
def test_a_mapped_stage_is_the_same_twice_and_says_how_well_it_fits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(shared, 'RESPELLED_FOLDS', 1)
    vocabulary = [*SPELLING, *WORDS[3:6], 'lymph', '##oma', 'kin', '##ase', '##hoc', 'nai', '##ive']
    vocabulary = list(dict.fromkeys(vocabulary))
    made_ = make_source(vocabulary)
    changes = {'surgery__map': name, 'surgery__layers': '0,1', 'surgery__shrinkage': '1'}
    first, report, records = built(make_run(tmp_path / 'a', made_, NEW, FOUND, **changes))
    again, _, _ = built(make_run(tmp_path / 'b', made_, NEW, FOUND, **changes))
    np.testing.assert_array_equal(first[TABLE], again[TABLE])
    assert report['map']['tokens'] >= linear.LEAST_TOKENS
    assert report['settings']['layers'] == [0, 1]
    assert [r.get('fallback') for r in records[7:]] == [None, None, 'unknown_mean']
    np.testing.assert_allclose(first[TABLE][9], made_.table().mean(0), atol=1e-5)


def test_comparators_in_the_stage(tmp_path):
    new, report, records, _ = stage(
        tmp_path / 'a', surgery__strategy='mean_resizing', surgery__scale='rescaled'
    )
    old = make_source(SPELLING).table()
    np.testing.assert_allclose(new[TABLE][7:10], np.tile(old.mean(0), (3, 1)), atol=1e-4)
    assert report['tokens']['fresh'] == 3
    assert report['scale_factor'] == 1
    new, report, records, _ = stage(tmp_path / 'b', surgery__strategy='similarity')
    assert report['tokens']['synthesised'] == 3
    assert [r.get('contexts') for r in records[7:]] == [
        len(occurrences(WORD)),
        len(occurrences('lymphoma')),
        0,
    ]
    assert [r.get('fallback') for r in records[7:]] == [None, None, 'unknown_mean']
    assert np.abs(new[TABLE][7]).max() <= np.abs(old).max(axis=0).max()  # a mixture of rows


def test_log_count_bias_in_the_stage(tmp_path):
    new, report, _, run = stage(tmp_path, surgery__bias='log_count', surgery__strategy='averaged_input')
    old = flatten(make_source(SPELLING).parameters)['cls/predictions/bias']
    the, of = old[SPELLING.index('the')], old[SPELLING.index('of')]
    slope = (the - of) / np.log(3)
    assert report['bias'] == pytest.approx(
        {'log_count': slope, 'constant': of - slope * np.log(30)}, rel=1e-4
    )
    found_ = new['cls/predictions/bias'][7:10]
    expected = [of + slope * np.log(n / 30) for n in (8, 3, 1)]
    np.testing.assert_allclose(found_, expected, rtol=1e-4)
    # The counts are an input of the stage, though the content of stage vocab leaves them out.
    vocab, seen = run.workdir / 'vocab', set()
    for count in (8, 9):
        frequency.write(vocab, {'the': 90, 'of': 30, WORD: count, 'lymphoma': 3}, {}, 1.0)
        manifests.write_manifest(
            vocab, Manifest(content='same', files=manifests.listed(vocab, run.checksums()))
        )
        seen.add(StageOfRun(run, STAGES['surgery']).of_stages()['vocab/words.parquet'])
    assert len(seen) == 2
    without = Run(run.workdir, dataclasses.replace(run.config, surgery=Surgery()), quiet=True)
    assert 'vocab/words.parquet' not in StageOfRun(without, STAGES['surgery']).of_stages()


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'strategy': 'averaged_last', 'map': 'linear'}, r'surgery\.map: linear is for .*contextualized'),
        ({'strategy': 'random_rows', 'shrinkage': '2'}, r'surgery\.shrinkage: 2\.0 is for'),
        ({'strategy': 'gaussian', 'dealt': 'true'}, r'surgery\.dealt: True is for'),
        ({'layers': '1,1'}, r'surgery\.layers: different layers are needed'),
        ({'layers': '-2'}, r'surgery\.layers.*at least -1'),
        ({'pooling': 'max'}, r'surgery\.pooling'),
        ({'max_contexts': '-1'}, r'surgery\.max_contexts'),
        ({'bias': 'one'}, r'surgery\.bias'),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    settings = config.defaults()
    for name, value in changes.items():
        config.override(settings, f'surgery.{name}', value)
    with pytest.raises(ConfigError, match=message):
        Experiment.from_config(settings)


def test_a_layer_that_the_source_lacks_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r'surgery\.layers: 2, but .* has 1 layer'):
        stage(tmp_path, surgery__layers='0,2')


def test_one_name_stands_for_what_makes_the_papers_rows():
    paper = papers()
    assert (paper.strategy, paper.contexts, paper.scale) == ('contextualized', 'all', 'literal')
    assert (paper.layers, paper.pooling, paper.max_contexts) == ((-1,), 'mean', 0)
    assert (paper.map, paper.shrinkage, paper.fit_steps, paper.bias) == ('none', 0, 0, 'zero')


def test_defaults_that_do_not_concern_a_strategy_are_no_error():
    for strategy, initialisation in INITIALISATIONS.items():
        settings = config.defaults()
        settings.surgery.strategy = strategy
        if initialisation.keeps_vocabulary:
            settings.vocab.kind = 'source'
        assert Experiment.from_config(settings).surgery == Surgery(strategy=strategy).resolved
