"""What a machine has, and what would compute on it: fake listings of GPUs, the real program."""

import dataclasses
import os
import subprocess
import sys

import pytest
from toy_pretraining import copy_of

from bioptimus_jax.cli.command import all_verbs
from bioptimus_jax.cli.verbs.doctor import VERB
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.experiment.config import defaults
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.hosts import devices, hardware
from bioptimus_jax.hosts.hardware import Hardware, accelerators, unused
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import write_manifest
from bioptimus_jax.start import doctor

H100 = 'NVIDIA H100 80GB HBM3, 81559 MiB, {driver}'


@pytest.fixture
def listing(tmp_path, monkeypatch):
    """Puts a program into the path that lists what it is given, as nvidia-smi does."""
    monkeypatch.setattr(hardware, 'NVIDIA', tmp_path / 'gpus')
    monkeypatch.setattr(hardware, 'PCI', tmp_path / 'pci')
    monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
    accelerators.cache_clear()

    def lists(*lines, code=0):
        program = tmp_path / 'nvidia-smi'
        program.write_text('#!/bin/sh\n' + ''.join(f'echo "{line}"\n' for line in lines) + f'exit {code}\n')
        program.chmod(0o755)

    yield lists
    accelerators.cache_clear()


def test_gpus_are_listed_and_the_driver_decides_the_extra(listing):
    listing(*[H100.format(driver='580.65.06')] * 8)
    found = accelerators()
    assert str(found) == '8 x NVIDIA H100 80GB HBM3 (81559 MiB each, driver 580.65.06)'
    assert found.extra == 'cuda13'
    assert Hardware('cuda', ('A100',), driver='535.104').extra == 'cuda12'
    assert Hardware('tpu', ('TPU chip',)).extra == 'tpu'


def test_a_driver_that_does_not_answer_and_chips_on_the_bus_are_seen(listing, tmp_path):
    listing('Failed to initialize NVML', code=9)
    assert accelerators() is None
    for name, vendor, kind in (('a', '0x1ae0', '0x120000'), ('b', '0x8086', '0x060000')):
        (tmp_path / 'pci' / name).mkdir(parents=True)
        (tmp_path / 'pci' / name / 'vendor').write_text(f'{vendor}\n')
        (tmp_path / 'pci' / name / 'class').write_text(f'{kind}\n')
    accelerators.cache_clear()
    assert str(accelerators()) == '1 x TPU chip'
    (tmp_path / 'gpus' / '0000:01:00.0').mkdir(parents=True)
    accelerators.cache_clear()
    assert str(accelerators()) == '1 x NVIDIA GPU'


@pytest.mark.parametrize(
    ('on', 'environment', 'loud'),
    [
        ('1 cpu device', {}, True),
        ('cpu', {}, True),
        ('8 gpu devices (NVIDIA H100)', {}, False),
        ('1 cpu device', {'JAX_PLATFORMS': 'cpu'}, False),
        ('cpu', {'CUDA_VISIBLE_DEVICES': ''}, False),
        ('cpu', {'CUDA_VISIBLE_DEVICES': '0'}, True),
    ],
)
def test_a_stage_on_the_cpu_beside_gpus_is_loud(
    listing, tmp_path, monkeypatch, capsys, on, environment, loud
):
    for name in ('JAX_PLATFORMS', 'CUDA_VISIBLE_DEVICES'):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    listing(H100.format(driver='580.65.06'))
    run = Run(tmp_path / 'run', Experiment.from_config(defaults()))
    run.computes('pretrain', on, type='float32')
    first, *others = capsys.readouterr().out.splitlines()
    assert first == f'pretrain: computes on {on}, type float32'
    assert bool(others) == loud == bool(unused(on))
    looked = []
    unused(on, lambda: looked.append(on))
    assert bool(looked) == loud, 'it is looked for GPUs on the CPU alone'

    assert not loud or others[0].startswith(
        'pretrain: WARNING: on the CPU, although this machine has 1 x NVIDIA H100'
    )


def test_the_program_says_what_is_here_and_ends_with_2_where_gpus_would_be_idle(listing, tmp_path):
    listing(*[H100.format(driver='560.35')] * 2)
    kept = {n: v for n, v in os.environ.items() if n not in ('JAX_PLATFORMS', 'CUDA_VISIBLE_DEVICES')}
    command = [sys.executable, '-m', 'bioptimus_jax', 'doctor', f'--workdir={tmp_path / "runs"}']
    done = subprocess.run(command, capture_output=True, text=True, env=kept)
    assert done.returncode == 2, done.stderr
    said = {line[:15].strip(): line[15:].strip() for line in done.stdout.splitlines() if line[:1].strip()}
    assert {'Python', 'packages', 'machine', 'jax', 'PyTorch', 'attention', 'matrix product', 'disk'} <= set(
        said
    )
    assert '2 x NVIDIA H100' in said['machine']
    assert 'cpu device' in said['jax']
    assert "pip install 'bioptimus-jax[cuda12]'" in done.stdout
    assert 'jax, PyTorch: wrong' in done.stderr
    assert not (tmp_path / 'runs').exists()


def test_jax_holds_memory_of_accelerators_and_none_on_the_cpu(monkeypatch):
    here = devices.present()
    assert not devices.held()
    monkeypatch.setattr(devices, 'present', lambda: dataclasses.replace(here, platform='gpu'))
    assert devices.held()


def test_little_disk_is_a_note_and_nothing_wrong(listing, tmp_path, monkeypatch, capsys):
    listing(code=1)
    few = [doctor.Finding('disk', '1 GiB free', 'choose a larger disk')]
    monkeypatch.setattr(doctor, 'examine', lambda folder: iter(few))
    command = type('Command', (), {'options': type('Options', (), {'workdir': str(tmp_path)})})
    VERB.call(command)
    assert capsys.readouterr().out.splitlines()[1].split() == 'note: choose a larger disk'.split()
    few.append(doctor.Finding('jax', '1 cpu device', 'install it', bad=True))
    with pytest.raises(ConfigError, match='jax: wrong'):
        VERB.call(command)


# Several verbs in one process: importing jax takes longer than they do.
VERBS = """
import sys
from bioptimus_jax.cli import main as cli
for verb in sys.argv[2:]:
    of_a_run = [] if verb.startswith('merge') else ['--config=tiny.py', f'--workdir={sys.argv[1]}']
    print(f'{verb}:', cli.main([*verb.split(), *of_a_run]), file=sys.stderr)
"""


def test_a_platform_that_is_asked_for_and_not_there_is_one_line_of_every_verb_that_computes(
    prepared, tmp_path
):
    """No verb computes before it has looked what it computes on."""
    run = copy_of(prepared, tmp_path)
    for made in ('export', 'analyze'):  # what they need is there; nothing of it is read before the devices
        (run / made).mkdir()
    write_manifest(run / 'export', Manifest(stage='export', config={}, content=''))
    source = f'--config.source.path={run}/surgery/model'
    verbs = [
        'analyze',
        'pretrain',
        'export --replace',
        'surgery --replace',
        f'merge {run} {run} --to={run}/merged',
    ]
    if 'difficulty' in all_verbs():  # of the lab
        verbs[:0] = ['difficulty --model=initial', f'surgery --probe {source}']
    done = subprocess.run(
        [sys.executable, '-c', VERBS, str(run), *verbs],
        capture_output=True,
        text=True,
        cwd=prepared,
        env={**os.environ, 'JAX_PLATFORMS': 'cuda'},
    )
    said = done.stderr.splitlines()
    assert len(said) == 2 * len(verbs), done.stderr
    for verb, line, code in zip(verbs, said[::2], said[1::2], strict=True):
        assert code == f'{verb}: 2', done.stderr
        assert line.startswith('bioptimus: JAX_PLATFORMS=cuda: jax cannot compute on it here (')
        assert line.endswith('; or unset JAX_PLATFORMS')
