"""The program: help, exit codes, and one clear line for everything that is wrong."""

import errno
import gzip
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from toy_commands import call

from bioptimus_jax.cli import arguments, command, verbs
from bioptimus_jax.cli import main as cli
from bioptimus_jax.cli.command import all_verbs, keys_of, positive_whole
from bioptimus_jax.cli.verbs import report
from bioptimus_jax.config.fields import meant, walk, walk_entries
from bioptimus_jax.errors import USAGE, ConfigError, of_the_system
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.hosts.devices import device_named
from bioptimus_jax.pretrain.units import MASKINGS
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.storage.files import atomic

CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.runtime.workers = 1
    return c
"""


@pytest.fixture
def plain(tmp_path):
    (tmp_path / 'plain.py').write_text(CONFIG)
    return str(tmp_path / 'plain.py')


@pytest.mark.parametrize('verb', ['', *STAGES, 'run', 'compare', 'demo', 'download', 'lint', 'plan'])
def test_help_exits_0_and_says_what_is_read_and_written(verb, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main([*([verb] if verb else []), '--help'])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert 'example' in text
    if verb:
        assert 'reads:' in text
        assert 'writes:' in text


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['nonsense'], "has no verb 'nonsense'; `bioptimus --help` lists all"),
        (
            ['run', '--config={plain}', '--workdir={tmp}/run', '--config.stages=corpus,ner'],
            'ner',
        ),
        (['corpus'], '--config'),
        (['corpus', '--config=nowhere', '--workdir={tmp}/run'], 'no such config; shipped ones'),
        (['corpus', '--config=small:nonsense', '--workdir={tmp}/run'], 'nonsense'),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.corpus.min_word=3'],
            'corpus.min_word: no such key',
        ),
        (['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.corpus=3'], 'is a section'),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.finetune.setting=3'],
            'set finetune.setting.NAME.KEY, where KEY is one of batch_sentences, ',
        ),
        (
            [
                'corpus',
                '--config={plain}',
                '--workdir={tmp}/run',
                '--config.finetune.setting.fast.learning_rat=1',
            ],
            'did you mean finetune.setting.fast.learning_rate?',
        ),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.corpus.min_words=many'],
            "expected int, got 'many'",
        ),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.phases=5'],
            "config.phases: '5' has no config.phase entry",
        ),
        (['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.phases=0.9'], 'config.phases'),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.phase.0.1.rate=2'],
            'phase.0.1.rate: must be at most',
        ),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.phase.0.1.corruption=.5,.1,.1'],
            'sum to 1',
        ),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.rows.row_pieces=64'],
            'does not fit',
        ),
        (['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.seed'], 'a value is missing'),
        (
            ['corpus', '--config={plain}', '--workdir={tmp}/run', '--config.seed=4294967296'],
            'config.seed: must be at most',
        ),
        (['download'], '--to'),
        (['download', '--to={tmp}/pubmed', '--what=nonsense'], '--what=nonsense: takes baseline or updates'),
        (
            ['download', '--to={tmp}/ner', '--what=ner,updates'],
            '--what=ner,updates: ner has a server of its own',
        ),
        (
            ['download', '--to={tmp}/ner', '--what=ner', '--url=ner'],
            '--url=ner: give the folder above BC2GM-IOB',
        ),
        (['lint'], '--sets'),
        (['lint', '--sets={tmp}', '--config.seed=3'], 'lint takes no --config keys'),
        (['download', '--to={tmp}/pubmed', '--parallel=0'], '--parallel=0: must be from 1'),
        (['download', '--to={tmp}/pubmed', '--url=ftp://server/pubmed'], '--url=ftp://server/pubmed: give'),
        (['download', '--to={tmp}/pubmed', '--config.seed=3'], 'takes no --config keys'),
        (
            ['pretrian'],
            "bioptimus has no verb 'pretrian'; `bioptimus --help` lists all; did you mean pretrain?",
        ),
        (['help'], 'did you mean --help?'),
        (['tag'], 'did you mean predict?'),
        (['resume'], 'did you mean run?'),
        (['eval'], 'did you mean score (predictions) or finetune (models)?'),
        (['plan', '--config={plain}', '--device=a100'], '; did you mean a100-40 or a100-80?'),
        (
            ['plan', '--config={plain}', '--finetune.epochs=3'],
            '; keys begin with --config.: --config.finetune.epochs',
        ),
        (['run', '--config={plain}', '--seed=3'], '; keys begin with --config.: --config.seed'),
        (
            ['run', '--config={plain}', '--corpus.shrads=3'],
            '--config.corpus.shrads; did you mean corpus.shards?',
        ),
        (['pretrain', '--config={plain}', '--dry-run'], '; `bioptimus run` has it'),
        (['pretrian'], '; did you mean pretrain?'),
        (['corpus', '--wordir={tmp}/run'], 'corpus has no --wordir; see `bioptimus corpus --help`'),
        (['corpus', '--wordir={tmp}/run'], '; did you mean --workdir?'),
        (['lint', '--sets={tmp}', '--task=entites'], '; did you mean entities?'),
        (['predict', 'model', '--as=tvs'], '; did you mean tsv?'),
        (['corpus', '--config=smal', '--workdir={tmp}/run'], '; did you mean small?'),
        (
            ['run', '--config={plain}', '--workdir={tmp}/run', '--config.corups.shards=1'],
            'did you mean corpus.shards?',
        ),
        (
            ['run', '--config={plain}', '--workdir={tmp}/run', '--config.batch_rows=1'],
            'mean pretrain.batch_rows?',
        ),
        (
            ['run', '--config={plain}', '--workdir={tmp}/run', '--config.phase.0.1.masking=word'],
            f"'word' is not one of {', '.join(MASKINGS)}; did you mean words?",
        ),
        (
            ['run', '--config={plain}', '--workdir={tmp}/run', '--config.vocab.tokenizer=wordpice'],
            '; did you mean wordpiece?',
        ),
        (
            ['run', '--config={plain}', '--workdir={tmp}/run', '--config.stages=corpus,vocabulary'],
            'did you mean vocab?',
        ),
        (['plan', '--config={plain}', '--device=h20'], '; did you mean h200?'),
        (['plan', '--config={plain}', '--config.corpus.max_words=1.5'], 'max_words: expected int, got 1.5'),
        (
            ['plan', '--config={plain}', '--config.corpus.max_words=1M'],
            "max_words: expected int, got '1M'; write it as 1000000 or 1e6",
        ),
        (
            ['plan', '--config={plain}', '--devices=1.5'],
            "--devices: '1.5': must be a whole number, at least 1",
        ),
        (['help', 'run'], 'did you mean `bioptimus run --help`?'),
        (
            ['run', 'small'],
            "run takes no 'small' without a flag; see `bioptimus run --help`; did you mean --config=small?",
        ),
        (['run', '--config', 'small', 'seed=3'], 'did you mean --config.seed=3?'),
        (['run', 'config.corpus.max_words=1e6'], 'did you mean --config.corpus.max_words=1e6?'),
        (['lint', 'sets'], '; did you mean --sets=sets?'),
        (['doctor', 'x'], "doctor takes no 'x' without a flag"),
        (['run', '--output_dir={tmp}/run'], '; did you mean --workdir?'),
        (['run', '--config=small', '--overwrite'], '; did you mean --replace?'),
        (
            ['predict', '--model={tmp}'],
            'predict has no --model; see `bioptimus predict --help`; MODEL INPUT stand without a flag',
        ),
        (['status', '--workdir={tmp}'], '; RUN stands without a flag'),
        (['lint', '--sets={tmp}', '--task=ner'], '; did you mean entities?'),
        (['plan', '--config={plain}', '--config.finetune.task=classification'], '; did you mean classes?'),
        (['plan', '--config={plain}', '--config.corpus.max_word=1'], '; did you mean corpus.max_words?'),
        (
            ['run', '--config=ablations:table2', '--workdir={tmp}/run'],
            'make them with `bioptimus sweep`, or one as table2/scratch.seed-0',
        ),
    ],
)
def test_wrong_usage_exits_2_with_one_line(arguments, expected, plain, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv('BIOPTIMUS_DATA', str(tmp_path))
    filled = [a.format(plain=plain, tmp=tmp_path) for a in arguments]
    code, error = call(capsys, *filled)
    assert code == 2
    assert expected in error
    assert '\n' not in error


def test_a_flag_whose_value_may_be_left_out_takes_no_flag_for_it(monkeypatch):
    """The verb takes no words, such as `report` where there is no laboratory."""
    monkeypatch.setattr(arguments, 'all_verbs', lambda: {'report': report.VERB})
    for given in (['--live'], ['--live', '5'], ['--live', '--replace'], ['--live=5']):
        arguments.check_flags(['report', *given])
        with pytest.raises(ConfigError, match="report takes no 'runs/x' without a flag"):
            arguments.check_flags(['report', *given, *(['5'] if given == ['--live'] else []), 'runs/x'])


@pytest.mark.parametrize(
    ('program', 'expected'),
    [
        ('def get_config(:\n', 'SyntaxError'),
        ('import nothing_of_this_name\n', 'nothing_of_this_name'),
        ('def get_config():\n    return unknown\n', 'unknown'),
        ('def get_config():\n    pass\n', 'NoneType, not a ConfigDict'),
        (
            'from bioptimus_jax.ext import defaults\ndef get_config():\n    defaults().ner.update(epochs=1)\n',
            'ner',
        ),
    ],
)
def test_a_config_file_that_fails_is_one_clear_line(program, expected, tmp_path, capsys):
    (tmp_path / 'broken.py').write_text(program)
    code, error = call(capsys, 'corpus', f'--config={tmp_path}/broken.py', f'--workdir={tmp_path}/run')
    assert (code, '\n' in error) == (2, False)
    assert 'broken.py' in error
    assert expected in error


def test_every_whole_number_may_be_written_as_1e6(plain, tmp_path):
    assert (positive_whole('1e3'), type(positive_whole('1e3'))) == (1000, int)
    found = [
        config.experiment(plain, [('corpus.max_words', text)]).corpus.max_words for text in ('1e6', '1000000')
    ]
    assert (found, list(map(type, found))) == ([10**6] * 2, [int] * 2)
    seeds = config.experiment(plain, [('finetune.seeds', '1e0,2')]).finetune.seeds
    assert (seeds, list(map(type, seeds))) == ((1, 2), [int, int])
    file = tmp_path / 'floats.py'
    file.write_text(CONFIG.replace('runtime.workers = 1', 'corpus.max_words = 1e6'))
    assert config.experiment(str(file), []).corpus.max_words == 10**6


def test_a_number_and_its_noun_go_together():
    counted = [numbered(n, noun) for n in (0, 1, 1200) for noun in ('cell', 'entry', 'class', 'day')]
    assert counted[:4] == ['0 cells', '0 entries', '0 classes', '0 days']
    assert counted[4:] == ['1 cell', '1 entry', '1 class', '1 day', *(f'1,200{x[1:]}' for x in counted[:4])]


def test_a_name_that_is_near_to_none_is_not_guessed():
    with pytest.raises(ConfigError, match=r'tpu-v6e$'):  # a B200 is no H200
        device_named('b200')
    assert meant('qqq', ['corpus', 'vocab']) == ''
    assert meant('rate', ['phase.0.1.rate', 'evaluation.rate']) == '; did you mean phase.0.1.rate?'


def test_help_has_the_keys_that_the_verb_reads_with_the_values_that_they_may_have(capsys):
    every = itertools.chain(walk(Experiment()), walk_entries(Experiment()))
    known = {name: (value, metadata) for name, value, metadata in every}
    for name, verb in all_verbs().items():
        with pytest.raises(SystemExit):
            cli.main([name, '--help-all' if verb.keys else '--help'])
        shown = re.findall(r'^  ([a-z_.0-9]+) = (.*)$', capsys.readouterr().out, re.M)
        read = {
            one for one, *_ in keys_of(verb) if not one.startswith(('phase.0.2', 'phase.0.3', 'phase.0.4'))
        }
        assert {one for one, _ in shown} == read, name
        assert all(repr(known[one][0]) == default for one, default in shown)
        assert (verb.keys is None) == (not shown), f'{name} takes keys that its help does not have'
        for key in verb.keys or ():
            assert any(f'{one}.'.startswith(f'{key}.') for one in (*known, 'objective', 'corpora')), (
                name,
                key,
            )
    of_stages = {key for name in STAGES for key, *_ in keys_of(all_verbs()[name])}
    read_by_run = {'stages'}
    assert {one for one in known if not one.startswith('corpora')} - of_stages == read_by_run
    with pytest.raises(SystemExit):
        cli.main(['rows', '--help-all'])
    text = capsys.readouterr().out
    assert "  rows.layout = 'documents'\n" in text
    assert '      one of: documents, pairs' in text
    assert '      from 8 to 65,535\n' in text
    assert '\n  pretrain.' not in text
    assert 'runtime.attention' not in text


def test_help_groups_the_verbs_and_shows_ten_keys_of_each(capsys):
    with pytest.raises(SystemExit):
        cli.main(['--help'])
    text, verbs = capsys.readouterr().out, all_verbs()
    headings = re.findall(r'^(\w+): ', text, re.M)
    assert headings[-5:] == ['Start', 'Use', 'Before', 'Laboratory', 'Stages']
    listed = {name: text.index(f'\n  {name:<13}') for name in verbs}
    after = {heading: text.index(f'\n{heading}: ') for heading in headings[-5:]}
    for name, verb in verbs.items():
        assert after[verb.group] < listed[name], name
        assert not any(after[verb.group] < at < listed[name] for at in after.values()), name
    first = {name for name, verb in verbs.items() if verb.group in ('Start', 'Use')}
    assert first >= {
        'demo',
        'doctor',
        'init',
        'run',
        'status',
        'finetune',
        'predict',
        'compare',
        'push',
        'lint',
    }
    for name, verb in verbs.items():
        with pytest.raises(SystemExit):
            cli.main([name, '--help'])
        text = capsys.readouterr().out
        shown = re.findall(r'^  ([a-z_.0-9]+) = ', text, re.M)
        assert len(shown) <= 10, name
        assert ('--help-all' in text) == bool(verb.keys)
    with pytest.raises(SystemExit):
        cli.main(['finetune', '--help'])
    text = capsys.readouterr().out
    assert 'finetune.learning_rate = ' in text
    assert 'finetune.layer_decay' not in text
    assert re.search(r'and \d\d more keys: `bioptimus finetune --help-all`', text)


def test_names_that_look_like_numbers_are_names():
    loaded = config.defaults()
    for dotted, text in {'phases': '0.1,0.2', 'finetune.models': '0.4', 'finetune.seeds': '1,2'}.items():
        config.override(loaded, dotted, text)
    experiment = Experiment.from_config(loaded)
    assert (experiment.phases, experiment.finetune.models) == (('0.1', '0.2'), ('0.4',))
    assert experiment.finetune.seeds == (1, 2)


@pytest.mark.parametrize(
    ('text', 'found'), [('100,110', (100, 110)), ('7', (7,)), ('(3, 4)', (3, 4)), ('()', ())]
)
def test_numbers_are_numbers_also_where_none_stood_before(text, found):
    for before in ((), (1, 2)):
        loaded = config.defaults()
        loaded.runtime.profile_steps = before
        config.override(loaded, 'runtime.profile_steps', text)
        assert Experiment.from_config(loaded).runtime.profile_steps == found


def damaged_inputs(tmp_path):
    good = (
        json.dumps({'id': '1', 'title': 'T', 'abstract': 'Some words that are long enough to keep.'}) + '\n'
    )
    packed = gzip.compress(good.encode() * 500)
    files = {
        'cut.jsonl.gz': packed[: len(packed) // 2],
        'bytes.txt': b'good line\n\nbad \xff\xfe line\n',
        'broken.jsonl': good.encode() + b'{"id": "2", "title": \n',
        'empty.txt': b'',
        'noid.jsonl': b'{"title": "T", "abstract": "words"}\n',
        'picture.png': b'\x89PNG',
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    return {
        'cut.jsonl.gz': 'cut.jsonl.gz',
        'bytes.txt': 'bytes.txt:3',
        'broken.jsonl': 'broken.jsonl:2',
        'empty.txt': 'is empty',
        'noid.jsonl': 'noid.jsonl:1',
        'picture.png': '.png',
        'missing.txt': 'missing.txt',
    }


def test_bad_input_exits_3_and_names_the_file_and_line(plain, tmp_path, capsys):
    for name, expected in damaged_inputs(tmp_path).items():
        workdir = tmp_path / f'run-{name}'
        code, error = call(
            capsys,
            'corpus',
            f'--config={plain}',
            f'--workdir={workdir}',
            f'--config.corpus.inputs={tmp_path / name}',
            '--config.corpus.on_bad_record=fail',
        )
        assert (code, '\n' in error) == (3, False), (name, error)
        assert expected.lower() in error.lower(), (name, error)
        assert not (workdir / 'corpus' / 'manifest.json').exists()


def test_a_stage_without_its_earlier_stage_says_which(plain, tmp_path, capsys):
    code, error = call(capsys, 'vocab', f'--config={plain}', f'--workdir={tmp_path}/run')
    assert code == 3
    assert 'bioptimus corpus' in error


@pytest.mark.parametrize(
    'error',
    [
        OSError(28, 'No space left on device', 'run/corpus/x'),
        Exception('No space left on device (os error 28)'),  # as tokenizers and safetensors say it
    ],
)
def test_a_full_disk_is_one_line(error, plain, tmp_path, capsys, monkeypatch):
    def full(*_, **__):
        raise error

    monkeypatch.setattr(command, 'execute', full)
    code, error = call(capsys, 'corpus', f'--config={plain}', f'--workdir={tmp_path}/run')
    assert code == 3
    assert 'no space left' in error


def test_a_folder_in_the_place_of_a_file_is_named_and_not_the_hidden_file_beside_it(tmp_path):
    with pytest.raises(IsADirectoryError) as caught, atomic(tmp_path):
        pass
    assert of_the_system(caught.value).startswith(f'{tmp_path}: Is a directory; a file is needed there')
    moved = PermissionError(
        errno.EACCES, 'Permission denied', '/runs/a/pretrain', None, '/runs/a/.pretrain.removed'
    )
    assert of_the_system(moved).startswith('/runs/a/pretrain: Permission denied')


def test_a_workdir_that_is_a_file(plain, tmp_path, capsys):
    (tmp_path / 'file').write_text('')
    code, error = call(capsys, 'corpus', f'--config={plain}', f'--workdir={tmp_path}/file')
    assert code == 3
    assert 'is a file' in error


def test_a_verb_is_one_file(tmp_path, capsys, monkeypatch):
    (tmp_path / 'greet.py').write_text(
        'from bioptimus_jax.cli.command import Verb, flag\n'
        "VERB = Verb('greets', 'Greets.', (flag('--name', 'whom', 'you'),), lambda c: print('hello', c.options.name))\n"
    )
    monkeypatch.setattr(verbs, '__path__', [*verbs.__path__, str(tmp_path)])
    assert cli.main(['greet', '--name=me']) == 0
    assert capsys.readouterr().out == 'hello me\n'
    assert call(capsys, 'greet', '--config.seed=3')[0] == 2
    with pytest.raises(SystemExit):
        cli.main(['--help'])
    assert 'greets' in capsys.readouterr().out


PRESS_TAB = """
eval "$(cat {script})"
COMP_LINE={line!r} COMP_POINT={at}
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
COMP_WORDS=({words}) COMP_CWORD={number}
_bioptimus
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(not shutil.which('bash'), reason='there is no bash here')
def test_bash_completes_verbs_flags_configs_keys_and_values(tmp_path, capsys):
    """bash calls it so: a = is a word of its own, and what is before it is not given back."""
    assert cli.main(['completion', 'bash']) == 0
    (tmp_path / 'script').write_text(capsys.readouterr().out)

    def pressed(line):
        words = [word for word in re.split(r'(\s+|[=:])', line) if word.strip()] + [''] * line.endswith(' ')
        quoted = ' '.join(f'"{word}"' for word in words)
        program = PRESS_TAB.format(
            script=tmp_path / 'script', line=line, at=len(line), words=quoted, number=len(words) - 1
        )
        done = subprocess.run(['bash', '-c', program], capture_output=True, text=True, timeout=60)
        return done.stdout.split()

    assert pressed('bioptimus pre') == ['pretrain', 'predict']
    assert set(pressed('bioptimus ')) == set(all_verbs())
    assert pressed('bioptimus run --work') == ['--workdir=']
    assert set(config.shipped()) == set(pressed('bioptimus run --config='))
    assert pressed('bioptimus run --config=small --config.phase.0.2.mask') == ['--config.phase.0.2.masking=']
    assert pressed('bioptimus run --config.phase.0.2.masking=w') == ['words']
    assert pressed('bioptimus rows --config.runtime.att') == []  # which rows does not read
    assert pressed('bioptimus export --config.runtime.tensorb') == []
    assert pressed('bioptimus rebuild --set=chemp') == ['chemprot']
    assert pressed('bioptimus run --workdir=ru') == []  # then bash completes files


@pytest.mark.parametrize('shell', ['zsh', 'fish'])
def test_scripts_of_other_shells_work_in_them(shell, tmp_path, capsys):
    assert cli.main(['completion', shell]) == 0
    (tmp_path / 'script').write_text(script := capsys.readouterr().out)
    for word in ('pretrain', '--workdir=', '--config=small', '--config.phase.0.1.masking=words'):
        assert f' {word} ' in script.replace("'", ' '), word
    if not shutil.which(shell):
        pytest.skip(f'there is no {shell} here')
    assert subprocess.run([shell, '-n', str(tmp_path / 'script')]).returncode == 0
    if shell == 'zsh':  # it completes at a terminal alone
        return
    (empty := tmp_path / 'empty').mkdir()  # fish completes files, too
    for typed, expected in {
        'pretra': ['pretrain'],
        'run --work': ['--workdir='],
        'run --config=sma': ['--config=small'],
        'run --config.phase.0.2.mask': ['--config.phase.0.2.masking='],
        'run --config.phase.0.2.masking=w': ['--config.phase.0.2.masking=words'],
        'rows --config.runtime.att': [],  # which rows does not read
        'rebuild --set=chemp': ['--set=chemprot'],
    }.items():
        press = f'source {tmp_path}/script; complete -C "bioptimus {typed}"'
        pressed = subprocess.run([shell, '-c', press], cwd=empty, capture_output=True, text=True)
        assert (pressed.stdout.split(), pressed.stderr) == (expected, ''), typed


def test_a_reader_that_leaves_early_is_no_crash(plain, capfd):
    """The reader is one such as `head`: nothing is said, and the exit code is the one that a shell gives others in such
    a pipe."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, '-m', 'bioptimus_jax.cli.main', 'plan', '--config=bioptimus', '--device=h100']
    done = subprocess.run(command, stdout=writing, cwd=Path(cli.__file__).parents[1])
    os.close(writing)
    assert done.returncode == 128 + signal.SIGPIPE
    assert capfd.readouterr().err == ''


def test_a_start_without_docstrings_is_refused_in_one_line():
    done = subprocess.run(
        [sys.executable, '-OO', '-m', 'bioptimus_jax', '--help'], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr.count('\n')) == (USAGE, '', 1)
    assert 'is in docstrings, which python -OO leaves out; start it without -OO' in done.stderr
