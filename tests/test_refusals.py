"""What cannot be: each refused with one line and its exit code before anything is begun, and nothing is left behind."""

import errno
import functools
import json
import os
import re
import resource
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_commands import call, stamps
from toy_stages import NOTHING_COUNTED, experiment, make_stage

from bioptimus_jax.cli import main as cli
from bioptimus_jax.cli.command import all_verbs
from bioptimus_jax.config.fields import field_of, walk
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import stages
from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts import devices
from bioptimus_jax.hosts.devices import GIB, Present
from bioptimus_jax.model.families.bert import Bert
from bioptimus_jax.model.families.electra import Electra
from bioptimus_jax.model.families.roberta import Roberta
from bioptimus_jax.model.folder import name_of
from bioptimus_jax.model.tensors import write_folder
from bioptimus_jax.pretrain.memory import check_memory
from bioptimus_jax.progress.console import in_units
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage import files
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

SHAPE = dict(layers=2, hidden=16, heads=4, intermediate=32, max_positions=32)
CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_arms(argument=''):
    return {{'number': (1, 2), 'path': ('../x',), 'dots': ('.', '..'), 'text': 'abc', 'nothing': None,
            'long': ('x' * 300,), 'half': ('a\\ud800',), 'ours': ('arms.md',)}}[argument]

def get_config(argument=''):
    c = defaults()
    c.source.path = '{tmp}/source'
    c.corpus.update(inputs=('{tmp}/text.txt',))
    c.model.update({shape})
    c.rows.update(row_pieces=64, max_document_pieces=32)
    c.pretrain.update(batch_rows=16)
    c.finetune.update(folder='{tmp}/ner', max_pieces=32, overlap_pieces=8)
    if argument == 'half':
        c.corpus.inputs = ('\\ud800.txt',)
    if argument == 'nul':
        c.corpus.inputs = ('a\\0.txt',)
    if argument == 'phase':
        c.phase['..'] = c.phase['0.1']
    if argument == 'initial':
        c.phase['initial'], c.phases = c.phase['0.1'], ('initial',)
    if argument == 'setting':
        c.finetune.setting['a/b'] = {{'epochs': 2}}
    if argument == 'exit':
        raise SystemExit(5)
    return c
"""


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A source, a text and a NER set, small but real; and odd things beside them."""
    tmp = tmp_path_factory.mktemp('world')
    (tmp / 'odd.py').write_text(CONFIG.format(tmp=tmp, shape=', '.join(f'{k}={v}' for k, v in SHAPE.items())))
    (tmp / 'text.txt').write_text('some words of a text that is long enough\n\n' * 20)
    (tmp / 'other.txt').write_text('other words of a text that nothing is trained on\n\n' * 20)
    letters = [*'abcdefghijklmnopqrstuvwxyz']
    tokens = [*SPECIAL_TOKENS, *letters, *(f'##{letter}' for letter in letters)]
    architecture = Bert(len(tokens), **SHAPE)
    (tmp / 'made').mkdir()
    make(tokens, True).save(tmp / 'made', 32)

    def fresh(architecture):
        return jax.tree.map(np.asarray, architecture.initial_parameters(jax.random.key(0)))

    params, padded = fresh(architecture), Roberta(len(tokens), **{**SHAPE, 'max_positions': 34})
    write_folder(tmp / 'source', architecture, params, tmp / 'made')
    write_folder(tmp / 'padded', padded, fresh(padded), tmp / 'made')
    write_folder(
        tmp / 'narrow', narrow := Electra(len(tokens), **SHAPE, embedding_size=8), fresh(narrow), tmp / 'made'
    )
    changes = {
        'roberta': {'model_type': 'roberta'},
        'gpt': {'model_type': 'gpt2'},
        'bart': {'model_type': 'bart', 'is_encoder_decoder': True},
        'few': {'vocab_size': len(tokens) - 1},
        'padded': {'pad_token_id': 1},
    }
    for name, changed in changes.items():
        if name != 'padded':
            write_folder(tmp / name, architecture, params, tmp / 'made')
        values = json.loads((tmp / name / 'config.json').read_text())
        (tmp / name / 'config.json').write_text(json.dumps({**values, **changed}))
    (tmp / 'ner' / 'drugs').mkdir(parents=True)
    for split in ('train', 'devel', 'test'):
        (tmp / 'ner' / 'drugs' / f'{split}.tsv').write_text('aspirin\tB-Drug\nhelps\tO\n\n')
    for name in ('weightless', 'torn', 'adapted', 'untyped'):
        write_folder(tmp / name, architecture, params, tmp / 'made')
    (tmp / 'adapter').mkdir()
    for name in ('adapted', 'adapter'):
        (tmp / name / 'adapter_config.json').write_text('{"peft_type": "LORA"}')
    (tmp / 'untyped' / 'config.json').write_text(json.dumps(architecture.to_config()))
    (tmp / 'weightless' / 'model.safetensors').unlink()
    (tmp / 'torn' / 'model.safetensors').write_bytes(b'torn')
    (tmp / 'odd' / 'drugs').mkdir(parents=True)
    for split in ('train', 'devel', 'test'):
        (tmp / 'odd' / 'drugs' / f'{split}.tsv').write_text('aspirin\tB-Drug\nhelps\n\n')
    os.symlink('loop', tmp / 'loop')
    os.symlink('nowhere', tmp / 'dangling')
    (tmp / 'file').write_text('')
    (tmp / 'folder.py').mkdir()
    (tmp / 'folder.txt').mkdir()
    return tmp


def refused(world, tmp_path, capsys, verb, *given):
    """Exit code and line of a command, which must be one line and leave nothing behind."""
    filled = [argument.format(tmp=world, new=tmp_path, long='x' * 300) for argument in given]
    named = {argument.partition('=')[0] for argument in filled}
    config = [] if '--config' in named else [f'--config={world}/odd.py']
    workdir = [] if '--workdir' in named else [f'--workdir={tmp_path}/deep/run']
    code, line = call(capsys, verb, *config, *workdir, *filled)
    assert '\n' not in line
    assert 'unexpected' not in line
    assert not os.listdir(tmp_path), 'a refused command leaves nothing behind'
    return code, line


# Found without jax: (verb, arguments, exit code, what the line says).
AT_ONCE = [
    ('corpus', ['--workdir={tmp}/loop'], 3, r'--workdir=.*loop: File exists; a folder is needed there'),
    ('corpus', ['--workdir={tmp}/loop/run'], 3, 'symbolic links; correct the link'),
    ('corpus', ['--workdir={tmp}/dangling'], 3, 'not a file or a broken link'),
    ('corpus', ['--workdir={tmp}/file/run'], 3, 'Not a directory; a part of its path is a file'),
    ('corpus', ['--workdir={new}/{long}'], 3, 'File name too long; choose shorter names'),
    ('corpus', ['--workdir={new}/deep/{long}'], 3, 'File name too long; choose shorter names'),
    *(
        ('run', ['--dry-run', f'--workdir={folder}'], code, expected)
        for folder, code, expected in (
            ('{tmp}/loop', 3, 'symbolic links; correct the link'),
            ('{tmp}/dangling', 3, 'not a file or a broken link'),
            ('{tmp}/file/run', 3, 'Not a directory; a part of its path is a file'),
            ('{new}/{long}', 3, 'File name too long; choose shorter names'),
            ('s3://bucket/run', 2, '--workdir=s3://bucket/run: must be a folder of this machine'),
        )
    ),
    (
        'run',
        ['--dry-run', '--config.corpus.inputs=s3://bucket/*.txt'],
        2,
        r'--config\.corpus\.inputs=s3://bucket/\*\.txt: must be a folder of this machine',
    ),
    ('corpus', ['--workdir='], 2, '--workdir is empty'),
    ('corpus', ['--workdir={new}/\udcff'], 2, 'the command line: .* is not UTF-8 text'),
    ('corpus', ['--config={long}.py'], 2, 'no such config'),
    ('corpus', ['--config={tmp}/folder.py'], 2, 'no such config'),
    ('corpus', ['--config={tmp}/loop'], 2, 'no such config'),
    ('corpus', ['--config={tmp}/odd.py:exit'], 2, 'SystemExit: 5'),
    ('corpus', ['--config={tmp}/odd.py:half'], 2, r'config\.corpus\.inputs\[0\]: .* is not UTF-8 text'),
    ('corpus', ['--config={tmp}/odd.py:nul'], 2, r'config\.corpus\.inputs\[0\]: .* is not UTF-8 text'),
    ('corpus', ['--config={tmp}/odd.py:phase'], 2, r"config\.phase: '\.\.' is not a name"),
    (
        'corpus',
        ['--config={tmp}/odd.py:initial'],
        2,
        r"config\.phases: 'initial' is the name of another model",
    ),
    ('corpus', ['--config={tmp}/odd.py:setting'], 2, r"config\.finetune\.setting: 'a/b' is not a name"),
    ('corpus', ['--config.corpus.inputs={tmp}/folder.txt'], 3, 'is a folder; name its files'),
    ('corpus', ['--config.corpus.inputs={tmp}/loop'], 3, 'no such file'),
    ('corpus', ['--config.corpus.inputs={long}.txt'], 3, 'File name too long'),
    ('corpus', ['--config.runtime.base_run={tmp}/nowhere'], 2, r'config\.runtime\.base_run: .* no such run'),
    ('corpus', ['--config.corpus.shards=10000000'], 2, r'config\.corpus\.shards: must be at most 10000'),
    ('vocab', [], 3, 'run `bioptimus corpus` first'),
    ('sweep', ['--config={tmp}/odd.py:number'], 2, 'an arm of its get_arms.*: 1 is not a name'),
    ('sweep', ['--config={tmp}/odd.py:path'], 2, "'../x' is not a name"),
    ('sweep', ['--config={tmp}/odd.py:dots'], 2, r"'\.' is not a name"),
    ('sweep', ['--config={tmp}/odd.py:text'], 2, 'gives str, not a tuple of names'),
    ('sweep', ['--config={tmp}/odd.py:nothing'], 2, 'gives NoneType, not a tuple'),
    ('sweep', ['--config={tmp}/odd.py:long'], 2, 'is too long'),
    ('sweep', ['--config={tmp}/odd.py:half'], 2, 'is not a name'),
    ('sweep', ['--config={tmp}/odd.py:ours'], 2, "'arms.md' is too long, or ends as our own files do"),
    ('sweep', ['--config={tmp}/odd.py:path', '--jobs=1000000000'], 2, '--jobs=1000000000: from 1 to'),
]


@pytest.mark.parametrize(
    ('verb', 'given', 'code', 'expected'), [row for row in AT_ONCE if row[0] in all_verbs()]
)
def test_what_cannot_be_is_one_line(verb, given, code, expected, world, tmp_path, capsys):
    found, line = refused(world, tmp_path, capsys, verb, *given)
    assert found == code, line
    assert re.search(expected, line), line


# Of stages that come hours later; `run` says it before the first one begins.
BEFORE_THE_FIRST = [
    (['rows.max_document_pieces=64'], 2, 'but this BERT has 32 positions; set it to 32 or less'),
    (['source.path={tmp}/gpt'], 3, r'gpt/config\.json: model_type is \'gpt2\'; only "albert", '),
    (['source.path={tmp}/bart'], 3, "bart/config.json: model_type 'bart' is an encoder-decoder"),
    (
        ['source.path={tmp}/roberta'],
        3,
        "roberta: holds bert.*, a tensor of BERT, BigBird or Megatron-BERT, but .* is 'roberta'",
    ),
    (['source.path={tmp}/padded'], 3, r'padded/config\.json: .* from pad_token_id, but .* \[PAD\] is 0'),
    (['source.path={tmp}/few'], 3, 'few: the tokenizer has 57 tokens, but config.json gives the model 56'),
    (
        ['source.path={tmp}/narrow', 'surgery.strategy=averaged_last'],
        2,
        r'config\.surgery\.map: rows of .* have 8 columns, its states 16; averaged_last needs a map',
    ),
    (['source.path={tmp}/nowhere'], 3, 'nowhere: no such folder; config.source.path'),
    (['source.path=some/model@v1'], 3, 'some/model@v1: no such folder here, and no whole copy in the cache'),
    (['source.path='], 2, r'config\.source\.path: is empty, but config\.surgery\.strategy'),
    (['surgery.layers=7'], 2, r'config\.surgery\.layers: 7, but .* has 2 layers'),
    (['surgery.strategy=copy'], 2, 'copy keeps the source vocabulary'),
    (['vocab.kind=file', 'vocab.file={tmp}/nowhere'], 3, 'nowhere: no such file'),
    (['vocab.file={tmp}/own.txt'], 2, r'own\.txt is not read where config\.vocab\.kind is train; set'),
    (['vocab.lowercase=false'], 2, r'config\.vocab\.lowercase: is False, but the source .* is lower case'),
    (['runtime.devices=99'], 2, r'config\.runtime\.devices: 99 asked for, 8 present'),
    (['runtime.fsdp=3'], 2, 'does not divide 8 devices'),
    (['runtime.tensor=8'], 2, 'does not divide 4 attention heads'),
    (['pretrain.batch_rows=12'], 2, '12 rows are not a multiple of the 8 devices'),
    (['runtime.attention=splash'], 2, 'splash is for tpu, but jax computes on cpu here'),
    (
        ['source.path=', 'surgery.strategy=scratch', 'model.family=deberta-v2', 'runtime.attention=cudnn'],
        2,
        r'config\.runtime\.attention: cudnn cannot be used here \(scores of DeBERTa .*\); choose xla or auto',
    ),
    (
        ['source.path=', 'surgery.strategy=scratch', 'model.family=mpnet', 'model.max_positions=34'],
        2,
        r'config\.vocab\.tokenizer: the tokenizer pads with \[PAD\], id 0, but transformers counts .* from id 1',
    ),
    (['pretrain.batch_rows=1048576', 'rows.row_pieces=4096'], 2, r'about [\d.]+ PiB, and 8 cpu devices has'),
    (['pretrain.objective=rtd'], 2, r'objective: rtd needs the head of a discriminator, which no BERT has'),
    (
        ['pretrain.objective=rtd', 'source.path={tmp}/narrow', 'objective.rtd.heads=3'],
        2,
        r'config\.objective\.rtd\.heads: of the generator, 3 attention heads do not divide the hidden size 5',
    ),
    (
        ['pretrain.objective=rtd', 'source.path={tmp}/narrow', 'runtime.tensor=2'],
        2,
        r'config\.runtime\.tensor: 2 does not divide 1 attention heads',
    ),
    (['corpus.heldout_fraction=0'], 2, r'config\.corpus\.heldout_fraction: is 0'),
    (['curriculum.order=easy_to_hard', 'curriculum.texts={tmp}/text.txt'], 2, 'which is trained on'),
    (['curriculum.order=easy_to_hard', 'curriculum.probe={tmp}/nowhere'], 3, r'config\.curriculum\.probe'),
    (['finetune.folder={tmp}/nowhere'], 3, r'nowhere: no such folder; config\.finetune\.folder'),
    (['finetune.datasets=genes'], 3, 'has no set genes; found: drugs'),
    (['finetune.models=..=source'], 2, r"config\.finetune\.models: '\.\.' is not a name"),
    (['finetune.models=a/b={tmp}/source'], 3, 'no such folder; it must be a Hugging Face folder'),
    (['finetune.models=results.jsonl={tmp}/source'], 2, 'ends as our own files do'),
    (['finetune.models=0.9'], 2, "'0.9' is not a phase"),
    (['finetune.models=0.4@25'], 2, "'0.4@25' will not be exported"),
    (
        ['finetune.models=source', 'finetune.max_pieces=64'],
        2,
        r'config\.finetune\.max_pieces: 64, but .* 32 positions',
    ),
    (
        ['finetune.max_pieces=64'],
        2,
        r'config\.finetune\.max_pieces: 64, but 0\.1 has 32 positions; set it to 32 or less',
    ),
    (['finetune.models=x={tmp}/weightless'], 3, r'weightless: holds no weights \(model\.safetensors'),
    (['finetune.models=x={tmp}/torn'], 3, r'torn/model\.safetensors: is damaged'),
    *(
        ([f'{key}={{tmp}}/{name}', *others], 3, rf'{name}/adapter_config\.json: adapters are not read')
        for name in ('adapted', 'adapter')
        for key, *others in (
            ['source.path'],
            ['surgery.donor', 'surgery.strategy=focus'],
            ['curriculum.probe', 'curriculum.order=easy_to_hard', 'curriculum.texts={tmp}/other.txt'],
            ['objective.distil.teacher', 'pretrain.objective=distil'],
            ['finetune.models=x'],
        )
    ),
    (
        ['source.path={tmp}/untyped'],
        3,
        r'untyped/config\.json: has no "model_type"; add .* "model_type": "bert"',
    ),
    (['finetune.models=x={tmp}/untyped'], 3, r'untyped/config\.json: has no "model_type"'),
    (['source.path={tmp}/weightless'], 3, r'weightless/model\.safetensors: no such file; it is an input of'),
    (['finetune.folder={tmp}/odd'], 3, r'odd/drugs/train\.tsv:2: expected token TAB tag'),
    (['corpus.languages=english'], 2, r"config\.corpus\.languages: 'english' is not a code"),
    (
        ['corpus.inputs={tmp}/*.jsonl'],
        3,
        'jsonl: no such file, and no file matches it; correct --config.corpus',
    ),
    (['finetune.folder='], 2, r'config\.finetune\.folder: is empty'),
    (['runtime.base_run={tmp}/nowhere'], 2, r'config\.runtime\.base_run: .*nowhere: no such run folder'),
    (['finetune.freeze_layers=3'], 2, r'config\.finetune\.freeze_layers: 3'),
    (['analysis.reference_vocab={tmp}/nowhere'], 3, 'nowhere'),
    (
        [
            *(
                'source.path=',
                'surgery.strategy=scratch',
                'model.hidden=32768',
                'model.heads=64',
                'model.layers=2',
            ),
            *('model.intermediate=131072', 'evaluation.snapshots_per_phase=100'),
        ],
        3,
        r'run: models and checkpoints need about [\d.]+ TB, and [\d.]+ [GT]B are free \(checkpoints: 400 kept',
    ),
    (['stages=corpus,corpus'], 2, r'config\.stages: different ones are needed'),
    (['stages=corpus,vocab,pretrain'], 2, 'pretrain needs surgery, which is not done'),
    (['stages=corpus,nonsense'], 2, "'nonsense' is not a stage"),
]


@pytest.mark.parametrize(('keys', 'code', 'expected'), BEFORE_THE_FIRST)
def test_run_checks_every_stage_before_the_first(keys, code, expected, world, tmp_path, capsys, monkeypatch):
    def begun(*_, **__):
        raise AssertionError('a stage has begun')

    jax.devices()  # so that no process has to look for them
    monkeypatch.setattr(stages, 'execute', begun)
    given = [f'--config.{key}' for key in keys]
    found, line = refused(world, tmp_path, capsys, 'run', *given)
    assert found == code, line
    assert re.search(expected, line), line
    assert refused(world, tmp_path, capsys, 'run', *given, '--dry-run') == (found, line)


TEXTS = '--config.curriculum.texts={tmp}/other.txt'
READS_A_MODEL = [
    ['predict', 'MODEL', '--text=a [MASK]'],
    ['merge', 'MODEL', '{tmp}/source', '--to={new}/merged'],
    ['merge', '{tmp}/source', 'MODEL', '--to={new}/merged'],
    ['advise', '--source=MODEL', '--texts={tmp}/text.txt'],
    ['init', '{new}/mine.py', '--source=MODEL', '--texts={tmp}/text.txt', '--hours=1'],
    ['plan', '--config={tmp}/odd.py', '--config.source.path=MODEL'],
    ['difficulty', '--config={tmp}/odd.py', '--workdir={new}/run', '--model=x=MODEL', TEXTS],
]


@pytest.mark.parametrize('name', ['adapted', 'adapter'])
@pytest.mark.parametrize(
    'given', [given for given in READS_A_MODEL if given[0] in all_verbs()], ids=lambda given: given[0]
)
def test_every_verb_refuses_an_adapter_beside_the_weights(given, name, world, tmp_path, capsys):
    """And the Python functions: transformers puts it on or not by whether PEFT is installed."""
    filled = [one.replace('MODEL', f'{world}/{name}').format(tmp=world, new=tmp_path) for one in given]
    code, line = call(capsys, *filled)
    assert (code, line.count('\n')) == (3, 0), line
    assert f'{name}/adapter_config.json: adapters are not read, and the weights without it are' in line
    assert 'merge_and_unload() of PEFT' in line
    assert not list(tmp_path.iterdir())


def test_run_says_at_once_what_a_finished_stage_refuses(world, tmp_path, capsys):
    """Settings of a later stage that is done: known before an earlier one goes on for hours."""
    run = Run(tmp_path / 'run', experiment(), quiet=True)
    execute(run, make_stage(sections=('finetune',)))
    os.rename(tmp_path / 'run' / 'corpus', tmp_path / 'run' / 'finetune')
    given = [f'--config={world}/odd.py', f'--workdir={tmp_path}/run', '--config.finetune.epochs=7']
    code, line = call(capsys, 'run', *given)
    assert (code, 'config.finetune.epochs: 0 -> 7' in line) == (2, True), line
    assert not (tmp_path / 'run' / 'corpus').exists()


def test_a_dry_run_says_what_each_stage_would_do_and_writes_nothing(world, tmp_path, capsys):
    """Before the run, in its middle, and after a change; the folder stays as it is to the last byte and time."""
    given = [
        'run',
        f'--config={world}/odd.py',
        f'--workdir={tmp_path}/run',
        '--config.stages=corpus,vocab,report',
    ]
    given += ['--config.vocab.size=100', '--config.runtime.workers=1']

    def said(*more):
        before = stamps(tmp_path)
        assert cli.main([*given, *more, '--dry-run']) == 0
        assert before == stamps(tmp_path)
        return capsys.readouterr().out.splitlines()

    assert said() == ['corpus: would begin', 'vocab: would begin', 'report: is rebuilt each time']
    assert not (tmp_path / 'run').exists()
    assert cli.main(['corpus', *given[1:]]) == 0
    capsys.readouterr()
    assert said()[:2] == ['corpus: done', 'vocab: would begin']
    os.rename(tmp_path / 'run' / 'corpus' / 'manifest.json', tmp_path / 'run' / 'corpus' / '.started.json')
    assert said()[0] == 'corpus: would continue'
    assert said('--config.corpus.min_words=4', '--replace')[0] == 'corpus: would be deleted and rebuilt'
    code, line = call(capsys, *given, '--config.corpus.min_words=4', '--dry-run')
    assert (code, 'config.corpus.min_words: 5 -> 4' in line) == (2, True)


def test_a_dry_run_looks_at_inputs_and_at_what_was_made(world, tmp_path, capsys, monkeypatch):
    """What `run` would refuse it refuses with the same line; a large file it does not read, and says so."""
    text, folder = tmp_path / 'own.txt', tmp_path / 'run'
    given = ['run', f'--config={world}/odd.py', f'--workdir={folder}', f'--config.corpus.inputs={text}']
    given += ['--config.stages=corpus,vocab', '--config.vocab.size=100', '--config.runtime.workers=1']
    text.write_bytes((world / 'text.txt').read_bytes())

    def said():
        before = stamps(folder)
        assert cli.main([*given, '--dry-run']) == 0
        assert before == stamps(folder)
        return capsys.readouterr().out.splitlines()

    monkeypatch.setattr(files, 'REMEMBERED_BYTES', 1)  # all are large
    assert cli.main(given) == 0
    capsys.readouterr()
    assert said() == ['corpus: done', 'vocab: done']
    os.utime(text, (1, 1))
    assert said() == [
        f'corpus: done, if {text}, whose time has changed, still holds the same',
        'vocab: done, if corpus is then what it was',
    ]
    bad = folder / 'corpus' / 'bad_records.jsonl'
    bad.rename(tmp_path / 'kept')
    assert said() == [
        'corpus: would continue from what is done (bad_records.jsonl is missing)',
        'vocab: done, if corpus is then what it was',
    ]
    bad.write_text('{}')
    refusal = call(capsys, *given, '--dry-run')
    assert (refusal[0], f'{bad}: is not what was written' in refusal[1]) == (3, True)
    (tmp_path / 'kept').replace(bad)
    text.write_bytes(text.read_bytes() * 2)
    code, line = call(capsys, *given, '--dry-run')
    assert (code, line) == call(capsys, *given)
    assert re.search(r'inputs\.0:own\.txt: \w+… -> [\d,]+ bytes', line)
    monkeypatch.undo()  # small files are read
    assert re.search(r'inputs\.0:own\.txt: \w+… -> \w+…', call(capsys, *given, '--dry-run')[1])
    assert cli.main([*given, '--dry-run', '--replace']) == 0
    assert capsys.readouterr().out.splitlines() == [
        'corpus: would be deleted and rebuilt',
        'vocab: done, if corpus is then what it was',
    ]


OF_A_RUN_THAT_IS_THERE = [
    ('run', ['--config.finetune.datasets=genes']),
    ('run', ['--config.corpus.min_words=4']),
    ('vocab', ['--config.vocab.kind=file', '--config.vocab.file={tmp}/nowhere']),
    ('surgery', ['--config.source.path={tmp}/gpt', '--replace']),
    ('pretrain', []),
    ('corpus', ['--config.corpus.min_words=4']),
    ('corpus', ['--config.corpus.inputs={tmp}/nowhere.txt', '--replace']),
    ('difficulty', ['--model=0.9']),
    ('report', ['--workdir={tmp}/loop']),
]


def test_a_refused_command_leaves_a_run_that_is_there_as_it_is(world, tmp_path, capsys):
    """No lock, no claim, no memory of checksums: every file, folder and time."""
    given = [f'--config={world}/odd.py', f'--workdir={tmp_path}/run', '--config.runtime.workers=1']
    assert cli.main(['corpus', *given]) == 0
    before = stamps(tmp_path)
    for verb, wrong in OF_A_RUN_THAT_IS_THERE:
        code, line = call(capsys, verb, *given, *(one.format(tmp=world) for one in wrong))
        assert code in (2, 3), (verb, wrong)
        assert '\n' not in line
        assert before == stamps(tmp_path), (verb, line)


@pytest.mark.parametrize('text', ['inf', 'nan', '-inf', '1e999', '9' * 5000, '[[]]', 'None', '(1,2,'])
def test_every_number_is_finite_and_within_bounds(text):
    """All keys that hold a number are meant: in the schema itself, which every verb goes through."""
    tried = 0
    for name, value, _ in walk(Experiment()):
        numbers = (tuple[int, ...], tuple[float, ...])
        several = isinstance(value, tuple) and field_of(Experiment, name)[1] in numbers
        if isinstance(value, bool) or not (several or isinstance(value, int | float)):
            continue
        with pytest.raises(ConfigError, match=rf'config\.{name}(\[0\])?: (must be|expected)') as caught:
            experiment(**{name.replace('.', '__'): text})
        assert len(str(caught.value)) < 300
        tried += 1
    assert tried > 100


@pytest.mark.parametrize('value', [10**18, 1e18, 10**400])
def test_a_number_without_a_bound_of_its_own_has_one(value):
    loaded = defaults()
    loaded.corpus.max_document_words = 10**15
    Experiment.from_config(loaded)
    with loaded.ignore_type():
        loaded.corpus.max_words = value
    with pytest.raises(ConfigError, match=r'config\.corpus\.max_words: (must be at most|expected int)'):
        Experiment.from_config(loaded)


def test_a_phase_ends_before_steps_have_no_number_and_a_profile_has_a_first_and_a_last():
    refused = [
        ({'runtime__profile_steps': steps}, r'config\.runtime\.profile_steps: the first and the last')
        for steps in ('5,2', '1,2,3')
    ]
    for unit, length in (('steps', 2.0**31), ('epochs', 1e7), ('words', 1e18), ('tokens', 1e18)):
        said = rf'config\.phase\.0\.1\.duration: must be .* {unit}|at most'
        refused.append(({'phase__0.1__duration': length, 'phase__0.1__duration_unit': unit}, said))
    for changes, said in refused:
        with pytest.raises(ConfigError, match=said):
            experiment(**changes)


def test_a_folder_without_a_name_names_no_model():
    assert [name_of(folder) for folder in ('.', '..', '/', '')] == ['', '', '', '']


def test_a_batch_beyond_the_memory_says_what_to_set():
    wanted = experiment(pretrain__batch_rows=256)
    architecture = Bert(30522, 768, 12, 12, 3072, 512)
    for memory, message in (
        (GIB // 4, r'lower config\.rows\.row_pieces'),
        (16 * GIB, r'set config\.pretrain\.micro_batches=(\d+)'),
    ):
        small = Present('gpu', 'a small one', 1, 1, memory)
        with pytest.raises(ConfigError, match=message) as caught:
            check_memory(wanted, architecture, small, 1)
    parts = str(caught.value).rpartition('micro_batches=')[2].partition(',')[0]
    check_memory(experiment(pretrain__batch_rows=256, pretrain__micro_batches=parts), architecture, small, 1)
    check_memory(wanted, architecture, Present('gpu', 'of unknown memory', 1, 1, 0), 1)


@pytest.mark.parametrize(
    ('number', 'decimal', 'binary'),
    [
        (0, '0 bytes', '0 bytes'),
        (1, '1 byte', '1 byte'),
        (999, '999 bytes', '999 bytes'),
        (1e3, '1 kB', '1,000 bytes'),
        (1024, '1.02 kB', '1 KiB'),
        (438_012_216, '438 MB', '418 MiB'),
        (999_700_000, '1 GB', '953 MiB'),
        (1.5e9, '1.5 GB', '1.4 GiB'),
        (7e15, '7 PB', '6.22 PiB'),
        (7e18, '7,000 PB', '6,217 PiB'),
    ],
)
def test_sizes_have_a_unit_that_says_something(number, decimal, binary):
    assert (in_units(number), in_units(number, 1024)) == (decimal, binary)


def test_a_small_model_on_a_full_disk_is_told_in_units_that_say_something(
    world, tmp_path, capsys, monkeypatch
):
    """Not "need about 0 GB, and 0 GB are free"."""
    jax.devices()
    monkeypatch.setattr('shutil.disk_usage', lambda folder: shutil._ntuple_diskusage(10**9, 10**9, 700))
    code, line = refused(world, tmp_path, capsys, 'run')
    assert code == 3
    assert re.search(r'models and checkpoints need about [\d.]+ MB, and 700 bytes are free \(', line), line


@pytest.mark.parametrize('allocate', [lambda: np.ones(2**55), lambda: jnp.ones((2**22, 2**22)), list])
def test_memory_that_is_not_there_names_the_key(allocate, tmp_path):
    """What numpy and XLA really raise; the third asks for none."""

    def build(run, folder):
        allocate()
        return NOTHING_COUNTED

    stage = make_stage(build, memory='lower config.some.key')
    if allocate is list:
        execute(Run(tmp_path, experiment(), quiet=True), stage)
        return
    with pytest.raises(InputError, match=r'corpus: there is not enough memory .*; lower config\.some\.key'):
        execute(Run(tmp_path, experiment(), quiet=True), stage)


def python(code, *arguments, program=sys.executable, **environment):
    command = [program, '-c', code, *map(str, arguments)]
    given = {**os.environ, 'PYTHONPATH': os.pathsep.join([*sys.path]), **environment}
    return subprocess.run(command, capture_output=True, text=True, env=given, timeout=600)


@pytest.mark.parametrize(('platform', 'needed'), [('cuda', 'NVIDIA GPU'), ('nonsense', 'cpu, cuda or tpu')])
def test_a_platform_that_is_not_there_is_named(platform, needed):
    done = python('from bioptimus_jax.hosts.devices import look; look()', JAX_PLATFORMS=platform)
    assert f'ConfigError: JAX_PLATFORMS={platform}: jax cannot compute on it here' in done.stderr
    assert needed in done.stderr


def test_looking_for_devices_starts_none_in_this_process():
    code = (
        'import sys; from bioptimus_jax.hosts.devices import look; print(look()); print("jax" in sys.modules)'
    )
    done = python(code)
    assert done.stdout.splitlines() == [str(devices.present()), 'False'], done.stderr


def test_a_file_beyond_the_limit_of_a_user_is_one_line_and_the_stage_goes_on(world, tmp_path, programs):
    """A limit stands for a full disk: the system refuses to write (EFBIG); then the same command goes on."""
    code = (
        'import sys, resource; from bioptimus_jax.cli.main import main; '
        'resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); sys.exit(main(sys.argv[2:]))'
    )
    given = [f'--config={world}/odd.py', '--config.runtime.workers=1']
    whole, cut = tmp_path / 'whole', tmp_path / 'cut'
    # The first begins cold, and so Python's hashes have another seed there.
    done = python(code, resource.RLIM_INFINITY, 'corpus', f'--workdir={whole}', *given)
    assert done.returncode == 0, done.stderr
    warm = functools.partial(python, program=programs / 'python')
    done = warm(code, 3000, 'corpus', f'--workdir={cut}', *given)
    assert done.returncode == 3, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert str(cut) in done.stderr
    assert warm(code, resource.RLIM_INFINITY, 'corpus', f'--workdir={cut}', *given).returncode == 0
    made = [
        json.loads((folder / 'corpus' / 'manifest.json').read_text())['content'] for folder in (whole, cut)
    ]
    assert made[0] == made[1]


def test_checkpoints_that_cannot_be_written_are_one_error_and_no_lines(tmp_path):
    """Several arrays fail at once, in threads of TensorStore, which tell a loop that the first has closed."""
    code = """
import resource, sys
from pathlib import Path
import jax
from bioptimus_jax.pretrain.checkpoint import Checkpoints
state = {f'p{i}': jax.random.normal(jax.random.key(i), (100, 100)) for i in range(24)}
checkpoints = Checkpoints(Path(sys.argv[1]), 2, [])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    try:
        checkpoints.save(1, state)
        checkpoints.wait()
    finally:
        checkpoints.close()
except OSError as error:
    print(error.errno, error.filename)
"""
    done = python(code, tmp_path, JAX_ENABLE_COMPILATION_CACHE='0')
    assert done.stdout.split() == [str(errno.EFBIG), str(tmp_path / 'checkpoints')]
    assert done.stderr == ''


def test_every_stage_that_computes_says_on_what(tmp_path, capsys):
    def build(run, folder):
        run.computes('corpus', str(devices.present()), mesh='data 8', attention='xla')
        return NOTHING_COUNTED

    manifest = execute(Run(tmp_path, experiment()), make_stage(build))
    assert manifest.json()['computed'] == {'on': '8 cpu devices', 'mesh': 'data 8', 'attention': 'xla'}
    assert 'corpus: computes on 8 cpu devices, mesh data 8, attention xla\n' in capsys.readouterr().out
    assert execute(Run(tmp_path / 'other', experiment(), quiet=True), make_stage()).computed is None
