"""The loop and the step: accumulation, sharding, resume after a kill, damaged checkpoints, no recompiling."""

import dataclasses
import errno
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import time
import types

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint.experimental.v1 as v1
import pytest
from safetensors.numpy import load_file, save_file
from toy_attention import not_at_all, roughly
from toy_compiler import EIGHT_DEVICES
from toy_families import RENAMED
from toy_pretraining import (
    assert_same_bits,
    copy_of,
    experiment,
    killed_copy,
    parameters,
    pretrained,
    with_equal_program,
    write_vowels,
)
from toy_programs import environment

from bioptimus_jax.corpus.documents import document_key, open_documents
from bioptimus_jax.errors import STOPPED, ConfigError, InputError, Paused
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.architecture import Rule, logits_of
from bioptimus_jax.model.compute import PLAIN_COMPUTE
from bioptimus_jax.model.config import FAMILIES
from bioptimus_jax.model.folder import model_folders
from bioptimus_jax.model.tensors import load_folder, write_folder
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.model.untouched import untouched_in
from bioptimus_jax.pretrain import backends, curriculum, difficulty, evaluate, goodput, loop, perplexity
from bioptimus_jax.pretrain.batches import Batches
from bioptimus_jax.pretrain.checkpoint import Checkpoints, load_phase
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.decay import DECAYS
from bioptimus_jax.pretrain.energy import Meter
from bioptimus_jax.pretrain.masking import MASKED, REPLACED, UNCHANGED, Masked
from bioptimus_jax.pretrain.objective import make_objective
from bioptimus_jax.pretrain.objectives.mlm import MaskedRows
from bioptimus_jax.pretrain.optimizer import make_optimizer
from bioptimus_jax.pretrain.shape import RowCounts
from bioptimus_jax.pretrain.sharding import batch_sharding, check_fits, make_mesh
from bioptimus_jax.pretrain.step import example_at, sharded_step
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.metrics import Spans, Training
from bioptimus_jax.records.record import plain
from bioptimus_jax.report.measures import read_measures
from bioptimus_jax.rows.config import RowShape
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.fingerprint import StageOfRun
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import write_manifest
from bioptimus_jax.scoring import frozen
from bioptimus_jax.scoring.frozen_sets import FrozenSets
from bioptimus_jax.sets.corpora import read_split
from bioptimus_jax.storage.files import read_json, sha256, write_json
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.kinds.wordpiece import SPECIAL_TOKENS, make

STEPS = 24


def beyond_the_schema(wanted):
    """A learning rate that the schema refuses: what comes of one that is too high."""
    return dataclasses.replace(wanted, pretrain=dataclasses.replace(wanted.pretrain, learning_rate=1e30))


@pytest.fixture(scope='module')
def undisturbed(prepared, tmp_path_factory):
    """The run that nobody disturbed: its folder and its final parameters; beside it what a kill in phase 0.3 leaves."""
    folder = tmp_path_factory.mktemp('undisturbed')
    run = Run(copy_of(prepared, folder), experiment(prepared), quiet=True)
    with killed_copy(run, folder / 'half', lambda step: step > 12):
        pretrained(run)
    return run.workdir, parameters(run, '0.4')


@pytest.mark.filterwarnings('ignore:Sharding info not provided')
def test_orbaxs_coming_interface_reads_what_is_written(undisturbed):
    """The interface of orbax.checkpoint 1, which 0.12 has among its experiments."""
    workdir, wanted = undisturbed
    saved = v1.load_checkpointables(workdir.resolve() / 'pretrain/checkpoints/24')
    found = flatten(saved['state']['params'])
    assert found.keys() == wanted.keys()
    for path, value in wanted.items():
        np.testing.assert_array_equal(found[path], value, err_msg=path)
    assert {f'params/{path}' for path in wanted} < saved['checksums'].keys()


def assert_identical(workdir, wanted):
    found = flatten(load_phase(workdir / 'pretrain', '0.4'))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_the_loss_falls_and_every_phase_is_there(undisturbed, prepared):
    workdir, _ = undisturbed
    records = Run(workdir, experiment(prepared)).metrics.of('pretrain')
    evaluations = [r for r in records if r['kind'] == 'evaluation']
    assert [r['phase'] for r in evaluations] == ['initial', '0.1', '0.2', '0.3', '0.4']
    assert [r['step'] for r in evaluations] == [0, 6, 12, 18, 24]
    assert evaluations[-1]['frozen_loss'] < evaluations[0]['frozen_loss']
    assert set(evaluations[-1]['losses']) == {'0.1', '0.2', '0.3', '0.4'}
    assert evaluations[0]['frozen_loss'] == pytest.approx(np.log(300), rel=0.05)
    rates = [r['realised_rate'] for r in records if r['kind'] == 'train' and r['phase'] == '0.4']
    assert np.mean(rates) == pytest.approx(0.2, rel=0.05)


def test_stop_kill_and_resume_is_bit_identical(programs, prepared, undisturbed, tmp_path):
    """Told to stop in the first phase, which saves and says so; killed in the third; then paused as was asked for, and
    not trained further by the same command. All time is accounted for."""
    workdir, begun = copy_of(prepared, tmp_path), time.time()
    code, text = run_killed(programs, prepared, workdir, 5, signal.SIGTERM)
    assert code == STOPPED
    assert 'rerun the same command' in text
    assert 'Traceback' not in text
    code, text = run_killed(programs, prepared, workdir, 14, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert 'resuming after step' in text
    asked = Run(workdir, experiment(prepared, **{'runtime.until': 0.85}))
    for _ in range(2):
        with pytest.raises(Paused, match=f'21 of {STEPS} steps .*runtime.until=0.85 asks'):
            pretrained(asked)
    [last] = [r for r in asked.metrics.of('pretrain') if r['step'] == 21 and 'frozen_loss' in r]
    assert not last['phase_end']
    run, lines = Run(workdir, experiment(prepared)), []
    run.console.say = lines.append
    pretrained(run)
    took = time.time() - begun
    assert any('resuming after step' in line for line in lines)
    assert_identical(workdir, undisturbed[1])
    records = Spans.among(run.metrics.of('clock'))
    found = goodput.account(records)
    began, ended = min(r.began for r in records), max(r.time for r in records)
    assert sum(found.values()) == pytest.approx(ended - began, abs=0.05)
    assert 0.5 * took < ended - began < took
    own = goodput.processes(records)
    assert [rs[-1].ended for rs in own] == [True, False, True, True, True]
    assert all(r.computed.on == '8 cpu devices' for rs in own for r in rs if r.computed)
    assert all(rs[0].computed for rs in own)
    assert run.manifest('pretrain').computed == own[-1][0].computed
    assert own[-1][0].computed.json() == {
        'on': '8 cpu devices',
        'mesh': 'data 1 x fsdp 1 x tensor 1',
        'attention': 'xla',
        'type': 'float32',
    }
    assert all(found[span] > 0 for span in (*goodput.SPANS, goodput.LOST, goodput.IDLE)), found
    assert any(', 5 starts; start ' in line and '; not running ' in line for line in lines)
    spent = [
        {
            r['step']: r['flops']
            for r in Run(where, experiment(prepared)).metrics.of('pretrain')
            if 'flops' in r
        }
        for where in (workdir, undisturbed[0])
    ]
    assert spent[0][STEPS] == pytest.approx(spent[1][STEPS])  # what the killed attempts did counts, once


# Slow: what is saved and restored are trees, whatever their family. Of those that differ in more than names a BERT is
# killed above, a EuroBERT in test_shapes.py and an ELECTRA in test_rtd.py; an MPNet pads with another id.
@pytest.mark.parametrize(
    'family',
    [
        pytest.param(name, marks=pytest.mark.slow)
        for name in FAMILIES
        if name not in ('bert', 'mpnet', *RENAMED)
    ],
)
def test_a_kill_changes_no_bit_of_any_family(family, prepared, tmp_path):
    layers = 2 if family == 'modernbert' else 1  # one of each of its two kinds
    changes = {'model.family': family, 'model.layers': layers, 'model.max_positions': 40, 'phases': '0.1,0.2'}
    whole = Run(copy_of(prepared, tmp_path), experiment(prepared, **changes), quiet=True)
    execute(whole, STAGES['surgery'], replace=True)
    made = load_folder(whole.folder('surgery') / 'model')[0]
    assert made.padded_with(subwords.load(whole.folder('vocab')).pad) == made
    with killed_copy(whole, tmp_path / 'killed', lambda step: step > 6):
        pretrained(whole)
    assert_same_bits(whole, pretrained(Run(tmp_path / 'killed', whole.config, quiet=True)), '0.2')


def test_a_run_goes_on_with_the_attention_that_it_has_measured(prepared, tmp_path, candidates, monkeypatch):
    """It computes other bits than plain attention. After a kill nothing is measured, and all bits are the same."""
    changes = {'model.attention_dropout': 0, 'phases': '0.1,', 'runtime.checkpoint_every_steps': 4}
    whole = Run(copy_of(prepared, tmp_path), experiment(prepared, **changes))
    execute(whole, STAGES['surgery'], replace=True)
    candidates(splash=not_at_all, cudnn=roughly)
    lines: list[str] = []
    whole.console.say = lines.append
    with killed_copy(whole, tmp_path / 'killed', lambda step: step > 4):
        pretrained(whole)
    made = json.loads((whole.workdir / 'pretrain' / backends.RECORD).read_text())['to both sides']
    assert made['chosen'] == 'cudnn'
    assert made['milliseconds'].keys() == {'xla', 'cudnn'}
    assert made['left_out']['splash'].startswith('its output is off by')
    assert any(re.search(r'attention roughly, type float32', line) for line in lines)
    [times] = [line for line in lines if 'measured once' in line]
    assert re.search(r'to both sides: xla [\d.e+]+ ms, cudnn [\d.e+]+ ms$', times)

    monkeypatch.setattr(backends, 'fastest', None)
    goes_on = pretrained(Run(tmp_path / 'killed', whole.config, quiet=True))
    assert_same_bits(whole, goes_on, '0.1')


def test_the_energy_of_evaluations_and_checkpoints_is_not_that_of_the_steps(prepared, tmp_path, monkeypatch):
    """A device that takes 100 W all the time: joules are those of the seconds that are on record."""
    monkeypatch.setattr(Meter, '_read', lambda self: 100 * time.monotonic())
    run = Run(copy_of(prepared, tmp_path), experiment(prepared, **{'evaluation.per_phase': 3}), quiet=True)
    pretrained(run)
    records = Training.among(run.metrics.of('pretrain'))
    assert records[-1].joules == pytest.approx(100 * records[-1].seconds, rel=0.1)


def test_a_kill_between_a_save_and_its_record_loses_no_phase(undisturbed, prepared, tmp_path):
    workdir = tmp_path / 'run'
    shutil.copytree(undisturbed[0], workdir)
    os.replace(workdir / 'pretrain' / 'manifest.json', workdir / 'pretrain' / '.started.json')
    (workdir / 'pretrain' / 'phases.json').write_text('{"0.1": 6}')
    pretrained(Run(workdir, experiment(prepared), quiet=True))
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


@pytest.mark.parametrize('leaf', ['params', 'optimizer'])
def test_a_bit_that_the_storage_does_not_miss_is_seen_by_its_sum(leaf, tmp_path):
    """Orbax restores the other bit without a word: only the sums of the checkpoint tell."""
    state = {'params': {'a': jnp.arange(4.0)}, 'optimizer': {'mu': jnp.ones((2, 3))}, 'step': jnp.int32(0)}
    flipped = jax.tree.map(lambda x: np.array(x), state)
    next(iter(flipped[leaf].values())).view(np.uint32).flat[1] ^= 1
    for name, saved in (('good', [state, state]), ('other', [state, flipped])):
        checkpoints = Checkpoints(tmp_path / name, 2, [1, 2])
        for step, one in enumerate(saved, 1):
            checkpoints.save(step, one)
        checkpoints.wait()
        checkpoints.close()
    stored = tmp_path / 'good' / 'checkpoints' / '2' / 'state'
    shutil.rmtree(stored)
    shutil.copytree(tmp_path / 'other' / 'checkpoints' / '2' / 'state', stored)
    (tmp_path / 'good' / 'phases.json').write_text('{"0.1": 2}')
    if leaf == 'params':
        with pytest.raises(InputError, match='checksum differs for params/a'):
            load_phase(tmp_path / 'good', '0.1')
    checkpoints, lines = Checkpoints(tmp_path / 'good', 2, [1, 2]), []
    restored, step = checkpoints.restore(state, lines.append)
    checkpoints.close()
    assert step == 1
    assert [line.split(' (')[0] for line in lines] == ['checkpoint 2 cannot be used']
    assert 'checksum differs' in lines[0]
    assert jax.tree.all(jax.tree.map(np.array_equal, restored, state))


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


def test_a_curriculum_is_scored_under_settings_that_it_does_not_train(undisturbed, prepared, tmp_path):
    """The weights at step 0 are those of the whole curriculum: the masks are too, whatever the phases are.

    And an evaluation between two records counts its tokens.
    """
    changes = dict(phases='0.1,0.2', evaluation__settings='0.2,0.4')
    seldom = dict(evaluation__per_phase=2, runtime__log_every_steps=100)
    run = pretrained(Run(copy_of(prepared, tmp_path), experiment(prepared, **changes, **seldom), quiet=True))
    evaluations = [r for r in run.metrics.of('pretrain') if r['kind'] == 'evaluation']
    assert [(r['phase'], set(r['losses'])) for r in evaluations if r['phase_end']] == [
        (phase, {'0.2', '0.4'}) for phase in ('initial', '0.1', '0.2')
    ]
    records = Run(undisturbed[0], experiment(prepared)).metrics.of('pretrain')
    whole = next(r for r in records if r['kind'] == 'evaluation')['losses']
    assert evaluations[0]['losses'] == {name: whole[name] for name in ('0.2', '0.4')}
    tokens = {
        kind: {r['step']: r['tokens'] for r in run.metrics.of('pretrain') if r['kind'] == kind}
        for kind in ('train', 'evaluation')
    }
    assert 0 < tokens['evaluation'][3] < tokens['evaluation'][6]
    assert tokens['evaluation'][3] == tokens['train'][3]


def run_killed(programs, prepared, workdir, after, with_signal):
    """Run the program until metrics.jsonl shows `after` steps, then send the signal."""
    command = [programs / 'bioptimus', 'pretrain', f'--config={prepared / "tiny.py"}']
    process = subprocess.Popen(
        [*command, f'--workdir={workdir}'],
        env=environment(XLA_FLAGS=EIGHT_DEVICES),
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


def test_a_run_goes_on_on_another_mesh(undisturbed, prepared, tmp_path):
    """Two phases on one device, two on eight: to rounding the parameters of the same on one device throughout."""
    workdir = shutil.copytree(undisturbed[0].parent / 'half', tmp_path / 'run')
    mesh = dict(runtime__devices=8, runtime__fsdp=2, runtime__tensor=2)
    lines = []
    run = Run(workdir, experiment(prepared, **mesh))
    run.console.say = lines.append
    before, restore, held = bytes_on_devices(), Checkpoints.restore, []

    def restoring(checkpoints, like, warn):
        held.append((bytes_on_devices() - before) / sum(4 * leaf.size for leaf in jax.tree.leaves(like)))
        return restore(checkpoints, like, warn)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Checkpoints, 'restore', restoring)
        pretrained(run)
    # Of two states, one of which goes, the other is in the way of the step.
    assert held[0] < 0.1
    assert any('resuming after step 12' in line for line in lines)
    for name, value in parameters(run, '0.4').items():
        np.testing.assert_allclose(value, undisturbed[1][name], atol=2e-4, err_msg=name)


def bytes_on_devices():
    return sum(array.nbytes for array in jax.live_arrays())


def damage(folder, kind):
    """Damages the largest file of the last checkpoint; its name."""
    largest = max(
        (folder / 'checkpoints' / '24' / 'state').rglob('*'), key=lambda p: p.stat().st_size * p.is_file()
    )
    content = bytearray(largest.read_bytes())
    if kind == 'flip':
        for at in range(0, len(content), 512):  # some of them in parameters, wherever Orbax has put those
            content[at] ^= 0x10
        largest.write_bytes(content)
    elif kind == 'truncate':
        largest.write_bytes(content[: len(content) // 2])
    else:
        largest.unlink()
    return largest.name


@pytest.mark.parametrize('kind', ['flip', 'truncate', 'delete'])
def test_a_damaged_checkpoint_is_found_and_the_one_before_is_used(kind, undisturbed, stepping, tmp_path):
    folder = shutil.copytree(undisturbed[0], tmp_path / 'run') / 'pretrain'
    name = damage(folder, kind)
    for record, said in (
        ('manifest.json', rf'{name}: is .* or remove {folder} and run'),
        ('.started.json', 'checkpoints/24'),  # no manifest says what the files were
    ):
        os.replace(folder / 'manifest.json', folder / record)
        with pytest.raises(InputError, match=said):
            load_phase(folder, '0.4')
    checkpoints, lines = Checkpoints(folder, 2, [6, 12, 18, 24]), []
    restored, step = checkpoints.restore(stepping.state(), lines.append)
    checkpoints.close()
    assert step == restored['step'] == 18
    assert any('checkpoint 24 cannot be used' in line for line in lines)


def test_a_run_goes_on_before_its_damaged_checkpoint(undisturbed, prepared, tmp_path):
    run, lines = Run(shutil.copytree(undisturbed[0], tmp_path / 'run'), experiment(prepared)), []
    damage(run.folder('pretrain'), 'flip')
    os.replace(run.folder('pretrain') / 'manifest.json', run.folder('pretrain') / '.started.json')
    run.console.say = lines.append
    pretrained(run)
    assert any('checkpoint 24 cannot be used' in line for line in lines)
    assert_identical(run.workdir, undisturbed[1])


def test_raising_the_last_phase_continues_and_other_changes_are_refused(undisturbed, prepared, tmp_path):
    """A phase more may be added, too: test_mixture.py."""
    workdir = tmp_path / 'run'
    shutil.copytree(undisturbed[0], workdir)
    pretrained(Run(workdir, experiment(prepared, **{'phase__0.4__duration': 9}), quiet=True))
    assert json.loads((workdir / 'pretrain' / 'phases.json').read_text())['0.4'] == 27
    file = workdir / 'pretrain' / 'curriculum.json'
    record, gone = read_json(file), rf'curriculum\.json: is missing; .* remove {workdir}/pretrain and run'
    added = {'phase.0.4.duration': 9, 'phase.0.5.masking': 'words', 'phases': '0.1,0.2,0.3,0.4,0.5'}
    for change, error, refusal in (
        ({'phase__0.1__duration': 9}, ConfigError, r'phase\.0\.1\.duration'),
        ({'phases': '0.1,0.2,0.3'}, ConfigError, r'config\.phases: .* phase 0\.4 took steps 18-27'),
        ({**added, 'phase.0.5.objective': 'nsp'}, ConfigError, 'layout'),
        ({'phase__0.4__duration': 12}, InputError, gone),
    ):
        if refusal == gone:
            file.unlink()
        with pytest.raises(error, match=refusal):
            execute(Run(workdir, experiment(prepared, **change), quiet=True), STAGES['pretrain'])
        assert refusal == gone or read_json(file) == record


def test_training_ends_in_time_and_a_resumed_run_keeps_to_it(prepared, tmp_path, capsys):
    limited = experiment(prepared, **{'runtime.train_hours': '1e-9'})
    run = Run(copy_of(prepared, tmp_path), limited)
    with killed_copy(run, tmp_path / 'killed', lambda step: step > 10):
        pretrained(run)
    assert '13 of 24 steps fit into config.runtime.train_hours=1e-09' in capsys.readouterr().out
    ends = read_json(run.workdir / 'pretrain' / 'phases.json')
    # Speed is known after 10 steps: one compiled, and 8 are the least. One step is left of each phase.
    assert ends == {'0.1': 6, '0.2': 11, '0.3': 12, '0.4': 13}
    again = Run(tmp_path / 'killed', limited, quiet=True)
    again.metrics.write('pretrain', 24, kind='train', loss=1.0)  # lost by the kill
    pretrained(again)
    assert read_json(again.workdir / 'pretrain' / 'phases.json') == ends
    assert again.metrics.of('pretrain')[-1]['step'] == 13
    assert_same_bits(parameters(again, '0.4'), parameters(run, '0.4'))
    # Phases that are over stay as they are without a limit, too, and the last one may be longer.
    pretrained(Run(run.workdir, experiment(prepared, **{'phase__0.4__duration': 8}), quiet=True))
    assert read_json(run.workdir / 'pretrain' / 'phases.json') == {**ends, '0.4': 20}


# 6 evaluations a phase. What is enough lies between the gains of the run, so that some phases end early.
SELF_PACED = {
    'curriculum.order': 'self_paced',
    'curriculum.patience': '1',
    'evaluation.per_phase': '6',
    'runtime.keep_checkpoints': '1',
    'pretrain.learning_rate': '3e-3',
}
ENOUGH = {'heldout': 0.0035, 'entities': 0.01}


def self_paced(prepared, pace):
    """`entities`: by F1 on a set in the folder beside that of the run."""
    changes = {**SELF_PACED, 'curriculum.min_improvement': str(ENOUGH[pace])}
    if pace == 'entities':
        changes |= {
            'curriculum.pace': pace,
            'evaluation.entities': 'vowels,',
            'finetune.folder': prepared / 'ner',
        }
    return experiment(prepared, **changes)


@pytest.fixture(scope='module', params=list(ENOUGH))
def paced(request, prepared, tmp_path_factory):
    """A self-paced run that nobody disturbed: its folder and its final parameters; and what it is paced by.

    Beside it what a kill leaves in the middle of a later phase, and one between a decision and its checkpoint.
    """
    folder = tmp_path_factory.mktemp('paced')
    write_vowels(prepared / 'ner')
    run = Run(copy_of(prepared, folder), self_paced(prepared, request.param), quiet=True)

    def decided(step):
        record = curriculum.read_phases(run.workdir / 'pretrain')
        return any(r.ended and r.stop == step < r.start + 6 for r in record)  # before its plan

    with (
        killed_copy(run, folder / 'in a phase', lambda step: step > 12),
        killed_copy(run, folder / 'decided', decided, goes_on=False),  # the first phase may have ended
    ):
        pretrained(run)
    return run.workdir, parameters(run, '0.4'), request.param


def test_self_paced_phases_end_where_what_was_logged_is_flat(paced, prepared):
    pace = paced[2]
    run = Run(paced[0], self_paced(prepared, pace))
    of_record = {'heldout': lambda r: r['frozen_loss'], 'entities': lambda r: 1 - r['entities/vowels']}[pace]
    evaluations = [r for r in run.metrics.of('pretrain') if r['kind'] == 'evaluation']
    ends = run.manifest('pretrain').counts['phase_ends']
    start = 0
    for name in ('0.1', '0.2', '0.3'):
        losses = [of_record(r) for r in evaluations if start < r['step'] <= ends[name]]
        flat = [last > (1 - ENOUGH[pace]) * min(losses[:n]) for n, last in enumerate(losses) if n]
        assert not any(flat[:-1])
        assert flat[-1] or len(losses) == 6
        start = ends[name]
    assert ends['0.4'] == STEPS
    assert ends['0.3'] < 18, 'none ended early: raise what is enough'
    assert len({of_record(r) for r in evaluations}) > 6
    assert read_json(paced[0] / 'pretrain' / 'phases.json') == ends
    assert set(Checkpoints(paced[0] / 'pretrain', 1, ends.values()).steps()) == set(ends.values())
    assert [r['step'] for r in evaluations if r['phase_end'] and r['step']] == list(ends.values())
    assert all(set(r['losses']) == set(ends) for r in evaluations if r['phase_end'])
    if pace == 'entities':
        assert_entities_of_the_model(run, prepared / 'ner' / 'vowels', evaluations[-1])


def assert_entities_of_the_model(run, folder, evaluation):
    """What is on record at the end is the F1 of the model that was saved there."""
    model, params = run.folder('surgery') / 'model', load_phase(run.folder('pretrain'), '0.4')
    sets = FrozenSets({folder.name: frozen.chosen(read_split(folder, 'train'), 5000)})
    [record] = sets.records('0.4', subwords.load(model), load_folder(model)[0], params)
    assert evaluation['step'] == STEPS
    assert evaluation[f'entities/{folder.name}'] == pytest.approx(record.f1, abs=1e-6)
    assert 0.2 < record.f1 < 1


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (
            {'evaluation__entities': 'vowls'},
            r'ner: has no set vowls; found: hoc, none, one, vowels; did you mean vowels\?',
        ),
        (
            {'finetune__folder': ''},
            r'evaluation\.entities: names sets, but config\.finetune\.folder is empty',
        ),
        ({'finetune__folder': '/nowhere'}, r'/nowhere: no such folder'),
        ({'evaluation__entities': 'hoc'}, r'config\.evaluation\.entities: hoc has no entities, its task is'),
        (
            {'evaluation__entities': 'none,'},
            r'entities: the 60 training sentences of none have no entity; raise',
        ),
        (
            {'evaluation__entities': 'one,'},
            r'entities: the 1 training sentences of one have a single document',
        ),
    ],
)
def test_sets_that_cannot_be_scored_are_refused_before_anything_is_done(changes, message, prepared):
    write_vowels(prepared / 'ner')
    lines = (prepared / 'ner' / 'vowels' / 'train.tsv').read_text()
    others = {'hoc': lines, 'none': lines.replace('B-X', 'O'), 'one': lines.partition('\n\n')[0] + '\n'}
    for name, train in others.items():
        shutil.copytree(prepared / 'ner' / 'vowels', prepared / 'ner' / name, dirs_exist_ok=True)
        (prepared / 'ner' / name / 'train.tsv').write_text(train)
    named = {'finetune__folder': prepared / 'ner', 'evaluation__entities': 'vowels,'}
    run = Run(prepared / 'run', experiment(prepared, **named | changes), quiet=True)
    with pytest.raises((ConfigError, InputError), match=message):
        StageOfRun(run, STAGES['pretrain']).check_ahead()


def test_a_self_paced_run_that_was_killed_is_bit_identical(paced, prepared, tmp_path):
    """The kill is in a phase where entities set the pace; else it is between a decision and its checkpoint."""
    killed = {'entities': 'in a phase', 'heldout': 'decided'}[paced[2]]
    workdir = shutil.copytree(paced[0].parent / killed, tmp_path / 'run')
    if killed == 'decided':
        ended = [r for r in curriculum.read_phases(workdir / 'pretrain') if r.ended]
        assert ended[-1].name not in read_json(workdir / 'pretrain' / 'phases.json')
    pretrained(Run(workdir, self_paced(prepared, paced[2]), quiet=True))
    assert_same_course(workdir, paced)


def assert_same_course(workdir, wanted):
    assert_identical(workdir, wanted[1])
    for name in ('curriculum.json', 'phases.json'):
        assert read_json(workdir / 'pretrain' / name) == read_json(wanted[0] / 'pretrain' / name)
    run, other = (read_json(w / 'pretrain' / 'manifest.json')['content'] for w in (workdir, wanted[0]))
    assert run == other


def with_pooler(folder):
    """The tensors of a pooler, which are put into the model that stage surgery made."""
    made = {
        f'bert.pooler.dense.{name}': np.random.default_rng(3).normal(size=shape).astype(np.float32)
        for name, shape in (('weight', (16, 16)), ('bias', (16,)))
    }
    file = folder / 'model' / 'model.safetensors'
    save_file({**load_file(file), **made}, file, {'format': 'pt'})
    manifest = read_json(folder / 'manifest.json')
    manifest['files']['model/model.safetensors'] = {'bytes': file.stat().st_size, 'sha256': sha256(file)}
    write_manifest(folder, Manifest.read(manifest, 'test'))
    return made


def test_snapshots_outlive_later_checkpoints_and_are_exported(prepared, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    pooler = with_pooler(workdir / 'surgery')
    changes = {'evaluation.snapshots_per_phase': 2, 'runtime.keep_checkpoints': 1, 'phases': '0.1,0.2'}
    run = Run(workdir, experiment(prepared, **changes, **{'finetune.models': '0.1@50,0.2'}), quiet=True)
    pretrained(run)
    kept = {'0.1@50': 3, '0.1': 6, '0.2@50': 9, '0.2': 12}
    folder = workdir / 'pretrain'
    assert read_json(folder / 'phases.json') == kept
    assert sorted(int(p.name) for p in (folder / 'checkpoints').iterdir()) == list(kept.values())
    assert run.manifest('pretrain').counts['snapshots'] == {'0.1@50': 3, '0.2@50': 9}
    exported = workdir / 'export'
    last = Run(workdir, experiment(prepared, **{**changes, 'phases': '0.2,'}), quiet=True)
    for one, names in ((last, ['0.2', '0.2@50']), (run, sorted(kept)), (last, sorted(kept))):
        execute(one, STAGES['export'])
        assert sorted(place.name for place in exported.iterdir() if place.is_dir()) == names
        # What was exported of another pre-training does not stay; what was of this one does, asked for or not.
        shutil.copytree(exported / '0.2', exported / '0.3')
        about = exported / '0.3' / 'export.json'
        write_json(about, {**read_json(about), 'phase': '0.3'})
    for name, own in (
        ('mean', {'merged': [], 'phase': 'mean'}),
        ('own', []),
    ):  # what others have put there stays
        (exported / name).mkdir()
        write_json(exported / name / 'export.json', own)
    execute(run, STAGES['export'])
    assert sorted(place.name for place in exported.iterdir() if place.is_dir()) == sorted(
        [*kept, 'mean', 'own']
    )
    for name in kept:
        architecture, params, fresh = load_folder(workdir / 'export' / name)
        assert not fresh
        trained = flatten(load_phase(folder, name))
        for path, value in flatten(params).items():
            np.testing.assert_array_equal(value, trained[path], err_msg=f'{name} {path}')
        # What the model at step 0 has beside its parameters is in every export, though its source is nowhere.
        found, _ = untouched_in(workdir / 'export' / name, architecture)
        assert found.keys() == pooler.keys()
        assert all(np.array_equal(found[of], value) for of, value in pooler.items())
    assert read_json(workdir / 'export' / '0.2@50' / 'export.json')['setting'] == json.loads(
        json.dumps(dataclasses.asdict(run.config.phase['0.2']))
    )
    assert model_folders(run.config, run.folder, run.config.finetune.models, 'models') == {
        n: workdir / 'export' / n for n in ('0.1@50', '0.2')
    }


def test_a_stage_of_a_base_run_that_was_made_again_is_refused_and_one_that_grows_goes_on(
    prepared, undisturbed, tmp_path, capsys
):
    base = Run(shutil.copytree(undisturbed[0], tmp_path / 'run'), experiment(prepared), quiet=True)
    borrowed = {'runtime__base_run': f'{base.workdir},'}
    arm = Run(tmp_path / 'arm', experiment(prepared, **borrowed), quiet=True)
    for name in arm.config.stages[: arm.config.stages.index('pretrain') + 1]:
        execute(arm, STAGES[name])
    manifest = base.manifest('pretrain')
    assert arm.manifest('pretrain').folder == str(base.workdir / 'pretrain')
    longer = Run(arm.workdir, experiment(prepared, phase__0__4__duration=8, **borrowed))
    pretrained(longer)
    assert 'pretrain: resuming after step 24' in capsys.readouterr().out
    assert read_json(arm.workdir / 'pretrain' / 'phases.json') == {'0.1': 6, '0.2': 12, '0.3': 18, '0.4': 26}
    assert next(r['step'] for r in longer.metrics.of('pretrain')) == 0
    assert base.manifest('pretrain') == manifest
    other = Run(tmp_path / 'other', experiment(prepared, **borrowed), quiet=True)
    for name in other.config.stages[: other.config.stages.index('pretrain') + 1]:
        execute(other, STAGES[name])
    write_manifest(base.workdir / 'pretrain', dataclasses.replace(manifest, content='of other weights'))
    for name in ('pretrain', 'export'):
        with pytest.raises(
            InputError, match=r'run/pretrain: is no longer what this run took .*; remove .*other/pretrain'
        ):
            execute(Run(other.workdir, other.config, quiet=True), STAGES[name])


def test_difficulty_is_the_perplexity_that_transformers_and_a_loop_give(parts, prepared, tmp_path):
    import torch
    from transformers import BertForMaskedLM

    changes = {'curriculum.order': 'hard_to_easy', 'curriculum.samples': 3}
    run = Run(prepared / 'run', experiment(prepared, **changes), quiet=True)
    found = difficulty.perplexities(run.console, run.config, run.folder, tmp_path, parts.objective)

    rows = Rows(run.folder('rows'), 'heldout')
    batch = rows.read(np.arange(len(rows)))
    model = BertForMaskedLM.from_pretrained(run.folder('surgery') / 'model').eval()
    _, params, _ = load_folder(run.folder('surgery') / 'model')
    ours = parts.objective.scorer(params)
    keys = batch['documents'][:, 0].tolist()
    sample_of = {key: place % 3 for place, key in enumerate(sorted(set(keys)))}
    assert len(keys) > len(sample_of)  # some documents are cut in parts, which stay in one sample
    samples = {}
    masks, _ = perplexity.masks_and_samples(batch, parts.objective.masker, run.config)
    for name, masked in masks.masked.items():
        kinds = ('perplexity', 'masked', 'replaced', 'kept')
        nats = [{kind: [] for kind in kinds} for _ in range(3)]
        document = iter(keys)
        for number in range(len(masks.segments_NxBxL)):
            part = jax.tree.map(lambda x, n=number: np.asarray(x[n]), masked)
            places = masks.segments_NxBxL[number], masks.positions_NxBxL[number]
            losses_BxM = np.asarray(ours(part, *places))
            for row, original_L in enumerate(masks_of(batch['tokens'], masked, number)):
                here = nats[sample_of[next(document)]]
                real = torch.tensor(places[0][row] > 0, dtype=torch.long)[None]
                inputs_L = part.inputs_L[row]
                with torch.no_grad():
                    logits = model(input_ids=torch.tensor(inputs_L)[None].long(), attention_mask=real).logits[
                        0
                    ]
                logits = logits.double().numpy()
                for slot, weight, loss_here in zip(part.slots_M[row], part.weights_M[row], losses_BxM[row]):
                    if not weight:
                        continue
                    loss = np.log(np.exp(logits[slot]).sum()) - logits[slot, original_L[slot]]
                    assert loss_here == pytest.approx(loss, rel=1e-4)
                    stands, was = inputs_L[slot], original_L[slot]
                    hidden = stands == parts.objective.masker.vocabulary.mask
                    here['perplexity'].append(loss)
                    here['masked' if hidden else 'kept' if stands == was else 'replaced'].append(loss)
        samples[name] = [{kind: np.exp(np.mean(x)) for kind, x in one.items() if x} for one in nats]
        if name == '0.4':
            assert not any(one['replaced'] + one['kept'] for one in nats)
    for name, expected in samples.items():
        for kind in expected[0]:
            values = [s[kind] for s in expected]
            # A token that is drawn in its own place stands as it was, and counts as replaced here.
            assert found[name].of(kind).samples == pytest.approx(
                values, rel=1e-4 if kind == 'masked' else 5e-3
            )
            assert found[name].of(kind).mean == pytest.approx(np.exp(np.mean(np.log(values))), rel=5e-3)
        low, high = found[name].perplexity.interval
        error = np.std([np.log(s['perplexity']) for s in expected], ddof=1) / np.sqrt(3)
        # t with two degrees of freedom, of the logarithms
        assert np.log(high / low) == pytest.approx(2 * 4.302653 * error, rel=1e-2)
    assert found['0.4'].replaced is None
    assert found['0.4'].kept is None
    assert len(set(found['0.1'].perplexity.samples)) == 3
    facts = read_json(tmp_path / 'difficulty.json')
    assert facts['settings'] == plain(found)
    assert facts['texts'] == [difficulty.HELDOUT]
    assert facts['phases']['0.4'] == {'masking': 'words', 'rate': 0.2, 'corruption': [1.0, 0.0, 0.0]}
    del facts['settings']['0.4']  # as if that phase were added later
    (tmp_path / 'difficulty.json').write_text(json.dumps(facts))
    assert difficulty.perplexities(run.console, run.config, run.folder, tmp_path, parts.objective) == found
    assert facts['pieces'] == rows.counts.tokens


def masks_of(tokens_RxL, masked, number):
    """The tokens of batch `number` before they were masked."""
    size = masked.inputs_L.shape[1]
    return tokens_RxL[number * size : (number + 1) * size]


def test_a_computed_order_is_trained_in_recorded_and_kept(prepared, tmp_path, monkeypatch):
    workdir = copy_of(prepared, tmp_path)
    changes = {'curriculum.order': 'easy_to_hard', 'curriculum.samples': 1, 'curriculum.documents': 5}
    for name in ('0.1', '0.2', '0.3', '0.4'):
        changes[f'phase.{name}.duration'] = 1
    # At [MASK], and over all selected positions, where the kept tokens turn the order round.
    ranks = {'0.1': (4.0, 1.5), '0.2': (3.0, 2.5), '0.3': (9.0, 1.2), '0.4': (3.0, 3.0)}
    measure = perplexity.of_setting
    given = iter(ranks.values())

    def ranked(sums):
        measured, (hidden, every) = measure(sums), next(given)
        named = {'masked': hidden, 'perplexity': every}
        changed = {kind: dataclasses.replace(measured.of(kind), mean=mean) for kind, mean in named.items()}
        return dataclasses.replace(measured, **changed)

    monkeypatch.setattr(perplexity, 'of_setting', ranked)
    run = Run(workdir, experiment(prepared, **changes))
    lines = []
    run.console.say = lines.append
    pretrained(run)
    wanted = ['0.2', '0.4', '0.1', '0.3']
    assert [r.name for r in curriculum.read_phases(workdir / 'pretrain')] == wanted
    assert (
        'pretrain: phases easy_to_hard, perplexity at [MASK] in brackets: 0.2 (3), 0.4 (3), 0.1 (4), 0.3 (9)'
        in lines
    )
    assert read_json(workdir / 'pretrain' / 'difficulty.json')['measure'] == 'masked'
    trained = [r['phase'] for r in run.metrics.of('pretrain') if r['kind'] == 'evaluation']
    assert trained == ['initial', *wanted]
    assert read_measures(run).phases == wanted
    # Again, longer: nothing is measured anew, and the order stays.
    longer = Run(workdir, experiment(prepared, **{**changes, 'phase.0.3.duration': 2}), quiet=True)
    pretrained(longer)
    assert longer.manifest('pretrain').counts['phase_ends'] == {'0.2': 1, '0.4': 2, '0.1': 3, '0.3': 5}


def test_a_probe_with_its_own_vocabulary_reads_the_texts_with_its_own_tokenizer(parts, prepared, tmp_path):
    letters = 'abcdeimnorst'
    tokens = [*SPECIAL_TOKENS, *letters, *('##' + c for c in letters), '.']
    make(tokens, True).save(tmp_path / 'probe', 24)
    shape = dataclasses.replace(parts.objective.architecture, vocab_size=len(tokens), max_positions=24)
    params = shape.initial_parameters(jax.random.key(0, impl='threefry2x32'))
    write_folder(tmp_path / 'probe', shape, params, tmp_path / 'probe')
    (tmp_path / 'texts.txt').write_text('aster cone. ' * 30 + '\n\n' + 'distance. ' * 30)
    changes = {
        'curriculum.order': 'easy_to_hard',
        'curriculum.probe': tmp_path / 'probe',
        'curriculum.texts': f'{tmp_path}/*.txt,',
        'corpus.words_per_document': 5,
    }
    run = Run(prepared / 'run', experiment(prepared, **changes), quiet=True)
    objective = parts.objective
    with pytest.raises(InputError, match=r'2 documents with text, fewer than config\.curriculum\.samples=10'):
        difficulty.perplexities(run.console, run.config, run.folder, tmp_path, objective)
    e = experiment(prepared, **{**changes, 'curriculum.samples': 2})
    found = difficulty.perplexities(run.console, e, run.folder, tmp_path, objective)
    # Random weights know nothing: as many choices as tokens, not as the run's 300.
    for measured in found.values():
        assert measured.perplexity.mean == pytest.approx(len(tokens), rel=0.05)
    facts = read_json(tmp_path / 'difficulty.json')
    assert (facts['documents'], facts['samples']) == (2, 2)
    letters_and_stops = 30 * len('astercone.') + 30 * len('distance.')
    assert facts['pieces'] == letters_and_stops + 2 * facts['rows']
    assert [*difficulty.external_inputs(e)][:3] == ['0:texts.txt', '1:config.json', '2:model.safetensors']
    shuffled = experiment(prepared, **{**changes, 'curriculum.order': 'shuffled'})
    assert difficulty.external_inputs(shuffled) == {}


def test_texts_that_are_trained_on_or_not_there_are_refused(parts, prepared, tmp_path):
    changes = {'curriculum.order': 'easy_to_hard', 'curriculum.texts': f'{prepared}/*.jsonl,'}
    run = Run(prepared / 'run', experiment(prepared, **changes), quiet=True)
    with pytest.raises(ConfigError, match=r'config\.curriculum\.texts: .*corpus\.jsonl is a file of'):
        difficulty.perplexities(run.console, run.config, run.folder, tmp_path, parts.objective)
    for key, value, message in (
        ('texts', 'gone/*.txt,', r'correct --config\.curriculum\.texts'),
        ('probe', 'some/bert', r'some/bert: no such folder here, and no whole copy in the'),
    ):
        asked = {'curriculum.order': 'easy_to_hard', f'curriculum.{key}': value}
        with pytest.raises(InputError, match=message):
            difficulty.external_inputs(experiment(prepared, **asked))


def test_the_documents_scored_are_those_with_the_smallest_hashes(prepared):
    e = experiment(prepared, **{'curriculum.order': 'easy_to_hard', 'curriculum.documents': 5})
    run = Run(prepared / 'run', e)
    keys = sorted(document_key(d.id) for d in open_documents(run.folder('corpus'), 'heldout'))
    assert [document_key(d.id) for d in difficulty.documents(e, run.folder)] == keys[:5]


class Parts:
    """The pieces of a train step on the prepared rows."""

    def __init__(self, prepared, *, micro_batches=1, devices=1, fsdp=1, tensor=1, dropout=0.0, **changes):
        run = Run(prepared / 'run', experiment(prepared, pretrain__micro_batches=micro_batches, **changes))
        self.run = run
        architecture, self.params, _ = load_folder(run.folder('surgery') / 'model')
        architecture = dataclasses.replace(architecture, dropout=dropout, attention_dropout=dropout)
        tokens = subwords.load(run.folder('vocab')).tokens
        rows = Rows(run.folder('rows'), 'train')
        schedule = curriculum.make_schedule(run.config, RowCounts(len(rows), 1, 1))
        self.table = curriculum.table(schedule, run.config)
        mesh = make_mesh(devices, fsdp, tensor)
        check_fits(mesh, architecture, 8 // micro_batches, 'rows')
        words = make(tokens, True)
        self.objective = make_objective(run.config, architecture, words, 64, mesh, print)
        self.batches = Batches(rows, 8, 0, batch_sharding(mesh))
        step, state = sharded_step(self.objective, mesh, self.params)
        self.step = with_equal_program(step, self.objective, mesh)
        self.first = jax.tree.map(np.array, state)
        self.places = jax.tree.map(lambda leaf: leaf.sharding, state)

    def state(self, **other):
        """The state before the first step, or another one, of arrays that a step may take."""
        return jax.device_put({**self.first, **other}, self.places)

    def after(self, steps):
        state, losses = self.state(), []
        for step in range(steps):
            state, metrics = self.step(state, self.batches.at(step), self.table)
            losses.append(float(metrics['loss']))
        return state, losses


@pytest.fixture(scope='module')
def parts(prepared):
    """Parts of the tiny run as it is; nothing may change them."""
    return Parts(prepared)


def test_the_first_step_takes_the_memory_of_its_state(parts):
    """A step that cannot takes as much again: of base size 1.3 GB, for good."""

    def memory_of(state):
        return [leaf.unsafe_buffer_pointer() for leaf in jax.tree.leaves(state) if leaf.ndim]

    _, state = sharded_step(parts.objective, make_mesh(1), parts.params)
    before, [leaf, *_] = memory_of(state), jax.tree.leaves(state)
    after, _ = parts.step(state, parts.batches.at(0), parts.table)
    assert leaf.is_deleted()
    assert memory_of(after) == before


@pytest.fixture(scope='module')
def stepping(prepared):
    """Parts of a curriculum that resets its optimiser once; a step that is not finite is left out."""
    changes = {'pretrain.not_finite': 'skip', 'phase.0.2.optimizer': 'reset'}
    return Parts(prepared, dropout=0.1, **changes)  # the program of the run below that leaves steps out


def test_accumulation_gives_the_gradient_of_the_mean_over_all_slots(parts, prepared):
    """Seen in Adam's first moment, a tenth of it: the parameters hide a factor, which Adam takes out again. A batch in
    one part is its own case of test_plugin_objective.py."""
    whole = parts  # whose clipping is of no account here

    @jax.jit
    @jax.value_and_grad
    def mean(params):
        rows = example_at(whole.objective, whole.batches.at(0), whole.table, jnp.int32(0)).rows
        masked, segments, positions, *_ = rows
        _, losses_BxM, _ = plain_losses(params, whole.objective.architecture, masked, segments, positions)
        return (losses_BxM * masked.weights_M).sum() / masked.weights_M.sum()

    loss, wanted = mean(whole.params)
    largest = max(np.abs(leaf).max() for leaf in jax.tree.leaves(wanted))
    in_four = Parts(prepared, micro_batches=4, pretrain__clip_norm=0, devices=2)
    state, metrics = in_four.step(in_four.state(), in_four.batches.at(0), in_four.table)
    assert float(metrics['loss']) == pytest.approx(float(loss), rel=1e-5)
    for (path, gradient), moment in zip(
        jax.tree.leaves_with_path(wanted), jax.tree.leaves(state['optimizer'][1].mu), strict=True
    ):
        name = jax.tree_util.keystr(path)
        np.testing.assert_allclose(np.asarray(moment) / 0.1, gradient, atol=1e-5 * largest, err_msg=name)
    squares = sum((np.asarray(leaf) ** 2).sum() for leaf in jax.tree.leaves(wanted))
    assert float(metrics['gradient_norm']) == pytest.approx(np.sqrt(squares), rel=1e-4)


@functools.partial(jax.jit, static_argnums=1)
def plain_losses(params, architecture, masked, segments_BxL, positions_BxL):
    """Losses by a plain log-softmax over all logits, where the step has a rule of its own for gradients."""
    batch = {'tokens': masked.inputs_L, 'segments': segments_BxL, 'positions': positions_BxL}
    states = architecture.encode(params, batch)
    states = jnp.take_along_axis(states, masked.slots_M[..., None], axis=1)
    logits = logits_of(*architecture.output_layer(params, states, PLAIN_COMPUTE))
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), masked.targets_M[..., None], axis=-1)[..., 0]
    return losses.sum(), losses, logits.argmax(-1) == masked.targets_M


def test_held_out_scores_are_those_of_the_masked_places_alone(prepared):
    """Under 80-10-10 a slot in five shows a token, often the right one: it must not count."""
    parts = Parts(prepared, evaluation__rows=6, phases='0.1,')
    table = parts.params['embeddings']['word_embeddings']['embedding']
    parts.params['embeddings']['word_embeddings']['embedding'] = table * 20  # far from even
    heldout = Rows(parts.run.folder('rows'), 'heldout')
    evaluation = parts.objective.evaluation(heldout)
    frozen = evaluation.masks
    lengths = heldout.read(np.linspace(0, len(heldout) - 1, 6).astype(int))['segment_lengths'].sum(axis=1)
    assert ((frozen.segments_NxBxL[0] > 0).sum(axis=1) == lengths).all()  # from the first row to the last
    words = jax.tree.map(lambda x: np.asarray(x[0]), frozen.masked[evaluate.FROZEN_WORDS])
    alone = words.begins_M & (np.roll(words.begins_M, -1, axis=1) | ~np.roll(words.weights_M > 0, -1, axis=1))
    says(parts.params, words.targets_M[alone][0])
    found = dict(evaluation.scores(parts.params, {}, True))
    places = jnp.asarray(frozen.segments_NxBxL[0]), jnp.asarray(frozen.positions_NxBxL[0])
    for name, masked in frozen.masked.items():
        masked = jax.tree.map(lambda x: jnp.asarray(x[0]), masked)
        found_here = plain_losses(parts.params, parts.objective.architecture, masked, *places)
        losses, right = map(np.asarray, found_here[1:])
        drawn = np.asarray(masked.weights_M) > 0
        at = np.take_along_axis(np.asarray(masked.inputs_L), np.asarray(masked.slots_M), 1)
        hidden = drawn & (np.asarray(masked.kinds_M) == MASKED)
        assert (at[hidden] == parts.objective.masker.vocabulary.mask).all()
        if name == evaluate.FROZEN_WORDS:
            ids = np.cumsum(np.asarray(masked.begins_M), axis=1)
            units = [right[row][drawn[row] & (ids[row] == unit)] for row in range(6) for unit in range(1, 99)]
            whole = np.mean([unit.all() for unit in units if len(unit)])
            assert found['frozen_word_accuracy'] == pytest.approx(whole)
            assert 0 < whole != right[drawn].mean()
        elif name == evaluate.FROZEN:
            assert found['frozen_loss'] == pytest.approx(losses[hidden].mean(), rel=1e-4)
            assert found['frozen_accuracy'] == pytest.approx(right[hidden].mean())
        else:
            assert found[f'loss/{name}'] == pytest.approx(losses[hidden].mean(), rel=1e-4)
            assert abs(losses[drawn].mean() / losses[hidden].mean() - 1) > 0.01


def says(params, token):
    """Let the model expect that token everywhere."""
    head = params['cls']['predictions']
    head['bias'] = np.array(head['bias'])
    head['bias'][token] = 60


def test_what_a_step_counts_by_hand(parts):
    """Units [5], [5 6], [6 5], [6] of a model that says 5; the last two places show a token, not [MASK]."""
    params = jax.tree.map(np.array, parts.params)
    says(params, 5)
    targets, begins = [5, 5, 6, 6, 5, 6, 5, 5], [1, 1, 0, 1, 0, 1, 0, 0]
    masked = Masked(
        inputs_L=jnp.full((1, 10), 4),
        slots_M=jnp.arange(1, 9)[None],
        targets_M=jnp.array([targets]),
        weights_M=jnp.array([[1.0] * 6 + [0.0] * 2]),  # the last two slots are empty
        kinds_M=jnp.array([[MASKED] * 4 + [REPLACED, UNCHANGED] + [MASKED] * 2]),
        begins_M=jnp.array([begins], bool),
    )
    places = jnp.ones((1, 10), jnp.int32), jnp.arange(10)[None]
    rows = MaskedRows(masked, *places)
    terms, sums = jax.jit(lambda params, rows: parts.objective.loss(params, {}, rows, None))(params, rows)
    _, losses, _ = plain_losses(params, parts.objective.architecture, masked, *places)
    assert float(terms['slots']) == pytest.approx(float(losses[0, :6].sum()), rel=1e-5)
    counts = {name: float(value) for name, value in sums.items() if name != 'masked_loss'}
    assert counts == {
        'weight': 6,
        'correct': 3,
        'units': 4,
        'correct_units': 1,
        'masked_weight': 4,
        'masked_correct': 2,
    }
    assert float(sums['masked_loss']) == pytest.approx(float(losses[0, :4].sum()), rel=1e-5)


def test_parts_of_a_cut_document_have_masks_of_their_own(parts, prepared):
    masker = parts.objective.masker
    heldout = Rows(prepared / 'run' / 'rows', 'heldout')
    batch = heldout.read(np.arange(4))
    batch['documents'][:] = batch['documents'][0]
    batch['tokens'][3] = batch['tokens'][2]

    def keys(seed, batch):
        return np.asarray(jax.random.key_data(evaluate.Maskable.of(batch, masker, seed, 4).keys_R)).tolist()

    one, two, three, again = keys(1, batch)
    assert three == again  # the same text of the same document
    assert len({tuple(key) for key in (one, two, three)}) == 3
    assert keys(2, batch)[0] != one
    batch['documents'][:] += np.uint64(2**32)
    assert keys(1, batch)[0] != one


def test_a_phase_that_resets_begins_without_moments_at_its_first_step_alone(stepping):
    first, _ = stepping.step(stepping.state(), stepping.batches.at(0), stepping.table)
    optimizer = make_optimizer(stepping.run.config.pretrain, stepping.params, stepping.objective.all_rules)
    kept, fresh = jax.tree.map(np.array, (first, optimizer.init(first['params'])))

    def after(step, optimizer):
        state = stepping.state(**{**kept, 'optimizer': optimizer, 'step': np.int32(step)})
        state, _ = stepping.step(state, stepping.batches.at(step), stepping.table)
        return jax.tree.map(np.asarray, state)

    def same(left, right):
        return jax.tree.all(jax.tree.map(np.array_equal, left, right))

    for step, resets in ((5, False), (6, True), (7, False), (12, False)):
        assert same(after(step, kept['optimizer']), after(step, fresh)) == resets, step


def meshes(devices):
    """Every way to spread devices over the axes data, fsdp and tensor; the model has four heads."""
    tensors = [t for t in (1, 2, 4) if devices % t == 0]
    return [
        (devices // (f * t), f, t)
        for t in tensors
        for f in (1, 2, 4, 8)
        if devices // t >= f and devices // t % f == 0
    ]


# Each is a program of its own, and (2, 2, 2) splits all that others split; batches in parts are on (2, 1, 1) above.
# With dropout there is all that there is without, which test_objectives.py has.
QUICK = [((2, 2, 2), 0.1)]


@pytest.fixture(scope='module')
def on_one_device(prepared):
    return functools.cache(lambda dropout: Parts(prepared, dropout=dropout).after(2))


@pytest.mark.parametrize(
    ('mesh', 'dropout'),
    [
        pytest.param(mesh, dropout, marks=[] if (mesh, dropout) in QUICK else pytest.mark.slow)
        for devices in (2, 4, 8)
        for mesh in meshes(devices)
        for dropout in (0.0, 0.1)
    ],
)
def test_every_mesh_gives_the_step_of_one_device(mesh, dropout, prepared, on_one_device):
    """Loss and first moments (a tenth of the clipped gradients, summed over two steps), parameters too."""
    data, fsdp, tensor = mesh
    parts = Parts(prepared, devices=data * fsdp * tensor, fsdp=fsdp, tensor=tensor, dropout=dropout)
    state, losses = parts.after(2)
    expected, losses_on_one = on_one_device(dropout)
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


def test_parameters_and_moments_are_split_and_masks_are_the_same_on_a_mesh(parts, prepared):
    one, many = parts, Parts(prepared, devices=8, fsdp=2, tensor=2)
    state = many.state()
    kernel = state['params']['encoder']['layer']['0']['intermediate']['dense']['kernel']
    moment = state['optimizer'][1].mu['encoder']['layer']['0']['intermediate']['dense']['kernel']
    assert kernel.addressable_shards[0].data.shape == (16 // 2, 32 // 2)
    assert moment.sharding == kernel.sharding
    masked = [
        jax.jit(lambda batch, p=p: example_at(p.objective, batch, p.table, jnp.int32(13)))(p.batches.at(13))
        for p in (one, many)
    ]
    for left, right in zip(jax.tree.leaves(masked[0]), jax.tree.leaves(masked[1]), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_mesh_that_does_not_fit_is_refused_by_its_key(parts):
    architecture = parts.objective.architecture
    wide = dataclasses.replace(architecture, hidden=20)
    for asked, rows, model, refusal in (
        ({'devices': 99}, 8, architecture, r'runtime\.devices: 99'),
        ({'fsdp': 3}, 8, architecture, r'runtime\.fsdp: 3'),
        ({'tensor': 8}, 8, architecture, r'runtime\.tensor: 8 does not divide 4 attention heads'),
        ({}, 7, architecture, r'7 rows are not a multiple of the 8 devices'),
        ({'fsdp': 8}, 8, wide, r'runtime\.fsdp: 8 does not divide 20 in .*\(20, 20\)'),
    ):
        with pytest.raises(ConfigError, match=refusal):
            check_fits(make_mesh(**{'devices': 8, **asked}), model, rows, 'rows')


@pytest.mark.parametrize('decay', DECAYS)
def test_weight_decay_is_apart_from_adam_and_on_what_it_says(decay, prepared):
    """Where there is no gradient nothing moves but what decays: a hundredth of every matrix and table, or of
    everything."""
    architecture, params, _ = load_folder(prepared / 'run' / 'surgery' / 'model')
    params = jax.tree.map(
        lambda leaf: np.asarray(leaf) + np.float32(0.5), params
    )  # biases are zero at the start
    optimizer = make_optimizer(Pretrain(weight_decay=0.01, decay=decay), params, architecture.rules)
    nothing = jax.tree.map(np.zeros_like, params)
    updates, _ = jax.jit(lambda params: optimizer.update(nothing, optimizer.init(params), params))(params)
    for path, update in flatten(updates).items():
        decayed = decay == 'all' or path.endswith(('/kernel', '/embedding'))
        np.testing.assert_allclose(update, flatten(params)[path] * 0.01 * decayed, rtol=1e-6, err_msg=path)


@pytest.mark.parametrize(('size', 'kept'), [(3.0, 1.5), (0.25, 0.5)])
def test_gradients_are_clipped_to_the_norm_asked_for(size, kept):
    params = {'a': {'kernel': jnp.ones((2, 2))}}
    optimizer = make_optimizer(Pretrain(clip_norm=1.5), params, [Rule('/kernel', ())])
    gradients = {'a': {'kernel': jnp.full((2, 2), size)}}  # of norm 6, and of norm 0.5
    _, state = optimizer.update(gradients, optimizer.init(params), params)
    np.testing.assert_allclose(np.linalg.norm(state[1].mu['a']['kernel']), 0.1 * kept, rtol=1e-5)


def test_lamb_scales_updates_to_the_norm_of_decayed_tensors():
    params = {'a': {'kernel': jnp.full((2, 2), 3.0), 'bias': jnp.full(2, 3.0)}}
    gradients = {'a': {'kernel': jnp.full((2, 2), 0.5), 'bias': jnp.full(2, 0.5)}}
    settings = Pretrain(optimizer='lamb', weight_decay=0.0, clip_norm=0.0, epsilon=0.0)
    optimizer = make_optimizer(settings, params, [Rule('/kernel', ()), Rule('/bias', (), decays=False)])
    updates, _ = optimizer.update(gradients, optimizer.init(params), params)
    np.testing.assert_allclose(updates['a']['kernel'], np.full((2, 2), 3.0), rtol=1e-5)  # 1 each, times 6 / 2
    np.testing.assert_allclose(updates['a']['bias'], np.ones(2), rtol=1e-5)


def test_a_step_that_is_not_finite_is_skipped_and_counted_when_asked(prepared, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    wanted = experiment(prepared, **{'pretrain.not_finite': 'skip', 'phase.0.2.optimizer': 'reset'})
    run = pretrained(Run(workdir, beyond_the_schema(wanted), quiet=True))
    records = [r for r in run.metrics.of('pretrain') if r['kind'] == 'train']
    assert sum(r['skipped'] for r in records) >= 1
    assert all(np.isfinite(v).all() for v in flatten(load_phase(workdir / 'pretrain', '0.1')).values())


def without_a_finite_loss(parts):
    """The state after a step, with a head that gives no finite loss."""
    state, _ = parts.step(parts.state(), parts.batches.at(0), parts.table)
    head = state['params']['cls']['predictions']
    head['bias'] = head['bias'].at[5].set(jnp.nan)
    return state


def test_a_step_that_is_skipped_leaves_parameters_and_moments_as_they_were(stepping):
    state = without_a_finite_loss(stepping)
    before = jax.tree.map(np.array, state)
    after, metrics = stepping.step(state, stepping.batches.at(1), stepping.table)
    assert not metrics['finite']
    assert int(after['step']) == 2
    for name in ('params', 'optimizer'):
        jax.tree.map(np.testing.assert_array_equal, before[name], after[name])


def test_a_phase_begins_without_moments_where_its_first_step_is_skipped(stepping):
    state = without_a_finite_loss(stepping)
    fresh = make_optimizer(stepping.run.config.pretrain, stepping.params, stepping.objective.all_rules)
    wanted = jax.tree.map(np.array, fresh.init(stepping.params))
    at = jax.device_put(np.int32(6), stepping.places['step'])
    after, metrics = stepping.step({**state, 'step': at}, stepping.batches.at(6), stepping.table)
    assert not metrics['finite']
    jax.tree.map(np.testing.assert_array_equal, wanted, after['optimizer'])


def test_one_compiled_step_serves_all_phases_and_counts_what_it_saw(stepping):
    state = stepping.state()
    for step in (0, 7, 13, 20):
        state = {**state, 'step': jax.device_put(np.int32(step), stepping.places['step'])}
        batch = stepping.batches.at(step)
        state, metrics = stepping.step(state, batch, stepping.table)
        assert int(metrics['phase']) == step // 6
        lengths = np.asarray(batch['segment_lengths'], float)
        assert (metrics['tokens'], metrics['attended']) == (lengths.sum(), (lengths**2).sum())
        assert metrics['tokens'] < batch['tokens'].size
    assert stepping.step.compiled._cache_size() == 1


def test_every_row_is_seen_once_an_epoch(parts):
    count = len(parts.batches.rows)
    seen = np.concatenate([parts.batches.row_numbers(step) for step in range(-(-2 * count // 8))])
    assert sorted(seen[:count]) == list(range(count))
    assert sorted(seen[count : 2 * count]) == list(range(count))
    assert (seen[:count] != seen[count : 2 * count]).any()
    others = [Batches(parts.batches.rows, 8, seed, None).row_numbers(0).tolist() for seed in (0, 1)]
    assert others[0] == seen[:8].tolist() != others[1]


def test_rows_keep_every_token_and_do_not_depend_on_workers(prepared, tmp_path):
    run = Run(prepared / 'run', experiment(prepared))
    counts = run.manifest('rows').counts['train']
    assert counts['tokens_dropped'] == 0
    assert counts['documents'] == run.manifest('corpus').counts.get('train', counts['documents'])
    other = copy_of(prepared, tmp_path)
    shutil.rmtree(other / 'rows')
    changed = experiment(prepared, runtime__workers=2, rows__block_documents=4096)
    execute(Run(other, changed, quiet=True), STAGES['rows'])
    again = Run(other, changed).manifest('rows')
    assert again.content == run.manifest('rows').content


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_rows(prepared, tmp_path):
    workdir = copy_of(prepared, tmp_path)
    wanted = beyond_the_schema(experiment(prepared))
    with pytest.raises(InputError, match=r'step \d+ is not finite \(rows \['):
        pretrained(Run(workdir, wanted, quiet=True))


@pytest.mark.parametrize(
    ('step', 'remedy'), [(1, 'the learning rate is not the cause'), (2, 'Lower config.pretrain')]
)
def test_the_learning_rate_is_no_remedy_before_the_first_update(step, remedy):
    shape = types.SimpleNamespace(rows=RowShape(64, 64))
    batches = {shape.rows: types.SimpleNamespace(row_numbers=lambda before: np.arange(9))}
    checkpoints = types.SimpleNamespace(latest=lambda: 0)
    session = types.SimpleNamespace(
        batches=lambda: batches,
        stretch_at=lambda step: types.SimpleNamespace(shape=shape),
        checkpoints=checkpoints,
    )
    with pytest.raises(
        InputError, match=rf'step {step} is not finite .*last checkpoint: step 0\. .*{remedy}'
    ):
        loop._report_not_finite(session, step)


def test_documents_longer_than_the_position_table_are_refused(prepared, tmp_path, relisted):
    workdir = copy_of(prepared, tmp_path)
    file = workdir / 'surgery' / 'model' / 'config.json'
    values = json.loads(file.read_text())
    file.write_text(json.dumps({**values, 'max_position_embeddings': 16}))
    run = Run(workdir, experiment(prepared), quiet=True)
    relisted(run, 'surgery')
    with pytest.raises((ConfigError, InputError), match=r'max_document_pieces|position'):
        execute(run, STAGES['pretrain'])
