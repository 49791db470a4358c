"""The loop and the step: accumulation, sharding, resume after a kill, damaged checkpoints, no recompiling."""

import dataclasses
import errno
import json
import os
import shutil
import signal
import socket
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
from bioptimus_jax.pretrain.backends import make_compute
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.checkpoint import Checkpoints, load_phase
from bioptimus_jax.pretrain.masking import Vocabulary, slot_count
from bioptimus_jax.pretrain.optimizer import make_optimizer
from bioptimus_jax.pretrain.rows import Rows
from bioptimus_jax.pretrain.sharding import batch_sharding, check_fits, make_mesh
from bioptimus_jax.pretrain.step import StepPlan, mask_step_batch, sharded_step
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
    c.model.update(layers=2, hidden=16, heads=4, intermediate=32, max_positions=32)
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


@pytest.mark.timeout(300)
def test_two_processes_train_the_model_of_one(prepared, undisturbed, tmp_path):
    """The same command twice, one device each, through jax.distributed: parameters to rounding, one set of records."""
    workdir = copy_of(prepared, tmp_path)
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    environment = {**os.environ, 'PYTHONPATH': str(Path(__file__).parent.parent), 'XLA_FLAGS': ''}
    command = [sys.executable, '-m', 'bioptimus_jax.cli', 'pretrain', f'--config={prepared / "tiny.py"}']
    started = [
        subprocess.Popen(
            [
                *(*command, f'--workdir={workdir}', '--config.runtime.devices=0'),
                f'--config.runtime.distributed=127.0.0.1:{port},2,{index}',
            ],
            env=environment,
            cwd=prepared,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in (1, 0)
    ]
    texts = [process.communicate(timeout=240)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0], texts
    assert 'pretrain: done' in texts[1]
    found = flatten(load_phase(workdir / 'pretrain', '0.4'))
    for name, value in undisturbed[1].items():
        np.testing.assert_allclose(found[name], value, atol=1e-4, err_msg=name)
    lines = [json.loads(line) for line in (workdir / 'metrics.jsonl').read_text().splitlines()]
    steps = [r['step'] for r in lines if r['kind'] == 'train']
    assert steps == sorted(set(steps))


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

    def __init__(self, prepared, *, micro_batches=1, devices=1, fsdp=1, tensor=1, dropout=0.0, **changes):
        run = Run(prepared / 'run', experiment(prepared, pretrain__micro_batches=micro_batches, **changes))
        self.run = run
        architecture, self.params, _ = load_folder(run.folder('surgery') / 'model')
        architecture = dataclasses.replace(architecture, dropout=dropout, attention_dropout=dropout)
        tokens = vocabulary(load_tokenizer(run.folder('vocab')))
        slots = slot_count(0.2, 64, 4)
        words = Vocabulary.of(tokens, SPECIAL_TOKENS)
        rows = Rows(run.folder('rows'), 'train')
        placed = curriculum.stretches(run.config, curriculum.RowCounts(len(rows), 1, 1))
        self.table = curriculum.table(placed, run.config)
        mesh = make_mesh(devices, fsdp, tensor)
        check_fits(mesh, architecture, 8 // micro_batches, 'rows')
        self.plan = StepPlan(
            architecture,
            run.config.pretrain,
            words,
            slots,
            0,
            make_compute(run.config, architecture, mesh, 64, print),
        )
        self.batches = Batches(rows, 8, 0, batch_sharding(mesh))
        self.step, self.state = sharded_step(self.plan, mesh, self.params)

    def after(self, steps):
        state, losses = self.state, []
        for step in range(steps):
            state, metrics = self.step(state, self.batches.at(step), self.table)
            losses.append(float(metrics['loss']))
        return state, losses


def test_accumulation_gives_the_same_step(prepared):
    whole, losses = Parts(prepared).after(2)
    parts, losses_in_parts = Parts(prepared, micro_batches=4).after(2)
    assert losses == pytest.approx(losses_in_parts, rel=1e-5)
    for name, value in flatten(whole['params']).items():
        np.testing.assert_allclose(flatten(parts['params'])[name], value, atol=2e-5, err_msg=name)


def meshes(devices):
    """Every way to spread devices over the axes data, fsdp and tensor; the model has four heads."""
    tensors = [t for t in (1, 2, 4) if devices % t == 0]
    return [
        (devices // (f * t), f, t)
        for t in tensors
        for f in (1, 2, 4, 8)
        if devices // t >= f and devices // t % f == 0
    ]


QUICK = [(2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 2), (1, 2, 4)]
SLOW = [mesh for devices in (2, 4, 8) for mesh in meshes(devices) if mesh not in QUICK]


@pytest.fixture(scope='module')
def on_one_device(prepared):
    return {dropout: Parts(prepared, dropout=dropout, micro_batches=1).after(2) for dropout in (0.0, 0.1)}


@pytest.mark.parametrize('dropout', [0.0, 0.1])
@pytest.mark.parametrize('mesh', [*QUICK, *(pytest.param(mesh, marks=pytest.mark.slow) for mesh in SLOW)])
def test_every_mesh_gives_the_step_of_one_device(mesh, dropout, prepared, on_one_device):
    """Loss and first moments (a tenth of the clipped gradients, summed over two steps), parameters too."""
    data, fsdp, tensor = mesh
    parts = Parts(prepared, devices=data * fsdp * tensor, fsdp=fsdp, tensor=tensor, dropout=dropout)
    state, losses = parts.after(2)
    expected, losses_on_one = on_one_device[dropout]
    assert losses == pytest.approx(losses_on_one, rel=1e-5)
    largest = max(np.abs(moment).max() for moment in jax.tree.leaves(expected['optimizer'][1].mu))
    for (path, one), many in zip(
        jax.tree.leaves_with_path(expected['optimizer'][1].mu),
        jax.tree.leaves(state['optimizer'][1].mu),
        strict=True,
    ):
        np.testing.assert_allclose(many, one, atol=1e-5 * largest, err_msg=jax.tree_util.keystr(path))
    for name, value in flatten(expected['params']).items():
        np.testing.assert_allclose(flatten(state['params'])[name], value, atol=2e-5, err_msg=name)


def test_parameters_and_moments_are_split_and_masks_are_the_same_on_a_mesh(prepared):
    one, many = Parts(prepared), Parts(prepared, devices=8, fsdp=2, tensor=2)
    kernel = many.state['params']['encoder']['layer']['0']['intermediate']['dense']['kernel']
    moment = many.state['optimizer'][1].mu['encoder']['layer']['0']['intermediate']['dense']['kernel']
    assert kernel.addressable_shards[0].data.shape == (16 // 2, 32 // 2)
    assert moment.sharding == kernel.sharding
    masked = [
        jax.jit(lambda batch, p=p: mask_step_batch(batch, p.plan, p.table, jnp.int32(13)))(p.batches.at(13))
        for p in (one, many)
    ]
    for left, right in zip(jax.tree.leaves(masked[0]), jax.tree.leaves(masked[1]), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_mesh_that_does_not_fit_is_refused_by_its_key(prepared):
    architecture = Parts(prepared).plan.architecture
    with pytest.raises(config.ConfigError, match=r'runtime\.devices: 99'):
        make_mesh(99)
    with pytest.raises(config.ConfigError, match=r'runtime\.fsdp: 3'):
        make_mesh(8, fsdp=3)
    with pytest.raises(config.ConfigError, match=r'runtime\.tensor: 8 does not divide 4 attention heads'):
        check_fits(make_mesh(8, tensor=8), architecture, 8, 'rows')
    with pytest.raises(config.ConfigError, match=r'7 rows are not a multiple of the 8 devices'):
        check_fits(make_mesh(8), architecture, 7, 'rows')
    wide = dataclasses.replace(architecture, hidden=20)
    with pytest.raises(config.ConfigError, match=r'runtime\.fsdp: 8 does not divide 20 in .*\(20, 20\)'):
        check_fits(make_mesh(8, fsdp=8), wide, 8, 'rows')


def test_lamb_scales_updates_to_the_norm_of_decayed_tensors():
    params = {'a': {'kernel': jnp.full((2, 2), 3.0), 'bias': jnp.full(2, 3.0)}}
    gradients = {'a': {'kernel': jnp.full((2, 2), 0.5), 'bias': jnp.full(2, 0.5)}}
    settings = config.Pretrain(optimizer='lamb', weight_decay=0.0, clip_norm=0.0, epsilon=0.0)
    optimizer = make_optimizer(settings, params)
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    np.testing.assert_allclose(updates['a']['kernel'], np.full((2, 2), 3.0), rtol=1e-5)  # 1 each, times 6 / 2
    np.testing.assert_allclose(updates['a']['bias'], np.ones(2), rtol=1e-5)


def test_a_step_that_is_not_finite_is_skipped_and_counted_when_asked(prepared, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    changes = dict(
        phases='0.1,', pretrain__not_finite='skip', pretrain__learning_rate='1e30', pretrain__clip_norm=0
    )
    run = Run(workdir, experiment(prepared, **changes), quiet=True)
    execute(run, STAGES['pretrain'])
    records = [r for r in run.metrics('pretrain') if r['kind'] == 'train']
    assert sum(r['skipped'] for r in records) >= 1
    assert all(np.isfinite(v).all() for v in flatten(load_phase(workdir / 'pretrain', '0.1')).values())


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
