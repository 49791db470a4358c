"""Sweeps: arms share what is the same, failures are named and the rest goes on, signals end everything."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_programs import environment

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import ConfigError, Stopped
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.lab.places import Here, _Remote, share_of
from bioptimus_jax.lab.sweep import Arm, Sweep, _how, in_rounds
from bioptimus_jax.report.resolved import read_runs
from bioptimus_jax.run.execute import Attempt, execute
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import read_json, read_jsonl

CONFIG = """
from bioptimus_jax.experiment.config import defaults

ARMS = ('plain', 'seed-1', 'long')

def get_arms(argument=''):
    if argument in ('broken', 'refused'):
        return ('plain', argument)
    if argument == 'first':
        return ('broken', 'plain', 'broken-again')
    if argument == 'surgery':
        return ('plain', 'scored-otherwise', 'seed-1')
    if argument == 'trained':
        return ('plain',)
    return ARMS

def get_config(argument=''):
    arm = argument.rpartition('/')[2]
    c = defaults()
    slow = argument.startswith('slow') or (argument.startswith('timed') and arm != 'plain')
    c.stages = ('corpus', 'vocab', 'slow') if slow else ('corpus', 'vocab')
    c.runtime.workers = 1
    c.corpus.inputs = ('{text}',)
    c.corpus.words_per_document = 12
    c.corpus.heldout_fraction = 0.2
    c.vocab.size = 120
    c.vocab.limit_alphabet = 40
    if argument.startswith('surgery'):
        c.stages = ('corpus', 'vocab', 'surgery')
        c.surgery.strategy = 'scratch'
        c.rows.max_document_pieces = 16
        c.model.update(layers=1, hidden=16, heads=2, intermediate=16, max_positions=16)
    if argument.startswith('trained'):
        c.stages = ('corpus', 'vocab', 'surgery', 'rows', 'pretrain')
        c.surgery.strategy = 'scratch'
        c.rows.update(row_pieces=16, max_document_pieces=16)
        c.model.update(layers=1, hidden=16, heads=2, intermediate=16, max_positions=16)
        c.pretrain.update(batch_rows=4, max_word_pieces=4)
        c.phases = ('0.1',)
        c.phase['0.1'].update(duration=8.0, duration_unit='steps')
        c.runtime.devices = 1
    if arm == 'scored-otherwise':
        c.finetune.seeds = (7,)
    if arm == 'seed-1':
        c.seed = 1
    if arm == 'long':
        c.vocab.size = 105
        c.corpus.min_words = 8
    if arm.startswith('broken'):
        c.stages = ('corpus', 'vocab', 'rows')
        c.rows.layout = 'first_line'
    if arm == 'refused':
        c.stages = ('corpus', 'vocab', 'surgery')
    return c
"""


@pytest.fixture
def shipped(tmp_path):
    text = tmp_path / 'text.txt'
    words = 'the patients were given naloxone and the others aspirin for a month without harm'.split()
    lines = (' '.join(words[(i + j) % len(words)] for j in range(12)) + f' {i}.' for i in range(60))
    text.write_text('\n\n'.join(lines))
    (tmp_path / 'arms.py').write_text(CONFIG.format(text=text))
    return str(tmp_path / 'arms.py')


@pytest.fixture
def warm(programs, monkeypatch):
    """Arms start warm."""
    monkeypatch.setattr(
        'bioptimus_jax.lab.places.sys', types.SimpleNamespace(executable=str(programs / 'python'))
    )
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


def call(capsys, *arguments):
    code = cli.main(list(arguments))
    captured = capsys.readouterr()
    assert 'Traceback' not in captured.err
    return code, captured.out, captured.err.strip()


@pytest.mark.usefixtures('warm')
def test_arms_share_what_is_the_same_and_a_second_sweep_makes_nothing(shipped, tmp_path, capsys):
    folder = tmp_path / 'sweep'
    code, out, _ = call(capsys, 'sweep', f'--config={shipped}:x', f'--workdir={folder}', '--jobs=2')
    assert code == 0
    assert '(3 of 3' in out
    # A seed is nothing to the corpus; another least number of words is.
    corpora = [read_json(folder / arm / 'corpus' / 'manifest.json') for arm in ('plain', 'seed-1', 'long')]
    assert [c.get('folder') for c in corpora] == [None, str(folder / 'plain' / 'corpus'), None]
    results = read_jsonl(folder / 'results.jsonl')
    assert [r['arm'] for r in results] == ['plain', 'seed-1', 'long']
    assert set(results[0]['seconds']) == {'corpus', 'vocab'}
    assert results[1]['seconds'] == {}
    recorded = read_runs([folder / 'results.jsonl'])
    assert [m.manifests['corpus'].content for m in recorded] == [c['content'] for c in corpora]
    before = (folder / 'long' / 'corpus' / 'manifest.json').stat().st_mtime_ns
    assert call(capsys, 'sweep', f'--config={shipped}:x', f'--workdir={folder}')[0] == 0
    assert (folder / 'long' / 'corpus' / 'manifest.json').stat().st_mtime_ns == before
    _, out, _ = call(capsys, 'sweep', f'--config={shipped}:x', f'--workdir={folder}', '--status')
    assert 'shared' in out

    # The records are also of arms that are not chosen, unless they are unfinished or were made with other settings.
    (folder / 'seed-1' / 'vocab' / 'manifest.json').unlink()
    again = 'sweep', f'--config={shipped}:x', f'--workdir={folder}', '--arms=long'
    code, out, _ = call(capsys, *again, '--control=plain')
    assert code == 0
    assert 'sweep: seed-1 is not in the tables: is not finished' in out.splitlines()
    assert [r['arm'] for r in read_jsonl(folder / 'results.jsonl')] == ['plain', 'long']
    assert list(Sweep(f'{shipped}:x', folder, [('vocab.size', '130')], 'long')._of_earlier_calls()) == []
    assert 'sweep: plain is not in the tables: ' in (said := capsys.readouterr().out)
    assert 'config.vocab.size: 120 -> 130' in said
    text = Path(shipped).with_name('text.txt')
    kept = text.read_text()
    text.write_text(f'{kept}\n\nMore.')
    assert list(Sweep(f'{shipped}:x', folder, [], 'long')._of_earlier_calls()) == []
    assert re.search('sweep: plain is not in the tables: .*inputs.0:text.txt: ', capsys.readouterr().out)
    text.write_text(kept)
    # An arm that was made with other settings is refused before any other begins.
    (folder / 'long' / 'vocab' / 'manifest.json').unlink()
    code, out, error = call(
        capsys,
        'sweep',
        f'--config={shipped}:x',
        f'--workdir={folder}',
        '--arms=long,plain',
        '--config.vocab.size=130',
    )
    assert (code, out) == (2, '')
    assert error.startswith(f'bioptimus: plain: {folder}/plain/vocab: belongs to another configuration')
    assert not (folder / 'long' / 'vocab' / 'manifest.json').exists()


def test_arms_that_begin_with_the_same_weights_share_them_though_they_run_side_by_side(shipped, tmp_path):
    sweep = Sweep(f'{shipped}:surgery', tmp_path / 'sweep', [])
    sweep._share(sweep.arms, [])
    plain, same, other = sweep.arms
    assert sweep._shared_surgeries(sweep.arms) == [(plain, 'surgery')]
    execute(plain.run, STAGES['surgery'])
    assert sweep._shared_surgeries(sweep.arms) == []
    made = [execute(arm.run, STAGES['surgery']) for arm in (same, other)]
    assert [m.folder for m in made] == [str(tmp_path / 'sweep' / 'plain' / 'surgery'), None]


@pytest.mark.usefixtures('warm')
def test_a_sweep_takes_what_another_sweep_has_made(shipped, tmp_path, capsys):
    first, second = tmp_path / 'first', tmp_path / 'second'
    for folder, more in ((first, []), (second, [f'--config.runtime.base_run={first}'])):
        code, *_ = call(
            capsys, 'sweep', f'--config={shipped}:x', f'--workdir={folder}', '--arms=plain,seed-1', *more
        )
        assert code == 0
    taken = [read_json(second / arm / 'vocab' / 'manifest.json')['folder'] for arm in ('plain', 'seed-1')]
    assert taken == [str(first / 'plain' / 'vocab')] * 2


@pytest.mark.usefixtures('warm')
def test_what_was_there_before_says_nothing_of_the_time_that_is_left(shipped, tmp_path, capsys):
    arguments = 'sweep', f'--config={shipped}:surgery', f'--workdir={tmp_path / "sweep"}'
    assert call(capsys, *arguments, '--arms=plain')[0] == 0
    _, out, _ = call(capsys, *arguments)
    first, second, last = [line for line in out.splitlines() if line.startswith('sweep: ')]
    assert first == 'sweep: plain done (1 of 3)'
    assert second.endswith(' left)')
    assert last.endswith('(3 of 3, 0 s left)')


@pytest.mark.usefixtures('warm')
def test_a_paused_arm_is_neither_done_nor_failed(shipped, tmp_path, capsys):
    folder = tmp_path / 'sweep'
    code, out, _ = call(
        capsys, 'sweep', f'--config={shipped}:trained', f'--workdir={folder}', '--config.runtime.until=0.5'
    )
    assert code == 0
    assert 'sweep: plain paused: pretrain: 4 of 8 steps are done and saved; config.runtime.until=0.5' in out
    [record] = read_jsonl(folder / 'results.jsonl')
    assert record['evaluations'][-1]['step'] == 4


@pytest.mark.usefixtures('warm')
def test_an_arm_is_a_run_that_can_be_made_alone(shipped, tmp_path, capsys):
    folder = tmp_path / 'sweep'
    code, *_ = call(
        capsys,
        'sweep',
        f'--config={shipped}:x',
        f'--workdir={folder}',
        '--arms=pl*',
        '--config.vocab.size=110',
    )
    assert code == 0
    assert [p.name for p in folder.iterdir() if p.is_dir()] == ['plain']
    alone = tmp_path / 'alone'
    assert (
        call(capsys, 'run', f'--config={shipped}:x/plain', f'--workdir={alone}', '--config.vocab.size=110')[0]
        == 0
    )
    contents = [read_json(f / 'vocab' / 'manifest.json')['content'] for f in (folder / 'plain', alone)]
    assert contents[0] == contents[1]


@pytest.mark.usefixtures('warm')
@pytest.mark.parametrize('argument', ['broken', 'first'])
def test_a_failed_arm_is_named_and_the_others_are_made(argument, shipped, tmp_path, capsys):
    folder = tmp_path / 'sweep'
    code, out, err = call(capsys, 'sweep', f'--config={shipped}:{argument}', f'--workdir={folder}')
    assert code == 3
    failed = {'broken': '1 of 2 arms failed: broken;', 'first': '2 of 3 arms failed: broken, broken-again;'}
    assert failed[argument] in err
    assert out.count('rows: documents tokenised') == 1  # what has failed once is not made again
    assert re.search('sweep: broken failed: .*no training document has two texts', out)
    assert 'plain done' in out
    assert [r['arm'] for r in read_jsonl(folder / 'results.jsonl')] == ['plain']


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['--config={shipped}:x', '--arms=nothing'], 'names none of the arms'),
        (['--config={shipped}:x', '--jobs=0'], '--jobs=0: from 1 to'),
        (['--config=small'], 'has no get_arms(); it is not an ablation'),
        (['--config={shipped}:x', '--config.vocab.sise=3'], 'vocab.sise: no such key'),
        (['--config={shipped}:refused'], 'refused: config.stages: surgery needs contexts'),
        (['--config={shipped}:x', '--dry-run'], '; did you mean `bioptimus sweep --status`?'),
        (
            ['--config={shipped}:x', '--workdir=gs://b/r'],
            '--workdir=gs://b/r: must be a folder of this machine',
        ),
    ],
)
def test_wrong_usage_is_one_line_before_anything_is_made(shipped, tmp_path, capsys, arguments, expected):
    filled = [a.format(shipped=shipped) for a in arguments]
    code, _, err = call(capsys, 'sweep', f'--workdir={tmp_path / "sweep"}', *filled)
    assert code == 2
    assert expected in err
    assert '\n' not in err
    assert not list(tmp_path.glob('sweep/*/*'))


def test_a_config_whose_arms_are_not_different_is_refused(tmp_path):
    (tmp_path / 'twice.py').write_text("def get_arms(argument=''):\n    return ('a', 'a')\n")
    with pytest.raises(ConfigError, match='one or more different names'):
        config.arms(str(tmp_path / 'twice.py'))


SLOW = """
import sys, time
from pathlib import Path
from bioptimus_jax.experiment import stages
from bioptimus_jax.run.stage import Stage

def wait(run, folder):
    (run.workdir / 'began').write_text(str(__import__('os').getpid()))
    while not run.console.stopping.is_set():
        time.sleep(.05)
    raise __import__('bioptimus_jax.errors').errors.Stopped('the cell a, 3 of 8 epochs, is trained anew')

stages.STAGES['slow'] = Stage('slow', 'waits', '', '', (), lambda run: (), wait)
"""


@pytest.mark.parametrize(
    ('send', 'number', 'code'),
    [(os.kill, signal.SIGTERM, 75), (os.kill, signal.SIGKILL, -9), (os.killpg, signal.SIGINT, 130)],
)
def test_arms_end_with_the_sweep(shipped, tmp_path, programs, send, number, code):
    """SIGTERM and Ctrl-C: they save, and the sweep does and says what they lose. SIGKILL: the system tells them."""
    python = programs / 'python' if number == signal.SIGTERM else sys.executable
    (tmp_path / 'sitecustomize.py').write_text(SLOW)
    folder = tmp_path / 'sweep'
    environment = os.environ | {'PYTHONPATH': os.pathsep.join([str(tmp_path), *sys.path])}
    command = [python, '-m', 'bioptimus_jax', 'sweep', f'--config={shipped}:slow']
    sweep = subprocess.Popen(
        [*command, f'--workdir={folder}', '--arms=plain'],
        env=environment,
        process_group=0,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    process = int(_wait_for(folder / 'plain' / 'began'))
    send(sweep.pid, number)
    said = sweep.communicate(timeout=60)[0]
    assert 'failed' not in said
    assert sweep.returncode == code
    lost = (
        'plain: the cell a, 3 of 8 epochs, is trained anew; everything else is saved; rerun the same command'
    )
    assert (lost in said) == (code > 0)
    deadline = time.monotonic() + 30
    while _is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _is_alive(process)
    assert not (folder / 'plain' / 'slow' / 'manifest.json').exists()
    assert json.loads((folder / 'plain' / 'vocab' / 'manifest.json').read_text())


def test_what_is_under_way_when_the_hours_are_over_saves_and_the_finished_arms_are_written(
    shipped, tmp_path, capsys, monkeypatch
):
    """One of three arms ends, one is at work when its time is over, and one has not begun."""
    (tmp_path / 'sitecustomize.py').write_text(SLOW)
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join([str(tmp_path), *sys.path]))
    folder = tmp_path / 'sweep'

    class UntilOneIsSlow(threading.Timer):
        def run(self):
            if self.interval == 7200:
                _wait_for(folder / 'seed-1' / 'began')
                self.function()

    monkeypatch.setattr('bioptimus_jax.lab.sweep.threading.Timer', UntilOneIsSlow)
    monkeypatch.setitem(STAGES, 'slow', Stage('slow', 'waits', '', '', (), lambda run: (), None))
    code, out, err = call(
        capsys, 'sweep', f'--config={shipped}:timed', f'--workdir={folder}', '--hours=2', '--control=plain'
    )
    assert (code, err) == (0, '')
    assert (
        'sweep: the 2 hours are over, 1 of 3 arms are finished; seed-1: the cell a, 3 of 8 epochs, is trained anew; '
        'rerun the same command to go on'
    ) in out.splitlines()
    assert [r['arm'] for r in read_jsonl(folder / 'results.jsonl')] == ['plain']
    assert not (folder / 'long' / 'began').exists()


def test_hours_that_are_over_at_once_make_nothing(shipped, tmp_path, capsys):
    arguments = 'sweep', f'--config={shipped}:x', f'--workdir={tmp_path / "sweep"}'
    code, out, _ = call(capsys, *arguments, '--hours=1e-9')
    assert (code, out.count('0 of 3 arms are finished')) == (0, 1)
    assert '--hours' in call(capsys, *arguments, '--hours=0')[2]


def test_one_seed_of_every_arm_comes_first_and_the_control_before_all():
    arms = [Arm(name, None, ()) for name in 'b.seed-0 b.seed-1 b.seed-2 plain a.seed-0 a.seed-1'.split()]
    rounds = 'a.seed-0 b.seed-0 plain a.seed-1 b.seed-1 b.seed-2'
    assert ' '.join(arm.name for arm in in_rounds(arms, 'a')) == rounds
    assert [arm.name for arm in in_rounds(arms)][:3] == ['b.seed-0', 'plain', 'a.seed-0']


APART = """
import os
from bioptimus_jax.experiment import stages
from bioptimus_jax.hosts import devices
from bioptimus_jax.records.counts import Counts, StageResult
from bioptimus_jax.run.stage import Stage

def build(run, folder):
    (folder / 'held').write_text(f'{devices.held()} {os.getpid()}')
    return StageResult(Counts())

devices.held = lambda: 'BIOPTIMUS_AFRESH' not in os.environ
of_none, always = lambda run: (), lambda run: True
stages.STAGES['slow'] = Stage('slow', 'computes', '', '', (), of_none, build, needs_free_accelerator=always)
"""


def test_a_stage_without_jax_begins_in_the_same_process_without_what_jax_held(shipped, tmp_path):
    """It is as if a stage before it had begun jax on GPUs: the program takes its own place, and goes on with that
    stage."""
    (tmp_path / 'sitecustomize.py').write_text(APART)
    environment = os.environ | {'PYTHONPATH': os.pathsep.join([str(tmp_path), *sys.path])}
    command = [
        sys.executable,
        '-m',
        'bioptimus_jax',
        'run',
        f'--config={shipped}:slow/plain',
        '--workdir=run',
    ]
    process = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    lines = process.communicate(timeout=120)[0].splitlines()
    assert process.returncode == 0
    assert (tmp_path / 'run' / 'slow' / 'held').read_text() == f'False {process.pid}'
    said = ('corpus: done', 'vocab: done', 'corpus: up to date', 'vocab: up to date', 'slow: done')
    assert [line for line in lines if line.startswith(said)] == [
        next(line for line in lines if line.startswith(one)) for one in said
    ]


def test_of_processes_together_one_alone_has_the_memory(tmp_path, capsys):
    """Each of them holds devices from the beginning, whatever stage it is there for."""
    runtime = Runtime(distributed='localhost:1,2,0')
    run = Run(tmp_path / 'run', dataclasses.replace(Experiment(), runtime=runtime))
    Attempt(run, STAGES['finetune'])._leave_accelerators()
    assert (
        '`bioptimus finetune` in one process, without config.runtime.distributed, has'
        in capsys.readouterr().out
    )


def _wait_for(file):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if file.exists() and file.read_text():
            return file.read_text()
        time.sleep(0.05)
    raise AssertionError(f'{file} did not appear')


def _is_alive(process):
    try:
        return Path(f'/proc/{process}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False


WAITING = """
import os, time
from bioptimus_jax.experiment import stages
from bioptimus_jax.records.counts import Counts, StageResult
from bioptimus_jax.run.stage import Stage

def wait(run, folder):
    (run.workdir / 'began').write_text(f'{os.getpid()} {os.getppid()}')
    while not (run.workdir.parent / 'go').exists():
        run.console.check_stop()
        time.sleep(.05)
    (folder / 'seed').write_text(str(run.config.seed))
    return StageResult(Counts())

stages.STAGES['slow'] = Stage('slow', 'waits', '', '', ('seed',), lambda run: (), wait)
"""


@pytest.fixture
def waiting(tmp_path, monkeypatch):
    """Here and in every process from now on, stage slow waits for a file `go` beside the arms."""
    (tmp_path / 'sitecustomize.py').write_text(WAITING)
    monkeypatch.setenv('PYTHONPATH', os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setitem(STAGES, 'slow', None)
    exec(compile(WAITING, 'sitecustomize.py', 'exec'), {})


def test_arms_on_a_cluster_outlive_a_worker_and_go_on_after_a_stop(waiting, shipped, tmp_path, cluster):
    """Results are those of one process. The arm of a worker that is killed saves, and is begun again; a sweep that is
    stopped waits until all arms have saved."""
    only = 'plain,seed-1'
    alone, here = (Sweep(f'{shipped}:slow', tmp_path / name, [], only) for name in ('alone', 'together'))
    here._share(here.arms, [])  # quickly: other tests have these stages on a cluster
    together = Sweep(f'{shipped}:slow', here.workdir, [('runtime.cluster', cluster)], only)
    stopped = []

    def make():
        try:
            together.make()
        except Stopped:
            stopped.append(True)

    thread = threading.Thread(target=make)
    thread.start()
    began = [arm.run.workdir / 'began' for arm in together.arms]
    programs = [tuple(map(int, _wait_for(file).split())) for file in began]
    assert programs[0][1] != programs[1][1] != os.getpid(), 'two workers have an arm each'
    began[0].unlink()
    os.kill(programs[0][1], signal.SIGKILL)
    programs.append(tuple(map(int, _wait_for(began[0]).split())))
    assert not _is_alive(programs[0][0]), 'it has saved before it was begun again'
    together.stopping.set()
    thread.join(60)
    assert stopped
    assert not [program for program, _ in programs if _is_alive(program)]
    for sweep in (alone, together):
        (sweep.workdir / 'go').touch()
    together.stopping.clear()
    assert together.make() == []
    for arm, other in zip(alone.arms, together.arms, strict=True):
        for name in ('corpus', 'vocab', 'slow'):
            assert execute(arm.run, STAGES[name]).content == other.run.manifest(name).content
    log = (together.arms[0].run.workdir / 'log.txt').read_text()
    assert log.count('stopped; everything is saved') == 2


@given(st.integers(1, 40), st.integers(1, 12))
def test_every_place_has_a_share_and_nothing_is_left_over(things, places):
    shares = [share_of(list(range(things)), place, places) for place in range(places)]
    assert all(shares)
    assert {t for share in shares for t in share} == set(range(things))
    if things >= places:
        assert sorted(t for share in shares for t in share) == list(range(things))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize(('visible', 'given'), [(None, ['0', '1']), ('5,3', ['5', '3']), ('', ['', ''])])
def test_a_place_has_its_gpus_and_none_where_they_are_hidden(visible, given, tmp_path, monkeypatch):
    for device in ('nvidia3', 'nvidia12', 'nvidiactl'):  # of a container: CUDA counts them from 0
        (tmp_path / device).touch()
    monkeypatch.setattr('bioptimus_jax.lab.places.Path', lambda place: tmp_path)
    monkeypatch.setattr('bioptimus_jax.lab.places._started', lambda *_, env: env['CUDA_VISIBLE_DEVICES'])
    monkeypatch.delenv('CUDA_VISIBLE_DEVICES', raising=False)
    if visible is not None:
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', visible)
    assert [Here(2, tmp_path).start([], tmp_path, place) for place in range(2)] == given


NEW, FORMER = 'XLA_CLIENT_MEM_FRACTION', 'XLA_PYTHON_CLIENT_MEM_FRACTION'


@pytest.mark.parametrize(
    ('places', 'said', 'given'),
    [
        (2, {}, {}),  # a card each
        (4, {}, {NEW: '0.375'}),
        (5, {}, {NEW: '0.250'}),  # three on one card, two on the other
        (4, {NEW: '.9'}, {NEW: '0.450'}),
        (4, {FORMER: '.9'}, {FORMER: '0.450'}),  # jax refuses both names together
        (4, {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}, {}),
        (4, {'XLA_PYTHON_CLIENT_PREALLOCATE': 'true'}, {NEW: '0.375'}),
    ],
)
def test_programs_that_share_a_gpu_share_its_memory(places, said, given, tmp_path, monkeypatch):
    """Else jax takes three quarters of it in the first program, and the second one finds too little."""
    for name in (NEW, FORMER, 'XLA_PYTHON_CLIENT_PREALLOCATE'):
        monkeypatch.delenv(name, raising=False)
    for name, value in {'CUDA_VISIBLE_DEVICES': '0,1', **said}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr('bioptimus_jax.lab.places._started', lambda *_, env: env)
    here = Here(places, tmp_path)
    for place in range(places):
        environment = here.start([], tmp_path, place)
        assert {name: environment[name] for name in (NEW, FORMER) if name in environment} == given


def test_a_share_of_memory_that_is_not_a_number_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv(FORMER, raising=False)
    monkeypatch.setenv(NEW, 'half')
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '0')
    with pytest.raises(ConfigError, match=f'{NEW}=half: is not a number'):
        Here(2, tmp_path).start([], tmp_path, 0)


def test_programs_find_what_others_have_compiled_and_nothing_is_left_of_it(tmp_path, monkeypatch):
    """Nor do they find what a program was writing when it was killed; a folder of the user's own is left alone."""
    (tmp_path / '.compiled').mkdir()
    (tmp_path / '.compiled' / 'half').touch()
    monkeypatch.setattr('bioptimus_jax.lab.places._started', lambda *_, env: env['JAX_COMPILATION_CACHE_DIR'])
    monkeypatch.delenv('JAX_COMPILATION_CACHE_DIR')
    here = Here(2, tmp_path)
    assert not (tmp_path / '.compiled').exists()
    (folder := Path(here.start([], tmp_path, 0))).mkdir()
    assert folder == Path(here.start([], tmp_path, 1)) == tmp_path / '.compiled'
    here.stop([])
    assert not folder.exists()
    monkeypatch.setenv('JAX_COMPILATION_CACHE_DIR', 'own')
    assert here.start([], tmp_path, 0) == 'own'


def test_a_vocabulary_of_ones_own_is_scored_on_the_first_arms_words(shipped, tmp_path):
    """Whether that is chosen or not."""

    def shared(stages, only='*'):
        sweep = Sweep(f'{shipped}:x', tmp_path / 'sweep', [('stages', stages)], only)
        sweep._share(sweep.arms, [])
        return sweep

    before = shared('corpus,vocab', 'long')
    assert [p.name for p in before.workdir.iterdir()] == ['long']
    [alone] = (chosen := shared('corpus,vocab,analyze', 'long')).arms
    assert sorted(p.name for p in (tmp_path / 'sweep' / 'plain').glob('[a-z]*')) == ['corpus', 'vocab']
    first_alone = chosen._arguments(alone)
    sweep = shared('corpus,vocab,analyze')
    plain, same, other = (sweep._arguments(arm) for arm in sweep.arms)
    assert plain == sweep.arms[0].arguments
    assert same == sweep.arms[1].arguments
    assert other == first_alone
    vocab = tmp_path / 'sweep' / 'plain' / 'vocab'
    assert other[-1] == f'--config.analysis.reference_vocab={vocab}'
    # What an arm of an earlier call was made of is compared with what it was given then.
    for only, name, expected in (
        ('plain', 'long', [str(vocab)]),
        ('long', 'plain', []),
        ('seed-1', 'long', [str(vocab)]),
    ):
        later = Sweep(f'{shipped}:x', sweep.workdir, [('stages', 'corpus,vocab,analyze')], only)
        assert [value for _, value in later._reference(later._arm(name))] == expected
    config = (long := sweep.arms[2]).run.config
    long.run.config = dataclasses.replace(
        config, analysis=dataclasses.replace(config.analysis, reference_vocab='of-its-config')
    )
    assert sweep._arguments(long) == long.arguments


def test_how_a_program_has_ended_is_not_guessed_from_the_last_line_of_its_work(tmp_path):
    """Killed, or never begun, as its worker could not import it: the last line of the log would tell something else."""
    (tmp_path / 'log.txt').write_text('pretrain: step 7\n')
    arm = types.SimpleNamespace(run=types.SimpleNamespace(workdir=tmp_path), finished=True)
    assert (
        _how(arm, 'run', -9) == f'was ended by SIGKILL: see {tmp_path}/log.txt, then rerun the same command'
    )
    error = ModuleNotFoundError("No module named 'mine'")
    future = types.SimpleNamespace(
        done=lambda: True, status='error', cancelled=lambda: False, exception=lambda: error
    )
    code = _Remote(future, tmp_path / 'log.txt').poll()
    assert (
        _how(arm, 'run', code) == f'failed: no worker of the cluster has made it: No module named {"mine"!r}'
    )
