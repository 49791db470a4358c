"""How fast this machine works, measured in seconds on one layer of a model: what stages of a run are estimated by."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from bioptimus_jax.finetuning.speed import torch_step
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.pretrain.throughput import forward_flops_per_token, training_flops_per_token
from bioptimus_jax.start.machine import CPU, Machine

ENTRIES = 1024
"""Vocabulary of the model that is measured: rows that are looked up cost next to nothing."""
SECONDS, FEWEST = 0.5, 2
"""Each product is repeated for so long, and so often at least."""
LOOP, IDLE_SECONDS = 2_000_000, 0.066
"""Turns of an empty loop of Python, and what they take on an idle core of the machine that seconds were taken on."""
LONGEST = 1024
"""Pieces of a row that a speed is measured on: plain attention of 8,192 needs more memory than most CPUs have."""
COMPILES_A_LAYER = 2.0
"""Seconds that a layer takes to compile on such a machine, forward and backward pass."""


@dataclasses.dataclass(frozen=True)
class Speeds:
    """`train`, `forward`: FLOP/s of pre-training and of reading states; `torch`: of fine-tuning.

    `compiling`: seconds for each layer of a step. `slowness`: how many times longer a core needs than an idle one of
    the machine that seconds were taken on. `measured`: or assumed.
    """

    train: float
    forward: float
    torch: float
    compiling: float = COMPILES_A_LAYER
    slowness: float = 1.0
    measured: bool = False


def speeds_of(machine: Machine, architecture: Architecture, rows: int, pieces: int, threads: int) -> Speeds:
    """The speeds of a machine for a model with so many rows of so many pieces in a step.

    They are measured where it is the CPU of this one; of others the plan's share of their peak.
    """
    if machine.device.platform != CPU:
        return Speeds(machine.rate, machine.rate, machine.rate)
    one = dataclasses.replace(architecture, layers=1, vocab_size=ENTRIES)
    train, forward, compiling = _jax_speeds(one, max(min(rows, 4), 1), min(pieces, LONGEST))
    step, flops = torch_step(one.hidden, one.heads, one.intermediate, threads)
    return Speeds(train, forward, flops / seconds_of(step), compiling, slowness(), measured=True)


def slowness() -> float:
    """How many times longer a core needs now than an idle one."""
    return seconds_of(_loop) / IDLE_SECONDS


def _loop() -> None:
    for _ in range(LOOP):
        pass


def _jax_speeds(one: Architecture, rows: int, pieces: int) -> tuple[float, float, float]:
    """FLOP/s of training and of forward passes of a model with one layer, and the seconds of compiling it."""
    import jax
    import jax.numpy as jnp

    params = one.initial_parameters(jax.random.key(0, impl='threefry2x32'))
    params = {name: values for name, values in params.items() if name != 'mlm_head'}
    tokens_BxL = jnp.ones((rows, pieces), jnp.int32)
    places_BxL = jnp.broadcast_to(jnp.arange(pieces)[None], tokens_BxL.shape)
    batch = {'tokens': tokens_BxL, 'segments': tokens_BxL, 'positions': places_BxL}

    def loss(weights: Any) -> Any:
        return jnp.square(jnp.asarray(one.encode(weights, batch), jnp.float32)).mean()

    size = rows * pieces
    started = time.perf_counter()
    both = jax.jit(jax.grad(loss)).lower(params).compile()
    compiling = time.perf_counter() - started
    alone = jax.jit(loss).lower(params).compile()
    of_both = seconds_of(lambda: jax.block_until_ready(both(params)))
    of_one = seconds_of(lambda: jax.block_until_ready(alone(params)))
    train, forward = training_flops_per_token(one, pieces, 0), forward_flops_per_token(one, pieces, 0)
    return size * train / of_both, size * forward / of_one, compiling


def seconds_of(work: Callable[[], Any]) -> float:
    """Seconds that some work takes on average, repeated for a while; the first time does not count."""
    work()
    started, times = time.perf_counter(), 0
    while times < FEWEST or time.perf_counter() - started < SECONDS:
        work()
        times += 1
    return (time.perf_counter() - started) / times
