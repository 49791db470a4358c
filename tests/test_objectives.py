"""What every objective must keep: batches in parts and meshes, a kill, the losses that it had, and its export.

A new objective is one more line of CASES. If its losses were meant to change, write them anew and say why:

    python tests/test_objectives.py NAME
"""

import functools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from toy_compiler import ONE_DEVICE
from toy_objectives import Steps, make_notes, make_teacher
from toy_pretraining import (
    APART,
    PAIRS,
    assert_same_bits,
    copy_of,
    experiment,
    killed_copy,
    prepare,
    prepare_apart,
    prepare_pairs,
    pretrained,
)

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.pretrain.config import OBJECTIVES
from bioptimus_jax.pretrain.objective import objective_of
from bioptimus_jax.pretrain.plan import check
from bioptimus_jax.run.execute import execute
from bioptimus_jax.run.folder import Run

# Run -> what it has other than the tiny one, {folder} being that of the latter; with noise large enough to be seen.
CASES = {
    'adversarial': {
        'pretrain.objective': 'adversarial',
        'objective.adversarial.deviation': 0.05,
        'objective.adversarial.step': 5.0,
    },
    'causal': {'pretrain.objective': 'causal'},
    'distil': {'pretrain.objective': 'distil', 'objective.distil.teacher': '{folder}/teacher'},
    # An objective and corpora of its own for every phase.
    'mixture': {
        'corpora.notes.run': '{folder}/notes',
        'phase.0.1.objective': 'causal',
        'phase.0.1.corpora': 'own=3,notes=1',
        'phase.0.4.corpora': 'notes=1',
    },
}
# They keep the same in files of their own, most since they need rows or a family of their own.
ELSEWHERE = {
    'contrastive': 'test_contrastive.py',
    'mlm': 'test_pretrain.py',
    'nsp': 'test_pairs.py',
    'rtd': 'test_rtd.py',
}
# Name -> the largest difference of a gradient over micro-batches and devices, as a share of the largest entry.
ROUNDING = {'adversarial': 1e-4}
COURSE = {
    'phases': '0.1,0.4',
    'phase.0.1.duration': 3.0,
    'phase.0.4.duration': 3.0,
    'runtime.log_every_steps': 1,
}


@pytest.fixture(scope='module')
def noted(tiny):
    """The tiny run, a teacher and other texts beside it."""
    make_notes(tiny)
    return tiny


def changes_of(name, folder):
    return {**COURSE, **{key: str(value).format(folder=folder) for key, value in CASES[name].items()}}


def opened(name, folder, workdir):
    return Run(workdir, experiment(folder, **changes_of(name, folder)), quiet=True)


@pytest.fixture(scope='module')
def undisturbed(noted, tmp_path_factory):
    """Gives the run of a name, trained once, with dropout; beside it what a kill within the second phase leaves."""

    @functools.cache
    def train(name):
        folder = tmp_path_factory.mktemp(name)
        run = opened(name, noted, copy_of(noted, folder))
        with killed_copy(run, folder / 'killed', lambda step: step > 4):
            return pretrained(run)

    return train


@pytest.fixture(scope='module', params=CASES)
def trained(request, undisturbed):
    return request.param, undisturbed(request.param)


def test_every_objective_has_a_case():
    assert {*CASES, *ELSEWHERE} == {*OBJECTIVES, 'mixture'}
    for file in ELSEWHERE.values():
        assert 'kill' in (Path(__file__).parent / file).read_text('utf-8')


@pytest.mark.parametrize(
    ('other', 'changes'),
    [
        ('distil', {'objective.distil.teacher': '{folder}/teacher'}),  # it trains a map
        ('nsp', {'rows.layout': 'pairs'}),
        ('rtd', {'model.family': 'electra', 'model.max_positions': 40, 'objective.rtd.share': 0.5}),
    ],
)
def test_phases_that_cannot_share_an_export_are_refused_in_one_line(other, changes, tiny, tmp_path):
    changes = {key: str(value).format(folder=tiny) for key, value in changes.items()}
    wanted = experiment(tiny, **{'phases': '0.1,0.4', 'phase.0.4.objective': other, **changes})
    with pytest.raises(
        ConfigError,
        match=rf'config\.phase\.0\.4\.objective: {other} and .*objective=mlm train different .* one$',
    ) as caught:
        check(Run(tmp_path / 'run', wanted, quiet=True))
    assert '\n' not in str(caught.value)


def golden_file(name):
    return Path(__file__).parent / 'golden' / f'objective-{name}-{jax.default_backend()}.txt'


def losses(run):
    return [r['loss'] for r in run.metrics.of('pretrain') if r['kind'] == 'train']


def test_losses_are_the_golden_ones(trained):
    name, run = trained
    if not golden_file(name).is_file():
        pytest.skip(f'no golden losses for this backend; {__doc__.splitlines()[-1].strip()}')
    wanted = [float(line) for line in golden_file(name).read_text().split()]
    np.testing.assert_allclose(losses(run), wanted, rtol=2e-4, err_msg=__doc__)


def test_a_run_that_was_killed_ends_with_the_same_bits(trained, noted):
    name, run = trained
    again = pretrained(opened(name, noted, run.workdir.parent / 'killed'))
    assert_same_bits(run, again, '0.4')


def test_what_is_exported_is_the_model_without_what_was_added(trained):
    _, run = trained
    architecture, _, _ = load_folder(run.folder('surgery') / 'model')
    exported = objective_of(run.config).exported(load_phase(run.folder('pretrain'), '0.4'))
    assert {path: leaf.shape for path, leaf in flatten(exported).items()} == architecture.shapes()


# Two parts of four rows, over every axis of a mesh.
PARTS = dict(devices=8, fsdp=2, tensor=2, pretrain__micro_batches=2)


# Slow: terms with weights of their own are added up over parts in test_plugin_objective.py, and every device has the
# whole teacher. A causal batch is cut in parts in test_causal.py, and a mesh splits it as one of masked rows.
@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in ('distil', 'causal')))
        for name in CASES
        if name in OBJECTIVES
    ],
)
def test_parts_and_meshes_give_the_step_of_one_device(name, tiny):
    """Metrics, and first moments: a tenth of the clipped gradients, summed over two steps. Without dropout."""
    expected, metrics = Steps(tiny, **changes_of(name, tiny)).after(2)
    state, found = Steps(tiny, **PARTS, **changes_of(name, tiny)).after(2)
    assert found.keys() == metrics.keys()
    rounding = ROUNDING.get(name, 1e-5)
    for key, value in metrics.items():
        np.testing.assert_allclose(found[key], value, rtol=10 * rounding, atol=1e-6, err_msg=key)
    one, many = (flatten(s['optimizer'][1].mu) for s in (expected, state))
    largest = max(np.abs(moment).max() for moment in one.values())
    for path, moment in one.items():
        np.testing.assert_allclose(many[path], moment, atol=rounding * largest, err_msg=path)


RTD = {
    'model.family': 'electra',
    'model.max_positions': 40,
    'pretrain.objective': 'rtd',
    'objective.rtd.share': 0.5,
}
SHORT = {'phases': '0.2,', 'phase.0.2.duration': 3.0, 'runtime.log_every_steps': 1}


@pytest.fixture(scope='module')
def other_folders(noted, tmp_path_factory):
    """Folders of the runs that have rows or a family of their own, by their names, and what they have other."""
    pairs = prepare_pairs(tmp_path_factory.mktemp('pairs'))
    electra = tmp_path_factory.mktemp('electra')
    shutil.copy(noted / 'tiny.py', electra)
    run = Run(copy_of(noted, electra), experiment(noted, **RTD), quiet=True)
    execute(run, STAGES['surgery'], replace=True)
    apart = prepare_apart(tmp_path_factory.mktemp('apart'))
    shorter = {'phase.0.1.duration': 3.0, 'runtime.log_every_steps': 1}
    return {
        'contrastive': (apart, {**APART, **shorter}),
        'nsp': (pairs, {**PAIRS, **SHORT}),
        'rtd': (electra, {**RTD, **SHORT}),
    }


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_processes_train_what_one_trains(undisturbed, noted, other_folders, tmp_path):
    """Everything is the same to rounding: every number on record, and the parameters at each phase end. The leader
    alone reads those.

    Several corpora in two processes, in the quick tests: test_launch.py.
    """
    alone, wanted = {}, []
    for name in ('mixture', 'adversarial', 'distil', 'nsp', 'rtd', 'contrastive'):
        if name in CASES:
            folder, changes, alone[name] = noted, changes_of(name, noted), undisturbed(name)
        else:
            folder, changes = other_folders[name]
            workdir = shutil.copytree(folder / 'run', tmp_path / f'{name}-alone')
            alone[name] = Run(workdir, experiment(folder, **changes), quiet=True)
            pretrained(alone[name])
        workdir = shutil.copytree(folder / 'run', tmp_path / name)
        changes, stages = {**changes, 'runtime.devices': 0}, ['pretrain', *['export'] * (name == 'rtd')]
        wanted.append(dict(folder=folder, workdir=workdir, changes=changes, stages=stages))
    (tmp_path / 'runs.json').write_text(json.dumps(wanted, default=str))
    both = start_two(tmp_path / 'runs.json')
    said = [process.communicate(timeout=800)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], '\n'.join(said)
    for name, run in alone.items():
        assert_alike(run, Run(tmp_path / name, run.config, quiet=True))
    assert (tmp_path / 'rtd' / 'export' / '0.2-generator' / 'model.safetensors').is_file()


def start_two(file):
    with socket.socket() as free:
        free.bind(('localhost', 0))
        port = free.getsockname()[1]
    here = Path(__file__).parent
    path = os.pathsep.join([str(here.parent), str(here), os.environ['PYTHONPATH']])
    return [
        subprocess.Popen(
            [sys.executable, here / 'toy_together.py', file, f'localhost:{port},2,{number}'],
            env={**os.environ, 'XLA_FLAGS': ONE_DEVICE, 'PYTHONPATH': path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]


TIMED = 'time|second|wait|joules'


def assert_alike(one, two):
    """Records but for what time it took, and weights."""
    pairs = zip(one.metrics.of('pretrain'), two.metrics.of('pretrain'), strict=True)
    for wanted, found in pairs:
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            if isinstance(value, float) and not re.search(TIMED, key):
                assert found[key] == pytest.approx(value, rel=1e-3, abs=1e-6), (key, wanted, found)
    assert two.manifest('pretrain').counts['tokens'] == one.manifest('pretrain').counts['tokens']
    for phase in one.config.phases:
        weights, others = (flatten(load_phase(run.folder('pretrain'), phase)) for run in (one, two))
        assert weights.keys() == others.keys()
        for path, value in weights.items():
            np.testing.assert_allclose(others[path], value, atol=1e-4, err_msg=path)


if __name__ == '__main__':
    folder = prepare(Path(tempfile.mkdtemp()))
    make_teacher(folder)
    make_notes(folder)
    for name in sys.argv[1:]:
        shutil.copytree(folder / 'run', folder / name)
        run = pretrained(opened(name, folder, folder / name))
        golden_file(name).write_text(''.join(f'{loss:.6f}\n' for loss in losses(run)))
        print(golden_file(name), golden_file(name).read_text(), sep='\n')
