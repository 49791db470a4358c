"""What `import bioptimus_jax` offers: the notebook, and the wishes of a Python user one by one."""

import copy
import dataclasses
import inspect
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import jax
import numpy as np
import pytest
import torch
import toy_ranks
import transformers
from toy_compiler import ONE_DEVICE
from toy_notebook import code_cells, execute
from toy_programs import begin_warm, environment
from toy_sets import DRUGS, Frame, save_encoder, save_set

import bioptimus_jax as bx
from bioptimus_jax.api import adapting
from bioptimus_jax.api.bars import Bar, shown
from bioptimus_jax.api.masking import IGNORED, Draws, mask_row
from bioptimus_jax.api.objects import HABITS
from bioptimus_jax.api.program import Shows, run_program, run_verb
from bioptimus_jax.corpus.config import Corpus
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetuning.scoring import score as scored_here
from bioptimus_jax.hosts.devices import Present
from bioptimus_jax.model.config import Source
from bioptimus_jax.pretrain.config import PAPER_PHASES, Phase
from bioptimus_jax.pretrain.masking import Masker, MaskingParams, slot_count
from bioptimus_jax.pretrain.memory import check_memory
from bioptimus_jax.pretrain.plan import planned_architecture
from bioptimus_jax.pretrain.unit_weights import TokenWeights
from bioptimus_jax.pretrain.units import MASKINGS, Strategy, limits
from bioptimus_jax.storage.files import read_json, write_json, write_jsonl
from bioptimus_jax.surgery import spelling
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds.wordpiece import make

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / 'docs' / 'python.ipynb'
FAMILIES = ('bert', 'roberta', 'electra', 'modernbert', 'eurobert', 'ultrabert')
WORD = 'mipanzol'  # of several pieces in every tokenizer of toy_sets
TEXT = 'the patient got a dose of zolmipan'


@pytest.fixture
def nothing_left(tmp_path, monkeypatch):
    """The folder of temporary files, which has to be empty in the end."""
    folder = tmp_path / 'temporary'
    folder.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(folder))
    yield folder
    assert not list(folder.iterdir())


def objects(folder):
    """The masked language model of a folder and its tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return transformers.AutoModelForMaskedLM.from_pretrained(folder), tokenizer


@pytest.fixture(scope='module', params=FAMILIES)
def encoder(request, tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope='module')
def bert(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp('bert'), 'bert')


@pytest.fixture(scope='module')
def read(bert):
    """Objects that no test changes."""
    return objects(bert)


@pytest.fixture(scope='module')
def notebook(tmp_path_factory, programs):
    """Executed: the notebook with its outputs, what it leaves in memory, and its folder; its programs start warm."""
    folder, temporary = tmp_path_factory.mktemp('notebook'), tmp_path_factory.mktemp('temporary')
    jax.devices()  # of this process, which has eight
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv('XLA_FLAGS', ONE_DEVICE)
        patched.setenv('TMPDIR', str(temporary))
        begin_warm(patched, programs)
        patched.setattr(tempfile, 'tempdir', str(temporary))
        made, namespace = execute(NOTEBOOK, folder)
    assert not list(temporary.glob('bioptimus-*'))
    return made, namespace, folder


def test_the_notebook_prints_what_it_shows_and_the_page_shows_what_is_in_it(notebook):
    made, shown = code_cells(notebook[0]), code_cells(json.loads(NOTEBOOK.read_text('utf-8')))
    for ours, theirs in zip(made, shown, strict=True):
        assert ours['outputs'] == theirs['outputs'], ''.join(ours['source'])
    code = '\n'.join(''.join(cell['source']) for cell in shown)
    page = (ROOT / 'docs' / 'howto' / 'python.md').read_text('utf-8')
    blocks = re.findall(r'```python\n(.*?)```', page, re.S)
    assert len(blocks) > 2
    assert all(block in f'{code}\n' for block in blocks)
    for name in bx.__all__[:-2]:
        assert f'bx.{name}(' in code
        assert f'`bx.{name}`' in page


def test_adapt_gives_the_last_export_and_the_program_goes_on_with_it(notebook):
    _, names, folder = notebook
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(
        folder / 'run' / 'export' / 'words'
    ).state_dict()
    ours = names['adapted'].state_dict()
    assert all(torch.equal(ours[name], tensor) for name, tensor in theirs.items())
    # It has been trained: the state at step 0 is another.
    begun = transformers.AutoModelForMaskedLM.from_pretrained(
        folder / 'run' / 'surgery' / 'model'
    ).state_dict()
    assert not all(torch.equal(ours[name], tensor) for name, tensor in begun.items())
    file = folder / 'run' / 'given' / 'config.py'
    asked = Experiment.from_config(config.load(str(file)))
    assert (asked.phases, asked.stages[-1]) == (('words',), 'export')
    # As `init` says: from 300 documents, which are few, more are held out, and no text is seen twice.
    assert (asked.phase['words'].masking, asked.phase['words'].rate) == ('words', 0.20)
    assert (asked.corpus.heldout_fraction, asked.model.dropout) == (0.1, 0.0)
    assert 'bioptimus-' not in file.read_text('utf-8')
    before = file.read_bytes()
    with pytest.raises(bx.ConfigError, match='was started with another texts; choose another workdir'):
        bx.adapt(names['model'], names['tokenizer'], ['Another text.'], folder / 'run')
    assert file.read_bytes() == before


def test_a_workdir_is_of_one_set_of_files(tmp_path):
    """What a call leaves behind is not read with what another one brings; a refusal changes nothing."""
    run, place = tmp_path / 'run', tmp_path / 'place' / 'given' / 'sets' / 'data'
    old = run / 'given' / 'sets' / 'data' / 'train.jsonl'
    for file in (old, place / 'train' / 'data.arrow', place / 'dataset_dict.json'):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(file.name)
    (run / 'finetune').mkdir()
    own = run / 'given' / 'notes.txt'
    for left, message in (
        (old, 'was started with another sets; choose another workdir'),
        (own, 'get_config'),
    ):
        if left == own:  # where no stage has read it, it gives way; what somebody else keeps there does not
            (run / 'finetune').rmdir()
            own.write_text('')
        with pytest.raises(bx.ConfigError, match=message):
            run_verb('finetune', place.parents[2], run, '', Shows.of(True, None))
        assert [path for path in (run / 'given').rglob('*') if path.is_file()] == [left]


@pytest.fixture
def planned(monkeypatch):
    """Calls of adapt that end where the program would start: the config file that each made."""
    made = []

    class Started(Exception):
        pass

    def run_verb(verb, place, run, text, shows):
        made.append(text)
        raise Started

    def call(*given, **named):
        with pytest.raises(Started):
            bx.adapt(*given, **named)
        (file := named['workdir'].with_suffix('.py')).write_text(made[-1], 'utf-8')
        return Experiment.from_config(config.load(str(file)))

    monkeypatch.setattr(adapting, 'run_verb', run_verb)
    return call


def test_the_paper_is_adapted_in_parts_that_fit_this_machine(read, planned, tmp_path, monkeypatch):
    model, tokenizer = read
    asked = dict(workdir=tmp_path / "it's", recipe='paper', quiet=True)
    found = planned(model, tokenizer, [TEXT] * 40, **asked)
    assert found.phases == tuple(PAPER_PHASES)
    assert [found.phase[name].duration for name in found.phases] == [7, 9, 9, 9]
    assert (found.pretrain.batch_rows, found.pretrain.micro_batches) == (256, 1)
    assert (found.surgery.map, found.surgery.scale) == ('none', 'literal')
    assert found.rows.max_document_pieces == 128  # the model has no more positions
    assert found.source.path == str(tmp_path / "it's" / 'given' / 'model')
    assert found.corpus.heldout_fraction == 0.5  # 20 of 40
    little = Present('cpu', 'cpu', 1, 1, 2**28)
    monkeypatch.setattr('bioptimus_jax.hosts.devices.look', lambda: little)
    found = planned(model, tokenizer, [TEXT] * 40, **asked)
    assert found.pretrain.micro_batches > 1
    check_memory(
        found,
        planned_architecture(dataclasses.replace(found, source=Source(str(read[0].name_or_path))))[0],
        little,
        1,
    )
    # The same call goes on with what was found before, on whatever machine; another call does not.
    (asked['workdir'] / 'corpus').mkdir(parents=True)
    (asked['workdir'] / 'given').mkdir()
    first = asked['workdir'].with_suffix('.py').rename(asked['workdir'] / 'given' / 'config.py').read_text()
    monkeypatch.setattr('bioptimus_jax.hosts.devices.look', lambda: Present('cpu', 'cpu', 1, 1, 2**34))
    assert planned(model, tokenizer, [TEXT] * 40, **asked).pretrain.micro_batches > 1
    assert asked['workdir'].with_suffix('.py').read_text() == first
    asked['keys'] = {'seed': 3}
    assert planned(model, tokenizer, [TEXT] * 40, **asked).pretrain.micro_batches == 1


def test_texts_may_be_files_and_rows_of_a_data_set(read, planned, tmp_path, monkeypatch):
    model, tokenizer = read
    monkeypatch.chdir(tmp_path)
    for name in 'ab':
        (tmp_path / f'{name}.txt').write_text(TEXT)
    asked = dict(workdir=tmp_path / 'run', recipe='paper', keys={'pretrain.micro_batches': 1}, quiet=True)
    for given in ('*.txt', Path('*.txt')):
        assert planned(model, tokenizer, given, **asked).corpus.inputs == (str(tmp_path / '*.txt'),)
    found = planned(model, tokenizer, map(Path, ('a.txt', 'b.txt')), **asked).corpus
    assert found.inputs == (str(tmp_path / 'a.txt'), str(tmp_path / 'b.txt'))
    assert found.heldout_fraction == Corpus.heldout_fraction
    found = planned(model, tokenizer, [{'text': TEXT, 'label': 1}], **asked).corpus
    assert (found.inputs, found.text_fields) == (
        (str(tmp_path / 'run' / 'given' / 'texts.jsonl'),),
        ('text',),
    )


def test_results_are_a_table_of_every_kind(notebook, tmp_path):
    folder = notebook[2] / 'run'
    assert 'pip install pandas' in bx.results.__doc__  # which `.to_pandas()` needs
    ends = bx.results(folder, 'phases').to_pylist()
    assert [(r['run'], r['phase'], r['step']) for r in ends] == [
        ('run', 'initial', 0),
        ('run', 'words', 2),
    ]
    found = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
    wanted = [r for r in found if r.get('kind') == 'train']
    training = bx.results(folder, 'training')
    assert training.column('loss').to_pylist() == [r['loss'] for r in wanted]
    assert bx.results(folder, 'evaluations').num_rows >= 2
    assert bx.results(folder).num_rows == 0
    pairs = save_set(tmp_path / 'drugs'), save_set(tmp_path / 'predicted')
    scored = scored_here(pairs[0], pairs[1] / 'test.tsv', 'entities', {})
    record = read_json(scored.keep(tmp_path / 'kept', 'words', 1) / 'scores.json')
    record = {key: value for key, value in record.items() if key not in ('outside', 'seedless')}
    record['devel'] = record['test']
    (folder / 'finetune').mkdir()
    write_jsonl(folder / 'finetune' / 'results.jsonl', [record])
    [row] = bx.results(folder).to_pylist()
    assert (row['model'], row['dataset'], row['seed'], row['test.default.f1']) == ('words', 'drugs', 1, 1.0)


def test_words_are_added_without_a_corpus_and_everything_else_stays(encoder, nothing_left, tmp_path):
    model, tokenizer = objects(encoder)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    averaged = {'strategy': 'averaged_input', 'keys': {'surgery.scale': 'literal'}}
    made, larger = bx.add_words(model, tokenizer, [WORD], **averaged)
    assert type(made) is type(model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert len(larger.tokenize(f' {WORD}')) == 1
    table, old = (one.get_input_embeddings().weight.detach() for one in (made, model))
    assert table.shape == (len(larger), old.shape[1])
    assert torch.equal(table[: len(tokenizer)], old[: len(tokenizer)])
    # A row that is new is the mean of the rows of its pieces; of byte-level ones every beginning is new.
    for token in larger.convert_ids_to_tokens(range(len(tokenizer), len(larger))):
        pieces = tokenizer(token.replace('Ġ', ' '), add_special_tokens=False)['input_ids']
        expected = old[pieces].double().mean(0).float()
        assert len(pieces) > 1
        assert torch.allclose(table[larger.convert_tokens_to_ids(token)], expected, atol=1e-6)
    given = tokenizer(TEXT, return_tensors='pt')
    assert given['input_ids'].tolist() == larger(TEXT, return_tensors='pt')['input_ids'].tolist()
    with torch.no_grad():
        wanted, found = (one.eval()(**given).logits for one in (model, made))
    assert torch.allclose(found[..., : len(tokenizer)], wanted[..., : len(tokenizer)], atol=1e-5)
    made.save_pretrained(tmp_path / 'made')
    larger.save_pretrained(tmp_path / 'made')
    fill = transformers.pipeline('fill-mask', model=str(tmp_path / 'made'), device='cpu')
    masked = f'the {larger.mask_token} got a {WORD}'
    [best, *_] = fill(masked, top_k=3)
    encoded = larger(masked, return_tensors='pt')
    place = encoded['input_ids'][0].tolist().index(larger.mask_token_id)
    with torch.no_grad():
        assert best['token'] == int(made(**encoded).logits[0, place].argmax())


@pytest.mark.parametrize('name', ['bert', 'roberta'])
def test_words_are_chosen_from_texts_by_how_often_they_are_seen(name, tmp_path, nothing_left, capsys):
    """Rows of a data set: WORD and another word twice, a number, which is no word, and a word that is seen once."""
    model, tokenizer = objects(save_encoder(tmp_path / name, name))
    texts = [{'text': f'a {WORD} and {WORD} of nephrin'}, {'text': '(nephrin 12345 12345 panzolmi)'}]
    made, larger = bx.add_words(model, tokenizer, texts=texts, strategy='averaged_input', progress=True)
    new = larger.convert_ids_to_tokens(range(len(tokenizer), len(larger)))
    for word, whole in ((WORD, True), ('nephrin', True), ('12345', False), ('panzolmi', False)):
        assert any(token.strip('Ġ') == word for token in new) is whole
    table, old = (one.get_input_embeddings().weight for one in (made, model))
    assert torch.equal(table[: len(old)], old)
    assert 'surgery: ' in capsys.readouterr().err  # on the bar
    _, one = bx.add_words(
        model, tokenizer, texts=texts, most=1, strategy='averaged_input', keys={'surgery.scale': 'literal'}
    )
    assert [len(one.tokenize(f' {word}')) == 1 for word in (WORD, 'nephrin')] == [True, False]
    assert capsys.readouterr().err == ''  # neither a terminal nor a notebook


def test_without_sentences_rows_come_from_spelling(bert):
    model, tokenizer = objects(bert)
    known = subwords.load(bert)
    predict = spelling.fitted(
        spelling.with_borders(known, known.drawn_N),
        model.get_input_embeddings().weight.detach().numpy()[known.drawn_N],
    )
    made, larger = bx.add_words(model, tokenizer, [WORD], keys={'surgery.scale': 'literal'})
    row = made.get_input_embeddings().weight.detach()[larger.convert_tokens_to_ids(WORD)]
    np.testing.assert_allclose(row.numpy(), predict([f'<{WORD}>'])[0], atol=1e-5)


def test_rows_are_read_in_sentences_and_a_classifier_stays_one(bert, nothing_left):
    source, tokenizer = objects(bert)
    labelled = transformers.AutoModelForSequenceClassification.from_pretrained(bert, num_labels=3).half()
    sentences = [f'{TEXT} and {WORD}', f'{WORD} daily']
    keys = {
        'surgery.layers': (-1,),
        'surgery.map': 'none',
        'surgery.shrinkage': 0.0,
        'surgery.scale': 'literal',
    }
    made, larger = bx.add_words(labelled, tokenizer, [WORD], sentences, keys=keys)
    assert torch.equal(made.classifier.weight, labelled.classifier.weight)
    assert (made.dtype, made.config.num_labels) == (torch.float16, 3)
    # Equation 1 of the paper by transformers: the mean over sentences of the mean over the word's pieces.
    half = source.half().float()  # as the classifier has it
    means = []
    for text in sentences:
        encoded = tokenizer(text, return_tensors='pt')
        at = [
            text.index(WORD) <= a < b <= text.index(WORD) + len(WORD)
            for a, b in tokenizer(text, return_offsets_mapping=True)['offset_mapping']
        ]
        with torch.no_grad():
            means.append(half.base_model(**encoded).last_hidden_state[0, torch.tensor(at)].mean(0))
    row = made.get_input_embeddings().weight[larger.convert_tokens_to_ids(WORD)].float()
    assert torch.allclose(row, torch.stack(means).mean(0), atol=2e-3)


ADAPTED = {
    'bert': [
        'BertForTokenClassification',
        'BertForSequenceClassification',
        'BertForPreTraining',
        'BertModel',
    ],
    'roberta': ['RobertaModel'],
    'electra': ['ElectraForPreTraining', 'ElectraModel'],
    'modernbert': ['ModernBertModel'],
    'eurobert': ['EuroBertModel'],
    'ultrabert': ['UltrabertModel'],
}


def test_a_folder_keeps_its_class_head_pooler_and_type(encoder, tmp_path):
    """The object in its place keeps them too; the last class of each, where config.json says neither class nor type."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    *classes, bare = ADAPTED[encoder.name.rstrip('0123456789')]
    for name in (*classes, bare):
        one_type = dict(type_vocab_size=1, ignore_mismatched_sizes=True) if name == 'RobertaModel' else {}
        given = getattr(transformers, name).from_pretrained(encoder, **one_type).half()
        given.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        if name == bare:
            values = read_json(tmp_path / name / 'config.json')
            unsaid = {key: value for key, value in values.items() if key not in ('architectures', 'dtype')}
            write_json(tmp_path / name / 'config.json', unsaid)
        averaged = {'strategy': 'averaged_input', 'keys': {'surgery.scale': 'literal'}}
        made, larger = bx.add_words(str(tmp_path / name), None, [WORD], **averaged)
        assert (type(made), made.dtype) == (type(given), torch.float16)
        assert made.config.vocab_size == len(larger)
        ours, theirs = (folded(model.state_dict()) for model in (made, given))
        assert ours.keys() == theirs.keys()
        for of, old in theirs.items():  # of a table with more rows the first ones
            assert torch.allclose(ours[of][: len(old)], old, rtol=0, atol=1e-3 * (of == POSITIONS)), of


POSITIONS = 'embeddings.position_embeddings.weight'


def folded(state):
    """A state dict with the type of RoBERTa, which every piece has, in the rows of positions."""
    if 'pooler.dense.bias' in state and len(state[POSITIONS]) == 130:
        rows = state[POSITIONS] + state.pop('embeddings.token_type_embeddings.weight')
        state = {**state, POSITIONS: rows[2:]}
    return state


def test_a_vocabulary_of_texts_replaces_another_and_keeps_what_both_have(bert, nothing_left):
    model, tokenizer = objects(bert)
    texts = [' '.join(pair) for pair in itertools.product(DRUGS, ['daily', 'dose'])]
    own = bx.train_vocabulary(texts, tokenizer, size=100)
    assert own.tokenize('Zolmipan') == ['zolmipan']
    assert own.model_max_length == tokenizer.model_max_length
    made, same = bx.replace_vocabulary(str(bert), None, own)
    assert same.get_vocab() == own.get_vocab()
    table, old = (one.get_input_embeddings().weight for one in (made, model))
    shared = sorted(own.get_vocab().keys() & tokenizer.get_vocab().keys())
    assert len(shared) > 20
    assert torch.equal(table[own.convert_tokens_to_ids(shared)], old[tokenizer.convert_tokens_to_ids(shared)])
    longer = bx.train_vocabulary(texts, tokenizer, size=100, append=True)
    assert longer.convert_ids_to_tokens(range(len(tokenizer))) == tokenizer.convert_ids_to_tokens(
        range(len(tokenizer))
    )
    bytes_ = bx.train_vocabulary(
        texts, size=300, keys={'vocab.tokenizer': 'bytelevel', 'vocab.lowercase': False}
    )
    assert bytes_.tokenize('Z') == ['Z']


def test_a_model_that_grows_has_a_tokenizer_that_knows_it(bert):
    model, tokenizer = objects(bert)
    positions = model.config.max_position_embeddings
    for asked, length in ((positions, positions + 32), (20, 20)):
        texts = tokenizer if asked == positions else with_added(bert)
        texts.model_max_length = asked
        grown = {'surgery.longer.positions': positions + 32}
        made, known = bx.replace_vocabulary(model, tokenizer, texts, keys=grown)
        assert made.config.max_position_embeddings == positions + 32
        assert known.model_max_length == length


ADDED = ['IL-2', 'tumor necrosis factor', '[E1]', '[/E1]']
WITH_ADDED = '[E1] IL-2 [/E1] and tumor necrosis factor, il-2 of zolmipan'


def with_added(folder):
    """A tokenizer with added tokens, two of them special, and habits of its own."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        folder, padding_side='left', truncation_side='left', model_input_names=['input_ids', 'attention_mask']
    )
    # Byte-level tokenizers with an added token of several words are refused.
    tokenizer.add_tokens(ADDED[: 1 if 'roberta' in folder.name else 2])
    tokenizer.add_special_tokens({'additional_special_tokens': ADDED[2:]})
    tokenizer.model_max_length = 100
    return tokenizer


def habits(tokenizer):
    return [getattr(tokenizer, name) for name in HABITS]


@pytest.mark.parametrize('name', ['bert', 'roberta'])
def test_tokens_that_were_added_to_a_given_tokenizer_are_cut_as_it_cuts_them(name, tmp_path, nothing_left):
    model, tokenizer = objects(save_encoder(tmp_path / name, name))
    wanted = with_added(tmp_path / name)
    made, found = bx.replace_vocabulary(model, tokenizer, wanted)
    assert found.get_vocab() == wanted.get_vocab()
    assert found(WITH_ADDED)['input_ids'] == wanted(WITH_ADDED)['input_ids']
    assert {'IL-2', '[E1]', '[/E1]'} <= {t.content for t in found.added_tokens_decoder.values()}
    assert habits(found) == habits(wanted)
    assert made.get_input_embeddings().weight.shape[0] == len(wanted)
    # A vocabulary that is trained like it has its special tokens and habits, from the object and from its folder.
    wanted.save_pretrained(tmp_path / 'like')
    for like in (wanted, tmp_path / 'like'):
        own = bx.train_vocabulary([TEXT, ' '.join(DRUGS)], like, size=300)
        assert len(own) <= 300
        assert own.tokenize('[E1] zolmipan [/E1]')[0::2][:1] == ['[E1]']
        assert {'[E1]', '[/E1]'} <= set(own.all_special_tokens)
        assert 'IL-2' not in own.get_vocab()
        assert habits(own) == habits(wanted)


def test_a_tokenizer_that_cuts_other_words_is_refused(bert, read, tmp_path):
    """A tokenizer that keeps accents where the model's drops them; and one whose settings a WordPiece of ours cannot
    have."""
    accents = transformers.AutoTokenizer.from_pretrained(bert, strip_accents=False)
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state['model']['max_input_chars_per_word'] = 200
    (tmp_path / 'tokenizer.json').write_text(json.dumps(state), 'utf-8')
    for wrong, error, message in (
        (accents, bx.ConfigError, r"cuts 'Naïve COX-2 .*' into other words than"),
        (
            tmp_path / 'tokenizer.json',
            bx.InputError,
            'max_input_chars_per_word of the tokenizer is 200; only 100',
        ),
    ):
        with pytest.raises(error, match=message):
            bx.replace_vocabulary(*read, wrong)


def test_a_word_has_one_piece_or_an_error_says_why(read, tmp_path):
    model, tokenizer = read
    known = transformers.AutoTokenizer.from_pretrained(tokenizer.name_or_path)
    known.add_tokens(['brca1', 'glioma', 'IL-2'])
    grown = transformers.AutoModelForMaskedLM.from_pretrained(model.name_or_path)
    grown.resize_token_embeddings(len(known))
    for word, why in (
        ('a' * 101, 'it has 101 characters, and the tokenizer reads no word of that length'),
        ('brca1x', "'brca1', a token that was added, is taken out of a text first"),
        ('paraglioma', "'glioma', a token that was added, is taken out of a text first"),
    ):
        with pytest.raises(bx.InputError, match=f"words: '{word}' cannot be one piece: {why}; leave it out"):
            bx.add_words(grown, known, [word])
    with pytest.warns(
        UserWarning, match='the vocabulary already has 2 of 3, which are left .*: IL-2, patient$'
    ):
        _, same = bx.add_words(grown, known, ['IL-2', 'patient', WORD])
    assert len(same) == len(known) + 1
    assert same.tokenize(f'IL-2 {WORD}') == [*known.tokenize('IL-2'), WORD]
    # Appended are those alone that a text can have.
    texts = ['brca1x paraglioma zolmipan nephrin'] * 3
    longer = bx.train_vocabulary(texts, known, size=200, append=True)
    assert longer.tokenize('nephrin') == ['nephrin']
    assert not {'brca1x', 'paraglioma', '##glioma'} & set(longer.get_vocab())


def test_entries_that_no_text_reaches_are_listed(read, tmp_path):
    """Entries of an uncased vocab.txt: capitals, accents, a space, more than 100 letters."""
    model, tokenizer = read
    dead = ['BRCA1', 'naïve', 'a b', 'a' * 120]
    entries = [*tokenizer.convert_ids_to_tokens(range(len(tokenizer))), *dead, 'brca']
    (tmp_path / 'vocab.txt').write_text('\n'.join(entries) + '\n', 'utf-8')
    (tmp_path / 'tokenizer_config.json').write_text('{"do_lower_case": true}', 'utf-8')
    with pytest.warns(
        UserWarning, match=r"4 entries .* \('BRCA1', 'naïve', 'a b', 'aaaaaaaaaaaaaaaaaaaa\.\.\.'\)"
    ):
        bx.replace_vocabulary(model, tokenizer, tmp_path / 'vocab.txt')


# Rows of words, each its number of pieces, with special tokens around; some of them padded.
SPECIALS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
WORDS = make([*SPECIALS, *(f'w{i}' for i in range(30)), *(f'##c{i}' for i in range(20))], True)


LONGEST, LENGTH, ROWS = 5, 40, 16


@jax.jit
def masked_on_a_device(tokens, starts, maskable, setting, seed):
    """Rows masked as in pre-training, and the random numbers that they were masked with."""
    keys = jax.random.split(jax.random.key(seed), ROWS)
    masker = Masker(WORDS, 'wordpiece', tuple(MASKINGS), LONGEST, slot_count(0.2, LENGTH, LENGTH))

    def draws(key):
        order, corruption, replacement, budget = jax.random.split(key, 4)
        uniform = [jax.random.uniform(k, (LENGTH,)) for k in (jax.random.fold_in(key, 4), order, corruption)]
        drawn = jax.random.randint(replacement, (LENGTH,), 0, len(WORDS.drawn_N))
        rate = jax.random.uniform(jax.random.fold_in(key, 5))
        return jax.random.uniform(budget), rate, *uniform, (drawn + 0.5) / len(WORDS.drawn_N)

    return masker.mask(tokens, starts, maskable, setting, keys), jax.vmap(draws)(keys)


JOINING = {
    'spans': Strategy(lambda words_L, draws_L: words_L & (draws_L >= 0.7), words=3),
    'stretches': Strategy(lambda words_L, draws_L: draws_L >= 0.7, pieces=4),
    'weighed': Strategy(
        lambda words_L, draws_L: words_L, words=1, weights=TokenWeights({'w3': 0, 'w5': 9, '##c7': 4})
    ),
    'diffusion': Strategy(lambda words_L, draws_L: words_L, words=1, rate=lambda rate, draw: rate * draw),
}


@pytest.mark.parametrize('phase', [*PAPER_PHASES, *JOINING])
def test_the_rule_of_the_collator_is_that_of_pre_training(phase, monkeypatch):
    """The same random numbers give the same mask as on the device."""
    for name, strategy in JOINING.items():
        monkeypatch.setitem(MASKINGS, name, strategy)
    generator, setting = np.random.default_rng(3), PAPER_PHASES.get(phase, Phase(phase, 0.2))
    tokens = generator.integers(5, len(WORDS.tokens), (ROWS, LENGTH)).astype(np.int32)
    tokens[:, 0], tokens[:, 30], tokens[:8, 33:] = 2, 3, 0
    maskable, starts = ~WORDS.special_V[tokens], WORDS.begins_V[tokens]
    given = tokens, starts, maskable, MaskingParams.of(setting, LONGEST), 3
    theirs, drawn = jax.tree.map(np.asarray, masked_on_a_device(*given))
    lengths = limits(setting.masking, LONGEST)
    for row in range(ROWS):
        draws = Draws(*(array[row] for array in drawn))
        weighing = weights.of(WORDS) if (weights := MASKINGS[setting.masking].weights) else None
        given = tokens[row], starts[row], maskable[row], setting, lengths, WORDS, draws, weighing
        inputs, taken = mask_row(*given)
        slots = theirs.slots_M[row][theirs.weights_M[row] > 0]
        assert sorted(slots) == np.flatnonzero(taken).tolist()
        np.testing.assert_array_equal(inputs, theirs.inputs_L[row])


@pytest.mark.parametrize('name', ['bert', 'roberta'])
def test_masks_hide_whole_words_at_the_rate_and_are_a_function_of_seed_and_step(name, tmp_path):
    _, tokenizer = objects(save_encoder(tmp_path, name))
    texts = [' '.join(np.random.default_rng(n).choice([*DRUGS, 'dose.', 'daily'], 30)) for n in range(40)]
    one, same, other = (bx.mask(texts, tokenizer, '0.4', seed=2, step=step) for step in (5, 5, 6))
    assert all(np.array_equal(one[key], same[key]) for key in one)
    assert not np.array_equal(one['labels'], other['labels'])
    encoded = tokenizer(texts)
    hidden = pieces = 0
    for row, (labels, inputs) in enumerate(zip(one['labels'], one['input_ids'], strict=True)):
        own, words = encoded['input_ids'][row], encoded.word_ids(row)
        taken = labels[: len(own)] != IGNORED
        assert (labels[: len(own)][taken] == np.array(own)[taken]).all()
        assert (inputs[: len(own)] == np.where(taken, tokenizer.mask_token_id, own)).all()
        assert (labels[len(own) :] == IGNORED).all()
        torn = [
            w for w in set(words) if len({bool(t) for t, x in zip(taken, words, strict=True) if x == w}) > 1
        ]
        assert not torn
        assert not taken[[w is None for w in words]].any()
        hidden, pieces = hidden + taken.sum(), pieces + len(own) - 2
    assert hidden / pieces == pytest.approx(0.2, abs=0.02)
    # Alone, a row has the mask that it has in a batch.
    np.testing.assert_array_equal(
        bx.mask(texts[:1], tokenizer, '0.4', seed=2, step=5)['labels'][0],
        one['labels'][0][: len(encoded['input_ids'][0])],
    )


@pytest.mark.filterwarnings('ignore:os.fork')  # jax is loaded here; the workers do without
def test_the_trainer_gets_the_masks_of_its_steps_from_any_worker(bert, tmp_path):
    model, tokenizer = objects(bert)
    examples = [tokenizer(' '.join(DRUGS[n % 4 :]) + ' dose' * n) for n in range(12)]
    seen = []

    class Watched(transformers.Trainer):
        def compute_loss(self, model, inputs, *given, **named):
            seen.append({name: tensor.clone() for name, tensor in inputs.items()})
            return super().compute_loss(model, inputs, *given, **named)

    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=3,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    collator = bx.Collator(tokenizer, '0.2', seed=4, pad_to_multiple_of=8)
    trainer = Watched(model, arguments, train_dataset=examples, data_collator=collator)
    before = model.get_input_embeddings().weight.detach().clone()
    trainer.train()
    assert not torch.equal(before, model.get_input_embeddings().weight)
    assert [b['input_ids'].shape[1] % 8 for b in seen] == [0, 0, 0]
    for step, batch in enumerate(seen):
        rows = [
            [t for t in np.where(l_ == IGNORED, i, l_) if t != tokenizer.pad_token_id]
            for i, l_ in zip(batch['input_ids'].numpy(), batch['labels'].numpy(), strict=True)
        ]
        again = bx.mask([{'input_ids': row} for row in rows], tokenizer, '0.2', seed=4, step=step)
        width = again['labels'].shape[1]
        np.testing.assert_array_equal(batch['labels'][:, :width], again['labels'])
        np.testing.assert_array_equal(batch['input_ids'][:, :width], again['input_ids'])
    alike = [tokenizer(' '.join(DRUGS * 6))] * 8
    loads = []
    for epoch in (0, 0, 1):
        torch.manual_seed(epoch)
        loader = torch.utils.data.DataLoader(
            alike, 2, collate_fn=bx.Collator(tokenizer, '0.2'), num_workers=2
        )
        loads.append([batch['labels'] for batch in loader])
    assert all(torch.equal(a, b) for a, b in zip(loads[0], loads[1], strict=True))
    assert len({tuple(labels.flatten().tolist()) for labels in (*loads[0], *loads[2])}) == 8


def test_ranks_of_a_trainer_mask_otherwise_and_what_is_resumed_as_before(programs, tmp_path):
    """Two processes with two workers each, with evaluation between the steps."""
    model = save_encoder(tmp_path / 'model', layers=1)
    with socket.create_server(('localhost', 0)) as server:
        port = server.getsockname()[1]
    processes = [
        subprocess.Popen(
            [programs / 'python', ROOT / 'tests' / 'toy_ranks.py', model, tmp_path, '2'],
            cwd=ROOT,
            env=environment(
                **{'RANK': rank, 'LOCAL_RANK': rank, 'WORLD_SIZE': '2'},
                **{'MASTER_ADDR': 'localhost', 'MASTER_PORT': str(port)},
                PYTHONPATH=f'{ROOT}{os.pathsep}{ROOT / "tests"}',
            ),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in '01'
    ]
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
    seen = [json.loads((tmp_path / f'{rank}-2.json').read_text('utf-8')) for rank in (0, 1)]
    rows = [tuple(row) for whole, _ in seen for batch in whole['train'] for row in batch]
    assert (len(rows), len(set(rows))) == (32, 32)
    collator = bx.Collator(transformers.AutoTokenizer.from_pretrained(model), '0.2', seed=4)
    for rank, (whole, resumed) in enumerate(seen):
        assert whole['train'][2:] == resumed['train']
        assert whole['evaluation'][0] == whole['evaluation'][1] == resumed['evaluation'][-1]
        for step, batch in enumerate(whole['train']):
            alike = [' '.join(toy_ranks.WORDS * 4)] * 2
            expected = collator.masked(alike, step, *([rank] * (rank > 0)))
            assert expected['labels'].tolist() == batch


def test_difficulty_of_a_model_that_is_not_computed_here(tmp_path, nothing_left, capsys):
    """Weights that know nothing: every piece is as likely as any other."""
    folder = save_encoder(tmp_path / 'foreign', 'ernie')
    model, tokenizer = objects(folder)
    texts = [' '.join(DRUGS) + ' the patient got a dose' * n for n in range(1, 9)]
    torch.set_num_threads(2)
    rows = [{'text': text} for text in texts]
    found = bx.difficulty(model, tokenizer, rows, samples=2, keys={'phases': ('0.1', '0.4')}, progress=True)
    assert 'difficulty: ' in capsys.readouterr().err
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert threads == 2  # of the caller
    with jax.enable_x64(True), jax.threefry_partitionable(False):  # of the caller, too
        assert found == bx.difficulty(folder, None, texts, samples=2, keys={'phases': ('0.1', '0.4')})
    assert list(found) == ['0.1', '0.4']
    assert found['0.4']['masked']['mean'] == pytest.approx(len(tokenizer), rel=0.1)
    assert len(found['0.1']['masked']['samples']) == 2
    assert found['0.4']['kept'] is None


def test_scores_of_predictions_made_elsewhere(tmp_path, nothing_left):
    gold = [
        {'words': ['no', 'drug'], 'tags': ['O', 'O']},
        {'words': ['zol', 'dose'], 'tags': ['B-Drug', 'I-Drug']},
    ]
    said = [
        {'words': ['no', 'drug'], 'predicted': ['O', 'S-Drug']},
        {'words': ['zol', 'dose'], 'predicted': ['B-Drug', 'E-Drug']},
    ]
    found = bx.score(gold, said).measures['default']
    assert (found['precision'], found['recall'], found['f1']) == (0.5, 1.0, pytest.approx(2 / 3))
    assert found['low'] <= found['f1'] <= found['high']
    file = save_set(tmp_path / 'drugs') / 'test.tsv'
    assert bx.score(tmp_path / 'drugs', file).measures['default']['f1'] == 1.0
    noted = bx.score(
        gold, [{'text': 'no drug zol dose', 'entities': [[8, 10, 'Chemical']]}], types={'Chemical': 'Drug'}
    )
    assert 'widened to whole words' in noted.notes[0]
    texts = [{'text': 'it helps', 'answers': ['yes']}, {'text': 'it harms', 'answers': ['no']}]
    answers = bx.score(texts, [{'answers': ['yes']}, {'answers': ['yes']}], task='classes')
    assert answers.measures['default']['accuracy'] == 0.5
    for extra in ([], ['other']):  # one answer each, or several
        named = [{'id': n, 'text': f'It is {n}', 'answers': [str(n), *extra]} for n in range(3)]
        other = [{'id': one['id'], 'answers': one['answers']} for one in reversed(named)]
        found = bx.score(named, other, task='classes').measures['default']
        assert found.get('accuracy', found.get('f1')) == 1
    numbers = [{'words': ['a', 'b'], 'answers': (np.float32(n / 2),)} for n in range(3)]
    said = [{'answers': np.array([n])} for n in range(2)] + [{'answers': [np.int64(2)]}]
    assert bx.score(numbers, said, task='similarity').measures['default']['r'] == pytest.approx(1)
    several = [
        {'text': f'text {n}', 'answers': named} for n, named in enumerate((['A', 'B'], [], ['B'], ['A']))
    ]
    said = [{'answers': named} for named in (['A'], ['B'], ['B'], ['A'])]
    found = bx.score(iter(several), iter(said), task='classes').measures['default']
    assert (found['precision'], found['recall']) == (0.75, 0.75)
    found = bx.score(several[:2], [{'answers': ['A', 'B']}, {'answers': 'C, B'}], task='classes')
    assert found.measures['default']['precision'] == 0.5
    assert 'answers with labels that no test item has count as wrong: C 1' in found.notes
    for label in ('A', 'a, b'):  # it may be the only one
        some = [{'text': 'it helps', 'answers': [label]}, {'text': 'it harms', 'answers': []}]
        assert bx.score(some, some, task='classes').measures['default']['f1'] == 1


def test_the_import_is_instant_and_names_what_is_public():
    code = """
import sys
before = set(sys.modules)
import bioptimus_jax
print(sorted(set(sys.modules) - before))
"""
    command = [sys.executable, '-S', '-c', code]
    result = subprocess.run(command, cwd=ROOT, env={}, capture_output=True, text=True)
    assert result.stdout == "['bioptimus_jax']\n", result.stderr
    stub = (ROOT / 'bioptimus_jax' / '__init__.pyi').read_text('utf-8')
    assert set(re.findall(r'^from (\S+) import (\w+) as \2$', stub, re.M)) == {
        (getattr(bx, name).__module__, name) for name in bx.__all__
    }
    assert set(bx.__all__) <= set(dir(bx))
    with pytest.raises(AttributeError, match='no attribute'):
        _ = bx.nothing
    for name in bx.__all__:
        offered = getattr(bx, name)
        assert inspect.getdoc(offered)
        if not issubclass(type(offered), type):
            signature = inspect.signature(offered)
            assert all(p.annotation is not p.empty for p in signature.parameters.values()), name
            assert signature.return_annotation is not signature.empty, name


NOT_PLAIN = {
    'PeftModel': r'model: PeftModelForMaskedLM is no plain model .* its merge_and_unload\(\) returns$',
    'SentenceTransformer': r'model: SentenceTransformerForMaskedLM.* \[0\]\.auto_model, with its tokenizer$',
    'DataParallel': 'model: DataParallelForMaskedLM is no plain model .*; give its module$',
    'add_adapter': r'model: has layers of an adapter \(add_adapter\).*merge_and_unload\(\) of PEFT',
    'base_layer': r'model: has layers of an adapter \(add_adapter\)',
    'Module': 'model: got Module; give one of transformers, or a folder',
}


def like_peft(model, kind):
    """What stands for an object of another library, by the names of its classes, or for a model with an adapter."""
    if kind == 'add_adapter':
        model = copy.copy(model)
        model.peft_config = {}
    elif kind == 'base_layer':
        model = copy.deepcopy(model)
        dense = model.get_submodule('cls.predictions.transform')
        dense.dense = torch.nn.ModuleDict({'base_layer': dense.dense})
    elif kind == 'Module':
        model = torch.nn.Module()
    else:
        base = type(kind, (torch.nn.Module,), {'save_pretrained': lambda self, folder: None})
        model = type(f'{kind}ForMaskedLM', (base,), {})()
    return model


def adapted(model, call):
    """Call it with a folder that holds an adapter beside the weights."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / 'adapted'
        model.save_pretrained(place)
        write_json(place / 'adapter_config.json', {'peft_type': 'LORA'})
        call(place)


MIXED = {'vocab.lowercase': False}
REFUSED = [
    (bx.ConfigError, 'tokenizer: is missing', lambda m, t: bx.add_words(m, None, ['a'])),
    (bx.ConfigError, 'model: got int', lambda m, t: bx.add_words(3, t, ['a'])),
    *(
        (
            bx.ConfigError,
            message,
            lambda m, t, kind=kind, call=call: call(like_peft(m, kind), t, ['a'], 'run'),
        )
        for kind, message in NOT_PLAIN.items()
        for call in (
            lambda m, t, texts, _: bx.add_words(m, t, texts),
            lambda m, t, texts, _: bx.difficulty(m, t, texts),
            bx.adapt,
        )
    ),
    *(
        (
            bx.InputError,
            r'adapted/adapter_config\.json: adapters are not read',
            lambda m, t, call=call: adapted(m, call),
        )
        for call in (
            lambda folder: bx.add_words(folder, None, ['ab']),
            lambda folder: bx.difficulty(folder, None, ['a']),
            lambda folder: bx.adapt(folder, None, ['a'], 'run'),
            lambda folder: bx.predict(folder, ['a']),
        )
    ),
    (bx.ConfigError, 'tokenizer: is missing; a model', lambda m, t: bx.predict(m, ['a'])),
    (
        bx.InputError,
        "number 1 is a row without 'text' \\(tokens\\)",
        lambda m, t: bx.predict(m, [{'tokens': []}]),
    ),
    (
        bx.InputError,
        "texts: number 1: has 'text' and 'text_b', so one text would go unread; call two texts \"sentence1\"",
        lambda m, t: bx.predict(m, [{'text': 'a', 'Text_B': 'b'}]),
    ),
    *(
        (kind, message, lambda m, t, texts=texts, call=call: call(m, t, texts))
        for call in (
            lambda m, t, texts: bx.predict(m, texts, tokenizer=t),
            lambda m, t, texts: bx.embed(m, texts, tokenizer=t),
        )
        for kind, message, texts in (
            (
                bx.ConfigError,
                r"texts: is a table; give a column of it, as table\['text'\]",
                Frame([]),
            ),
            (bx.ConfigError, 'texts: is one text; give a list of them', 'a text'),
            (bx.ConfigError, 'texts: is NoneType; give a list of texts', None),
            ((bx.ConfigError, bx.InputError), 'texts: number . is not a text', [None]),
        )
    ),
    (bx.ConfigError, 'has its own; give the folder alone', lambda m, t: bx.difficulty(str(ROOT), t, [])),
    (bx.InputError, '/nowhere: no such folder', lambda m, t: bx.difficulty('/nowhere', None, [])),
    (
        bx.InputError,
        "words: 'a-b' is not a single word of the tokenizer, which reads 'a', '-', 'b'",
        lambda m, t: bx.add_words(m, t, ['a-b']),
    ),
    (
        bx.ConfigError,
        r'new: got list; give a tokenizer .* \(bx\.add_words adds words\)',
        lambda m, t: bx.replace_vocabulary(m, t, ['ab']),
    ),
    (bx.ConfigError, 'words: is one text', lambda m, t: bx.add_words(m, t, 'ab')),
    (bx.ConfigError, 'words: are missing; give some, or texts', lambda m, t: bx.add_words(m, t)),
    (
        bx.InputError,
        'texts: have no word that is seen 2 times and that the tokenizer cuts',
        lambda m, t: bx.add_words(m, t, texts=[WORD]),
    ),
    (
        bx.ConfigError,
        r"texts: number 0 is not a text, but a row without 'text' \(title\)",
        lambda m, t: bx.add_words(m, t, texts=[{'title': WORD}]),
    ),
    (
        bx.ConfigError,
        'sentences: are missing, and surgery.bias=log_count counts words in them; give some',
        lambda m, t: bx.add_words(m, t, [WORD], keys={'surgery.bias': 'log_count'}),
    ),
    (
        bx.InputError,
        '^config.surgery.map: only 0 tokens of the source can be fitted on in the contexts, 10 are needed',
        lambda m, t: bx.add_words(m, t, [WORD], ['no such word']),
    ),
    (
        bx.ConfigError,
        'sentences: are missing, and contextualized reads',
        lambda m, t: bx.add_words(m, t, ['ab'], strategy='contextualized'),
    ),
    (
        bx.ConfigError,
        'strategy: copy makes no rows',
        lambda m, t: bx.add_words(m, t, ['ab'], strategy='copy'),
    ),
    (
        bx.InputError,
        'new: is cased, but the tokenizer of the model uncased',
        lambda m, t: bx.replace_vocabulary(m, t, bx.train_vocabulary(['Ab ab'], size=100, keys=MIXED)),
    ),
    (
        bx.ConfigError,
        'words: number 1 is not a word, but int',
        lambda m, t: bx.add_words(m, t, ['ab', 5]),
    ),
    (
        bx.ConfigError,
        'words: number 0 is not a word, but NoneType',
        lambda m, t: bx.add_words(m, t, [None]),
    ),
    (bx.ConfigError, 'texts: is one text', lambda m, t: bx.train_vocabulary('a b')),
    (bx.ConfigError, 'texts: number 1 is not a text, but int', lambda m, t: bx.difficulty(m, t, ['a', 2])),
    (bx.InputError, 'texts: hold no word', lambda m, t: bx.train_vocabulary([' '])),
    (bx.ConfigError, 'append: needs `like`', lambda m, t: bx.train_vocabulary(['a'], append=True)),
    (
        bx.ConfigError,
        r'config\.vocab\.sise: no such key',
        lambda m, t: bx.adapt(m, t, ['a'], 'run', keys={'vocab.sise': 3}),
    ),
    *(
        (
            bx.ConfigError,
            f'hours: must be a number above 0, is {value}',
            lambda m, t, value=value: bx.adapt(m, t, ['a'], 'run', hours=value),
        )
        for value in (0, -1, True, None)
    ),
    (
        bx.ConfigError,
        "texts: 'an abstract' is no file and no glob",
        lambda m, t: bx.adapt(m, t, 'an abstract', 'run'),
    ),
    (
        bx.ConfigError,
        'texts: has the parts train, test; give one',
        lambda m, t: bx.adapt(m, t, {'train': 1, 'test': 1}, 'run'),
    ),
    (bx.ConfigError, "texts: is missing; recipe='recommended'", lambda m, t: bx.adapt(m, t, None, 'run')),
    (
        bx.ConfigError,
        "model: is missing; recipe='paper'",
        lambda *_: bx.adapt(None, None, ['a'], 'run', recipe='paper'),
    ),
    (
        bx.ConfigError,
        '--config=papr: no such config',
        lambda m, t: bx.adapt(m, t, ['a'], 'run', recipe='papr'),
    ),
    (bx.ConfigError, r"config\.phases: '0\.9' has no", lambda m, t: bx.Collator(t, '0.9')),
    (
        bx.ConfigError,
        r'config\.phase\.0\.2\.rate: must be at most 0\.9',
        lambda m, t: bx.mask(['a'], t, rate=2.0),
    ),
    *(
        (
            bx.ConfigError,
            rf'max_pieces: must be a whole number of at least 3, is {value}',
            lambda m, t, value=value: bx.mask(['a'], t, max_pieces=value),
        )
        for value in (0, 1, 2, -8, 4.0, True, None)
    ),
    *(
        (
            bx.ConfigError,
            rf'pad_to_multiple_of: must be a whole number of at least 1, is {value}',
            lambda m, t, value=value: bx.Collator(t, pad_to_multiple_of=value),
        )
        for value in (0, -8, 1.5)
    ),
    (
        bx.ConfigError,
        'pad_to_multiple_of: 48 does not divide the longest row, 64 pieces',
        lambda m, t: bx.Collator(t, max_pieces=64, pad_to_multiple_of=48),
    ),
    (
        bx.ConfigError,
        'step: must be a whole number of at least 0, is -1',
        lambda m, t: bx.mask(['a'], t, step=-1),
    ),
    (
        bx.ConfigError,
        'max_pieces: must be .* at least 0, is -1',
        lambda m, t: bx.predict('x', ['a'], max_pieces=-1),
    ),
    (bx.ConfigError, r'config\.seed', lambda m, t: bx.mask(['a'], t, seed=-1)),
    (bx.ConfigError, r'config\.curriculum\.samples', lambda m, t: bx.difficulty(m, t, ['a'], samples=0)),
    (bx.ConfigError, r'config\.vocab\.size', lambda m, t: bx.train_vocabulary(['a'], size=-1)),
    (
        bx.InputError,
        'examples: number 1 has the id -1 in input_ids',
        lambda m, t: bx.mask(['a', {'input_ids': [2, -1, 3]}], t),
    ),
    (bx.InputError, 'number 0 has the id 9999', lambda m, t: bx.mask([{'input_ids': [2, 9999, 3]}], t)),
    (
        bx.InputError,
        'no list of whole numbers in input_ids',
        lambda m, t: bx.mask([{'input_ids': [2, 5.5]}], t),
    ),
    (
        bx.InputError,
        'examples: number 0 has 2 word_ids for 3 input_ids',
        lambda m, t: bx.mask([{'input_ids': [2, 5, 3], 'word_ids': [None, 0]}], t),
    ),
    (
        bx.InputError,
        'examples: number 0 has 4 attention_mask for 3 input_ids',
        lambda m, t: bx.mask([{'input_ids': [2, 5, 3], 'attention_mask': [1] * 4}], t),
    ),
    (bx.ConfigError, 'has no mask token', lambda m, t: bx.Collator(object())),
    (bx.InputError, 'examples: is empty', lambda m, t: bx.mask([], t)),
    (bx.InputError, 'examples: number 1 has neither', lambda m, t: bx.mask(['a', {'label': 1}], t)),
    (bx.InputError, 'examples: number 0 has neither', lambda m, t: bx.mask([None], t)),
    (
        bx.InputError,
        "gold: number 0 needs 'words' with a tag for each in 'tags', .*; it has words, tags",
        lambda m, t: bx.score([{'words': ['a'], 'tags': []}], []),
    ),
    (
        bx.InputError,
        'ends before sentence 2',
        lambda m, t: bx.score(
            [{'words': ['a'], 'tags': ['B-X']}] * 2, [{'words': ['a'], 'predicted': ['O']}]
        ),
    ),
    (
        bx.InputError,
        '^predicted: number 1 is no record, but None',
        lambda m, t: bx.score([{'text': 'a', 'answers': 'x'}] * 2, [{'answers': 'x'}, None], task='classes'),
    ),
    (
        bx.InputError,
        r'2 documents with text, fewer than config\.curriculum\.samples=3',
        lambda m, t: bx.difficulty(m, t, ['The dose was low.', 'The patient died.'], samples=3),
    ),
    (bx.ConfigError, "what: 'loss' is not one of scores, ", lambda m, t: bx.results('.', 'loss')),
    (bx.InputError, 'is not a run', lambda m, t: bx.results('.')),
]


@pytest.mark.parametrize(('kind', 'message', 'call'), REFUSED, ids=[message for _, message, _ in REFUSED])
def test_what_cannot_be_is_one_line(kind, message, call, read, tmp_path, monkeypatch, nothing_left):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=message) as error:
        call(*read)
    assert '\n' not in str(error.value)
    assert 'bioptimus-' not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['temporary']


def test_a_collator_takes_what_transformers_has(read):
    """Nothing rounded where None is said, and ids with a gap, as of a tokenizer whose entries were removed."""
    _, tokenizer = read
    text = ' '.join(DRUGS)
    plain = bx.Collator(tokenizer, pad_to_multiple_of=None)([text])
    assert torch.equal(plain['labels'], bx.Collator(tokenizer)([text])['labels'])
    assert bx.Collator(tokenizer, max_pieces=96, pad_to_multiple_of=48)([text])['labels'].shape == (1, 48)

    class Gaps:
        def __getattr__(self, name):
            return getattr(tokenizer, name)

        def __len__(self):
            return len(tokenizer) - 1

        def get_vocab(self):
            return {token: i for token, i in tokenizer.get_vocab().items() if token != 'dose'}

    last, gone = len(tokenizer) - 1, tokenizer.convert_tokens_to_ids('dose')
    rows = [{'input_ids': [2, *[last] * 120, 3]}] * 8
    found = bx.mask(rows, Gaps(), '0.1', rate=0.9, corruption=(0.0, 1.0, 0.0))['input_ids']
    assert gone not in found
    assert len(np.unique(found)) > 50


def test_a_byte_level_piece_does_not_say_whether_it_begins_a_word(tmp_path):
    _, tokenizer = objects(save_encoder(tmp_path, 'roberta'))
    encoded = tokenizer('(the dose)')
    with pytest.raises(bx.InputError, match='have no word_ids'):
        bx.mask([{'input_ids': encoded['input_ids']}], tokenizer)
    told = bx.mask([{**encoded, 'word_ids': encoded.word_ids()}], tokenizer)
    assert np.array_equal(told['labels'], bx.mask(['(the dose)'], tokenizer)['labels'])
    assert bx.mask([encoded], tokenizer, '0.1')['labels'].shape == (1, len(encoded['input_ids']))


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Lines of a shell that stand for `bioptimus`, in a process of its own."""

    def run(lines, quiet=False, bar=False):
        (tmp_path / 'program').write_text(f'#!/bin/sh\n{lines}\n')
        (tmp_path / 'program').chmod(0o755)
        with monkeypatch.context() as patched:
            patched.setattr(sys, 'executable', str(tmp_path / 'program'))
            run_program(['run'], Shows(quiet, bar))

    return run


def test_lines_of_progress_are_a_bar_where_one_is_wanted(program, capsys):
    step, line = 'pretrain:  50% 1,000/2,000 steps, 2.1/s, 8 min left, loss 3.1', 'rows: done in 3 s'
    lines = f'echo "{step}"; echo "{line}"; echo "every $BIOPTIMUS_PROGRESS_SECONDS s"'
    program(lines, bar=True)
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [line, 'every 1 s']
    assert 'pretrain:  50%' in shown.err
    assert '1000/2000' in shown.err
    program(lines)
    assert capsys.readouterr() == (f'{step}\n{line}\nevery  s\n', '')
    program(lines, quiet=True)
    assert capsys.readouterr() == ('', '')


def test_what_ends_the_program_leaves_its_caller_alive(program, tmp_path, monkeypatch):
    """Killed, as where memory is short, it is one error; Ctrl-C is passed on once, and waits until all is saved."""
    with pytest.raises(RuntimeError, match=r'^the run was ended by SIGKILL, after it said: step 7$'):
        program('echo step 7; kill -KILL $$', quiet=True)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Bar, 'line', interrupted)
    waits = 'while :; do sleep 0.02; done'
    with pytest.raises(KeyboardInterrupt):
        program(f"trap 'echo saved >> {tmp_path}/saved; exit 130' INT; echo step 7; {waits}")
    assert (tmp_path / 'saved').read_text() == 'saved\n'


def test_bars_are_for_terminals_and_notebooks_unless_they_are_off(monkeypatch):
    class ZMQInteractiveShell:
        pass

    # Other tests may have turned bars off in this process.
    monkeypatch.setattr('huggingface_hub.utils.are_progress_bars_disabled', lambda: False)
    assert not shown(None)
    monkeypatch.setattr('sys.stderr.isatty', lambda: True, raising=False)
    assert shown(None)
    assert (Shows.of(True, None).bar, Shows.of(True, True).bar) == (False, True)
    monkeypatch.setattr('sys.stderr.isatty', lambda: False, raising=False)
    notebook = types.SimpleNamespace(get_ipython=ZMQInteractiveShell)
    monkeypatch.setitem(sys.modules, 'IPython', notebook)
    assert shown(None)
    assert not shown(False)
    monkeypatch.setattr('huggingface_hub.utils.are_progress_bars_disabled', lambda: True)
    assert not shown(None)


def test_a_run_that_is_refused_leaves_nothing(read, tmp_path, nothing_left, programs, monkeypatch):
    """The program refuses it, and its line and exit code come back."""
    begin_warm(monkeypatch, programs)
    model, tokenizer = read
    with pytest.raises(
        bx.ConfigError, match=r'^config\.runtime\.base_run: /nowhere: no such run folder'
    ) as error:
        bx.adapt(
            model,
            tokenizer,
            [TEXT],
            tmp_path / 'run',
            recipe='paper',
            keys={'runtime.base_run': ('/nowhere',)},
            quiet=True,
        )
    assert '\n' not in str(error.value)
    assert not (tmp_path / 'run').exists()
