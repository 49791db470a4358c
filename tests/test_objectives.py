"""What every objective must keep: batches in parts and meshes, a kill, the losses that it had, and its export.

A new objective is one more line of CASES. If its losses were meant to change, write them anew and say why:

    python tests/test_objectives.py NAME
"""

import shutil
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from toy_objectives import Steps, make_teacher
from toy_pretraining import assert_same_bits, copy_of, experiment, killed_copy, prepare, pretrained

from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.pretrain.checkpoint import load_phase
from bioptimus_jax.pretrain.objective import objective_of
from bioptimus_jax.run import Run
from bioptimus_jax.schema import OBJECTIVES
from bioptimus_jax.trees import flatten

# Name -> its settings, {teacher} being the folder of one. With noise that is large enough to be seen.
CASES = {
    'adversarial': {'deviation': 0.05, 'step': 5.0},
    'distil': {'teacher': '{teacher}'},
    'mlm': {},
}
# They need rows or a family of their own, and keep the same in files of their own.
ELSEWHERE = {'causal': 'test_causal.py', 'nsp': 'test_pairs.py', 'rtd': 'test_rtd.py'}
# Name -> the largest difference of a gradient over micro-batches and devices, as a share of the largest entry.
ROUNDING = {'adversarial': 1e-4}
COURSE = {
    'phases': '0.1,0.4',
    'phase.0.1.duration': 3.0,
    'phase.0.4.duration': 3.0,
    'runtime.log_every_steps': 1,
}


def changes_of(name, folder):
    settings = {
        f'objective.{name}.{key}': str(value).format(teacher=folder / 'teacher')
        for key, value in CASES[name].items()
    }
    return {**COURSE, 'pretrain.objective': name, **settings}


def opened(name, folder, workdir):
    return Run(workdir, experiment(folder, **changes_of(name, folder)), quiet=True)


@pytest.fixture(scope='module', params=CASES)
def trained(request, tiny, tmp_path_factory):
    """A run that nobody disturbed, with dropout; beside it what a kill leaves when the first phase is over."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    run = opened(name, tiny, copy_of(tiny, folder))
    with killed_copy(run, folder / 'killed', lambda step: step > 3):
        return name, pretrained(run)


def test_every_objective_has_a_case():
    assert {*CASES, *ELSEWHERE} == set(OBJECTIVES)
    for file in ELSEWHERE.values():
        assert 'kill' in (Path(__file__).parent / file).read_text('utf-8')


def golden_file(name):
    return Path(__file__).parent / 'golden' / f'objective-{name}-{jax.default_backend()}.txt'


def losses(run):
    return [r['loss'] for r in run.metrics('pretrain') if r['kind'] == 'train']


def test_losses_are_the_golden_ones(trained):
    name, run = trained
    if not golden_file(name).is_file():
        pytest.skip(f'no golden losses for this backend; {__doc__.splitlines()[-1].strip()}')
    wanted = [float(line) for line in golden_file(name).read_text().split()]
    np.testing.assert_allclose(losses(run), wanted, rtol=2e-4, err_msg=__doc__)


def test_a_run_that_was_killed_ends_with_the_same_bits(trained, tiny):
    name, run = trained
    again = pretrained(opened(name, tiny, run.workdir.parent / 'killed'))
    assert_same_bits(run, again, '0.4')


def test_what_is_exported_is_the_model_without_what_was_added(trained):
    _, run = trained
    architecture, _, _ = load_folder(run.folder('surgery') / 'model')
    exported = objective_of(run.config).exported(load_phase(run.folder('pretrain'), '0.4'))
    assert {path: leaf.shape for path, leaf in flatten(exported).items()} == architecture.shapes()


# Two parts of four rows, over every axis of a mesh.
PARTS = dict(devices=8, fsdp=2, tensor=2, pretrain__micro_batches=2)


@pytest.mark.parametrize('name', CASES)
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


if __name__ == '__main__':
    folder = prepare(Path(tempfile.mkdtemp()))
    make_teacher(folder)
    for name in sys.argv[1:]:
        shutil.copytree(folder / 'run', folder / name)
        run = pretrained(opened(name, folder, folder / name))
        golden_file(name).write_text(''.join(f'{loss:.6f}\n' for loss in losses(run)))
        print(golden_file(name), golden_file(name).read_text(), sep='\n')
