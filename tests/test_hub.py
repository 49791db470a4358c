"""The hub, by its own client against a stand-in: inputs of one commit, and what is pushed when, and only when, told."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
import toy_hub
from toy_commands import call
from toy_sets import DRUGS, OTHER, TYPES, load_tagger, save_encoder, settings
from toy_tables import TEXT, each, label, parquet, put

import bioptimus_jax as bx
from bioptimus_jax.api import adapting
from bioptimus_jax.api.objects import as_folder, tokenizer_place
from bioptimus_jax.cli.main import BAD_INPUT, USAGE
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.export import card
from bioptimus_jax.export.card import NAME as CARD
from bioptimus_jax.finetuning import stored
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities import usage as tags
from bioptimus_jax.finetuning.kept import Reads
from bioptimus_jax.finetuning.loading import load_weights
from bioptimus_jax.finetuning.tasks.entities import TASK as ENTITIES
from bioptimus_jax.finetuning.texts import usage as labels
from bioptimus_jax.hosts.remote import models
from bioptimus_jax.hosts.remote.pins import recorded, with_pinned_models
from bioptimus_jax.inference.model import model_at
from bioptimus_jax.inference.onnx.answering import ANSWERING
from bioptimus_jax.model import pooling
from bioptimus_jax.model.folder import named_model
from bioptimus_jax.pretrain.objectives import rtd
from bioptimus_jax.records.kept import KeptEnsemble
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.storage.files import read_json, write_json
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.vocab.agreement import load_in_transformers

TYPED = {'tokens': each(TEXT), 'ner_tags': each(label('O', 'B-Drug'))}
CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config():
    c = defaults()
    c.corpus.update(id_field='', text_fields=('text',), heldout_fraction=0.0, min_words=2)
    c.runtime.workers = 1
    c.finetune.update(seeds=(0,), epochs=1, max_pieces=32, overlap_pieces=8, keep='best', setting={})
    return c
"""


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub of this machine, and the client of this process pointed at it."""
    with toy_hub.serving() as serving:
        for name, value in {
            'ENDPOINT': serving.endpoint,
            'HF_HUB_OFFLINE': False,
            'HF_HUB_CACHE': str(tmp_path / 'cache'),
            'HF_HUB_DISABLE_XET': True,
            'HUGGINGFACE_CO_URL_TEMPLATE': serving.endpoint + '/{repo_id}/resolve/{revision}/{filename}',
        }.items():
            monkeypatch.setattr(huggingface_hub.constants, name, value)
        monkeypatch.setenv('HF_TOKEN', 'told-by-nobody')
        models.downloaded.cache_clear()
        (tmp_path / 'c.py').write_text(CONFIG)
        yield serving
    huggingface_hub.utils.enable_progress_bars()


def texts(count, first=0):
    return {'text': [f'Text number {first + n} of this corpus.' for n in range(count)]}


def of_drugs(count):
    words = [[DRUGS[n % 4], OTHER[n % 5], 'dose'] for n in range(count)]
    return {'tokens': words, 'ner_tags': [[1, 0, 0]] * count}


def flags(tmp_path, **keys):
    given = {'runtime.staging': tmp_path / 'staging', **keys}
    return [f'--config={tmp_path / "c.py"}', *(f'--config.{key}={value}' for key, value in given.items())]


def fetched(hub):
    return [path.rpartition('/')[2] for method, path in hub.asked if method == 'GET' and '/resolve/' in path]


def test_a_corpus_of_one_commit(hub, tmp_path, capsys):
    """The commit is on record, the same files here give the same corpus, and a branch that moves is seen."""
    name = 'lab/notes'
    parts = {f'data/train-{n:05}-of-00002.parquet': parquet(texts(3, 3 * n)) for n in range(2)}
    others = {
        'README.md': b'---\n---\n',
        'data/test.parquet': parquet(texts(2, 90)),
        'data/old/train-x.parquet': b'x',
    }
    first = hub.commit('datasets', name, parts | others)
    hub.tags['v1'] = first
    where = f'hf://datasets/{name}/data/train-*.parquet'
    run = ['corpus', f'--workdir={tmp_path / "run"}', *flags(tmp_path, **{'corpus.inputs': where})]
    assert call(capsys, *run) == (0, '')
    manifest = read_json(tmp_path / 'run' / 'corpus' / 'manifest.json')
    assert manifest['origins'] == {'corpus.inputs': [f'hf://datasets/{name}@{first}/data/train-*.parquet']}
    assert manifest['counts']['read'] == 6
    assert card._datasets([Manifest.read(manifest, 'manifest')]) == [name]  # what a model card says
    assert fetched(hub) == [part.rpartition('/')[2] for part in parts]
    put(tmp_path / 'here', parts)
    local = flags(tmp_path, **{'corpus.inputs': f'{tmp_path}/here/data/*'})
    assert call(capsys, 'corpus', f'--workdir={tmp_path / "local"}', *local) == (0, '')
    same = read_json(tmp_path / 'local' / 'corpus' / 'manifest.json')
    assert (same['content'], same['inputs']) == (manifest['content'], manifest['inputs'])
    assert 'origins' not in same
    hub.asked.clear()
    hub.commit('datasets', name, {'data/train-00000-of-00002.parquet': parquet(texts(4, 50))})
    code, line = call(capsys, *run)
    assert (code, line.count('\n')) == (USAGE, 0)
    assert 'belongs to another configuration or other inputs (inputs.0:train-00000-of-00002.parquet' in line
    hub.asked.clear()
    names = ','.join(f'hf://datasets/{name}@v1/{part}' for part in parts)
    for again in (where.replace(name, f'{name}@{first}'), names):
        assert call(capsys, *run, f'--config.corpus.inputs={again}') == (0, '')
    assert fetched(hub) == []


@pytest.mark.parametrize(
    ('inputs', 'code', 'message'),
    [
        (
            'datasets/lab/none/*.parquet',
            BAD_INPUT,
            r'lab/none: no such repository, or HF_TOKEN may not see it',
        ),
        ('datasets/lab/notes@v9/*.parquet', BAD_INPUT, r'notes@v9: no such revision; give a branch, a tag'),
        (
            'datasets/lab/notes/*.jsonl',
            BAD_INPUT,
            r'no such object, and none matches it; correct --config\.corpus',
        ),
        (
            'datasets/lab/notes/b.parquet',
            BAD_INPUT,
            r'no such object, and none matches it; correct --config\.corpus',
        ),
        ('datasets/lab/notes/none/*', BAD_INPUT, r'no such file or folder in it; correct the path'),
        ('datasets/lab/gated/*', BAD_INPUT, r'lab/gated: access is refused; accept its terms on its page'),
        (
            'lab/notes/a.parquet',
            USAGE,
            r'is not a dataset; give hf://datasets/OWNER/NAME\[@REVISION\]/PATH, and a',
        ),
        ('datasets/notes', USAGE, r'is not understood; give hf://datasets/OWNER/NAME'),
        ('datasets/lab/notes@offline/*', BAD_INPUT, r'HF_HUB_OFFLINE is set; unset it, or give files'),
        ('datasets/lab/notes@away/*', BAD_INPUT, r'check the network and HF_ENDPOINT, then rerun'),
        ('datasets/lab/notes@token/*', BAD_INPUT, r'no such repository, or HF_TOKEN may not see it'),
    ],
)
def test_what_the_hub_refuses_is_one_line(inputs, code, message, hub, tmp_path, capsys, monkeypatch):
    for name in ('lab/notes', 'lab/gated'):
        hub.commit('datasets', name, {'a.parquet': parquet(texts(2))})
    hub.gated = ('lab/gated',)
    if '@offline' in inputs:
        monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    if '@away' in inputs:
        monkeypatch.setattr(huggingface_hub.constants, 'ENDPOINT', 'http://127.0.0.1:9')
    if '@token' in inputs:
        hub.token = 'another'
    found, line = call(
        capsys,
        'corpus',
        f'--workdir={tmp_path / "run"}',
        *flags(tmp_path, **{'corpus.inputs': f'hf://{inputs}'}),
    )
    assert (found, line.count('\n')) == (code, 0), line
    assert re.search(message, line), line
    assert 'told-by-nobody' not in line
    assert not (tmp_path / 'run').exists()


@pytest.mark.filterwarnings(
    "ignore:Use 'content=:DeprecationWarning"
)  # how the client gives bytes to its web client
def test_a_set_of_the_hub_becomes_a_tagger_that_is_pushed_when_told(hub, tmp_path, capsys):
    """All of it real but the server: fetched, fine-tuned, kept, shown, sent; then read again from there."""
    columns = {'train': of_drugs(12), 'validation': of_drugs(4), 'test': of_drugs(4)}
    files = {f'data/{n}-00000-of-00001.parquet': parquet(made, TYPED) for n, made in columns.items()}
    commit = hub.commit('datasets', 'lab/drugs', files)
    keys = {
        'finetune.folder': 'hf://datasets/lab/drugs',
        'finetune.models': f'tiny={save_encoder(tmp_path / "tiny")}',
    }
    run = tmp_path / 'run'
    assert call(capsys, 'finetune', f'--workdir={run}', *flags(tmp_path, **keys))[0] == 0
    assert read_json(run / 'finetune' / 'manifest.json')['origins'] == {
        'finetune.folder': [f'hf://datasets/lab/drugs@{commit}']
    }
    model = run / 'finetune' / 'tiny' / 'drugs' / 'standard' / 'seed-0' / 'model'
    assert model.is_dir()
    assert all(kind == 'datasets' for kind, _ in hub.repositories)  # it was not told to
    hub.asked.clear()
    push = ['push', str(run), '--to=hf://lab/tagger']
    code, out = shown(capsys, *push)
    assert (code, hub.asked) == (0, [])
    names = sorted(p.name for p in model.iterdir())
    card = card_of(model, 'lab/tagger')
    sizes = [len(card) if p.name == CARD else p.stat().st_size for p in sorted(model.iterdir())]
    assert re.findall(r'^  (\S+) +([\d,]+) bytes$', out, re.M) == [
        (name, f'{size:,}') for name, size in zip(names, sizes, strict=True)
    ]
    assert f'{model} -> hf://lab/tagger (model, public, unless' in out
    assert f'{len(names)} files, {sum(sizes):,} bytes; licence on the card: none' in out
    assert out.endswith('push: nothing was sent; add --yes to send these files\n')
    text = (model / 'README.md').read_text('utf-8')  # a person may edit it
    (model / 'README.md').write_text(text.replace('---\n', '---\nlicense: none\n', 1), 'utf-8')
    code, line = call(capsys, *push, '--private', '--yes')
    assert (code, '"license" must be one of; correct it' in line) == (BAD_INPUT, True), line
    (model / 'README.md').write_text(text.replace('---\n', '---\nlicense: mit\n', 1), 'utf-8')
    code, out = shown(capsys, *push, '--private', '--yes')
    (oid, sent) = hub.repositories['models', 'lab/tagger'][-1]
    assert 'licence on the card: mit' in out
    assert out.endswith(f'push: {hub.endpoint}/lab/tagger (commit {oid})\n')
    assert sent == in_files(model) | {CARD: card_of(model, 'lab/tagger')}
    assert b"folder = snapshot_download('lab/tagger')" in sent[CARD]
    assert b"bx.predict('lab/tagger', ['...'])" in sent[CARD]
    assert len(hub.repositories['models', 'lab/tagger']) == 1
    assert hub.private['models', 'lab/tagger']
    assert any(path.startswith('/lfs/') for _, path in hub.asked)
    assert sum('/commit/' in path for _, path in hub.asked) == 1
    (model / 'README.md').write_text(text + '\nMore.\n', 'utf-8')  # the card alone
    shown(capsys, 'push', str(model / 'README.md'), '--to=hf://lab/tagger', '--yes')
    (_, before), (_, after) = hub.repositories['models', 'lab/tagger']
    assert after == {**before, CARD: card_of(model, 'lab/tagger')}
    of_branches_and_tags(model, hub, capsys)
    code, line = call(capsys, 'push', str(model / 'config.json'), '--to=hf://lab/tagger', '--yes')
    assert (code, len(hub.repositories['models', 'lab/tagger'])) == (BAD_INPUT, 2), line
    hub.private['models', 'lab/tagger'] = False
    code, line = call(capsys, *push, '--private', '--yes')
    assert (code, line.endswith('is there and public; make it private there, or leave out --private')) == (
        3,
        True,
    )
    # The report of the run is a Space that shows its page.
    assert call(capsys, 'report', f'--workdir={run}', *flags(tmp_path, **keys))[0] == 0
    report = run / 'report'
    assert call(capsys, 'push', str(report), '--to=hf://lab/x')[0] == USAGE
    code, out = shown(capsys, 'push', str(report), '--to=hf://spaces/lab/page', '--yes')
    sent = hub.repositories['spaces', 'lab/page'][-1][1]
    assert huggingface_hub.RepoCard(sent.pop('README.md').decode()).data.sdk == 'static'
    here = {str(p.relative_to(report)): p.read_bytes() for p in report.rglob('*') if p.is_file()}
    assert sent == {name: content for name, content in here.items() if name != 'manifest.json'}
    # By another process, as a user would, with the address in its environment.
    environment = {
        **os.environ,
        'HF_ENDPOINT': hub.endpoint,
        'HF_HUB_OFFLINE': '0',
        'HF_HUB_DISABLE_XET': '1',
    }
    command = [sys.executable, '-m', 'bioptimus_jax', 'push', str(model), '--to=hf://lab/other', '--yes']
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].startswith(f'push: {hub.endpoint}/lab/other (commit '), done.stderr
    refusals(model, hub, capsys)


def card_of(model, name, revision=''):
    return card.card_on_hub((model / CARD).read_text('utf-8'), name, revision).encode()


def of_branches_and_tags(model, hub, capsys):
    """A branch is made, a tag names the commit, the card reads from there, and main stays as it is; a tag stays too."""
    before, push = hub.repositories['models', 'lab/tagger'][:], ['push', str(model), '--yes']
    code, out = shown(capsys, *push, '--to=hf://lab/tagger@dev')
    oid, files = hub.branches['models', 'lab/tagger', 'dev']
    assert out.endswith(f'push: {hub.endpoint}/lab/tagger (branch dev, commit {oid})\n')
    assert hub.repositories['models', 'lab/tagger'] == before
    assert files[CARD] == card_of(model, 'lab/tagger', 'dev')
    assert b"snapshot_download('lab/tagger', revision='dev')" in files[CARD]
    code, out = shown(capsys, *push, '--to=hf://lab/tagger@dev', '--tag=v1')
    assert f'(branch dev, tag v1, commit {hub.tags["v1"]})' in out
    assert b'bioptimus predict lab/tagger@v1 --text' in hub.at('models', 'lab/tagger', 'v1')[1][CARD]
    for more, message in (
        (['--to=hf://lab/tagger', '--tag=v1'], 'has a tag v1 already, which stays as it is; choose another'),
        (['--to=hf://lab/tagger@v1'], 'v1 is a tag there, and tags stay as they are; name a branch'),
        (
            ['--to=hf://lab/tagger', '--tag=a b'],
            "--tag: 'a b' cannot be the name of a branch or a tag; choose",
        ),
    ):
        code, line = call(capsys, *push, *more)
        assert code in (USAGE, BAD_INPUT)
        assert message in line, line
    assert hub.repositories['models', 'lab/tagger'] == before
    assert model_at('lab/tagger@v1').name == hub.tags['v1']


CODES = {
    'masked_lm': card.MASKED_LM,
    'discriminator': card.DISCRIMINATOR,
    'vectors': card.VECTORS,
    'tagger': tags.usage_of('prose').code,
    'classifier': labels.usage_of('one', 2, Finetune(segment_ids='one'), True).code,
    **{f'onnx, {kind}': one.code('values') for kind, one in ANSWERING.items()},
}


@pytest.mark.parametrize('form', CODES)
def test_the_card_of_every_form_says_how_it_is_used_from_where_it_is(form):
    """The code names its folder in one line, in whose place stands where the files are."""
    made = card.card_on_hub(CODES[form], 'lab/x', 'v1')
    assert made.count("folder = snapshot_download('lab/x', revision='v1')") == 1
    assert "'.'" not in made
    assert made.count('(folder') + made.count(' folder,') + made.count('{folder}') >= 1
    compile(made, form, 'exec')
    assert "snapshot_download('lab/x')" in card.card_on_hub(CODES[form], 'lab/x')


def in_files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


OTHER_FORMS = ('tf_model.h5', 'flax_model.msgpack', 'onnx/model.onnx', 'openvino/a.bin', 'pytorch_model.bin')
"""Copies of weights that nobody here reads; of the last one only where there is no safetensors."""


def test_a_run_stays_with_the_commit_of_its_model(hub, tmp_path, capsys, monkeypatch):
    """What is needed is fetched once; the commit is on record; a run goes on with it, and says so."""
    name, files = 'lab/tiny', in_files(save_encoder(tmp_path / 'tiny'))
    files['1_Pooling/config.json'] = b'{}'  # how its vectors are made
    first = hub.commit('models', name, {**files, **dict.fromkeys(OTHER_FORMS, b'x'), 'README.md': b'1'})
    (tmp_path / 'texts.jsonl').write_text(''.join(f'{{"text": "{t}"}}\n' for t in texts(8)['text']))
    keys = {
        'corpus.inputs': tmp_path / 'texts.jsonl',
        'source.path': name,
        'vocab.kind': 'source',
        'finetune.models': f'0.1,{name},other={name}@{first}',
    }
    run = tmp_path / 'run'
    made = [f'--workdir={run}', *flags(tmp_path, **keys)]
    shown(capsys, 'corpus', *made)
    assert fetched(hub) == []  # the corpus has no model
    shown(capsys, 'vocab', *made)
    assert sorted(fetched(hub)) == sorted([*(Path(file).name for file in files), 'README.md'])
    address = {'source.path': [f'hf://{name}@{first}']}
    assert read_json(run / 'vocab' / 'manifest.json')['origins'] == address
    changed = {'README.md': b'2', 'tokenizer.json': files['tokenizer.json'] + b'\n'}
    second = hub.commit('models', name, changed)
    models.downloaded.cache_clear()  # as in another process
    _, out = shown(capsys, 'contexts', *made)
    assert f'source.path: {name} has moved on the hub, to {second}; this run stays with {first}' in out
    assert read_json(run / 'contexts' / 'manifest.json')['origins'] == address
    _, out = shown(capsys, 'vocab', *made)
    assert 'vocab: up to date' in out
    assert f'source.path: hf://{name}@{first}\n' in out

    # From Python, too, the config names the commit; here it is read where the program would start with it.
    def started(verb, place, run, text, shows):
        raise InputError(text)

    monkeypatch.setattr(adapting, 'run_verb', started)
    with pytest.raises(InputError, match=f"'source.path': '{name}@{second}'"):
        bx.adapt(name, None, ['a text'], tmp_path / 'python', recipe='paper', quiet=True)
    # Somebody who asks for the other one gets it: another model.
    code, line = call(capsys, 'vocab', *made, f'--config.source.path={name}@{second}')
    assert (code, 'belongs to another configuration or other inputs (inputs.' in line) == (USAGE, True), line


def test_a_model_as_onnx_is_fetched_where_there_is_no_other_form(hub, tmp_path):
    files = in_files(save_encoder(tmp_path / 'tiny'))
    hub.commit('models', 'lab/both', {**files, 'model.onnx': b'x'})
    assert not (model_at('lab/both') / 'model.onnx').exists()
    del files['model.safetensors']
    alone = {
        **files,
        'model.onnx': b'x',
        'model.onnx.data': b'y',
        'onnx.json': b'{}',
        'onnx/model.onnx': b'z',
    }
    hub.commit('models', 'lab/alone', alone)
    folder = model_at('lab/alone')
    assert {p.name for p in folder.iterdir()} == {*alone} - {'onnx/model.onnx'}
    hub.repositories.clear()
    assert model_at('lab/alone') == folder, 'a whole copy needs no network'


def test_a_kept_model_in_several_folders_is_fetched_with_all_of_them(hub, tmp_path):
    tokenizer, head = load_tagger(save_encoder(tmp_path / 'tiny'), TYPES, settings(head='span'), 0)
    stored.save_model(ENTITIES, tokenizer, head, Reads(64, 8), tmp_path / 'one')
    record = KeptEnsemble(model='a', dataset='drugs', setting='standard', members=('seed-0', 'seed-1'))
    members = dict.fromkeys(record.members, tmp_path / 'one')
    stored.join(members, record, Reads(64, 8), tmp_path / 'several')
    for name in ('one', 'several'):
        files = {
            str(p.relative_to(tmp_path / name)): p.read_bytes()
            for p in (tmp_path / name).rglob('*')
            if p.is_file()
        }
        hub.commit('models', f'lab/{name}', {**files, 'onnx/model.onnx': b'z'})
        folder = model_at(f'lab/{name}')
        assert {str(p.relative_to(folder)) for p in folder.rglob('*') if p.is_file()} == {*files}
        assert bx.predict(f'lab/{name}', ['the dose']) == bx.predict(tmp_path / 'one', ['the dose'])
    hub.repositories.clear()
    assert model_at('lab/several') == folder, 'a whole copy needs no network'
    (folder / 'seed-1' / 'head.safetensors').unlink()
    models.downloaded.cache_clear()
    with pytest.raises(InputError, match=r'lab/several: no such folder here, and no such model on the hub'):
        model_at('lab/several')


def test_an_object_from_the_hub_is_read_as_its_files_there_say(hub, tmp_path, monkeypatch):
    """Other programs fetch the weights alone; without the hub it is said that the rest is not known."""
    folder = save_encoder(tmp_path / 'tiny')
    for path, said in pooling.files_for_sentence_transformers('cls', 32).items():
        (folder / path).parent.mkdir(exist_ok=True)
        write_json(folder / path, said)
    Reads(remark='all are alike').write(folder)
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob('*') if p.is_file()}
    hub.commit('models', 'lab/tiny', files)
    huggingface_hub.snapshot_download('lab/tiny', allow_patterns=['config.json', 'model*', 'tok*'])
    tokenizer = load_in_transformers(folder)
    model, _ = load_weights(folder, 'AutoModelForMaskedLM')
    model.name_or_path = 'lab/tiny'
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    for ask, text in ((bx.embed, 'a dose'), (bx.predict, 'a [MASK]')):
        with pytest.warns(
            UserWarning, match=r'as the hub does not say whether lab/tiny has .*\.json; give the folder'
        ):
            ask(model, [text], tokenizer=tokenizer)
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', False)
    found = bx.embed(model, ['a dose'], tokenizer=tokenizer)
    np.testing.assert_array_equal(found, bx.embed(folder, ['a dose']))
    assert np.abs(found - bx.embed(model, ['a dose'], tokenizer=tokenizer, pooling='mean')).max() > 0.01
    with pytest.warns(UserWarning, match='on devel all are alike'):
        bx.predict(model, ['a [MASK]'], tokenizer=tokenizer)


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        (
            'lab/none',
            'lab/none: no such folder here, and no such model on the hub, or HF_TOKEN may not see it',
        ),
        ('lab/tiny@v9', 'lab/tiny@v9: no such revision; give a branch, a tag or a commit of it'),
        ('lab/gated', 'lab/gated: access is refused; accept its terms on its page'),
        (
            'lab/onnx',
            'lab/onnx: the model on the hub has no config.json, or no weights as safetensors, of PyTorch or as ONNX',
        ),
        (
            './tiny',
            'tiny: no such folder; give the folder of a model, or of a run that kept one, or a hub id',
        ),
        (
            'lab/away@dev',
            'lab/away@dev: no such folder here, and no whole copy in the cache, and the hub is out of reach (no '
            'answer; check the network and HF_ENDPOINT); on a machine with a network run `hf download lab/away '
            '--revision dev --local-dir away`, bring that folder here and give its path',
        ),
        (
            'offline',
            'offline: no such folder here, and no whole copy in the cache, and the hub is out of reach (HF_HUB_OFFLINE '
            'is set); on a machine with a network run `hf download offline --local-dir offline`, bring',
        ),
    ],
)
def test_a_model_that_the_hub_does_not_give_is_one_line(given, message, hub, tmp_path, capsys, monkeypatch):
    for name in ('lab/tiny', 'lab/gated', 'lab/onnx'):
        hub.commit('models', name, {'config.json': b'{}', 'onnx/model.onnx': b''})
    hub.gated = ('lab/gated',)
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', given == 'offline')
    if 'away' in given:
        monkeypatch.setattr(huggingface_hub.constants, 'ENDPOINT', 'http://127.0.0.1:9')
    code, line = call(capsys, 'predict', given, '--text=A text.')
    assert (code, line.count('\n')) == (BAD_INPUT, 0), line
    assert message in line, line


def test_a_copy_in_the_cache_needs_no_network(tmp_path, monkeypatch):
    """A snapshot is used if it is whole; a folder of that name goes first; a phase is no model of the hub."""
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setattr(huggingface_hub.constants, 'HF_HUB_OFFLINE', True)
    monkeypatch.chdir(tmp_path)
    commit, stored = 'a' * 40, tmp_path / 'cache' / 'models--bert-base-uncased'
    snapshot = save_encoder(stored / 'snapshots' / commit)
    (stored / 'refs').mkdir()
    (stored / 'refs' / 'main').write_text(commit)
    run = Experiment(phases=('0.1',))
    for entry, name in {
        'bert-base-uncased': 'bert-base-uncased',
        f'b=bert-base-uncased@{commit}': 'b',
    }.items():
        models.downloaded.cache_clear()
        assert named_model(run, entry, 'here') == (name, snapshot)
    assert models.at_commit('bert-base-uncased') == f'bert-base-uncased@{commit}'
    assert models.configuration('bert-base-uncased') == snapshot
    assert (
        as_folder(tmp_path / 'x', 'bert-base-uncased', None)
        == tokenizer_place('bert-base-uncased')
        == snapshot
    )
    assert model_at('bert-base-uncased') == snapshot  # of `predict`, here and in `bioptimus`
    given = {
        'vocab': Vocab(kind='file', file='bert-base-uncased'),
        'surgery': Surgery(donor='bert-base-uncased'),
    }
    said = []
    pinned = with_pinned_models(
        dataclasses.replace(run, **given),
        ('vocab', 'surgery'),
        {},
        lambda *one: said.append(one),
        said.append,
    )
    assert pinned.vocab.file == str(snapshot)
    assert pinned.surgery.donor == f'bert-base-uncased@{commit}'
    address = f'hf://bert-base-uncased@{commit}'
    assert said == [('vocab.file', address), ('surgery.donor', address)]
    taught = dataclasses.replace(run, objective={'rtd': rtd.Settings(generator='bert-base-uncased')})
    pinned = with_pinned_models(taught, ('pretrain',), {}, lambda *one: said.append(one), said.append)
    assert pinned.objective['rtd'].generator == f'bert-base-uncased@{commit}'
    assert said.pop() == ('objective.rtd.generator', address)
    assert with_pinned_models(taught, ('export',), {}, said.append, said.append) is taught
    assert recorded([address, 'hf://datasets/a/b@' + commit]) == {'bert-base-uncased': commit}
    assert named_model(run, '0.1@25', 'here') == ('0.1@25', None)
    for wrong, message in (
        ('0.2', r"'0\.2' is not a phase \(0\.1\), .*did you mean"),
        ('gpt2', r"'gpt2' is not a phase .*; as a hub id: gpt2: no such folder here"),
    ):
        with pytest.raises(ConfigError, match=message):
            named_model(run, wrong, 'here')
    weights = (snapshot / 'model.safetensors').rename(tmp_path / 'weights')  # as after a kill
    for _ in range(2):
        models.downloaded.cache_clear()
        with pytest.raises(InputError, match=r'bert-base-uncased: no such folder here, and no whole copy in'):
            models.model_folder('bert-base-uncased', 'here')
        if weights.exists():  # as programs leave it that read models alone
            weights.rename(snapshot / 'model.safetensors')
            for file in snapshot.glob('[!cm]*'):
                file.unlink()
    (tmp_path / 'bert-base-uncased').mkdir()
    assert models.model_folder('bert-base-uncased', 'here') == models.Path('bert-base-uncased')


def shown(capsys, *arguments):
    from bioptimus_jax.cli import main as cli

    code, captured = cli.main(list(arguments)), capsys.readouterr()
    assert code == 0, captured.err
    return code, captured.out


def refusals(model, hub, capsys):
    """Refusals of a folder that is not as its stage left it; nothing is asked of the hub."""
    stage, secret = model.parents[4], 'hf_' + 'x' * 34
    hub.asked.clear()

    def refused(what, message, to='hf://lab/tagger'):
        code, line = call(capsys, 'push', str(what), f'--to={to}', '--yes')
        assert code in (USAGE, BAD_INPUT)
        assert re.search(message, line), line
        assert line.count('\n') == 0
        assert secret not in line

    def without(file, content, message):
        before = file.read_bytes() if file.exists() else None
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        refused(model, message)
        if before is None:
            file.unlink()
        else:
            file.write_bytes(before)

    without(model / '.env', b'TOKEN=1', r'\.env: no stage wrote it; only what a stage wrote is sent')
    without(model / 'README.md', None, r'model: has no card \(README\.md\)')
    without(model / 'README.md', b'---\na: [\n---\n', r'README\.md: its first lines are not metadata')
    without(
        model / 'README.md', f'---\n---\n{secret}'.encode(), r'seems to hold a secret \(hf_x\.\.\.\); take it'
    )
    without(model / 'config.json', b'{}', r'config\.json: is not what its stage wrote')
    without(model / 'tokenizer_config.json', None, r'tokenizer_config\.json: is missing')
    (model / 'link').symlink_to(stage.parent)
    refused(model, r'link: is a link; only what a stage wrote is sent')
    (model / 'link').unlink()
    for to in ('lab/tagger', 'hf://lab', 'hf://datasets/lab/x', 'hf://lab/x@main/sub', 'hf://lab/x/sub'):
        refused(model, r'give hf://OWNER/NAME\[@BRANCH\]( for a model)?$', to)
    refused(stage.parent / 'none', r'none: no such folder')
    copy = shutil.copytree(model, stage.parents[1] / 'copy')
    refused(copy, r'copy: is not an export, kept model or report of this program; give RUN/export/PHASE')
    (stage / 'manifest.json').rename(stage / '.started.json')
    refused(model, r'finetune: is not finished \(no manifest\.json\); run `bioptimus finetune` again first')
    assert hub.asked == []
