"""Fine-tuning on a simulated host of eight GPUs, and on a dask cluster: where cells run, and what failures cost."""

import dataclasses
import fcntl
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.finetune import cells
from bioptimus_jax.finetune.cards import cards, release, tell_peak, torch_device
from bioptimus_jax.finetune.cells import Cell
from bioptimus_jax.hosts.cards import Card, Placement
from bioptimus_jax.schema import Finetune, Runtime
from bioptimus_jax.sets.corpora import NamedSet

GIB = 2**30
MEMORY, CONTEXT = 80, 1
TAKES = {'small': 10, 'large': 50, 'growing': 20, 'giant': 90}
"""GiB of a card, of a process before it computes, and of a cell on each set; `growing` has twice as much after it told."""


class SimulatedCards:
    """A card is a file with what every process on it holds, in GiB; who asks for more than there is gets torch's error."""

    def __init__(self, folder):
        self.file = folder / f'card-{os.environ["CUDA_VISIBLE_DEVICES"]}.json'

    def hold(self, gib):
        """Hold so much, the context of CUDA included; gives what all on the card hold, and their number."""
        with open(self.file, 'a+') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            held = json.loads(file.read() or '{}')
            held = {pid: gib for pid, gib in held.items() if Path(f'/proc/{pid}').exists()}
            most = sum(held.values()) - held.get(str(os.getpid()), 0) + gib <= MEMORY
            held |= {str(os.getpid()): gib if most else held.get(str(os.getpid()), 0)}
            file.truncate(0)
            file.write(json.dumps(held))
        if not most:
            raise torch_error(f'CUDA out of memory. Tried to allocate {gib:.2f} GiB')
        return sum(held.values()), sum(gib > CONTEXT for gib in held.values())


def torch_error(said):
    return type('OutOfMemoryError', (RuntimeError,), {'__module__': 'builtins'})(said)
