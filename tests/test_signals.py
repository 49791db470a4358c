"""Signals that ask for an end, sent to whole process groups of the real program at its worst moments.

The moments are reached by a `sitecustomize` on the path of the program and its workers, which sends the signal itself.
"""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
import types
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from bioptimus_jax.errors import DONE, INTERRUPTED, STOPPED, InputError, Stopped
from bioptimus_jax.hosts import workers
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.workers import Pool, WorkerKilled, open_workers

ROOT = Path(__file__).resolve().parents[1]
CODES = [
    (signal.SIGTERM, STOPPED),
    # One handler takes both; a terminal that is closed sends this one in a test of its own.
    pytest.param(signal.SIGHUP, STOPPED, marks=pytest.mark.slow),
    (signal.SIGINT, INTERRUPTED),
]
ENDED = {STOPPED: 'bioptimus: stopped; ', INTERRUPTED: 'bioptimus: interrupted; '}
AGAIN = 'rerun the same command\n'
GO_ON = 'rerun the same command to continue\n'
CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.corpus.update(inputs=({inputs!r},), heldout_fraction=0.1, shards=1, min_words=1)
    c.runtime.update(workers=2)
    return c
"""
# Once, where one of the modules is first asked for: the signal to the group, and time for it to be taken.
AT_IMPORT = """
import os, signal, sys, time

class Moment:
    def find_spec(self, name, path=None, target=None):
        if name == '{module}' and sys.argv[0].endswith('__main__.py'):
            sys.meta_path.remove(self)
            os.killpg(0, {number})
            time.sleep(5)

sys.meta_path.insert(0, Moment())
"""
# As soon as a worker's interpreter lives, and once.
IN_WORKER = """
import contextlib, os, sys
if '--multiprocessing-fork' in sys.orig_argv:
    with contextlib.suppress(FileExistsError), open(__file__ + '.sent', 'x'):
        os.killpg(0, {number})
"""
# When the work is done, and only the interpreter has to end.
AT_EXIT = """
import atexit, os, sys
if 'bioptimus_jax' in sys.orig_argv:
    atexit.register(lambda: os.killpg(0, {number}))
"""
# In the middle of the work: nothing ends, in one of the ways that the test names, until the file `go` is there.
IN_STAGE = """
import os, sys, time
from pathlib import Path

def wait(run, folder):
    here = Path({folder!r})
    (here / 'began').write_text('')
    while not (here / 'go').exists():
        {looks}
        time.sleep(.02)
        print('working', flush=True)
    from bioptimus_jax.records.counts import Counts, StageResult
    return StageResult(Counts())

class Stages:
    def find_spec(self, name, path=None, target=None):
        if name == 'bioptimus_jax.cli.main':
            sys.meta_path.remove(self)
            from bioptimus_jax.experiment import stages
            from bioptimus_jax.run.stage import Stage
            stages.STAGES['corpus'] = Stage('corpus', 'waits', '', '', (), lambda run: (), wait)

sys.meta_path.insert(0, Stages())
"""

OWNER = 'import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])'


@pytest.fixture
def program(tmp_path):
    """Starts `bioptimus corpus` over four files, with two workers, in a group of its own; with a sitecustomize."""
    for number in range(4):
        (tmp_path / f'{number}.txt').write_text(f'Naproxen inhibits the kinase number {number}.\n')
    (tmp_path / 'tiny.py').write_text(CONFIG.format(inputs=f'{tmp_path}/*.txt'))
    started = []

    def start(moment='', before=(), **options):
        (tmp_path / 'moment').mkdir(exist_ok=True)
        (tmp_path / 'moment' / 'sitecustomize.py').write_text(moment)
        environment = os.environ | {'PYTHONPATH': os.pathsep.join([str(tmp_path / 'moment'), str(ROOT)])}
        command = [
            *before,
            sys.executable,
            '-m',
            'bioptimus_jax',
            'corpus',
            f'--config={tmp_path / "tiny.py"}',
        ]
        given = {'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, 'process_group': 0, **options}
        process = subprocess.Popen(
            [*command, f'--workdir={tmp_path / "run"}'], env=environment, text=True, **given
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def ended(process):
    """Exit code and what was said on stderr; nothing of the group is left."""
    said = process.communicate(timeout=100)[1]
    deadline = time.monotonic() + 30
    while is_there(process.pid):
        assert time.monotonic() < deadline, 'an orphan'
        time.sleep(0.05)
    return process.returncode, said


def is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def appears(file):
    deadline = time.monotonic() + 100
    while not file.exists():
        assert time.monotonic() < deadline, f'{file} did not appear'
        time.sleep(0.02)


@pytest.mark.parametrize(('number', 'code'), CODES)
def test_the_group_is_signalled_before_the_program_is_imported(number, code, program):
    process = program(AT_IMPORT.format(module='bioptimus_jax.cli.main', number=int(number)))
    assert ended(process) == (code, ENDED[code] + AGAIN)


@pytest.mark.parametrize(('number', 'code'), CODES)
def test_the_group_is_signalled_while_workers_start(number, code, program):
    process = program(IN_WORKER.format(number=int(number)))
    assert ended(process) == (code, f'{ENDED[code]}everything is saved; {GO_ON}')


def test_signals_after_the_work_change_nothing(program, tmp_path):
    assert ended(program(AT_EXIT.format(number=int(signal.SIGTERM)))) == (DONE, '')
    assert (tmp_path / 'run' / 'corpus' / 'manifest.json').exists()


@pytest.mark.parametrize(('number', 'code'), CODES)
def test_who_reads_the_output_may_be_ended_by_the_same_signal(number, code, program, tmp_path):
    """The reader is one as in `bioptimus ... 2>&1 | tee log`: the run saves all the same, though there is nobody to
    tell."""
    reader = subprocess.Popen(
        ['cat'], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0, text=True
    )
    moment = IN_STAGE.format(folder=str(tmp_path), looks='run.console.check_stop()')
    process = program(moment, stdout=reader.stdin, stderr=reader.stdin, process_group=reader.pid)
    reader.stdin.close()
    appears(tmp_path / 'began')
    os.killpg(reader.pid, number)
    assert reader.wait(10) == -number
    assert process.wait(100) == code


def test_only_a_second_ctrl_c_does_not_wait(program, tmp_path):
    """Clusters signal a process and its group, and the system once for every thread of a parent that dies."""
    process = program(IN_STAGE.format(folder=str(tmp_path), looks=''), stdout=subprocess.DEVNULL)
    appears(tmp_path / 'began')
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM, signal.SIGHUP):
        os.killpg(process.pid, number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
    os.killpg(process.pid, signal.SIGINT)
    assert ended(process) == (INTERRUPTED, ENDED[INTERRUPTED] + AGAIN)


def test_a_closed_terminal_stops_the_program_and_one_under_nohup_goes_on(program, tmp_path):
    looks = 'run.console.check_stop()'
    ours, theirs = pty.openpty()
    terminal = {'stdin': theirs, 'stdout': theirs, 'stderr': theirs}
    # A session of its own, whose first terminal is the one it opens.
    owner = (sys.executable, '-c', OWNER)
    moment = IN_STAGE.format(folder=str(tmp_path), looks=looks)
    process = program(moment, owner, process_group=None, start_new_session=True, **terminal)
    os.close(theirs)
    appears(tmp_path / 'began')
    os.close(ours)
    assert process.wait(100) == STOPPED
    (tmp_path / 'began').unlink()
    hung = program(moment, ('nohup',), stdout=subprocess.DEVNULL)
    appears(tmp_path / 'began')
    os.killpg(hung.pid, signal.SIGHUP)
    time.sleep(0.3)
    (tmp_path / 'go').write_text('')
    assert ended(hung) == (DONE, '')


@pytest.mark.parametrize('stopped', [False, True])
def test_a_result_that_is_cut_off_in_the_middle_holds_up_nobody(stopped, tmp_path):
    """The pool waits for the rest of it: when its worker was killed, and when the work is stopped meanwhile."""
    began, sent = time.monotonic(), tmp_path / 'sent'

    def check():
        if stopped and sent.exists() and time.time() > sent.stat().st_mtime + 0.5:
            raise Stopped

    with (
        pytest.raises(
            Stopped if stopped else WorkerKilled, match=None if stopped else r'SIGKILL \(often out'
        ),
        open_workers(Runtime(workers=2), 2) as pool,
    ):
        list(pool.map(_send_half, [(stopped, sent), (stopped, sent)], check))
    assert time.monotonic() - began < 60


def test_who_was_asked_to_stop_does_not_blame_the_killer_of_a_worker():
    def check():
        if workers.pool._broken:
            raise Stopped

    with pytest.raises(Stopped), open_workers(Runtime(workers=2), 2) as workers:
        list(workers.map(_sleep_or_die, [(0,), (-1,)], check))


def test_what_ended_a_worker_is_said_and_not_guessed(monkeypatch):
    """An import that fails in it, as of what a config adds to a package, and an exit of its own."""
    module = types.ModuleType('only_here')
    exec('def work(): pass', module.__dict__)
    monkeypatch.setitem(sys.modules, 'only_here', module)
    line = r"cannot import what its work needs \(ModuleNotFoundError: No module named 'only_here'\); .* PYTHONPATH"
    with pytest.raises(InputError, match=line), Pool(1, module.work, ()) as pool:
        list(pool.map(abs, [(1,)]))
    with Pool(1, abs, (1,)) as pool:
        for work, given, message in (
            (module.work, (), line),
            (os._exit, (3,), 'ended with exit code 3 before its work was done; what it'),
        ):
            with pytest.raises(InputError, match=message) as caught:
                list(pool.map(work, [given]))
    assert type(caught.value) is InputError  # nothing that is tried again


def test_the_code_of_a_process_is_waited_for_where_the_pool_has_joined_it_first():
    codes = iter([None, None, 3])
    process = type(
        'Process', (), {'join': lambda self: None, 'exitcode': property(lambda self: next(codes))}
    )()
    assert workers._code_of(process) == 3


def _send_half(lives, sent):
    def half(connection, content, write=os.write):
        os.write(connection.fileno(), bytes(content)[: len(content) // 2])
        sent.touch()
        if not lives:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(1000)

    Connection._send = half
    return bytes(100_000)


def _sleep_or_die(seconds):
    if seconds < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(seconds)
