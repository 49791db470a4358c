"""Runs and inputs in a bucket: what a stage makes is there, a machine with an empty disk goes on from it, a kill at any
moment leaves a whole run, two machines do not write into one, and every failure is one line."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from bioptimus_jax import config
from bioptimus_jax.cli import DONE, STOPPED, main
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.files import atomic, read_json, sha256
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.remote import lease
from bioptimus_jax.remote.inputs import local_place
from bioptimus_jax.remote.session import open_run
from bioptimus_jax.remote.store import Store
from bioptimus_jax.run import Stage, execute
from bioptimus_jax.schema import Experiment
from bioptimus_jax.trees import flatten

pytest.importorskip('obstore')

CONFIG = """
from bioptimus_jax.config import defaults

def get_config(argument=''):
    c = defaults()
    c.stages = ('corpus', 'vocab', 'surgery', 'rows', 'pretrain', 'export', 'report')
    c.corpus.update(inputs=({corpus!r},), heldout_fraction=0.1, shards=1)
    c.vocab.update(size=300)
    c.model.update(layers=1, hidden=16, heads=4, intermediate=32, max_positions=32)
    c.surgery.strategy = 'scratch'
    c.rows.update(row_pieces=64, max_document_pieces=32)
    c.pretrain.update(batch_rows=8, learning_rate=1e-3, max_word_pieces=4)
    c.phases = ('0.1', '0.2')
    for name in c.phases:
        c.phase[name].update(duration=8.0, duration_unit='steps')
    c.evaluation.update(rows=8, per_phase=1)
    c.runtime.update(workers=1, devices=1, log_every_steps=2, checkpoint_every_steps=4, push_seconds=0.0)
    return c
"""


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """A corpus in a bucket, the config of a run on it, and that run made in a local folder."""
    folder = tmp_path_factory.mktemp('world')
    rng = np.random.default_rng(0)
    words = [''.join(rng.choice(list('abcdeimnorst'), rng.integers(2, 10))) for _ in range(150)]
    for part in (0, 1):
        (folder / 'bucket' / 'texts').mkdir(parents=True, exist_ok=True)
        with open(folder / 'bucket' / 'texts' / f'part-{part}.jsonl', 'w') as file:
            for number in range(120):
                text = ' '.join(rng.choice(words, rng.integers(6, 40))) + '.'
                record = {'id': f'{part}-{number}', 'title': '', 'abstract': text}
                file.write(json.dumps(record) + '\n')
    (folder / 'local.py').write_text(CONFIG.format(corpus=f'{folder}/bucket/texts/*.jsonl'))
    (folder / 'tiny.py').write_text(CONFIG.format(corpus=f'file://{folder}/bucket/texts/*.jsonl'))
    assert main(['run', f'--config={folder}/local.py', f'--workdir={folder}/undisturbed']) == DONE
    # The same in a bucket up to pre-training, each stage on a machine that has nothing.
    for verb in ('corpus', 'vocab', 'surgery', 'rows'):
        assert main(program(folder, folder / 'bucket', folder / f'machine-{verb}', verb)) == DONE
        assert_whole(folder / 'bucket' / 'runs' / 'tiny')
    return folder


@pytest.fixture
def bucket(world, tmp_path):
    """A bucket with all that pre-training reads."""
    return shutil.copytree(world / 'bucket', tmp_path / 'bucket')


@pytest.fixture
def impatient(monkeypatch):
    """A lease that nobody renews is taken over at once."""
    monkeypatch.setattr(lease, 'STALE_SECONDS', 0.1)
    monkeypatch.setattr(lease, 'LOOK_SECONDS', 0.02)


def program(world, bucket, staging, verb='run', *flags):
    """The arguments of a command on the run in `bucket`."""
    return [
        verb,
        f'--config={world}/tiny.py',
        f'--workdir=file://{bucket}/runs/tiny',
        f'--config.runtime.staging={staging}',
        *flags,
    ]


def content_of(folder):
    """Name -> SHA-256 of every file of a run in a bucket, without what the mirror keeps for itself."""
    return {
        str(p.relative_to(folder)): sha256(p)
        for p in sorted(folder.rglob('*'))
        if p.is_file() and '.remote' not in p.relative_to(folder).parts
    }


def assert_whole(folder):
    """Everything that the index names is there under that name, with those bytes, and nothing else is."""
    index = read_json(folder / '.remote' / 'index.json')
    assert content_of(folder) == {name: entry['sha256'] for name, entry in index['files'].items()}
    assert not index['pending']
    assert not (folder / '.remote' / 'lease.json').exists()


def assert_same_model(folder, wanted):
    found = flatten(load_phase(folder / 'pretrain', '0.2'))
    for name, value in flatten(load_phase(wanted / 'pretrain', '0.2')).items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_run_in_a_bucket_is_the_run_in_a_folder(world, bucket, tmp_path, capsys):
    """Whatever was made by machines that lost their disk: the same manifests and weights as undisturbed."""
    remote = bucket / 'runs' / 'tiny'
    assert main(program(world, bucket, tmp_path / 'machine')) == DONE
    assert_whole(remote)
    assert (remote / 'report' / 'index.html').stat().st_size > 1000
    for stage in ('corpus', 'vocab', 'surgery', 'rows', 'pretrain', 'export'):
        there, wanted = (read_json(f / stage / 'manifest.json') for f in (remote, world / 'undisturbed'))
        for part in ('config', 'inputs', 'content'):
            assert there[part] == wanted[part], (stage, part)
    assert_same_model(remote, world / 'undisturbed')
    exported = 'export/0.2/model.safetensors'
    assert content_of(remote)[exported] == sha256(world / 'undisturbed' / exported)
    # Another machine finds all done, and fetches no weights to say so; a report is made of lists and tables.
    capsys.readouterr()
    before = content_of(remote)
    assert main(program(world, bucket, tmp_path / 'last', 'pretrain')) == DONE
    assert 'pretrain: up to date' in capsys.readouterr().out
    last = local_place(tmp_path / 'last' / 'runs', f'file://{remote}')
    assert not (last / 'surgery' / 'model').exists()
    assert content_of(remote) == before
    assert main(program(world, bucket, tmp_path / 'last', 'report')) == DONE
    assert content_of(remote)['report/tables.csv'] == before['report/tables.csv']
    assert not list(last.rglob('*.safetensors'))


def start(world, bucket, staging, *flags):
    """`bioptimus pretrain` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, '-m', 'bioptimus_jax.cli', *program(world, bucket, staging, 'pretrain', *flags)],
        env={**os.environ, 'PYTHONPATH': str(Path(__file__).parent.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(process, condition):
    deadline = time.monotonic() + 200
    while process.poll() is None and not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition(), process.communicate(timeout=60)[0]


def checkpoint_there(remote):
    """Whether the index names a checkpoint of step 4 or later, before all is done."""
    try:
        files = json.loads((remote / '.remote' / 'index.json').read_text())['files']
    except (FileNotFoundError, json.JSONDecodeError):
        return False
    return any(name.startswith('pretrain/checkpoints/') for name in files)


@pytest.mark.parametrize('how', [signal.SIGTERM, signal.SIGKILL])
def test_a_preempted_machine_is_replaced_by_one_with_an_empty_disk(
    how, world, bucket, tmp_path, impatient, capsys
):
    remote = bucket / 'runs' / 'tiny'
    process = start(world, bucket, tmp_path / 'first')
    wait_for(process, lambda: checkpoint_there(remote))
    process.send_signal(how)
    text = process.communicate(timeout=120)[0]
    assert process.returncode == (STOPPED if how == signal.SIGTERM else -how), text
    assert not (remote / 'pretrain' / 'manifest.json').exists()
    assert (remote / '.remote' / 'lease.json').exists() == (how == signal.SIGKILL)
    shutil.rmtree(tmp_path / 'first')
    assert main(program(world, bucket, tmp_path / 'second', 'pretrain')) == DONE
    said = capsys.readouterr().out
    assert 'pretrain: resuming after step' in said
    assert ('taken over from' in said) == (how == signal.SIGKILL)
    assert_whole(remote)
    assert_same_model(remote, world / 'undisturbed')


# --- the mirror alone, with a stage that takes no time ---


def stage_of(files):
    """A stage `corpus` that writes these texts, and counts how often it did."""

    def build(run, folder):
        calls.append(dict(files))
        for name, text in files.items():
            with atomic(folder / name) as file:
                file.write(text)
        return {}

    calls = []
    return Stage('corpus', 'texts', '', '', ('corpus',), lambda run: (), build), calls


def experiment(**changes):
    loaded = config.defaults()
    for dotted, text in changes.items():
        config.override(loaded, dotted.replace('__', '.'), str(text))
    return Experiment.from_config(loaded)


def opened(bucket, machine, **changes):
    """The run in `bucket` on a machine of its own."""
    e = experiment(runtime__staging=machine, runtime__push_seconds=0, **changes)
    return open_run(f'file://{bucket}', e, (), lambda run: None)


def test_replacing_and_deleting_are_mirrored_and_nothing_is_sent_twice(tmp_path, monkeypatch):
    sent = []
    upload = Store.upload

    def watched(self, files, advance=lambda size: None):
        files = list(files)
        sent.extend(name for _, name, _ in files)
        upload(self, files, advance)

    monkeypatch.setattr(Store, 'upload', watched)
    stage, calls = stage_of({'a': 'one', 'b/c': 'two', 'same': 'kept'})
    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        execute(run, stage)
    assert sorted(n for n in sent if '/a' in n or 'same' in n) == ['corpus/a', 'corpus/same']
    assert sent[-1] == 'corpus/manifest.json'
    sent.clear()
    with opened(tmp_path / 'bucket', tmp_path / 'm1') as run:
        execute(run, stage)
    assert sent == []
    assert len(calls) == 1
    changed, _ = stage_of({'a': 'three', 'same': 'kept'})
    with opened(tmp_path / 'bucket', tmp_path / 'm2', corpus__min_words=9) as run:
        with pytest.raises(ConfigError, match='min_words'):
            execute(run, changed)
        execute(run, changed, replace=True)
    assert_whole(tmp_path / 'bucket')
    assert sorted(content_of(tmp_path / 'bucket')) == ['corpus/a', 'corpus/manifest.json', 'corpus/same']
    assert (tmp_path / 'bucket' / 'corpus' / 'a').read_text() == 'three'
    # The first machine has the old files, and takes the new ones.
    with opened(tmp_path / 'bucket', tmp_path / 'm1', corpus__min_words=9) as run:
        execute(run, changed)
        assert (run.folder('corpus') / 'a').read_text() == 'three'
        assert not (run.folder('corpus') / 'b').exists()


class Killed(BaseException):
    pass


def test_a_kill_at_any_write_leaves_the_run_before_or_the_run_after(tmp_path, impatient, monkeypatch):
    """Every operation of a push that changes, adds and deletes is, in turn, the last one of a machine."""
    before, _ = stage_of({'a': 'one', 'gone': 'x', 'b': 'same'})
    after, _ = stage_of({'a': 'three', 'new': 'y', 'b': 'same'})
    with opened(tmp_path / 'start', tmp_path / 'm0') as run:
        execute(run, before)
    left = {'allowed': 0}

    def counted(name):
        original = getattr(Store, name)

        def one_at_a_time(self, things, *rest):
            for thing in list(things):
                spend()
                original(self, [thing], *rest)

        def single(self, *arguments):
            if not str(arguments[0]).endswith('lease.json'):
                spend()
            original(self, *arguments)

        return one_at_a_time if name in ('upload', 'remove') else single

    def spend():
        if left['allowed'] == 0:
            raise Killed
        left['allowed'] -= 1

    outcomes = []
    for allowed in range(40):
        bucket = tmp_path / f'bucket-{allowed}'
        shutil.copytree(tmp_path / 'start', bucket)
        left['allowed'] = 10**9
        with monkeypatch.context() as patched:
            for name in ('upload', 'remove', 'copy', 'write'):
                patched.setattr(Store, name, counted(name))
            killed = False
            try:
                with opened(bucket, tmp_path / f'm-{allowed}', corpus__min_words=9) as run:
                    left['allowed'] = allowed
                    execute(run, after, replace=True)
                    left['allowed'] = 10**9
            except Killed:
                killed = True
        with opened(bucket, tmp_path / f'next-{allowed}', corpus__min_words=9) as run:
            finished = run.manifest('corpus')
            if finished:
                texts = {p.name: p.read_text() for p in run.folder('corpus').iterdir() if p.name[0] != '.'}
                del texts['manifest.json']
                old = finished['config']['corpus.min_words'] == 5
                assert texts == (
                    {'a': 'one', 'gone': 'x', 'b': 'same'} if old else {'a': 'three', 'new': 'y', 'b': 'same'}
                )
                outcomes.append('before' if old else 'after')
            else:
                outcomes.append('between')
            execute(run, after, replace=True, keep_matching=True)
        assert_whole(bucket)
        assert (bucket / 'corpus' / 'a').read_text() == 'three'
        if not killed:
            break
    assert outcomes[0] == 'before'
    assert outcomes[-1] == 'after'
    assert outcomes == sorted(outcomes, key=['before', 'between', 'after'].index)
    assert len(outcomes) > 10
