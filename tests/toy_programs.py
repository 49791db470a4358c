"""Programs that tests start: they begin warm, from one server for all workers, which has imported the libraries."""

import fcntl
import os
import shlex
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
from toy_compiler import ONE_DEVICE

ROOT = Path(__file__).resolve().parents[1]


def environment(package: Path = ROOT, **more: str) -> dict[str, str]:
    """One device, and this checkout's package or another's; what a program needs so that it begins warm."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(('BIOPTIMUS_', 'XLA_FLAGS', 'PYTEST_'))}
    return {
        **own,
        'PYTHONPATH': str(package),
        'XLA_FLAGS': ONE_DEVICE,
        'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
        **more,
    }


def begin_warm(patched: pytest.MonkeyPatch, programs: Path) -> None:
    """What `bx.adapt` and `bx.finetune` start begins warm, too."""
    warm = types.SimpleNamespace(executable=str(programs / 'python'))
    patched.setattr('bioptimus_jax.api.program.sys', warm)
    # The server has this checkout by PYTHONPATH, and so not among what is installed.
    named = [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])]
    patched.setenv('PYTHONPATH', os.pathsep.join(named))


def serve(folder: Path, at_the_end: Callable[[Callable[[], object]], object]) -> Path:
    """A folder with the programs `bioptimus` and `python`. The server ends when no worker uses it any more."""
    folder.mkdir(exist_ok=True)
    with open(folder / 'lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            using = os.open(folder / 'users', os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # no server yet, or one that has ended
            using = begin(folder, at_the_end)
        at_the_end(lambda: os.close(using))  # before the wait for the server
    return folder


def begin(folder: Path, at_the_end: Callable[[Callable[[], object]], object]) -> int:
    """Start the server; the end of a pipe that it reads until all users have closed theirs."""
    for name in ('users', 'socket'):
        (folder / name).unlink(missing_ok=True)
    server = [sys.executable, Path(__file__).with_name('warm.py'), folder / 'socket']
    client = shlex.join(map(str, [sys.executable, '-I', '-S', *server[1:]]))
    for name, module in {'bioptimus': '-m bioptimus_jax', 'python': ''}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {client} {module} "$@"\n')
        (folder / name).chmod(0o755)
    os.mkfifo(folder / 'users')
    reading = os.open(folder / 'users', os.O_RDONLY | os.O_NONBLOCK)
    using = os.open(folder / 'users', os.O_WRONLY)
    running = subprocess.Popen(server, env=environment(), stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    assert running.stdout.readline() == b'warm\n'
    running.stdout.close()
    at_the_end(running.wait)
    return using
