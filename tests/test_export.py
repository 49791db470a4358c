"""The gate: what passes reloads equal in transformers; each kind of damage is caught before."""

import dataclasses
import json

import jax
import numpy as np
import pytest
import safetensors.numpy

from bioptimus_jax import config, export, gate
from bioptimus_jax.errors import InputError
from bioptimus_jax.files import sha256, write_json
from bioptimus_jax.model import hf
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.bert import initial_parameters
from bioptimus_jax.run import Run
from bioptimus_jax.schema import PAPER_PHASES, Experiment
from bioptimus_jax.vocab.wordpiece import save_tokenizer, tokenizer_from_vocabulary

LETTERS = 'abcdefghijklmnopqrstuvwxyz'
VOCABULARY = [
    '[PAD]',
    '[UNK]',
    '[CLS]',
    '[SEP]',
    '[MASK]',
    *LETTERS,
    *('##' + c for c in LETTERS),
    'dose',
    '.',
    '-',
]
ARCHITECTURE = Architecture(len(VOCABULARY), 32, 2, 4, 64, 48)
TEXTS = ['dose-response of an oral drug', 'A dose.']


@pytest.fixture(scope='module')
def params():
    drawn = initial_parameters(dataclasses.replace(ARCHITECTURE, initializer_range=0.2), jax.random.key(0))
    return jax.tree.map(np.asarray, drawn)


@pytest.fixture(scope='module')
def tokenizer_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tokenizer')
    save_tokenizer(tokenizer_from_vocabulary(VOCABULARY, True), folder, ARCHITECTURE.max_positions)
    return folder


def written(folder, params, tokenizer_folder):
    hf.write_folder(folder, ARCHITECTURE, params, tokenizer_folder)
    return folder


def check(folder, params, tokenizer_folder, texts=TEXTS):
    return gate.check(folder, ARCHITECTURE, params, tokenizer_folder, texts)


def edit_json(path, **changes):
    values = json.loads(path.read_text())
    write_json(path, {**values, **changes})


@pytest.mark.parametrize('texts', [TEXTS, []])
def test_gate_passes_and_measures(tmp_path, params, tokenizer_folder, texts):
    measured = check(written(tmp_path / 'a', params, tokenizer_folder), params, tokenizer_folder, texts)
    assert measured['hidden'] < 1e-4
    assert measured['logits'] < 1e-4
    assert measured['texts'] == (2 if texts else 3)
    assert measured['pieces'] > 20


def test_export_is_complete_reproducible_and_leaves_nothing_behind(tmp_path, params, tokenizer_folder):
    about = {'phase': '0.2', 'checkpoint': 'x', 'setting': dataclasses.asdict(PAPER_PHASES['0.2'])}
    for _ in range(2):  # the second one replaces the first
        export.export(tmp_path / '0.2', ARCHITECTURE, params, tokenizer_folder, TEXTS, about)
    assert [p.name for p in tmp_path.iterdir()] == ['0.2']
    folder = tmp_path / '0.2'
    sums = dict(reversed(line.split('  ')) for line in (folder / 'sha256sums').read_text().splitlines())
    assert sums == {p.name: sha256(p) for p in folder.iterdir() if p.name != 'sha256sums'}
    assert {'config.json', 'model.safetensors', 'tokenizer.json', 'vocab.txt', 'README.md'} <= sums.keys()
    assert 'words masked at 15%, 80-10-10' in (folder / 'README.md').read_text()
    _, back, fresh = hf.load_folder(folder)
    assert fresh == []
    jax.tree.map(np.testing.assert_array_equal, dict(back), dict(params))
    # an export whose files are whole is kept, a damaged one is not
    assert export._kept(folder, 'x')['phase'] == '0.2'
    assert export._kept(folder, 'y') is None
    with open(folder / 'model.safetensors', 'r+b') as file:
        file.seek(-1, 2)
        file.write(b'\x55')
    assert export._kept(folder, 'x') is None


def test_one_wrong_weight_is_caught(tmp_path, params, tokenizer_folder):
    folder = written(tmp_path / 'a', params, tokenizer_folder)
    state = safetensors.numpy.load_file(folder / 'model.safetensors')
    state['bert.encoder.layer.1.attention.self.key.weight'] = np.ascontiguousarray(
        state['bert.encoder.layer.1.attention.self.key.weight'].T
    )
    safetensors.numpy.save_file(state, folder / 'model.safetensors', {'format': 'pt'})
    with pytest.raises(gate.GateError, match=r'hidden differ from transformers'):
        check(folder, params, tokenizer_folder)


def test_bias_in_another_order_is_caught(tmp_path, params, tokenizer_folder):
    bias = np.arange(ARCHITECTURE.padded_vocab_size, dtype=np.float32) / 100
    bias[ARCHITECTURE.vocab_size :] = 0
    head = {**params['cls'], 'predictions': {**params['cls']['predictions'], 'bias': bias}}
    ours = {**params, 'cls': head}
    folder = written(tmp_path / 'a', ours, tokenizer_folder)
    assert check(folder, ours, tokenizer_folder)['logits'] < 1e-4
    state = safetensors.numpy.load_file(folder / 'model.safetensors')
    state['cls.predictions.bias'] = np.ascontiguousarray(state['cls.predictions.bias'][::-1])
    safetensors.numpy.save_file(state, folder / 'model.safetensors', {'format': 'pt'})
    with pytest.raises(gate.GateError, match='logits differ'):
        check(folder, ours, tokenizer_folder)


def test_missing_and_unexpected_tensors_are_caught(tmp_path, params, tokenizer_folder):
    folder = written(tmp_path / 'a', params, tokenizer_folder)
    state = safetensors.numpy.load_file(folder / 'model.safetensors')
    lost = state.pop('bert.encoder.layer.0.output.dense.bias')
    safetensors.numpy.save_file(state, folder / 'model.safetensors', {'format': 'pt'})
    with pytest.raises(
        gate.GateError, match=r'missing keys on reload: bert\.encoder\.layer\.0\.output\.dense\.bias'
    ):
        check(folder, params, tokenizer_folder)
    state |= {'bert.encoder.layer.0.output.dense.bias': lost, 'bert.more': lost}
    safetensors.numpy.save_file(state, folder / 'model.safetensors', {'format': 'pt'})
    with pytest.raises(gate.GateError, match='unexpected keys on reload'):
        check(folder, params, tokenizer_folder)


def test_another_type_or_class_is_caught(tmp_path, params, tokenizer_folder):
    folder = written(tmp_path / 'a', params, tokenizer_folder)
    edit_json(folder / 'config.json', architectures=['BertModel'])
    with pytest.raises(gate.GateError, match=r'config\.json: architectures'):
        check(folder, params, tokenizer_folder)
    edit_json(folder / 'config.json', architectures=['BertForMaskedLM'])
    state = safetensors.numpy.load_file(folder / 'model.safetensors')
    half = {name: value.astype(np.float16) for name, value in state.items()}
    safetensors.numpy.save_file(half, folder / 'model.safetensors', {'format': 'pt'})
    with pytest.raises(gate.GateError, match='not float32'):
        check(folder, params, tokenizer_folder)


def test_weights_that_are_not_finite_are_caught(tmp_path, params, tokenizer_folder):
    table = params['embeddings']['position_embeddings']['embedding'].copy()
    table[2] = np.nan
    broken = {**params, 'embeddings': {**params['embeddings'], 'position_embeddings': {'embedding': table}}}
    with pytest.raises(gate.GateError, match='not finite'):
        export.export(tmp_path / '0.1', ARCHITECTURE, broken, tokenizer_folder, TEXTS, {})
    assert list(tmp_path.iterdir()) == []


def test_tokenizers_that_differ_are_caught(tmp_path, params, tokenizer_folder):
    folder = written(tmp_path / 'a', params, tokenizer_folder)
    edit_json(folder / 'tokenizer_config.json', model_max_length=512)
    with pytest.raises(gate.GateError, match='model_max_length of the tokenizer is 512'):
        check(folder, params, tokenizer_folder)
    changes = {
        'lower case': tokenizer_from_vocabulary(VOCABULARY, False),
        'number of tokens': tokenizer_from_vocabulary([*VOCABULARY, 'more'], True),
        'other ids': tokenizer_from_vocabulary([*VOCABULARY[:-2], '-', '.'], True),
    }
    for message, tokenizer in changes.items():
        save_tokenizer(tokenizer, folder, ARCHITECTURE.max_positions)
        with pytest.raises(gate.GateError, match=message):
            check(folder, params, tokenizer_folder)


def test_stage_exports_finished_phases_says_what_is_missing_and_goes_on(
    tmp_path, monkeypatch, params, tokenizer_folder
):
    finished = ['0.1', '0.2']
    loaded = []

    def load_phase(folder, phase):
        loaded.append(phase)
        return params

    monkeypatch.setattr(export, 'finished_phases', lambda folder: list(finished))
    monkeypatch.setattr(export, 'phase_checksums', lambda folder, phase: {'a': len(phase)})
    monkeypatch.setattr(export, 'load_phase', load_phase)
    run = Run(tmp_path / 'run', Experiment.from_config(config.defaults()), quiet=True)
    written(run.workdir / 'surgery' / 'model', params, tokenizer_folder)
    write_json(run.workdir / 'surgery' / 'manifest.json', {'stage': 'surgery'})
    folder = run.workdir / 'export'
    (folder / '.0.1.77.tmp').mkdir(parents=True)  # left by a kill
    with pytest.raises(InputError, match=r'phases 0\.3, 0\.4 are not finished; exported so far: 0\.1, 0\.2'):
        export.build(run, folder)
    assert sorted(p.name for p in folder.iterdir()) == ['0.1', '0.2']
    finished += ['0.3', '0.4']
    counts = export.build(run, folder)
    assert loaded == ['0.1', '0.2', '0.3', '0.4']  # each once: the first two were kept
    assert counts['phases'] == finished
    assert max(measured['logits'] for measured in counts['gate'].values()) < 1e-4
