"""The GPUs that PyTorch sees, here or on the workers of a cluster, and what a fine-tuning takes of one."""

import dataclasses
import gc
import os
import socket
from typing import Any

import torch

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.finetuning.config import AUTO, JAX, TORCH, HasFinetune
from bioptimus_jax.hosts.cards import Card, tell_memory
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.devices import look, present
from bioptimus_jax.hosts.hardware import accelerators, unused
from bioptimus_jax.hosts.workers import Cluster
from bioptimus_jax.progress.console import numbered

PACKAGES = ('torch', 'transformers')
"""Packages, beside those of the corpus stages, whose versions must agree on all workers of a cluster for equal
scores."""


def cards() -> tuple[Card, ...]:
    """The GPUs that this process may use; looking takes no memory of them, as long as nothing is computed."""
    if not torch.cuda.is_available():
        return ()
    # torch counts from 0 what is visible; a process for one card is told what the environment calls it.
    visible = [name for name in os.environ.get('CUDA_VISIBLE_DEVICES', '').split(',') if name]
    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return tuple(
        Card(visible[i] if visible else str(i), of.name, of.total_memory) for i, of in enumerate(found)
    )


def torch_build() -> str:
    """The platform that the installed PyTorch was built for."""
    return f'CUDA {torch.version.cuda}' if torch.version.cuda else 'the CPU'


def torch_device() -> str:
    """What models are fine-tuned on here, in words."""
    names = [card.name for card in cards()]
    several = f'{len(names)} x ' if len(names) > 1 else ''
    return f'cuda ({several}{names[0]})' if names else 'cpu'


def needs_free_accelerator(experiment: HasFinetune) -> bool:
    """Whether encoders are fine-tuned without jax here, which then must not hold what they need."""
    return encoder_here(experiment.finetune.encoder, experiment.runtime) == TORCH


def devices_of(runtime: Runtime, encoder: str = TORCH) -> str:
    """What cells are fine-tuned on, in words; `encoder`: what computes it.

    Raises ConfigError for workers of a cluster that would all use the first GPU of their host, that leave a GPU or TPU
    idle, or of which only some have a GPU.
    """
    if encoder == JAX:
        from bioptimus_jax.finetuning.bridge import devices_here

        return f'{dataclasses.replace(present(), count=len(devices_here()))} by jax'
    if not runtime.cluster:
        return torch_device()
    with Cluster(runtime.cluster, packages=PACKAGES) as cluster:
        seen = cluster.ask(_seen)
    first: dict[tuple[str, str], str] = {}
    for worker, (host, on, visible, several, wrong) in seen.items():
        where = f'config.runtime.cluster: worker {worker}'
        if wrong:
            raise ConfigError(
                f'{where}: {wrong}; see `bioptimus doctor` there (or set JAX_PLATFORMS=cpu if it is intended)'
            )
        other = first.setdefault((host, visible), worker)
        if several and other != worker:
            raise ConfigError(
                f'{where} and {other} would both use the first GPU of {host}; start each with its own, as in '
                'CUDA_VISIBLE_DEVICES=1 dask worker ...'
            )
        if on.partition(' ')[0] != (found := next(iter(seen.values()))[1]).partition(' ')[0]:
            raise ConfigError(f'{where} computes on {on}, another one on {found}; start workers of one kind')
    kinds = '; '.join(dict.fromkeys(s[1] for s in seen.values()))
    return f'{numbered(len(seen), "worker")} of {runtime.cluster} ({kinds})'


def by_devices(jax_on: str, torch_on: str) -> str:
    """What computes encoders where nobody has said it, by the platforms of jax and PyTorch: jax, if it alone has an
    accelerator."""
    return JAX if torch_on == 'cpu' and jax_on != 'cpu' else TORCH


def encoder_here(wanted: str, runtime: Runtime) -> str:
    """What computes encoders on this machine where config.finetune.encoder is `wanted`.

    Raises ConfigError on the host of a TPU that jax does not find, as base models take days on a CPU, and for workers
    of a cluster.
    """
    if wanted == JAX and runtime.cluster:
        raise ConfigError(
            f"config.finetune.encoder: 'jax' computes in the process of the command; leave config.runtime.cluster "
            f"({runtime.cluster}) out, or set it to 'torch'"
        )
    if wanted != AUTO or runtime.cluster:
        return TORCH if wanted == AUTO else wanted
    # Looking for jax's devices takes seconds, so it is done only where there are some that PyTorch leaves idle.
    if torch.cuda.is_available() or not (idle := unused('cpu', accelerators)):
        return TORCH
    found, chosen = accelerators(), by_devices(look().platform, 'cpu')
    if chosen == TORCH and found and found.platform == 'tpu':
        raise ConfigError(
            f"config.stages: finetune would be {idle}, which jax does not find; pip install 'bioptimus-jax[tpu]', "
            "leave the stage out here, or set config.finetune.encoder='torch' if the CPU is intended"
        )
    return chosen


def tell_peak() -> None:
    """Tell what the cell in this process takes of its card at most, so far."""
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        tell_memory(torch.cuda.max_memory_reserved(), total - free - torch.cuda.memory_reserved())


def release(encoder: str = TORCH) -> None:
    """Give back what a cell has left of the card's memory; the next one begins to count anew."""
    if encoder == JAX:
        gc.collect()  # a bridge and its encoder hold each other
    if torch.cuda.is_available():
        # Cycles first: `empty_cache` gives back only what nothing refers to.
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _seen() -> tuple[Any, ...]:
    """What a worker is: its host, what it computes on, which GPUs it may see, whether they are several, and what is
    idle."""
    on = torch_device()
    return socket.gethostname(), on, os.environ.get('CUDA_VISIBLE_DEVICES', ''), ' x ' in on, unused(on)
