"""The gate and the card: what passes reloads equal in transformers; each kind of damage is caught before."""

import ast
import dataclasses
import functools
import json
import re
import sys

import jax
import numpy as np
import pytest
import safetensors.numpy
from huggingface_hub import ModelCard
from toy_families import SMALL, noisy, with_padding
from toy_pretraining import changed
from transformers import pipeline

from bioptimus_jax.cli.push import parcel
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.export import build as export
from bioptimus_jax.export import card, gate
from bioptimus_jax.export.merge import merge
from bioptimus_jax.finetuning.card import write_card
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.usage import EXAMPLE
from bioptimus_jax.finetuning.loading import load_weights
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.model import tensors
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.untouched import untouched_in
from bioptimus_jax.pretrain import objectives
from bioptimus_jax.pretrain.config import OBJECTIVES, PAPER_PHASES
from bioptimus_jax.records.export import Export, read_export
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.report.layout import missing
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.report.page import description
from bioptimus_jax.report.sections.corpus import corpora
from bioptimus_jax.run import manifests
from bioptimus_jax.run.folder import Run
from bioptimus_jax.sets.corpora import Dataset
from bioptimus_jax.sets.published import record_of
from bioptimus_jax.storage.files import json_text, sha256, write_json
from bioptimus_jax.tokenizer.kinds.wordpiece import make

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
ARCHITECTURE = Bert(len(VOCABULARY), 32, 2, 4, 64, 48)
RECORD = Export(phase='0.1')
WITHOUT_OTHERS = ('distilbert', 'deberta-v2', 'modernbert', 'eurobert', 'ultrabert')
"""Families of which transformers loads no head or pooler beside that of masked language models."""
TEXTS = ['dose-response of [PAD] an oral drug', 'A dose.']  # the padding that a text quotes is no padding


@pytest.fixture(scope='module')
def params():
    drawn = dataclasses.replace(ARCHITECTURE, initializer_range=0.2).initial_parameters(jax.random.key(0))
    return jax.tree.map(np.asarray, drawn)


@pytest.fixture
def tokenizer_folder(tmp_path_factory, request):
    """The tokenizer of a folder, which pads as the test's model wants it."""
    shape = request.getfixturevalue('model').architecture if 'model' in request.fixturenames else ARCHITECTURE
    folder = tmp_path_factory.mktemp('tokenizer')
    make(with_padding(VOCABULARY, shape), True).save(folder, ARCHITECTURE.max_positions)
    return folder


@pytest.fixture(scope='module', params=SMALL)
def model(request):
    """A small model of every family in turn, for that tokenizer."""
    small = SMALL[request.param]
    rows = ARCHITECTURE.positions + small.max_positions - small.positions
    small = dataclasses.replace(small, vocab_size=len(VOCABULARY), max_positions=rows)
    return noisy(small.padded_with(VOCABULARY.index('[PAD]')))


def written(folder, params, tokenizer_folder):
    tensors.write_folder(folder, ARCHITECTURE, params, tokenizer_folder)
    return folder


def check(folder, params, tokenizer_folder, texts=TEXTS):
    return gate.check_export(folder, ARCHITECTURE, params, tokenizer_folder, texts)


def edit_json(path, **changes):
    values = json.loads(path.read_text())
    write_json(path, {**values, **changes})


def test_gate_passes_and_measures(tmp_path, model, tokenizer_folder):
    tensors.write_folder(tmp_path, *model, tokenizer_folder)
    measured = gate.check_export(tmp_path, *model, tokenizer_folder, TEXTS)
    assert measured['hidden'] < 1e-4
    assert measured['logits'] < 1e-4
    assert measured['texts'] == 2
    assert measured['pieces'] > 20


def test_gate_has_texts_of_its_own_where_there_are_none(tmp_path, params, tokenizer_folder):
    written(tmp_path, params, tokenizer_folder)
    measured = check(tmp_path, params, tokenizer_folder, [])
    assert max(measured['hidden'], measured['logits']) < 1e-4
    assert measured['texts'] == 3
    assert measured['pieces'] > 20


def test_export_is_complete_reproducible_and_leaves_nothing_behind(tmp_path, model, tokenizer_folder):
    about = Export(phase='0.2', checkpoint='x', setting=dataclasses.asdict(PAPER_PHASES['0.2']))
    for _ in range(2):  # the second one replaces the first
        export.export(tmp_path / '0.2', *model, tokenizer_folder, TEXTS, about)
    assert [p.name for p in tmp_path.iterdir()] == ['0.2']
    folder = tmp_path / '0.2'
    sums = dict(reversed(line.split('  ')) for line in (folder / 'sha256sums').read_text().splitlines())
    assert sums == {p.name: sha256(p) for p in folder.iterdir() if p.name != 'sha256sums'}
    assert {'config.json', 'model.safetensors', 'tokenizer.json', 'vocab.txt', 'README.md'} <= sums.keys()
    data = ModelCard.load(folder / 'README.md').data.to_dict()
    assert data['pipeline_tag'] == 'fill-mask'
    fill = pipeline(data['pipeline_tag'], str(folder), device='cpu')
    assert len(fill(f'a dose of {fill.tokenizer.mask_token}.', top_k=4)) == 4
    assert not {'license', 'base_model', 'model-index'} & data.keys()  # nothing is known of them
    _, back, fresh = tensors.load_folder(folder)
    assert fresh == []
    jax.tree.map(np.testing.assert_array_equal, dict(back), dict(model.params))
    # an export whose files are whole is kept, a damaged one is not
    assert export._kept(folder, 'x').phase == '0.2'
    assert export._kept(folder, 'y') is None
    with open(folder / 'model.safetensors', 'r+b') as file:
        file.seek(-1, 2)
        file.write(b'\x55')
    assert export._kept(folder, 'x') is None


def test_what_the_source_has_beside_goes_by_name_into_the_export_and_every_class_finds_it(
    tmp_path, model, tokenizer_folder
):
    """A pooler and the heads of other pre-trainings, drawn; from the model at step 0, as transformers loads them."""
    import transformers

    architecture, generator = model.architecture, np.random.default_rng(0)
    shapes = architecture.untouched()
    drawn = {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    export.export(tmp_path / '0.2', *model, tokenizer_folder, TEXTS, RECORD, drawn)
    assert untouched_in(tmp_path / '0.2', architecture)[0].keys() == drawn.keys()
    about = json.loads((tmp_path / '0.2' / 'export.json').read_text())
    assert about.get('untouched', []) == sorted(shapes)
    card_of = (tmp_path / '0.2' / 'README.md').read_text()
    assert all(f'`{name}`' in card_of for name in shapes)
    assert load_weights(tmp_path / '0.2', 'AutoModelForMaskedLM')[1]['missing_keys'] == set()
    if not drawn:
        assert model.architecture.model_type in WITHOUT_OTHERS
        return
    found, config = set(), transformers.AutoConfig.from_pretrained(tmp_path / '0.2')
    for name in ('AutoModel', 'AutoModelForPreTraining', 'AutoModelForSequenceClassification'):
        if type(config) not in getattr(transformers, name)._model_mapping:
            continue  # GTE and Nomic BERT have no class for pre-training but that of masked LM
        read, info = load_weights(tmp_path / '0.2', name)
        state, prefix = read.state_dict(), f'{read.base_model_prefix}.'
        held = {key: state.get(key, state.get(key.removeprefix(prefix))) for key in drawn}
        held = {key: value.numpy() for key, value in held.items() if value is not None}
        assert all(np.array_equal(value, drawn[key]) for key, value in held.items())
        assert not [key for key in info['missing_keys'] if 'pooler' in key]
        found |= held.keys()
    assert found == drawn.keys()
    # Names without the prefix are understood, another shape cannot go, nor can a head for labels: they are named.
    first, *_ = drawn
    state = {architecture.plain_name(name): value for name, value in drawn.items()}
    state |= {'classifier.weight': np.zeros((3, 32), np.float32), 'embeddings.position_ids': np.arange(9)}
    (tmp_path / 'bare').mkdir()
    safetensors.numpy.save_file(state, tmp_path / 'bare' / 'model.safetensors')
    kept, lost = untouched_in(tmp_path / 'bare', architecture)
    assert (kept.keys(), lost) == (drawn.keys(), ['classifier.weight'])
    state[architecture.plain_name(first)] = np.zeros((3, 3), np.float32)
    safetensors.numpy.save_file(state, tmp_path / 'bare' / 'model.safetensors')
    kept, lost = untouched_in(tmp_path / 'bare', architecture)
    assert kept.keys() == drawn.keys() - {first}
    assert lost == [architecture.plain_name(first), 'classifier.weight']


def test_wrong_missing_and_unexpected_weights_are_caught(tmp_path, model, tokenizer_folder):
    """Wrong is each square matrix of the last layer in turn."""
    architecture = model.architecture
    tensors.write_folder(tmp_path, *model, tokenizer_folder)
    state = safetensors.numpy.load_file(tmp_path / 'model.safetensors')
    last = f'encoder/layer/{architecture.own_layers[-1]}/'
    square = [p for p, s in architecture.shapes().items() if p.startswith(last) and s == (32, 32)]
    assert square
    turned = {name: np.ascontiguousarray(state[name].T) for name in map(architecture.tensor_name, square)}
    name = next(n for n in state if re.search(r'\.layers?\.0\.|_layers\.0\.', n))
    for message, wrong in (
        *((r'hidden differ from transformers', {**state, n: value}) for n, value in turned.items()),
        (f'missing keys on reload: {re.escape(name)}', {n: value for n, value in state.items() if n != name}),
        ('unexpected keys on reload', {**state, f'{architecture.prefix}more': state[name]}),
    ):
        safetensors.numpy.save_file(wrong, tmp_path / 'model.safetensors', {'format': 'pt'})
        with pytest.raises(gate.GateError, match=message):
            gate.check_export(tmp_path, *model, tokenizer_folder, TEXTS)


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


def test_weights_that_are_not_finite_are_caught(tmp_path, params, tokenizer_folder):
    table = params['embeddings']['position_embeddings']['embedding'].copy()
    table[2] = np.nan
    broken = {**params, 'embeddings': {**params['embeddings'], 'position_embeddings': {'embedding': table}}}
    with pytest.raises(gate.GateError, match='not finite'):
        export.export(tmp_path / '0.1', ARCHITECTURE, broken, tokenizer_folder, TEXTS, RECORD)
    assert list(tmp_path.iterdir()) == []


def halve(folder):
    state = safetensors.numpy.load_file(folder / 'model.safetensors')
    half = {name: value.astype(np.float16) for name, value in state.items()}
    safetensors.numpy.save_file(half, folder / 'model.safetensors', {'format': 'pt'})


def with_tokens(*given):
    return lambda folder: make(*given).save(folder, ARCHITECTURE.max_positions)


@pytest.mark.parametrize(
    ('message', 'change'),
    [
        (r'config\.json: architectures', lambda f: edit_json(f / 'config.json', architectures=['BertModel'])),
        ('not float32', halve),
        (
            'model_max_length of the tokenizer is 512',
            lambda f: edit_json(f / 'tokenizer_config.json', model_max_length=512),
        ),
        ('do_lower_case is False in transformers, True here', with_tokens(VOCABULARY, False)),
        ('number of tokens is 61 in transformers, 60 here', with_tokens([*VOCABULARY, 'more'], True)),
        ("the id of '.' is 59 in transformers, 58 here", with_tokens([*VOCABULARY[:-2], '-', '.'], True)),
    ],
)
def test_another_class_type_or_tokenizer_is_caught(message, change, tmp_path, params, tokenizer_folder):
    folder = written(tmp_path / 'a', params, tokenizer_folder)
    change(folder)
    with pytest.raises(gate.GateError, match=message):
        check(folder, params, tokenizer_folder)


def test_stage_exports_finished_phases_says_what_is_missing_and_goes_on(
    tmp_path, monkeypatch, params, tokenizer_folder
):
    finished = ['0.1', '0.2']
    loaded, lines = [], []

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
    folder.mkdir(parents=True)
    run.console.say = lines.append
    with pytest.raises(InputError, match=r'phases 0\.3, 0\.4 are not finished; exported so far: 0\.1, 0\.2'):
        export.build(run, folder)
    assert any('pretrain has no manifest.json, it is not finished' in line for line in lines)
    assert sorted(p.name for p in folder.iterdir()) == ['0.1', '0.2']
    finished += ['0.3', '0.4']
    write_json(run.workdir / 'pretrain' / 'manifest.json', {'stage': 'pretrain', 'metrics': 'of other lines'})
    counts = export.build(run, folder).counts
    assert sum('metrics.jsonl does not hold the lines that pretrain wrote' in line for line in lines) == 1
    assert loaded == ['0.1', '0.2', '0.3', '0.4']  # each once: the first two were kept
    assert counts.phases == tuple(finished)
    assert max(measured['logits'] for measured in counts.gate.values()) < 1e-4


def recorded(workdir, source, **changes):
    """A run whose records say how it was made, two phases of it trained."""
    c = config.defaults()
    run = Run(workdir, changed(c, {'source.path': source, **changes}), quiet=True)
    counts = {
        'read': 1000,
        'left_out': {'benchmark': 12, 'duplicate_text': 8},
        'kinds': {'correction': 3},
        'train': 970,
        'heldout': 10,
        'words': {'train': 97_000},
        'audit': {'sentences': 500, 'too_short': 33, 'matches': 14},
    }
    inputs = {'0:pubmed25n0001.xml.gz': 'x', '1:train.tsv': 'y'}
    write_json(workdir / 'corpus' / 'manifest.json', {'counts': counts, 'inputs': inputs})
    write_json(workdir / 'vocab' / 'manifest.json', {'counts': {'size': 57, 'kept': 40, 'new': 17}})
    made = {'strategy': 'contextualized', 'copied': 40, 'synthesised': 17, 'fallbacks': {'unknown_mean': 2}}
    weights = {'inputs': {'0:config.json': 'c', '1:model.safetensors': 'ab12' * 16}}
    write_json(workdir / 'surgery' / 'manifest.json', {'counts': made, **weights})
    placed = [{'name': n, 'start': 100 * i, 'stop': 100 * i + 100} for i, n in enumerate(('0.1', '0.2'))]
    write_json(workdir / 'pretrain' / 'curriculum.json', placed)
    write_json(workdir / 'pretrain' / 'phases.json', {'0.1@50': 50, '0.1': 100, '0.2': 200})
    for step in (0, 50, 100, 150, 200):
        run.metrics.write('pretrain', step, kind='evaluation', phase='0.1', frozen_loss=9 - step / 50)
    return run


def history_of(run):
    return card.History.of(run.config, run.workdir)


def test_a_card_tells_how_its_model_was_made(tmp_path, params, tokenizer_folder):
    source = tmp_path / 'source'
    source.mkdir()
    (source / 'README.md').write_text('---\nlicense: apache-2.0\nlanguage: en\n---\n# A source\n')
    run = recorded(tmp_path / 'run', source)
    about = Export(phase='0.1', gate={'pieces': 256, 'hidden': 1e-6, 'logits': 2e-6})
    text = card.model_card(history_of(run), '0.1', ARCHITECTURE, about)
    data = ModelCard(text).data.to_dict()
    assert data['license'] == 'apache-2.0'
    assert data['language'] == 'en'
    assert data['datasets'] == ['ncbi/pubmed']
    assert 'base_model' not in data  # a folder is not a name on the hub
    assert data['library_name'] == 'transformers'
    for told in (
        f'Source: a Hugging Face BERT folder, weights with SHA-256 `{"ab12" * 4}…`',
        '970 documents for training (97,000 words), 10 held out; of 1,000 read were left out: 12 benchmark, '
        '8 duplicate text; the documents contain 3 notices of a correction',
        '500 sentences were looked for by text, 12 documents that hold one were left out of everything; '
        '33 sentences are',
        f'train, WordPiece, {ARCHITECTURE.vocab_size} tokens, 40 shared with the source, 17 new',
        f'documents of up to {ARCHITECTURE.positions} pieces',
        'A BERT masked language model',
        'contextualized, 40 rows copied, 17 made',
        '| 0.1 | mlm | tokens | 15% | 80-10-10 | 100 | 7.000 |',
        'Objective mlm: masked language modelling.',
        'before any fine-tuning',
        'The language of the corpus is not on record',  # that of the source is another matter
    ):
        assert told in text, told
    assert '| 0.2 |' not in text  # it came later
    assert str(tmp_path) not in text
    assert '| 0.2 | mlm | words | 15% | 80-10-10 | 200 | 5.000 |' in card.model_card(
        history_of(run), '0.2', ARCHITECTURE, about
    )
    halfway = card.model_card(history_of(run), '0.1@50', ARCHITECTURE, about)
    assert '| 0.1 | mlm | tokens | 15% | 80-10-10 | 50 | 8.000 |' in halfway
    moved = recorded(tmp_path / 'elsewhere' / 'run', source)  # the same records give the same bytes
    assert card.model_card(history_of(moved), '0.1', ARCHITECTURE, about) == text


def test_a_card_and_the_page_tell_every_corpus_that_phases_read(tmp_path):
    """Each with its share of every phase and its own audit; nothing of rows that are there instead of those read."""
    for name in ('notes', 'late'):
        counts = {
            'read': 300,
            'left_out': {'benchmark': 2},
            'train': 290,
            'heldout': 8,
            'words': {'train': 5000},
        }
        found = {
            'counts': counts,
            'inputs': {},
            'origins': {'corpus.inputs': [f'hf://datasets/of/{name}@1/a']},
        }
        write_json(tmp_path / name / 'corpus' / 'manifest.json', found)
        write_json(tmp_path / name / 'rows' / 'manifest.json', {'stage': 'rows', 'content': name})
    mixed = {
        'phases': '0.1,0.2',
        'phase.0.1.corpora': 'own=3,notes=1',
        'phase.0.1.duration_unit': 'steps',
        'phase.0.2.corpora': 'late=1',
        **{f'corpora.{name}.run': tmp_path / name for name in ('notes', 'late')},
    }
    run = recorded(tmp_path / 'run', '', **mixed)
    overlaps = [{'corpus': 'notes', 'heldout': 10, 'found': 3}]
    write_json(run.workdir / 'pretrain' / 'heldout_overlap.json', overlaps)
    text = card.model_card(history_of(run), '0.1', ARCHITECTURE, RECORD)
    for told in (
        '- Rows of phase 0.1: 75.0% of corpus `own`, 25.0% of corpus `notes`\n',
        '- Corpus `own`: 970 documents for training (97,000 words), 10 held out;',
        '- Benchmark texts in `own`: 500 sentences were looked for by text, 12 documents that hold one were left out '
        'of this corpus;',
        '- Corpus `notes`: 290 documents for training (5,000 words), 8 held out;',
        '- Benchmark texts in `notes`: none were named',
        'on documents of corpus own that are left out of its rows. At least 3 of 10 held-out documents begin with the '
        'same 64 pieces as documents of corpus notes, which is trained on.',
    ):
        assert told in text, told
    assert 'late' not in text  # only the second phase reads it
    assert str(tmp_path) not in text
    assert ModelCard(text).data.datasets == ['ncbi/pubmed', 'of/notes']
    second = card.model_card(history_of(run), '0.2', ARCHITECTURE, RECORD)
    assert '- Rows of phase 0.2: 100.0% of corpus `late`\n' in second
    assert '. How many of them are in corpus late is not on record. At least 3 of 10 held-out' in second
    cells = [[cell.text for cell in row] for row in corpora(read_measures(run)).rows]
    assert cells == [
        ['own', '75.0 %', '0.0 %', '970', '97,000', '500', '12', '—'],
        ['late', '0.0 %', '100.0 %', '290', '5,000', '0', '2', '—'],
        ['notes', '25.0 %', '0.0 %', '290', '5,000', '0', '2', '3'],
    ]
    write_json(run.workdir / 'pretrain' / 'manifest.json', {'inputs': {'corpora:late': 'other rows'}})
    second = card.model_card(history_of(run), '0.2', ARCHITECTURE, RECORD)
    assert '- Corpus `late`: not on record\n' in second
    assert corpora(read_measures(run)).rows[1][3] == missing()


@pytest.mark.parametrize('lost', ['curriculum.json', 'of no stage'])
@pytest.mark.parametrize('damage', ['{"0.1": 10', '[100]', '{"0.1": "late"}'])
def test_a_card_is_not_made_from_a_damaged_record_of_phases(tmp_path, lost, damage):
    run = recorded(tmp_path / 'run', '')
    (run.workdir / 'pretrain' / lost).unlink(missing_ok=True)
    (run.workdir / 'pretrain' / 'phases.json').write_text(damage)
    with pytest.raises(InputError, match=r'phases\.json: is damaged .*; delete it and run') as caught:
        card.model_card(history_of(run), '0.1', ARCHITECTURE, RECORD)
    assert '\n' not in str(caught.value)


def test_a_card_names_a_source_of_the_hub_and_what_is_not_known(tmp_path):
    run = recorded(tmp_path / 'run', f'google-bert/bert-base-uncased@{"0" * 40}')
    text = card.model_card(history_of(run), '0.1', ARCHITECTURE, RECORD)
    data = ModelCard(text).data.to_dict()
    assert data['base_model'] == 'google-bert/bert-base-uncased'
    assert 'license' not in data
    assert 'The licence of the source is not on record' in text
    assert 'The language of the corpus is not on record' in text
    scratch = card.model_card(history_of(recorded(tmp_path / 'scratch', '')), '0.1', ARCHITECTURE, RECORD)
    assert 'Source: none; weights from scratch' in scratch
    assert 'licence' not in scratch
    spoken = recorded(tmp_path / 'spoken', '', **{'corpus.languages': 'en,de'})
    assert ModelCard(card.model_card(history_of(spoken), '0.1', ARCHITECTURE, RECORD)).data.language == [
        'en',
        'de',
    ]


def test_a_card_and_the_page_tell_no_masking_of_a_phase_that_masks_nothing(tmp_path):
    """They tell a rate that moves, of a phase that masks; and that what is exported is an average."""
    changes = {
        'phase.0.1.objective': 'causal',
        'phase.0.2.rate': '0.3',
        'phase.0.2.rate_end': '0.05',
        'phases': '0.1,0.2',
        'pretrain.ema': '0.999',
    }
    run = recorded(tmp_path / 'run', '', **changes)
    text = card.model_card(history_of(run), '0.2', ARCHITECTURE, RECORD)
    assert '| 0.1 | causal | — | — | — | 100 | 7.000 |' in text
    assert '| 0.2 | mlm | words | 30% to 5% | 80-10-10 | 200 | 5.000 |' in text
    assert 'These weights are an average over steps with a decay of 0.999' in text
    assert 'Held-out loss: one frozen mask, nats per [MASK]ed piece, on documents never' in text
    told = 'causal: every piece of a document is told from those before it'
    assert f'Objective {told}. mlm: masked language modelling.' in text
    assert description(read_measures(run)).endswith(
        f'0.1 (causal), 0.2 (words, 30% to 5%, 80-10-10). {told}.'
    )
    assert 'No phase has trained it to fill in' not in text
    alone = recorded(tmp_path / 'alone', '', **{'pretrain.objective': 'causal', 'phases': '0.1,0.2'})
    text = card.model_card(history_of(alone), '0.2', ARCHITECTURE, RECORD)
    assert 'No phase has trained it to fill in masked words, but to go on with a text' in text
    assert 'an average over steps' not in text
    assert (
        'Held-out loss: nats per piece of a document, told from those before it, on documents never' in text
    )


OWN_RATES = """
import dataclasses
from bioptimus_jax.config.fields import key
from bioptimus_jax.pretrain.objectives.mlm import MaskedLM


@dataclasses.dataclass(frozen=True)
class Settings:
    strength: float = key(0.5, 'how much')


class OwnRates(MaskedLM):
    Settings = Settings

    def example(self, batch, setting, keys_B):
        return super().example(batch, {**setting, 'rate': 0.53}, keys_B)

    def evaluation(self, rows, batch_rows=64):
        return None


OBJECTIVE = OwnRates
"""


def test_a_card_tells_what_an_objective_says_of_itself_and_no_more(tmp_path, monkeypatch):
    """A plug-in that draws its own rates has not masked 15 %; built-in ones that mask are named too."""
    (tmp_path / 'own_rates.py').write_text(OWN_RATES)
    monkeypatch.setattr(objectives, '__path__', [*objectives.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, f'{objectives.__name__}.own_rates', raising=False)
    chosen = {'pretrain.objective': 'own_rates', 'phases': '0.1,0.2'}
    run = recorded(tmp_path / 'run', '', **chosen)
    text = card.model_card(history_of(run), '0.1', ARCHITECTURE, RECORD)
    assert '| 0.1 | own_rates | — | — | — | 100 | 7.000 |' in text
    assert not {'15%', '80-10-10', 'masked language modelling', 'frozen mask'} & set(
        re.split(r'[|.,:] ?', text)
    )
    told = 'own_rates: an objective that does not say what it does; strength 0.5'
    assert f'Objective {told}.\nHeld-out loss: as objective own_rates scores them, on' in text
    assert description(read_measures(run)).endswith(f'curriculum 0.1 (own_rates), 0.2 (own_rates). {told}.')
    kind = OBJECTIVES.load('own_rates')
    said = {
        'does': 'mean of it',
        'masking': lambda phase: ('tokens', '53%', '80-10-10'),
        'heldout_loss': 'nats',
    }
    for name, value in said.items():
        monkeypatch.setattr(kind, name, staticmethod(value) if callable(value) else value)
    text = card.model_card(history_of(run), '0.1', ARCHITECTURE, RECORD)
    assert '| 0.1 | own_rates | tokens | 53% | 80-10-10 | 100 | 7.000 |' in text
    assert 'Objective own_rates: mean of it; strength 0.5.\nHeld-out loss: nats, on' in text
    for name in ('nsp', 'distil', 'adversarial', 'rtd'):
        found = recorded(tmp_path / name, '', **{'pretrain.objective': name, 'phases': '0.1'})
        text = card.model_card(history_of(found), '0.1', ARCHITECTURE, RECORD)
        assert f'| 0.1 | {name} | tokens | 15% | 80-10-10 | 100 | 7.000 |' in text
        assert f'Objective {name}: ' in text
        assert 'does not say' not in text
        assert 'one frozen mask, nats per [MASK]ed piece, on documents' in text


def test_a_card_tells_no_source_scale_rate_or_curriculum_that_there_was_not(tmp_path):
    changes = {
        'surgery.strategy': 'scratch',
        'phases': '0.1',
        'phase.0.1.learning_rate': '0.002',
        'phase.0.1.fall': 'cosine',
    }
    text = card.model_card(
        history_of(recorded(tmp_path / 'a', 'some/model', **changes)), '0.1', ARCHITECTURE, RECORD
    )
    data = ModelCard(text).data.to_dict()
    assert 'base_model' not in data
    assert not {'domain-adaptation', 'curriculum-learning'} & set(data['tags'])
    assert 'Source: none; weights from scratch' in text
    assert 'trained from scratch with [the method' in text
    assert (
        'learning rate 0.002; after its warm-up it falls by half a cosine, slowly at both ends; batches'
        in text
    )
    drawn = recorded(tmp_path / 'b', 'some/model', **{'surgery.strategy': 'gaussian'})
    text = card.model_card(history_of(drawn), '0.1', ARCHITECTURE, RECORD)
    assert '17 made; 2 by a fallback' in text
    fitted = recorded(tmp_path / 'c', 'some/model', **{'surgery.fit_steps': '40'})
    assert '17 made, fit_steps 40, scale centred; 2 by' in card.model_card(
        history_of(fitted), '0.1', ARCHITECTURE, RECORD
    )


def test_a_card_tells_the_settings_of_the_run_and_not_those_of_the_export(tmp_path):
    run = recorded(tmp_path / 'run', '', phases='0.1,0.2')
    used = {'phase.0.1.rate': 0.3, 'pretrain.learning_rate': 0.007, 'objective.rtd.share': 0.5}
    write_json(run.workdir / 'pretrain' / 'manifest.json', {'config': used})
    text = card.model_card(history_of(run), '0.1', ARCHITECTURE, RECORD)
    assert '| 0.1 | mlm | tokens | 30% | 80-10-10 | 100 | 7.000 |' in text
    assert 'learning rate 0.007;' in text
    assert run.config.phase['0.1'].rate == 0.15


def test_scores_make_a_model_index_that_the_hub_reads(tmp_path):
    run = recorded(tmp_path / 'run', '')
    results = [card.scored(ENTITIES, 'ncbi-disease', 88.444, 3), card.scored(ENTITIES, 'bc2gm', 83.1, 1)]
    text = card.model_card(history_of(run), '0.1', ARCHITECTURE, RECORD, results)
    found = ModelCard(text).data.eval_results
    assert [(r.dataset_name, r.metric_type, r.metric_value) for r in found] == [
        ('ncbi-disease', 'f1', 88.44),
        ('bc2gm', 'f1', 83.1),
    ]
    assert '| ncbi-disease | 88.44 | entity F1, mean of 3 fine-tuning seeds |' in text
    assert 'before any fine-tuning' not in text


def test_a_card_of_a_fine_tuned_model_says_what_holds_for_it(tmp_path):
    """Licence and languages of what it began from, by its name in the hub's cache; the set, its scores, a text."""
    base = tmp_path / 'models--org--bert' / 'snapshots' / 'abc'
    base.mkdir(parents=True)
    (base / 'README.md').write_text('---\nlicense: mit\nlanguage:\n- en\n- de\n---\n# A model\n')
    scores = {mode: {'f1': 0.5} for mode in ENTITIES.metrics}
    record = {'model': 'bert', 'dataset': 'drugs', 'setting': 'standard', 'seed': 3, 'best_epoch': 2}
    made = FineTuning(**record, train_sentences=9, devel=scores, test={**scores, 'default': {'f1': 0.7}})
    dataset = Dataset('drugs', (), (), (), ('O', 'B-X', 'I-X'), {}, {})
    write_card(tmp_path, base, ENTITIES, dataset, Finetune(), made)
    card = ModelCard.load(tmp_path / 'README.md')
    said = card.data.to_dict()
    assert said['license'] == 'mit'
    assert said['language'] == ['en', 'de']
    assert said['base_model'] == 'org/bert'
    assert 'datasets' not in said  # the name of a local folder is not the id of a data set on the hub
    assert said['pipeline_tag'] == 'token-classification'
    assert said['widget'] == [{'text': EXAMPLE}]
    [result] = card.data.eval_results
    assert (result.dataset_name, result.metric_type, result.metric_value) == ('drugs', 'f1', 70.0)
    assert 'set (not on record) and of the model that it began from (mit) hold' in card.text
    assert 'The epoch (2) was chosen on devel.' in card.text
    write_card(tmp_path, base, ENTITIES, dataset, Finetune(learn_devel=True), made)
    assert 'It is the last epoch (2), and devel was trained on' in ModelCard.load(tmp_path / 'README.md').text
    other = dataclasses.replace(made, dataset='bioasq')
    write_card(tmp_path, tmp_path / 'none', ENTITIES, dataset, Finetune(), other)
    card = ModelCard.load(tmp_path / 'README.md')
    assert not {'license', 'language', 'base_model'} & set(card.data.to_dict())
    assert (
        f'set ({record_of("bioasq").licence}) and of the model that it began from (not on record)'
        in card.text
    )


def test_the_code_on_a_card_runs(tmp_path, monkeypatch, capsys, params, tokenizer_folder):
    run = recorded(tmp_path / 'run', '')
    export.export(
        tmp_path / '0.1',
        ARCHITECTURE,
        params,
        tokenizer_folder,
        TEXTS,
        RECORD,
        card_of=functools.partial(card.model_card, history_of(run), '0.1'),
    )
    text = (tmp_path / '0.1' / 'README.md').read_text()
    assert ModelCard(text).data.widget == [{'text': 'Treatment with [MASK] was effective.'}]
    code = text.split('```python\n')[1].split('```')[0]
    monkeypatch.chdir(tmp_path / '0.1')
    exec(compile(code, 'README.md', 'exec'), {})
    printed = ast.literal_eval(capsys.readouterr().out)
    assert len(set(printed)) == 5
    assert set(printed) <= set(VOCABULARY)


def test_another_card_does_not_change_what_later_stages_read(tmp_path, monkeypatch, params, tokenizer_folder):
    """Scores and words on a card come and go; the digest of the stage is that of the models."""
    monkeypatch.setattr(export, 'finished_phases', lambda folder: ['0.1', '0.2', '0.3', '0.4'])
    monkeypatch.setattr(export, 'phase_checksums', lambda folder, phase: {})
    monkeypatch.setattr(export, 'load_phase', lambda folder, phase: params)
    digests = []
    for number, texts in enumerate(('', 'pubmed25n0001.xml')):
        run = recorded(tmp_path / str(number), '')
        if not texts:
            (run.workdir / 'corpus' / 'manifest.json').unlink()
        else:
            monkeypatch.setattr(export, '_heldout_texts', lambda corpus: [])
        written(run.workdir / 'surgery' / 'model', params, tokenizer_folder)
        digests.append(export.build(run, run.workdir / 'export').content)
    cards = [(tmp_path / n / 'export' / '0.1' / 'README.md').read_text() for n in '01']
    assert cards[0] != cards[1]
    assert digests[0] == digests[1]
    # A finished stage is pushed, with the card that came later; one that has begun again is not.
    made = run.workdir / 'export'
    manifests.write_manifest(made, Manifest(stage='export', files=manifests.listed(made, run.checksums())))
    (made / '0.1' / 'README.md').write_text('---\nlicense: apache-2.0\n---\n# Mine\n')
    pushed = parcel(made / '0.1')
    assert set(pushed.files) == {file.name for file in (made / '0.1').iterdir()}
    assert pushed.licence == 'apache-2.0'
    scored, tables = run.workdir / 'report' / 'cards' / '0.1.md', run.workdir / 'report' / 'tables.md'
    scored.parent.mkdir(parents=True)
    for file in (scored, tables):
        file.write_text('---\nlicense: mit\n---\n# With scores\n')
    of_report = manifests.listed(scored.parents[1], run.checksums())
    manifests.write_manifest(scored.parents[1], Manifest(stage='report', files=of_report))
    assert parcel(scored).files == {'README.md': scored}  # a card alone
    (made / manifests.MANIFEST).rename(made / manifests.STARTED)
    refused = {tables: r'tables\.md: no such folder', made / '0.1': 'export: is not finished'}
    for given, message in refused.items():
        with pytest.raises(InputError, match=message):
            parcel(given)


def test_the_mean_of_models_and_what_has_none(params, tokenizer_folder, tmp_path, capsys):
    """Weighted by hand; through the verb, which transformers agrees with."""
    from bioptimus_jax.cli import main as cli

    others = jax.tree.map(lambda leaf: leaf * -0.5 + 0.01, params)
    pooler = {'bert.pooler.dense.weight': np.eye(32, dtype=np.float32)}
    bias = {'bert.pooler.dense.bias': np.ones(32, np.float32)}
    for name, weights, beside in (('a', params, pooler), ('b', others, {**pooler, **bias})):
        tensors.write_folder(tmp_path / name, ARCHITECTURE, weights, tokenizer_folder, beside)
        (tmp_path / name / 'README.md').write_text('---\nlicense: mit\nlanguage: en\n---\n# A model\n')
    folders = [str(tmp_path / 'a'), str(tmp_path / 'b')]
    assert cli.main(['merge', *folders, '--weights=1,3', f'--to={tmp_path / "mean"}']) in (0, None)
    read = {n: safetensors.numpy.load_file(tmp_path / n / 'model.safetensors') for n in ('a', 'b', 'mean')}
    assert 'not all models have bert.pooler.dense.bias, so the mean has none' in capsys.readouterr().err
    assert read['mean'].keys() == read['a'].keys()
    for name, value in read['mean'].items():
        by_hand = 0.25 * read['a'][name] + 0.75 * read['b'][name]
        np.testing.assert_allclose(value, by_hand, atol=1e-6, err_msg=name)
    about = read_export(tmp_path / 'mean')
    assert [made.weight for made in about.merged.values()] == [1, 3]
    assert json_text(about.json()) == (tmp_path / 'mean' / 'export.json').read_text()
    said = (tmp_path / 'mean' / 'README.md').read_text()
    data = ModelCard(said).data.to_dict()
    assert (data['license'], data['language']) == ('mit', 'en')
    assert not {'curriculum-learning', 'domain-adaptation'} & set(data['tags'])
    sums = [sha256(tmp_path / name / 'model.safetensors')[:16] for name in 'ab']
    for line in (
        '# BERT, the mean of 2 models\n',
        f'- `a`, weight 1, weights with SHA-256 `{sums[0]}…`\n- `b`, weight 3, weights with SHA-256 `{sums[1]}…`',
        'The mean itself has not been scored',
        'The licences of all 2 models hold for it (mit)',
    ):
        assert line in said, line
    # A mean is not a phase, and no run has records or scores of it.
    assert not any(word in said for word in ('phase', 'its run', 'Not on record', str(tmp_path)))
    (tmp_path / 'b' / 'README.md').unlink()
    thrice = [tmp_path / name for name in ('a', 'b', 'a')]
    merge(thrice, (), tmp_path / 'thrice')  # a model that is named twice counts twice
    about = read_export(tmp_path / 'thrice')
    assert [made.weight for made in about.merged.values()] == [2, 1]
    said = (tmp_path / 'thrice' / 'README.md').read_text()
    assert 'license' not in ModelCard(said).data.to_dict()
    assert 'hold for it (mit, not on record)' in said
    # What its own checksums say may be pushed; a weight that was changed may not.
    assert set(parcel(tmp_path / 'mean').files) == {file.name for file in (tmp_path / 'mean').iterdir()}
    weights = tmp_path / 'mean' / 'model.safetensors'
    weights.write_bytes(weights.read_bytes()[:-1] + b'x')
    with pytest.raises(InputError, match=r'mean/model\.safetensors: is not what its stage wrote'):
        parcel(tmp_path / 'mean')

    larger = dataclasses.replace(ARCHITECTURE, intermediate=32)
    of_larger = larger.initial_parameters(jax.random.key(0))
    tensors.write_folder(tmp_path / 'larger', larger, of_larger, tokenizer_folder)
    make([*VOCABULARY[:-1], 'x-ray'], True).save(tmp_path / 'words', ARCHITECTURE.max_positions)
    tensors.write_folder(tmp_path / 'other', ARCHITECTURE, others, tmp_path / 'words')
    for name, shares, made, error, message in (
        ('larger', (), 'never', InputError, r'larger/config\.json: intermediate is 32, but 64 in '),
        ('other', (), 'never', InputError, r'other: has another vocabulary than '),
        ('b', (), 'mean', InputError, 'mean: already exists'),
        ('b', (1.0,), 'never', ConfigError, 'as many --weights; got 2 and 1'),
    ):
        with pytest.raises(error, match=message):
            merge([tmp_path / 'a', tmp_path / name], shares, tmp_path / made)
    assert not (tmp_path / 'never').exists()
