"""Real runs in a bucket, against the same run in a folder, to the bit: machines that lose their disk, are told to stop
or are killed; two hosts without a shared disk.

Minutes, and not seconds, on a busy machine: whole tiny runs with export and report, and five processes of their own.
"""

import json
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from toy_buckets import assert_whole, content_of, free_port
from toy_pretraining import equal_programs
from toy_programs import environment

from bioptimus_jax.cli import main as cli
from bioptimus_jax.errors import DONE, STOPPED
from bioptimus_jax.hosts.remote import lease
from bioptimus_jax.hosts.remote.inputs import local_place
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.storage.files import read_json, sha256

pytest.importorskip('obstore')

CONFIG = """
from bioptimus_jax.experiment.config import defaults

def get_config(argument=''):
    c = defaults()
    c.stages = ('corpus', 'vocab', 'surgery', 'rows', 'pretrain', 'export', 'report')
    c.corpus.update(inputs=({corpus!r},), heldout_fraction=0.1, shards=1)
    c.vocab.update(size=300)
    c.model.update(layers=1, hidden=16, heads=4, intermediate=32, max_positions=32)
    c.model.update(dropout=0.0, attention_dropout=0.0)
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
    stages = '--config.stages=corpus,vocab,surgery,rows,pretrain,export'
    assert main(['run', f'--config={folder}/local.py', f'--workdir={folder}/undisturbed', stages]) == DONE
    # The same in a bucket up to pre-training, each stage on a machine that has nothing.
    for verb in ('corpus', 'vocab', 'surgery', 'rows'):
        assert main(program(folder, folder / 'bucket', folder / f'machine-{verb}', verb)) == DONE
        assert_whole(folder / 'bucket' / 'runs' / 'tiny')
    return folder


@pytest.fixture
def bucket(world, tmp_path):
    """A bucket with all that pre-training reads."""
    return shutil.copytree(world / 'bucket', tmp_path / 'bucket')


def main(arguments):
    with equal_programs():
        return cli.main(arguments)


def program(world, bucket, staging, verb='run', *flags):
    """The arguments of a command on the run in `bucket`."""
    return [
        verb,
        f'--config={world}/tiny.py',
        f'--workdir=file://{bucket}/runs/tiny',
        f'--config.runtime.staging={staging}',
        *flags,
    ]


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
    assert 'report/csv/phases.csv' in before
    again = content_of(remote)
    assert [again[name] for name in before if '/csv/' in name] == [before[n] for n in before if '/csv/' in n]
    assert not list(last.rglob('*.safetensors'))


def start(programs, world, bucket, staging, *flags):
    """`bioptimus pretrain` in a process of its own."""
    return subprocess.Popen(
        [programs / 'bioptimus', *program(world, bucket, staging, 'pretrain', *flags)],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(process, condition):
    deadline = time.monotonic() + 200
    while process.poll() is None and not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition(), process.communicate(timeout=60)[0]


def checkpoints_there(remote):
    """The steps whose checkpoints the index names."""
    try:
        files = json.loads((remote / '.remote' / 'index.json').read_text())['files']
    except (FileNotFoundError, json.JSONDecodeError):
        return set()
    return {int(name.split('/')[2]) for name in files if name.startswith('pretrain/checkpoints/')}


def test_preempted_machines_are_replaced_by_ones_with_an_empty_disk(
    programs, world, bucket, tmp_path, monkeypatch, capsys
):
    """One is told to stop, the next one is killed, and the last one ends the run."""
    remote = bucket / 'runs' / 'tiny'
    process = start(programs, world, bucket, tmp_path / 'first')
    wait_for(process, lambda: checkpoints_there(remote))
    process.send_signal(signal.SIGTERM)
    text = process.communicate(timeout=120)[0]
    assert process.returncode == STOPPED, text
    assert not (remote / 'pretrain' / 'manifest.json').exists()
    assert not (remote / '.remote' / 'lease.json').exists()
    shutil.rmtree(tmp_path / 'first')
    before = checkpoints_there(remote)
    process = start(programs, world, bucket, tmp_path / 'second')
    wait_for(process, lambda: checkpoints_there(remote) - before)
    process.kill()
    text = process.communicate(timeout=120)[0]
    assert process.returncode == -signal.SIGKILL, text
    assert 'pretrain: resuming after step' in text
    assert 'taken over from' not in text
    assert not (remote / 'pretrain' / 'manifest.json').exists()
    assert (remote / '.remote' / 'lease.json').exists()
    shutil.rmtree(tmp_path / 'second')
    monkeypatch.setattr(lease, 'STALE_SECONDS', 0.1)
    monkeypatch.setattr(lease, 'LOOK_SECONDS', 0.02)
    assert main(program(world, bucket, tmp_path / 'third', 'pretrain')) == DONE
    said = capsys.readouterr().out
    assert 'pretrain: resuming after step' in said
    assert 'taken over from' in said
    assert_whole(remote)
    assert_same_model(remote, world / 'undisturbed')


def start_two(programs, world, bucket, tmp_path, machines):
    """Follower and leader, each with a disk of its own, through jax.distributed."""
    port = free_port()
    return [
        subprocess.Popen(
            [
                programs / 'bioptimus',
                *program(world, bucket, tmp_path / f'{machines}-{index}', 'pretrain'),
                *('--config.runtime.devices=0', f'--config.runtime.distributed=127.0.0.1:{port},2,{index}'),
            ],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in (1, 0)
    ]


def ended(processes):
    """Exit codes and what they said."""
    texts = [process.communicate(timeout=200)[0] for process in processes]
    return [process.returncode for process in processes], texts


@pytest.mark.timeout(400)
def test_two_hosts_without_a_shared_disk_train_stop_and_go_on(programs, world, bucket, tmp_path):
    """Both stop at one step; two hosts that have nothing go on from the bucket to one process's parameters."""
    remote = bucket / 'runs' / 'tiny'
    follower, leader = start_two(programs, world, bucket, tmp_path, 'first')
    wait_for(leader, lambda: checkpoints_there(remote))
    follower.send_signal(signal.SIGTERM)
    codes, texts = ended((follower, leader))
    assert codes == [STOPPED, STOPPED], texts
    assert not (remote / 'pretrain' / 'manifest.json').exists()
    codes, texts = ended(start_two(programs, world, bucket, tmp_path, 'second'))
    assert codes == [DONE, DONE], texts
    assert 'resuming after step' in texts[1]
    assert_whole(remote)
    found = flatten(load_phase(remote / 'pretrain', '0.2'))
    for name, value in flatten(load_phase(world / 'undisturbed' / 'pretrain', '0.2')).items():
        np.testing.assert_allclose(found[name], value, atol=1e-4, err_msg=name)
