"""A simulated host with GPUs: a card is a file that says what every process on it holds, torch.cuda a stand-in."""

import contextlib
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from bioptimus_jax.errors import ConfigError

GIB = 2**30
NAME, MEMORY, CONTEXT = 'NVIDIA H100 80GB HBM3', 80 * GIB, 1 * GIB
TAKES = {'small': 30 * GIB, 'large': 60 * GIB, 'growing': 20 * GIB, 'giant': 90 * GIB}
"""Memory of a cell on a set of that name; `growing` takes 55 GiB once it has told 20."""
GROWN = 55 * GIB
PATIENCE = {'small': 20.0, 'growing': 20.0}
"""Seconds that a cell waits at most, on a slow machine, for what a test looks at: another one on its card (a small one
until two were seen anywhere), and a card that was too small for both."""


class OutOfMemoryError(RuntimeError):
    """An error named as torch.cuda's."""


class Card:
    """The card that this process sees: what torch.cuda says of it."""

    def __init__(self, folder):
        self.file = folder / f'card-{os.environ["CUDA_VISIBLE_DEVICES"]}.json'
        self.held = 0

    @contextlib.contextmanager
    def _all(self):
        with open(self.file, 'a+') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            found = json.loads(file.read() or '{}')
            found = {pid: held for pid, held in found.items() if Path(f'/proc/{pid}').exists()}
            yield found
            file.truncate(0)
            file.write(json.dumps(found))

    def hold(self, size):
        """Take so much beside the context; gives how many processes compute on the card."""
        with self._all() as found:
            others = sum(held for pid, held in found.items() if int(pid) != os.getpid())
            if others + CONTEXT + size > MEMORY:
                raise OutOfMemoryError(f'CUDA out of memory. Tried to allocate {size / GIB:.2f} GiB')
            found[str(os.getpid())], self.held = CONTEXT + size, size
            return sum(held > CONTEXT for held in found.values())

    def free(self):
        with self._all() as found:
            return MEMORY - sum(found.values()), MEMORY

    def torch(self):
        cuda = SimpleNamespace(
            **of_host(1),
            mem_get_info=self.free,
            max_memory_reserved=lambda: self.held,
            memory_reserved=lambda: self.held,
            empty_cache=lambda: self.hold(0),
            reset_peak_memory_stats=lambda: None,
        )
        return SimpleNamespace(cuda=cuda)


def of_host(cards):
    """What torch.cuda says of a host."""
    return {
        'is_available': lambda: True,
        'device_count': lambda: cards,
        'get_device_properties': lambda number: SimpleNamespace(name=NAME, total_memory=MEMORY),
    }


def simulated_cell(cell, dataset):
    """A stand-in for `run_cell`: takes the memory of its set, tells it, and says where it was and with how many."""
    card = Card(cell.target.parents[3])
    sys.modules['torch'] = card.torch()
    from bioptimus_jax.finetuning.cards import release, tell_peak

    failed, full, met = (cell.target.parents[3] / name for name in ('failed', 'full', 'met'))
    if dataset == 'broken':
        failed.touch()
        raise ConfigError(f'{cell.name} is broken')
    cell.target.mkdir(parents=True, exist_ok=True)
    tried = cell.target / 'tried'
    if dataset == 'killed' and not tried.exists():
        tried.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    while dataset == 'late' and not (failed.exists() and time.time() > failed.stat().st_mtime + 0.5):
        time.sleep(0.02)
    try:
        first = beside = card.hold(TAKES.get(dataset, TAKES['small']))
        tell_peak()
        deadline = time.monotonic() + PATIENCE.get(dataset, 0) * (not tried.exists())
        tried.touch()
        while time.monotonic() < deadline:
            if dataset == 'small' and beside > 1:
                met.touch()
            if (full.exists() and met.exists()) or (dataset == 'growing' and beside > 1):
                break
            time.sleep(0.02)
            beside = max(beside, card.hold(card.held))
        card.hold(GROWN if dataset == 'growing' else card.held)
        # Whoever grows beside it finds the card full, however late.
        while dataset == 'growing' and beside > 1 and not full.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
    except OutOfMemoryError:
        if dataset == 'growing':
            full.touch()
        raise
    finally:
        release()
    seen = {name: os.environ[name] for name in ('CUDA_VISIBLE_DEVICES', 'JAX_PLATFORMS')}
    return {**seen, 'first': first, 'beside': beside}
