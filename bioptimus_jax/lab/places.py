"""Places where the arms of a sweep run: in processes of this machine, or of the workers of a dask cluster."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from bioptimus_jax.errors import FAILED, STOPPED, ConfigError, reason_of
from bioptimus_jax.hosts import signals
from bioptimus_jax.hosts.workers import Cluster, abandoned, cores
from bioptimus_jax.storage.files import locks

LOG, LOCK = 'log.txt', '.arm.lock'
"""Files in an arm's folder."""
PACKAGES = ('jax', 'torch', 'transformers')
"""What must be the same on all workers for the same results, beside what the corpus stages need."""
SECONDS_BETWEEN_LOOKS = 0.2
PREALLOCATE, MEM_FRACTION = 'XLA_PYTHON_CLIENT_PREALLOCATE', 'XLA_CLIENT_MEM_FRACTION'
FORMER_FRACTION = 'XLA_PYTHON_CLIENT_MEM_FRACTION'
"""jax's former name of the same; with both it ends at once."""
JAX_TAKES = 0.75
"""Share of a GPU's memory that jax takes at once: the second program on a card would find nothing left."""
COMPILED = 'JAX_COMPILATION_CACHE_DIR'


class Program(Protocol):
    """`bioptimus` with some arguments, at work somewhere; what subprocess.Popen has of it."""

    returncode: Any

    def poll(self) -> int | None: ...


class Here:
    """This machine: `number` programs at a time, each with its share of the cores, GPUs and, of those, of memory.

    What one of them has compiled the others find in `folder`/.compiled, as long as they run.
    """

    def __init__(self, number: int, folder: Path):
        self.number, self.compiled = number, folder.absolute() / '.compiled'
        self._forget()  # what programs were writing when they were killed

    def start(self, arguments: Sequence[str], folder: Path, place: int) -> Program:
        """Begin `bioptimus ARGUMENTS`, which appends what it prints to the log in `folder`."""
        environment = {COMPILED: str(self.compiled), **os.environ}
        # CUDA counts from 0 those that it sees: in a container nvidia3 may be the only one, and is number 0.
        every = ','.join(map(str, range(len([*Path('/dev').glob('nvidia[0-9]*')]))))
        # Set, but empty: they are hidden on purpose.
        gpus = [gpu for gpu in environment.get('CUDA_VISIBLE_DEVICES', every).split(',') if gpu]
        if gpus and self.number > 1:
            environment['CUDA_VISIBLE_DEVICES'] = ','.join(share_of(gpus, place, self.number))
        if 0 < len(gpus) < self.number and environment.get(PREALLOCATE, '').lower() not in ('false', '0'):
            name = FORMER_FRACTION if environment.get(FORMER_FRACTION) else MEM_FRACTION
            environment[name] = f'{_fraction(environment, name) / -(-self.number // len(gpus)):.3f}'
        return _started(arguments, folder, share_of(cores(), place, self.number), env=environment)

    def stop(self, running: Sequence[Any]) -> None:
        """Have programs save, and wait until they have."""
        for program in running:
            program.terminate()
        for program in running:
            program.wait()
        self._forget()

    def _forget(self) -> None:
        shutil.rmtree(self.compiled, ignore_errors=True)


class There:
    """The workers of a dask cluster, which see the same files under the same paths: a program a worker at a time.

    Its devices are those that the worker sees. When a worker is killed its program is begun again on another one.
    """

    def __init__(self, address: str):
        self.cluster = Cluster(address, packages=PACKAGES)

    @property
    def number(self) -> int:
        """How many workers there are now."""
        return max(1, len(self.cluster.client.nthreads()))

    def start(self, arguments: Sequence[str], folder: Path, place: int) -> Program:
        """The program, begun on a worker of the cluster; see `Here.start`."""
        arguments = (*arguments, '--config.runtime.cluster=')  # its worker is busy with it
        task = _run, arguments, os.getcwd(), folder.absolute()
        return _Remote(self.cluster.client.submit(*task, pure=False), folder / LOG)

    def stop(self, running: Sequence[Any]) -> None:
        """Stop what runs on the cluster; see `Here.stop`."""
        while [program for program in running if program.poll() is None]:
            self.cluster.client.run(_stop, on_error='ignore')  # some may just have begun, or be gone
            time.sleep(SECONDS_BETWEEN_LOOKS)
        self.cluster.client.close()


class _Remote:
    """A program on a worker."""

    def __init__(self, future: Any, log: Path):
        self.future, self.log = future, log
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self.future.done():
            self.returncode = self.future.result() if self.future.status == 'finished' else self._lost()
        return self.returncode

    def _lost(self) -> int:
        """The exit code where dask gave no result; why goes to the log, as what the program says does."""
        why = 'it was cancelled' if self.future.cancelled() else reason_of(self.future.exception())
        with open(self.log, 'a', encoding='utf-8') as file:
            file.write(f'no worker of the cluster has made it: {why}\n')
        return FAILED


def _fraction(environment: Mapping[str, str], name: str) -> float:
    said = environment.get(name) or JAX_TAKES
    try:
        return float(said)
    except ValueError as error:
        raise ConfigError(
            f'{name}={said}: is not a number; set it to a share of the memory, or unset it'
        ) from error


def share_of(things: Sequence[Any], place: int, places: int) -> list[Any]:
    """The part of `things` for one of several places, as even as it goes; where there are fewer, they are shared."""
    if len(things) < places:
        return list(things[place % len(things) :][:1])
    return list(things[place * len(things) // places : (place + 1) * len(things) // places])


def _started(
    arguments: Sequence[str], folder: Path, on: Sequence[int], **how: Any
) -> subprocess.Popen[bytes]:
    of_place = ','.join(map(str, on))
    command = [sys.executable, '-m', 'bioptimus_jax.lab.arm', str(os.getpid()), of_place, *arguments]
    with open(folder / LOG, 'ab') as log, signals.held():
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, **how)


_programs: list[subprocess.Popen] = []  # of this worker


def _run(arguments: Sequence[str], where: str, folder: Path) -> int:
    """Worker's task: the exit code of a program that runs in the folder `where`, unless nobody waits for it any
    more."""
    # A worker that was killed has left a program that saves. It has the open file, and with it the lock, until it ends.
    with open(folder / LOCK, 'w') as lock:
        while not locks(lock):
            if abandoned():
                return STOPPED
            time.sleep(SECONDS_BETWEEN_LOOKS)
        program = _started(arguments, folder, cores(), cwd=where, pass_fds=(lock.fileno(),))
        _programs.append(program)
        while program.poll() is None:
            if abandoned():
                program.terminate()
            time.sleep(SECONDS_BETWEEN_LOOKS)
        _programs.remove(program)
    return program.returncode


def _stop() -> None:
    for program in _programs:
        program.terminate()
