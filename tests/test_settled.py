"""Draws and types do not follow the environment of the shell, nor what a user's own code has set in jax."""

import concurrent.futures
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from toy_measures import PHASES
from toy_pretraining import copy_of, experiment, pretrained
from toy_programs import environment

from bioptimus_jax.cli.main import main
from bioptimus_jax.errors import USAGE
from bioptimus_jax.hosts import settled
from bioptimus_jax.hosts.settled import SETTLED
from bioptimus_jax.run.folder import Run

SHELL = {
    'JAX_THREEFRY_PARTITIONABLE': '0',
    'JAX_ENABLE_X64': '1',
    'JAX_RANDOM_SEED_OFFSET': '7',
    'JAX_HIGH_DYNAMIC_RANGE_GUMBEL': 'true',
    'JAX_DEFAULT_PRNG_IMPL': 'rbg',
    'JAX_EXPLICIT_X64_DTYPES': 'allow',
    'JAX_NUMPY_DTYPE_PROMOTION': 'strict',
    'JAX_DEFAULT_MATMUL_PRECISION': 'bfloat16',
}
OWN = {name.lower(): value for name, value in SHELL.items()} | {
    'jax_threefry_partitionable': False,
    'jax_enable_x64': True,
    'jax_random_seed_offset': 7,
    'jax_high_dynamic_range_gumbel': True,
}
TINY = {**{f'phase.{name}.duration': 1 for name in PHASES}, 'runtime.log_every_steps': 1}


def test_a_run_is_the_same_under_any_environment(prepared, tmp_path):
    """Every loss, also those of the frozen masks, to the last bit; a line says what is not used."""
    (tmp_path / 'alone').mkdir()
    alone = pretrained(Run(copy_of(prepared, tmp_path / 'alone'), experiment(prepared, **TINY), quiet=True))
    flags = [f'--config.{key}={value}' for key, value in TINY.items()]
    other = Run(copy_of(prepared, tmp_path), experiment(prepared, **TINY), quiet=True)
    told = [f'--config={prepared / "tiny.py"}', f'--workdir={other.workdir}', *flags]
    done = subprocess.run(
        [sys.executable, '-m', 'bioptimus_jax', 'pretrain', *told],
        env=environment(**SHELL, XLA_FLAGS=os.environ['XLA_FLAGS']),  # so that the compile cache serves both
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    losses = [
        [(r['step'], r[k]) for r in run.metrics.of('pretrain') for k in ('loss', 'frozen_loss') if k in r]
        for run in (alone, other)
    ]
    assert losses[0] == losses[1]
    assert len(losses[0]) > 3
    said = {line.split(' is not used')[0] for line in done.stderr.splitlines() if ' is not used: ' in line}
    assert said == {f'bioptimus: {name}={value}' for name, value in SHELL.items()}


def values():
    return {name: getattr(jax.config, name) for name in SETTLED}


@pytest.fixture
def user():
    """A process in which somebody else has set everything otherwise."""
    before = values()
    for name, value in OWN.items():
        jax.config.update(name, value)
    yield values()
    for name, value in before.items():
        jax.config.update(name, value)


def drawn():
    key = jax.random.key(3, impl='threefry2x32')
    return (
        jax.random.bits(key, (5,)).tolist(),
        jax.random.gumbel(key, (5,), jnp.float32).tolist(),
        str(jnp.arange(3.0).dtype),
    )


def test_a_users_own_settings_are_given_back_and_not_followed(user):
    assert user.keys() == SETTLED.keys()
    theirs = drawn()
    with jax.enable_x64(True), settled.settled():
        ours = drawn()
    assert ours[2] == 'float32'
    assert ours[0] == PINNED
    assert ours[0] != theirs[0]
    assert ours[1] != theirs[1]
    assert values() == user
    assert drawn() == theirs
    settled.settle_jax()
    assert drawn() == ours


PINNED = [318053758, 4029299397, 2787249374, 4190260272, 1195623854]
"""What key 3 draws, by the numbers of today."""


def test_contexts_of_a_user_and_calls_in_several_threads(user):
    """A context counts for one thread and comes first; the last call to end gives the settings back."""
    own = (
        jax.default_prng_impl('threefry2x32'),
        jax.default_matmul_precision('float32'),
        jax.enable_x64(False),
    )
    with own[0], own[1], own[2], settled.settled():
        assert drawn()[0] == PINNED
        settled.require_settled()
    assert values() == user
    first, second = settled.settled(), settled.settled()
    first.__enter__()
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        other.submit(second.__enter__).result()
        first.__exit__(None, None, None)
        assert other.submit(drawn).result()[0] == PINNED
        other.submit(second.__exit__, None, None, None).result()
    assert values() == user


@pytest.mark.parametrize(
    ('line', 'found'),
    [
        ('import jax; jax.config.update("jax_enable_x64", True)', 'jax_enable_x64 is true'),
        ('import os; os.environ["JAX_DEFAULT_PRNG_IMPL"] = "rbg"', 'jax_default_prng_impl is rbg'),
    ],
)
def test_a_config_file_that_sets_one_is_refused(line, found, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv('JAX_DEFAULT_PRNG_IMPL', 'threefry2x32')  # is put back
    before = values()
    file = tmp_path / 'own.py'
    file.write_text(f'{line}\nfrom bioptimus_jax.ext import defaults as get_config\n')
    try:
        assert main(['plan', f'--config={file}']) == USAGE
    finally:
        settled._update(before)
    assert capsys.readouterr().err.startswith(f'bioptimus: {found}: a config file or plug-in has set it; ')


def test_what_is_settled_is_what_jax_does_by_itself(monkeypatch):
    """A process without these variables needs nothing."""
    for name in SHELL:
        monkeypatch.delenv(name, raising=False)
    before = values()
    with settled.settled():
        assert values() == before


def test_a_variable_that_says_the_same_is_no_news(monkeypatch, capsys):
    for name, text in (('JAX_ENABLE_X64', 'False'), ('JAX_THREEFRY_PARTITIONABLE', '1')):
        monkeypatch.setenv(name, text)
    monkeypatch.setenv('JAX_RANDOM_SEED_OFFSET', '5')
    settled.settle_jax()
    assert capsys.readouterr().err.startswith('bioptimus: JAX_RANDOM_SEED_OFFSET=5 is not used: ')
    assert 'JAX_RANDOM_SEED_OFFSET' not in os.environ
    settled.settle_jax()
    assert not capsys.readouterr().err
