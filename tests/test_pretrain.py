"""The loop and the step: accumulation, sharding, resume after a kill, damaged checkpoints, no recompiling."""

import dataclasses
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bioptimus_jax import config
from bioptimus_jax.cli import STOPPED
from bioptimus_jax.model.hf import load_folder
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.checkpoint import Checkpoints, load_phase
from bioptimus_jax.pretrain.masking import Vocabulary, slot_count
from bioptimus_jax.pretrain.rows import Rows
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh, place_state
from bioptimus_jax.pretrain.step import StepPlan, initial_state, make_train_step
from bioptimus_jax.run import InputError, Run, execute
from bioptimus_jax.stages import STAGES
from bioptimus_jax.trees import flatten
from bioptimus_jax.vocab.wordpiece import SPECIAL_TOKENS, load_tokenizer, vocabulary

CONFIG = """
from bioptimus_jax import config as schema

def get_config(argument=''):
    c = schema.defaults()
    c.corpus.update(inputs=({corpus!r},), heldout_fraction=0.1, shards=1)
    c.vocab.update(size=300)
    c.model.update(layers=2, hidden=16, heads=2, intermediate=32, max_positions=32)
    c.surgery.strategy = 'scratch'
    c.rows.update(row_pieces=64, max_document_pieces=32)
    c.pretrain.update(batch_rows=8, learning_rate=1e-3, max_word_pieces=4)
    for name in c.phases:
        c.phase[name].update(duration=6.0, duration_unit='steps')
    c.evaluation.update(rows=8, per_phase=1)
    c.runtime.update(workers=1, devices=1, log_every_steps=2, checkpoint_every_steps=4)
    return c
"""
STEPS = 24


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A run with everything that pre-training reads."""
    folder = tmp_path_factory.mktemp('pretrain')
    rng = np.random.default_rng(0)
    words = [''.join(rng.choice(list('abcdeimnorst'), rng.integers(2, 10))) for _ in range(150)]
    with open(folder / 'corpus.jsonl', 'w') as file:
        for number in range(300):
            text = ' '.join(rng.choice(words, rng.integers(6, 40))) + '.'
            file.write(json.dumps({'id': str(number), 'title': '', 'abstract': text}) + '\n')
    (folder / 'tiny.py').write_text(CONFIG.format(corpus=str(folder / 'corpus.jsonl')))
    run = Run(folder / 'run', experiment(folder), quiet=True)
    for stage in ('corpus', 'vocab', 'surgery', 'rows'):
        execute(run, STAGES[stage])
    return folder


def experiment(folder, **changes):
    loaded = config.load(str(folder / 'tiny.py'))
    for dotted, value in changes.items():
        config.override(loaded, dotted.replace('__', '.'), str(value))
    return config.Experiment.from_config(loaded)


def copy_of(prepared, tmp_path):
    shutil.copytree(prepared / 'run', tmp_path / 'run')
    return tmp_path / 'run'


@pytest.fixture(scope='module')
def undisturbed(prepared, tmp_path_factory):
    """The run that nobody disturbed: its folder and its final parameters."""
    workdir = copy_of(prepared, tmp_path_factory.mktemp('undisturbed'))
    execute(Run(workdir, experiment(prepared), quiet=True), STAGES['pretrain'])
    return workdir, flatten(load_phase(workdir / 'pretrain', '0.4'))


def assert_identical(workdir, wanted):
    found = flatten(load_phase(workdir / 'pretrain', '0.4'))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_the_loss_falls_and_every_phase_is_there(undisturbed, prepared):
    workdir, _ = undisturbed
    records = Run(workdir, experiment(prepared)).metrics('pretrain')
    evaluations = [r for r in records if r['kind'] == 'evaluation']
    assert [r['phase'] for r in evaluations] == ['initial', '0.1', '0.2', '0.3', '0.4']
    assert [r['step'] for r in evaluations] == [0, 6, 12, 18, 24]
    assert evaluations[-1]['frozen_loss'] < evaluations[0]['frozen_loss']
    assert set(evaluations[-1]['losses']) == {'0.1', '0.2', '0.3', '0.4'}
    assert evaluations[0]['frozen_loss'] == pytest.approx(np.log(300), rel=0.05)
    rates = [r['realised_rate'] for r in records if r['kind'] == 'train' and r['phase'] == '0.4']
    assert np.mean(rates) == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize('after', [5, 14])
def test_kill_and_resume_is_bit_identical(after, prepared, undisturbed, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    run_killed(prepared, workdir, after, signal.SIGKILL)
    execute(Run(workdir, experiment(prepared), quiet=True), STAGES['pretrain'])
    assert_identical(workdir, undisturbed[1])


def test_sigterm_saves_says_so_and_goes_on(prepared, undisturbed, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    code, text = run_killed(prepared, workdir, 7, signal.SIGTERM)
    assert code == STOPPED
    assert 'start the same command again' in text
    assert 'Traceback' not in text
    lines = []
    run = Run(workdir, experiment(prepared))
    run.say = lines.append
    execute(run, STAGES['pretrain'])
    assert any('resuming after step' in line for line in lines)
    assert_identical(workdir, undisturbed[1])


def test_a_kill_between_a_save_and_its_record_loses_no_phase(undisturbed, prepared, tmp_path):
    workdir = tmp_path / 'run'
    shutil.copytree(undisturbed[0], workdir)
    os.replace(workdir / 'pretrain' / 'manifest.json', workdir / 'pretrain' / '.started.json')
    (workdir / 'pretrain' / 'phases.json').write_text('{"0.1": 6}')
    execute(Run(workdir, experiment(prepared), quiet=True), STAGES['pretrain'])
    assert_identical(workdir, undisturbed[1])
    ends = json.loads((workdir / 'pretrain' / 'phases.json').read_text())
    assert ends == {'0.1': 6, '0.2': 12, '0.3': 18, '0.4': 24}


def test_checkpoints_that_cannot_be_used_are_not_deleted(tmp_path):
    state = {'params': {'a': jnp.arange(4.0)}, 'step': jnp.zeros((), jnp.int32)}
    checkpoints = Checkpoints(tmp_path, 2, [1])
    checkpoints.save(1, state)
    checkpoints.wait()
    wanted = {'params': {'b': jnp.arange(4.0)}, 'step': jnp.zeros((), jnp.int32)}
    with pytest.raises(InputError, match='no checkpoint can be used'):
        checkpoints.restore(wanted, lambda line: None)
    assert checkpoints.steps() == [1]
    assert checkpoints.restore(state)[1] == 1
    checkpoints.close()


def test_a_full_disk_is_an_os_error_that_names_the_folder(tmp_path, monkeypatch):
    checkpoints = Checkpoints(tmp_path, 2, [1])

    def full():
        raise ValueError("RESOURCE_EXHAUSTED: Failed to write 9 bytes: No space left [os_error_code='28']")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints.manager, 'wait_until_finished', full)
        with pytest.raises(OSError, match='checkpoints') as caught:
            checkpoints.wait()
    assert caught.value.errno == errno.ENOSPC
    checkpoints.close()


def test_an_evaluation_between_two_records_counts_its_tokens(prepared, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    changes = dict(phases='0.1,', evaluation__per_phase=2, runtime__log_every_steps=100)
    run = Run(workdir, experiment(prepared, **changes), quiet=True)
    execute(run, STAGES['pretrain'])
    tokens = {
        kind: {r['step']: r['tokens'] for r in run.metrics('pretrain') if r['kind'] == kind}
        for kind in ('train', 'evaluation')
    }
    assert 0 < tokens['evaluation'][3] < tokens['evaluation'][6]
    assert tokens['evaluation'][3] == tokens['train'][3]


def run_killed(prepared, workdir, after, with_signal):
    """Run the program until metrics.jsonl shows `after` steps, then send the signal."""
    command = [sys.executable, '-m', 'bioptimus_jax.cli', 'pretrain', f'--config={prepared / "tiny.py"}']
    process = subprocess.Popen(
        [*command, f'--workdir={workdir}'],
        env={**os.environ, 'PYTHONPATH': str(Path(__file__).parent.parent)},
        cwd=prepared,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    metrics = workdir / 'metrics.jsonl'
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        done = (
            [json.loads(line)['step'] for line in metrics.read_text().splitlines()]
            if metrics.exists()
            else [0]
        )
        if max(done, default=0) >= after:
            process.send_signal(with_signal)
            break
        time.sleep(0.01)
    text = process.communicate(timeout=60)[0]
    return process.returncode, text


@pytest.mark.parametrize('damage', ['flip', 'truncate', 'delete'])
def test_a_damaged_checkpoint_is_found_and_the_one_before_is_used(damage, undisturbed, prepared, tmp_path):
    workdir = tmp_path / 'run'
    shutil.copytree(undisturbed[0], workdir)
    folder = workdir / 'pretrain'
    os.replace(folder / 'manifest.json', folder / '.started.json')
    largest = max(
        (folder / 'checkpoints' / '24' / 'state').rglob('*'), key=lambda p: p.stat().st_size * p.is_file()
    )
    content = bytearray(largest.read_bytes())
    if damage == 'flip':
        for at in range(0, len(content), 512):  # some of them in parameters, wherever Orbax has put those
            content[at] ^= 0x10
        largest.write_bytes(content)
    elif damage == 'truncate':
        largest.write_bytes(content[: len(content) // 2])
    else:
        largest.unlink()
    with pytest.raises(InputError):
        load_phase(folder, '0.4')
    lines = []
    run = Run(workdir, experiment(prepared))
    run.say = lines.append
    execute(run, STAGES['pretrain'])
    assert any('checkpoint 24 cannot be used' in line for line in lines)
    assert_identical(workdir, undisturbed[1])


def test_raising_the_last_phase_continues_and_changing_the_first_is_refused(undisturbed, prepared, tmp_path):
    workdir = tmp_path / 'run'
    shutil.copytree(undisturbed[0], workdir)
    execute(Run(workdir, experiment(prepared, **{'phase__0.4__duration': 9}), quiet=True), STAGES['pretrain'])
    assert json.loads((workdir / 'pretrain' / 'phases.json').read_text())['0.4'] == 27
    with pytest.raises(config.ConfigError, match=r'phase\.0\.1\.duration'):
        execute(
            Run(workdir, experiment(prepared, **{'phase__0.1__duration': 9}), quiet=True), STAGES['pretrain']
        )


class Parts:
    """The pieces of a train step on the prepared rows."""

    def __init__(self, prepared, *, micro_batches=1, devices=1, dropout=0.0, row_pieces=64):
        run = Run(prepared / 'run', experiment(prepared, pretrain__micro_batches=micro_batches))
        self.run = run
        architecture, self.params, _ = load_folder(run.folder('surgery') / 'model')
        architecture = dataclasses.replace(architecture, dropout=dropout, attention_dropout=dropout)
        tokens = vocabulary(load_tokenizer(run.folder('vocab')))
        slots = slot_count(0.2, 64, 4)
        words = Vocabulary.of(tokens, SPECIAL_TOKENS)
        self.plan = StepPlan(architecture, run.config.pretrain, words, slots, 0, jnp.float32)
        rows = Rows(run.folder('rows'), 'train')
        placed = curriculum.stretches(run.config, curriculum.RowCounts(len(rows), 1, 1))
        self.table = curriculum.table(placed, run.config)
        mesh = make_mesh(8, devices)
        self.batches = Batches(rows, 8, 0, batch_sharding(mesh))
        self.state = place_state(initial_state(self.params, run.config.pretrain), mesh)
        self.step = jax.jit(make_train_step(self.plan))

    def after(self, steps):
        state, losses = self.state, []
        for step in range(steps):
            state, metrics = self.step(state, self.batches.at(step), self.table)
            losses.append(float(metrics['loss']))
        return flatten(state['params']), losses


def test_accumulation_gives_the_same_step(prepared):
    whole, losses = Parts(prepared).after(2)
    parts, losses_in_parts = Parts(prepared, micro_batches=4).after(2)
    assert losses == pytest.approx(losses_in_parts, rel=1e-5)
    for name in whole:
        np.testing.assert_allclose(whole[name], parts[name], atol=2e-5, err_msg=name)


@pytest.mark.parametrize('dropout', [0.0, 0.1])
def test_eight_devices_give_the_same_step_as_one(dropout, prepared):
    one, losses = Parts(prepared, dropout=dropout).after(2)
    many, losses_on_many = Parts(prepared, devices=8, dropout=dropout).after(2)
    assert losses == pytest.approx(losses_on_many, rel=1e-5)
    for name in one:
        np.testing.assert_allclose(one[name], many[name], atol=2e-5, err_msg=name)


def test_one_compiled_step_serves_all_phases(prepared):
    parts = Parts(prepared)
    state = parts.state
    for step in (0, 7, 13, 20):
        state = {**state, 'step': jnp.full((), step, jnp.int32)}
        state, metrics = parts.step(state, parts.batches.at(step), parts.table)
        assert int(metrics['phase']) == step // 6
    assert parts.step._cache_size() == 1


def test_every_row_is_seen_once_an_epoch(prepared):
    parts = Parts(prepared)
    count = len(parts.batches.rows)
    seen = np.concatenate([parts.batches.row_numbers(step) for step in range(-(-2 * count // 8))])
    assert sorted(seen[:count]) == list(range(count))
    assert sorted(seen[count : 2 * count]) == list(range(count))
    assert (seen[:count] != seen[count : 2 * count]).any()


def test_rows_keep_every_token_and_do_not_depend_on_workers(prepared, tmp_path):
    run = Run(prepared / 'run', experiment(prepared))
    counts = run.manifest('rows')['counts']['train']
    assert counts['tokens_dropped'] == 0
    assert counts['documents'] == run.manifest('corpus')['counts'].get('train', counts['documents'])
    other = copy_of(prepared, tmp_path)
    shutil.rmtree(other / 'rows')
    changed = experiment(prepared, runtime__workers=2, rows__block_documents=4096)
    execute(Run(other, changed, quiet=True), STAGES['rows'])
    again = Run(other, changed).manifest('rows')
    assert again['content'] == run.manifest('rows')['content']


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_rows(prepared, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    with pytest.raises(InputError, match=r'step \d+ is not finite \(rows \['):
        execute(
            Run(workdir, experiment(prepared, pretrain__learning_rate=1e30), quiet=True), STAGES['pretrain']
        )


def test_documents_longer_than_the_position_table_are_refused(prepared, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    file = workdir / 'surgery' / 'model' / 'config.json'
    values = json.loads(file.read_text())
    file.write_text(json.dumps({**values, 'max_position_embeddings': 16}))
    run = Run(workdir, experiment(prepared), quiet=True)
    with pytest.raises((config.ConfigError, InputError), match=r'max_document_pieces|position'):
        execute(run, STAGES['pretrain'])
