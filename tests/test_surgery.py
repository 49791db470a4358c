"""Surgery: rows by hand for every strategy, spans and windows, the graft, parity with a PyTorch loop."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import safetensors.numpy
from toy_source import (
    BIAS,
    LETTERS,
    OLD,
    SPECIAL,
    TABLE,
    WORD,
    built,
    contexts_of,
    ids,
    make_run,
    make_source,
)

from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.model.untouched import untouched_in
from bioptimus_jax.storage.files import read_json
from bioptimus_jax.surgery import graft, initialisations, reading, rows, source
from bioptimus_jax.surgery.config import PAPER_ROWS, Surgery
from bioptimus_jax.tokenizer import subwords


@pytest.fixture
def visible(monkeypatch):
    """A source whose states show (token id, position): what was read can then be computed by hand."""

    def read(layers, parameters, architecture, dtype, mesh, tokens, segments, positions, slots):
        states_BxLx2 = np.stack([tokens, positions], axis=-1).astype(np.float32)
        return np.concatenate(
            [s.reshape(-1, 2)[k] for s, k in zip(np.split(states_BxLx2, len(slots)), slots, strict=True)]
        )

    monkeypatch.setattr(source, '_read', read)
    return make_source(OLD, hidden=2, heads=1)


def test_the_papers_example_is_spelled_and_averaged():
    table = np.arange(len(OLD) * 2, dtype=np.float32).reshape(-1, 2)
    spelling = make_source(OLD).subwords.spell_token(WORD)
    assert spelling == ids('bro', '##nch', '##oco', '##nst', '##ric', '##tion')
    # ids 5..10, so the first column is the mean of 10, 12, .. 20 and the second one more
    np.testing.assert_array_equal(initialisations.averaged_input(table, [spelling]), [[15.0, 16.0]])


def test_the_papers_example_in_the_real_vocabulary(data):
    tokenizer = subwords.load(data / 'vocab' / 'bert-base-uncased')
    real = dataclasses.replace(make_source(OLD), subwords=tokenizer)
    spelled = [real.vocabulary[i] for i in real.subwords.spell_token(WORD)]
    assert spelled == ['bro', '##nch', '##oco', '##nst', '##ric', '##tion']


@pytest.mark.parametrize(
    ('token', 'expected'),
    [
        ('##nstrics', ['##nst', '##ric', '##s']),  # the inside of a word, though "nst" begins one too
        ('nstrics', ['nst', '##ric', '##s']),
        ('##drugs', ['drug', '##s']),  # no continuation piece begins with d: like a word
        ('##x', ['x']),
        ('éé', []),
        ('NaÏve', ['na', '##ive']),  # the source's normaliser
    ],
)
def test_spelling(token, expected):
    assert make_source(OLD).subwords.spell_token(token) == ids(*expected)


def test_averaged_last_reads_the_pieces_of_the_token_alone(visible):
    spellings = [visible.subwords.spell_token(WORD), [], ids('drug', '##s')]
    read = reading.read_alone(visible.subwords, visible.capacity, spellings)
    assert [w.tolist() for w in read.windows] == [[2, *range(5, 11), 3], [2, *ids('drug', '##s'), 3]]
    sums = source.sum_states(visible, read, 64)
    # positions 1..6 behind [CLS]; nothing for the empty spelling
    np.testing.assert_allclose(sums, [[7.5, 3.5], [0, 0], [14.5, 1.5]])
    assert read.contexts.tolist() == [1, 0, 1]


def test_contextualized_is_a_mean_over_contexts_of_means_over_pieces(visible):
    sentences = [f'the {WORD} of drugs', f'{WORD}', 'the drugs']
    spans = {0: {0: [(4, 23)], 1: [(27, 32)]}, 1: {0: [(0, 19)]}, 2: {1: [(4, 9)]}}
    read = contexts_of(visible, sentences, spans, 3)
    assert len(read.windows) == 3  # sentence 0 serves two tokens and is encoded once
    sums = source.sum_states(visible, read, 64)
    spelled = [visible.subwords.spell_token(token) for token in (WORD, 'drugs', 'na')]
    found = initialisations.contextualized(
        initialisations.Inputs(
            visible.table(),
            spelled,
            read.contexts,
            Surgery(shrinkage=0.0),
            0,
            isolated=sums * 0 + 70,
            sums=sums,
        )
    )
    # token 0: positions 2..7 (mean 4.5) and 1..6 (3.5); token 1: 9, 10 and 2, 3; token 2: no context
    np.testing.assert_allclose(found, [[7.5, 4.0], [14.5, 6.0], [np.nan] * 2])


def test_contexts_weigh_the_same_however_many_pieces_they_have(visible):
    # "ric" ends inside the source's piece: '##ric' alone in one sentence, '##nst ##ric' in the other
    sentences = ['nstric', 'xnstrics']
    read = contexts_of(visible, sentences, {0: {0: [(3, 6)]}, 1: {0: [(2, 7)]}}, 1)
    sums = source.sum_states(visible, read, 64)
    first, second = ids('##ric')[0], np.mean(ids('##nst', '##ric'))
    np.testing.assert_allclose(sums[0, 0], first + second)


def test_a_piece_that_crosses_the_border_counts(visible):
    # the new "##ction" overlaps the source's ##ric (its c) and ##tion
    begin = WORD.index('ction')
    read = contexts_of(visible, [WORD], {0: {0: [(begin, len(WORD))]}}, 1)
    assert read.position.tolist() == [5, 6]


def test_a_token_that_stands_twice_in_a_sentence_has_one_context(visible):
    read = contexts_of(visible, ['drugs of drug'], {0: {0: [(0, 5), (9, 13)]}}, 1)
    assert read.position.tolist() == [1, 2, 4]
    assert read.contexts.tolist() == [1]
    np.testing.assert_allclose(read.weight, [1 / 3] * 3)


def test_combining_characters_keep_the_spans(visible):
    # "i" and a combining diaeresis: one character more in the text, the same pieces
    sentence = 'the nai\u0308ve drugs'
    read = contexts_of(visible, [sentence], {0: {0: [(4, 10)], 1: [(11, 16)]}}, 2)
    assert read.windows[0].tolist() == [2, *ids('the', 'na', '##ive', 'drug', '##s'), 3]
    assert read.position[read.target == 0].tolist() == [2, 3]
    assert read.position[read.target == 1].tolist() == [4, 5]


def test_unknown_pieces_spell_nothing(visible):
    read = contexts_of(visible, ['the zzz drugs'], {0: {0: [(4, 7)], 1: [(4, 13)]}}, 2)
    assert read.contexts.tolist() == [0, 1]
    assert read.position.tolist() == [3, 4]


def test_long_sentences_are_cut_around_the_token():
    small = make_source(OLD, hidden=2, heads=1, max_positions=8)  # 6 pieces a window
    sentence = 'the of x the of drugs of the of x the of'
    begin = sentence.index('drugs')
    spans = {0: {0: [(begin, begin + 5)], 1: [(0, 3)], 2: [(len(sentence) - 2, len(sentence))]}}
    read = contexts_of(small, [sentence], spans, 3)
    pieces = ids('the', 'of', 'x', 'the', 'of', 'drug', '##s', 'of', 'the', 'of', 'x', 'the', 'of')
    windows = [w[1:-1].tolist() for w in read.windows]
    assert windows == [pieces[3:9], pieces[:6], pieces[-6:]]
    assert [read.position[read.target == t].tolist() for t in range(3)] == [[3, 4], [1], [6]]


@pytest.mark.parametrize('capacity', [1, 4, 7])
def test_windows_hold_their_span_and_stay_inside(capacity):
    for pieces in range(1, 12):
        for first in range(pieces):
            for stop in range(first + 1, pieces + 1):
                left = reading.window_start(first, stop, pieces, capacity)
                assert 0 <= left <= max(pieces - capacity, 0)
                assert left <= first < left + capacity or stop - first > capacity
                assert stop <= left + capacity or stop - first > capacity


def test_random_rows_follow_their_seed_and_deviation():
    drawn = initialisations.random_rows(2000, 50, 7)
    np.testing.assert_array_equal(drawn, initialisations.random_rows(2000, 50, 7))
    assert not np.array_equal(drawn, initialisations.random_rows(2000, 50, 8))
    assert abs(drawn.mean()) < 3e-4
    assert drawn.std() == pytest.approx(0.02, rel=0.02)


def test_rescaling_is_one_factor_to_the_mean_norm():
    made = np.array([[3.0, 4.0], [0.0, 15.0]])  # norms 5 and 15
    table = np.array([[0.0, 2.0], [0.0, 4.0]], np.float32)
    found = rows.scaling('rescaled', made, table)
    assert found.factor == pytest.approx(0.3)
    np.testing.assert_allclose(found(made), made * 0.3)
    assert rows.scaling('rescaled', made[:0], table).factor == 1.0
    np.testing.assert_array_equal(rows.scaling('literal', made, table)(made), made)


def test_centred_rows_have_the_mean_and_the_spread_of_the_sources():
    made = np.array([[3.0, 4.0], [9.0, 12.0]] * 5)  # 5 on either side of (6, 8)
    table = np.array([[100.0, 0.0], [100.0, 2.0]], np.float32)  # 1 on either side of (100, 1)
    found = rows.scaling('centred', made, table)
    assert found.factor == pytest.approx(0.2)
    np.testing.assert_allclose(found(made[:2]), [[99.4, 0.2], [100.6, 1.8]])
    np.testing.assert_allclose(found(np.array([[6.0, 8.0], [6.0, 3.0]])), [[100, 1], [100, 0]])


def test_few_rows_are_not_moved_onto_the_sources_mean():
    """A single row would become the mean itself, two would mirror each other."""
    made = np.array([[3.0, 4.0], [9.0, 12.0]])
    table = np.array([[100.0, 0.0], [100.0, 2.0]], np.float32)
    found = rows.scaling('centred', made, table)
    assert found.name == 'rescaled'
    np.testing.assert_allclose(found(made), rows.scaling('rescaled', made, table)(made))
    np.testing.assert_allclose(rows.cosines(found(made), made), 1)


def test_number_of_contexts_wanted():
    assert reading.contexts_wanted('drug', 20, 'all', 0) == 20
    drawn = [reading.contexts_wanted(f't{i}', 5, 'uniform', 0) for i in range(2000)]
    counts = np.bincount(drawn, minlength=6)
    assert counts[0] == 0
    assert np.all(np.abs(counts[1:] - 400) < 80)
    assert drawn != [reading.contexts_wanted(f't{i}', 5, 'uniform', 1) for i in range(2000)]


def test_rows_that_nothing_filled_are_an_error():
    table = np.ones((3, 2), np.float32)
    for kept, filled, values, message in (
        ([0, 1, -1], [], np.zeros((0, 2)), 'nothing filled.*2'),
        ([0, 1], [1], np.ones((1, 2)), 'twice'),
        ([0, -1], [1], np.full((1, 2), np.nan), 'not finite'),
    ):
        with pytest.raises(ValueError, match=message):
            rows.filled_table(np.array(kept), table, np.array(filled, np.int64), values)


def test_neighbours_against_sorting_everything():
    table = np.random.default_rng(1).normal(size=(60, 5)).astype(np.float32)
    found, cosines = rows.neighbours(table, np.array([4, 59]), 10, block=1)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    for own, near, values in zip((4, 59), found, cosines, strict=True):
        scores = unit @ unit[own]
        expected = [i for i in np.argsort(-scores) if i != own][:10]
        assert near.tolist() == expected
        np.testing.assert_allclose(values, scores[expected], atol=1e-6)


# --- the stage ---


def test_a_permuted_vocabulary_of_the_same_size_moves_rows_and_bias(tmp_path):
    made = make_source(OLD)
    permuted = [OLD[i] for i in np.random.default_rng(2).permutation(len(OLD))]
    run = make_run(tmp_path, made, permuted, surgery__strategy='averaged_input')
    new, report, _ = built(run)
    old = flatten(made.parameters)
    for i, token in enumerate(permuted):
        np.testing.assert_array_equal(new[TABLE][i], old[TABLE][OLD.index(token)])
        assert new[BIAS][i] == old[BIAS][OLD.index(token)]
    for path in old.keys() - {TABLE, BIAS}:
        np.testing.assert_array_equal(new[path], old[path])
    assert report['tokens'] == {'copied': len(OLD), 'synthesised': 0, 'fresh': 0}
    assert sorted(report['parameters']['copied']) == sorted(old)


def test_a_row_per_strategy_fallbacks_and_bias(tmp_path):
    made = make_source(OLD)
    vocabulary = [*SPECIAL, WORD, 'drug', 'éé', 'drugs', 'the']
    found = [('drugs', 'the drugs', 4, 9, 0)]
    table, bias = flatten(made.parameters)[TABLE][: len(OLD)], flatten(made.parameters)[BIAS]
    pieces = ids('bro', '##nch', '##oco', '##nst', '##ric', '##tion')
    results = {}
    for number, strategy in enumerate(('averaged_input', 'averaged_last', 'contextualized', 'random_rows')):
        folder = tmp_path / str(number)
        results[strategy] = built(
            make_run(folder, made, vocabulary, found, surgery__strategy=strategy, surgery__bias='mean')
        )
    rows_, report, records = results['averaged_input']
    np.testing.assert_allclose(rows_[TABLE][5], table[pieces].mean(0), rtol=1e-5)
    np.testing.assert_allclose(rows_[TABLE][7], table.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(rows_[BIAS][[5, 7]], [bias[pieces].mean(), bias[: len(OLD)].mean()], atol=1e-6)
    assert report['fallbacks'] == {'unknown_mean': 1}
    assert records[5]['spelling'] == ['bro', '##nch', '##oco', '##nst', '##ric', '##tion']
    assert records[5]['cosine'] == pytest.approx(1)
    assert len(records[5]['neighbours']) == len(vocabulary) - 1
    last, contextualized = results['averaged_last'][0][TABLE], results['contextualized'][0][TABLE]
    np.testing.assert_array_equal(contextualized[5], last[5])  # no context found
    assert not np.allclose(contextualized[8], last[8])
    assert results['contextualized'][1]['fallbacks'] == {'context_free': 1, 'unknown_mean': 1}
    assert [r.get('fallback') for r in results['contextualized'][2][5:9]] == [
        'context_free',
        None,
        'unknown_mean',
        None,
    ]
    assert [r.get('contexts') for r in results['contextualized'][2][5:9]] == [0, None, 0, 1]
    assert results['random_rows'][1]['tokens'] == {'copied': 7, 'synthesised': 0, 'fresh': 3}
    assert TABLE in results['random_rows'][1]['parameters']['fresh']
    np.testing.assert_array_equal(results['random_rows'][0][TABLE][6], table[OLD.index('drug')])


def test_rescaled_rows_have_the_sources_mean_norm(tmp_path):
    made = make_source(OLD)
    run = make_run(
        tmp_path,
        made,
        [*SPECIAL, WORD, 'éé', 'drugs'],
        surgery__strategy='averaged_last',
        surgery__scale='rescaled',
    )
    new, report, _ = built(run)
    table = flatten(made.parameters)[TABLE][: len(OLD)]
    wanted = np.linalg.norm(table, axis=1).mean()
    assert np.linalg.norm(new[TABLE][[5, 7]], axis=1).mean() == pytest.approx(wanted, rel=1e-5)
    np.testing.assert_allclose(new[TABLE][6], table.mean(0), rtol=1e-4, atol=1e-6)
    assert report['scale_factor'] != 1


def test_centred_rows_in_the_stage(tmp_path):
    made = make_source(OLD)
    words = [WORD, *(first + rest for first in ('drug', 'the', 'of') for rest in ('s', 'tion', 'ric', 'nst'))]
    vocabulary = [*SPECIAL, 'éé', *words]
    run = make_run(tmp_path, made, vocabulary, surgery__strategy='averaged_last', surgery__scale='centred')
    new, report, records = built(run)
    table = flatten(made.parameters)[TABLE][: len(OLD)]
    own = new[TABLE][6 : 6 + len(words)]
    np.testing.assert_allclose(own.mean(0), table.mean(0), rtol=1e-4, atol=1e-6)
    wanted = np.linalg.norm(table - table.mean(0), axis=1).mean()
    assert np.linalg.norm(own - own.mean(0), axis=1).mean() == pytest.approx(wanted, rel=1e-5)
    np.testing.assert_allclose(new[TABLE][5], table.mean(0), rtol=1e-4, atol=1e-6)  # unknown_mean stays
    assert (report['scale'], report['scale_factor'] != 1) == ('centred', True)
    # What a row is compared with is moved as the row is: these are their context-free values.
    assert [r['cosine'] for r in records[5:]] == pytest.approx([1] * (1 + len(words)))


def test_centred_rows_say_where_they_are_too_few(tmp_path, capsys):
    names = [*SPECIAL, WORD, 'drugs']
    changes = {'surgery__strategy': 'averaged_input', 'surgery__scale': 'centred'}
    run = make_run(tmp_path, make_source(OLD), names, **changes)
    run.console.quiet = False
    _, report, records = built(run)
    assert report['scale'] == 'rescaled'
    assert 'fewer than 10 new rows' in capsys.readouterr().out
    assert records[5]['cosine'] == pytest.approx(1)


def test_random_rows_are_never_rescaled(tmp_path):
    made = make_source(OLD)
    names = [*SPECIAL, 'drugs', 'zzz']
    changes = {'surgery__strategy': 'random_rows', 'surgery__scale': 'rescaled'}
    new, report, _ = built(make_run(tmp_path, made, names, **changes))
    drawn = initialisations.random_rows(2, made.architecture.hidden, 0)
    np.testing.assert_allclose(new[TABLE][[5, 6]], drawn, rtol=1e-6)
    assert report['scale_factor'] == 1


def test_copy_and_scratch(tmp_path):
    made = make_source(OLD)
    new, report, _ = built(
        make_run(tmp_path / 'c', made, OLD, surgery__strategy='copy', vocab__kind='source')
    )
    for path, leaf in flatten(made.parameters).items():
        np.testing.assert_array_equal(new[path], leaf)
    assert not report['parameters']['fresh']
    new, report, records = built(
        make_run(tmp_path / 'd', made, [*SPECIAL, 'drug'], surgery__strategy='scratch')
    )
    assert not np.array_equal(new[TABLE][5], flatten(made.parameters)[TABLE][OLD.index('drug')])
    assert not report['parameters']['copied']
    assert {r['kind'] for r in records} == {'fresh'}
    shape = dict(
        model__layers=1, model__hidden=8, model__heads=2, model__intermediate=12, model__max_positions=40
    )
    run = make_run(
        tmp_path / 'e', made, [*SPECIAL, 'drug'], surgery__strategy='scratch', source__path='', **shape
    )
    new, _, _ = built(run)
    assert new[TABLE].shape == (128, 8)
    assert read_json(run.workdir / 'surgery' / 'model' / 'tokenizer_config.json')['model_max_length'] == 40
    assert graft.external_inputs(run.config) == []


def test_what_is_not_trained_goes_on_by_name_and_what_cannot_is_named(tmp_path, capsys):
    """Into the model at step 0, whose files stay in the run; none of it where the weights are random."""
    source, model = tmp_path / 'source', tmp_path / 'run' / 'surgery' / 'model'
    run = make_run(
        tmp_path, make_source(OLD), [*SPECIAL, 'drug', 'drugs'], surgery__strategy='averaged_input'
    )
    given = dict(
        zip(Bert(9, 16, 1, 2, 4, 8).untouched(), map(np.float32, (np.eye(16), np.arange(16))), strict=False)
    )
    labels = {'classifier.weight': np.ones((3, 16), np.float32), 'bert.embeddings.position_ids': np.arange(9)}
    state = safetensors.numpy.load_file(source / 'model.safetensors')
    safetensors.numpy.save_file({**state, **given, **labels}, source / 'model.safetensors')
    run.console.quiet = False
    built(run)
    said = capsys.readouterr().out
    assert (
        'also has bert.pooler.dense.bias, bert.pooler.dense.weight: every export has that too, unchanged'
        in said
    )
    assert 'also has classifier.weight: in no model of this run, being a head for labels, ' in said
    assert 'position_ids' not in said
    shutil.rmtree(source)
    found, lost = untouched_in(model, tensors.read_architecture(model))
    assert (found.keys(), lost) == (given.keys(), [])
    assert all(np.array_equal(found[name], value) for name, value in given.items())
    scratch = make_run(tmp_path / 'b', make_source(OLD), [*SPECIAL, 'drug'], surgery__strategy='scratch')
    built(scratch)
    assert untouched_in(scratch.workdir / 'surgery' / 'model', Bert(9, 16, 1, 2, 4, 8)) == ({}, [])


def test_rates_of_dropout_are_written_and_all_files_of_the_source_are_inputs(tmp_path):
    run = make_run(tmp_path, make_source(OLD), OLD, model__dropout=0.0, model__attention_dropout=0.2)
    built(run)
    written = tensors.read_architecture(run.workdir / 'surgery' / 'model')
    assert (written.dropout, written.attention_dropout) == (0.0, 0.2)
    names = {p.name for p in graft.external_inputs(run.config)}
    assert names >= {'config.json', 'model.safetensors', 'tokenizer.json', 'vocab.txt'}


def test_a_source_without_a_head_says_so(tmp_path, capsys):
    made = make_source(OLD)
    run = make_run(tmp_path, made, [*SPECIAL, 'drug', 'drugs'], surgery__strategy='averaged_input')
    run.console.quiet = False
    file = tmp_path / 'source' / 'model.safetensors'
    state = {k: v for k, v in safetensors.numpy.load_file(file).items() if not k.startswith('cls.')}
    safetensors.numpy.save_file(state, file)
    _, report, _ = built(run)
    assert 'has no masked-LM head: 5 parameters' in capsys.readouterr().out
    assert report['parameters']['fresh'] == sorted(report['parameters']['fresh'])
    assert {p for p in report['parameters']['fresh'] if not p.startswith('cls/')} == set()
    assert BIAS in report['parameters']['fresh']
    assert 'cls/predictions/transform/dense/kernel' in report['parameters']['fresh']


@pytest.mark.parametrize('strategy', ['contextualized', 'similarity', 'averaged_input'])
def test_defaults_with_nothing_new(tmp_path, strategy):
    """No new token, so there is nothing to fit a map on and nothing to centre."""
    settings = {f'surgery__{name}': getattr(Surgery(), name) for name in PAPER_ROWS}
    settings |= {'surgery__layers': '()', 'surgery__strategy': strategy}
    if strategy != 'contextualized':
        settings |= {'surgery__map': 'none', 'surgery__shrinkage': 0}
    made = make_source(OLD)
    new, report, _ = built(make_run(tmp_path, made, [*SPECIAL, *OLD[:4:-1]], **settings))
    assert (report['tokens']['synthesised'], report['map']) == (0, None)
    old = flatten(made.parameters)[TABLE]
    np.testing.assert_array_equal(new[TABLE][5 : len(OLD)], old[5 : len(OLD)][::-1])


def test_a_source_that_the_vocabulary_was_not_made_beside_is_refused(tmp_path):
    made = make_source(OLD)
    run = make_run(tmp_path / 'a', made, [*SPECIAL, 'drug', 'drugs'], surgery__strategy='averaged_input')
    (run.workdir / 'vocab' / 'new_tokens.txt').write_text('another\n')
    with pytest.raises(InputError, match=r'new_tokens\.txt: .*run `bioptimus vocab`'):
        built(run)


@pytest.mark.parametrize(
    ('tokens', 'strategy', 'changes', 'error', 'message'),
    [
        (OLD, 'copy', {}, ConfigError, r'config\.vocab\.kind'),
        (OLD[::-1], 'copy', {'vocab__kind': 'source'}, InputError, 'not the one'),
        (OLD, 'averaged_last', {'source__path': ''}, ConfigError, r'config\.source\.path'),
        (
            OLD,
            'contextualized',
            {'rows__max_document_pieces': 33},
            ConfigError,
            r'max_document_pieces: 33 .* 32',
        ),
        (
            *([*SPECIAL, 'drug', 'drugs'], 'averaged_input', {'vocab__lowercase': False}),
            *(ConfigError, r'config\.vocab\.lowercase: is False, but the source'),
        ),
        (
            *([*SPECIAL, 'drugs'], 'contextualized', {'found': [('drug', 'the drug', 4, 8, 0)]}),
            *(InputError, "'drug' is not new"),
        ),
    ],
)
def test_what_does_not_fit_the_source_is_refused(tokens, strategy, changes, error, message, tmp_path):
    with pytest.raises(error, match=message):
        built(make_run(tmp_path, make_source(OLD), tokens, surgery__strategy=strategy, **changes))


def test_uniform_takes_the_sentences_of_lowest_rank():
    @dataclasses.dataclass
    class Found:
        tokens, sentence, start = ['t'] * 4, np.array([3, 1, 2, 1]), np.array([0, 5, 0, 9])
        end, rank = np.array([1, 6, 1, 10]), np.array([2, 0, 1, 0])

    chosen = reading.choose_occurrences(Found(), {'t': 0}, 'all', 0)
    assert chosen == {1: {0: [(5, 6), (9, 10)]}, 2: {0: [(0, 1)]}, 3: {0: [(0, 1)]}}
    for seed in range(20):
        wanted = reading.contexts_wanted('t', 3, 'uniform', seed)
        assert list(reading.choose_occurrences(Found(), {'t': 0}, 'uniform', seed)) == [1, 2, 3][:wanted]


def test_contextualized_agrees_with_a_plain_pytorch_loop_and_is_deterministic(tmp_path):
    torch = pytest.importorskip('torch')
    transformers = pytest.importorskip('transformers')
    old = [*OLD, *LETTERS[:-1]]  # "x" is in OLD
    old = list(dict.fromkeys(old))
    words = [WORD, 'drugs', 'naloxone', 'the', 'broncho', '##nchocon', 'lymphoma']
    vocabulary = [*SPECIAL, *words]
    generator = np.random.default_rng(5)
    sentences = sorted(
        {' '.join(generator.choice([*words[:5], 'of', 'x'], n)) for n in generator.integers(4, 8, 50)}
    )
    found, rank = [], {}
    for sentence in sentences:
        for token in (WORD, 'drugs', 'naloxone', 'broncho'):
            starts = [i for i in range(len(sentence)) if sentence.startswith(token, i)]
            found += [(token, sentence, i, i + len(token), rank.get(token, 0)) for i in starts]
            rank[token] = rank.get(token, 0) + bool(starts)
        inside = sentence.find('nchocon')
        if inside >= 0:
            found.append(('##nchocon', sentence, inside, inside + 7, rank.get('##', 0)))
            rank['##'] = rank.get('##', 0) + 1
    made = make_source(old, max_positions=128, layers=2)
    run = make_run(tmp_path, made, vocabulary, found)
    new, _, records = built(run)
    first = (run.workdir / 'surgery' / 'model' / 'model.safetensors').read_bytes()
    built(run)
    assert first == (run.workdir / 'surgery' / 'model' / 'model.safetensors').read_bytes()
    assert {r['token'] for r in records if r.get('fallback')} == {'lymphoma'}

    model = transformers.BertModel.from_pretrained(tmp_path / 'source', add_pooling_layer=False).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / 'source')
    expected = {}
    with torch.no_grad():
        for token, sentence in sorted({(f[0], f[1]) for f in found}):
            encoded = tokenizer(sentence, return_offsets_mapping=True, return_tensors='pt')
            offsets = encoded.pop('offset_mapping')[0].tolist()
            states = model(**encoded).last_hidden_state[0].numpy().astype(np.float64)
            spans = [(f[2], f[3]) for f in found if (f[0], f[1]) == (token, sentence)]
            read = [i for i, (s, e) in enumerate(offsets) if s < e and any(s < b and e > a for a, b in spans)]
            expected.setdefault(token, []).append(states[read].mean(0))
        alone = tokenizer('lymphoma', return_tensors='pt')
        expected['lymphoma'] = [model(**alone).last_hidden_state[0, 1:-1].numpy().mean(0)]
    assert len(expected) == 6
    for token, contexts in expected.items():
        record = records[vocabulary.index(token)]
        assert record['contexts'] == (len(contexts) if token != 'lymphoma' else 0)
        np.testing.assert_allclose(new[TABLE][vocabulary.index(token)], np.mean(contexts, axis=0), atol=1e-5)


def test_the_grafted_folder_loads_in_transformers(tmp_path):
    transformers = pytest.importorskip('transformers')
    run = make_run(tmp_path, make_source(OLD), [*SPECIAL, 'drugs', 'the'], [('drugs', 'the drugs', 4, 9, 0)])
    built(run)
    folder = run.workdir / 'surgery' / 'model'
    model, loading = transformers.AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not loading['missing_keys']
    assert not loading['unexpected_keys']
    assert model.get_output_embeddings().weight.shape == (7, 16)
    assert transformers.AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids('drugs') == 5
    assert json.loads((folder / 'config.json').read_text())['vocab_size'] == 7
    assert not list((run.workdir / 'surgery').glob('.*'))


def test_a_stopped_stage_goes_on_from_its_sums(tmp_path, monkeypatch):
    vocabulary = [*SPECIAL, WORD, 'drugs', 'the']
    run = make_run(tmp_path, make_source(OLD), vocabulary, [('drugs', 'the drugs', 4, 9, 0)])
    file = run.workdir / 'surgery' / 'model' / 'model.safetensors'
    built(run)
    whole = file.read_bytes()
    shutil.rmtree(run.scratch('surgery'))
    read, calls = source._read, []
    monkeypatch.setattr(source, '_read', lambda *arguments: calls.append(1) or read(*arguments))
    run.console.stopping.set()
    with pytest.raises(Stopped):
        graft.build(run, run.workdir / 'surgery')
    assert len(calls) == 1  # the tokens alone, which are encoded first
    assert [kept.name for kept in run.scratch('surgery').iterdir()] == ['tokens alone.npz']
    run.console.stopping.clear()
    file.unlink()
    graft.build(run, run.workdir / 'surgery')
    assert len(calls) == 2
    assert file.read_bytes() == whole
