"""The source model, and its last layer's states of the pieces that spell new tokens.

V: source tokens, D: hidden size, B: rows of a batch, L: pieces a row, S: shards of a batch, K: slots of a shard (of all
shards in states), E: pieces read, N: new tokens.
"""

import collections
import functools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from bioptimus_jax.errors import Stopped
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.compute import Compute
from bioptimus_jax.model.config import Source
from bioptimus_jax.model.folder import source_folder
from bioptimus_jax.model.loaded import Loaded, load_model
from bioptimus_jax.model.peft import read_adapter, write_merged
from bioptimus_jax.model.trees import flatten
from bioptimus_jax.progress.console import Progress
from bioptimus_jax.surgery import partial
from bioptimus_jax.surgery.layout import BatchLayout, WindowBatch
from bioptimus_jax.surgery.reading import StateReading

SECONDS_BETWEEN_SAVES = 60
CPU_PIECES = 2048  # on one core 4,096 took half as long again per piece
DEVICE_PIECES = 65536  # of a GPU or TPU


def load_source(source: Source, seed: int, merged: Path) -> Loaded | None:
    """The model of `config.source`; None where its path is empty. Raises InputError for a bad folder.

    A model with an adapter is written to the folder `merged`, and read from there.
    """
    folder = source_folder(source)
    if folder and source.adapter:
        write_merged(folder, read_adapter(Path(source.adapter)), merged)
        folder = merged
    return None if folder is None else load_model(folder, seed)


def sum_states(
    source: Loaded,
    reading: StateReading,
    batch_pieces: int,
    advance: Callable[[int], None] = lambda windows: None,
    layers: Sequence[int] = (),
    *,
    kept: Path | None = None,
    start_at: Callable[[int], None] = lambda windows: None,
) -> np.ndarray:
    """For each target the weighted sum of the last layer's states that `reading` names: float64 [N, D].

    `batch_pieces`: places in a batch at most, but a row for every device at least; 0: what suits the devices.
    Every window is encoded once, on all devices of this process, in float32 on CPUs and bfloat16 elsewhere; the
    sums are taken in float64 and in a fixed order. `advance` is called after each batch with the number of its
    windows, and may raise to stop. With a file `kept` the sums so far are kept there from time to time, when
    Stopped is raised, and at the end; the same call goes on from them bit by bit, and tells `start_at` how many
    windows are done.
    With `layers` (0: the embeddings) the states of those layers side by side: [N, len(layers) * D].
    """
    devices = jax.local_devices()
    mesh = Mesh(np.array(devices), ('rows',), axis_types=(AxisType.Auto,))
    dtype, suitable = suiting(devices)
    batch_pieces = batch_pieces or suitable
    layout = BatchLayout(reading, batch_pieces, source.capacity + 2, mesh.size)
    width = source.architecture.hidden * max(len(layers), 1)
    sums_NxD, done, key = np.zeros((len(reading.contexts), width)), 0, ''
    if kept is not None:
        # Batches and types decide how sums are rounded: with others nothing can go on bit by bit.
        facts = (source.architecture, batch_pieces, mesh.size, dtype, tuple(layers))
        key = partial.key_of(reading, flatten(source.encoder), *facts)
        if found := partial.load(kept, key):
            sums_NxD, done = found['sums'], int(found['batches'])
        start_at(layout.windows_before(done))
    saved = time.monotonic()
    for batch, states_KxD in _encoded(source, dtype, mesh, layout, done, tuple(layers)):
        values_ExD = states_KxD[batch.slot_of_entry].astype(np.float64)
        values_ExD *= reading.weight[batch.entries, None]
        add_by_target(sums_NxD, reading.target[batch.entries], values_ExD)
        done += 1
        try:
            advance(batch.windows)
        except Stopped:
            if kept is not None:
                partial.save(kept, key, sums=sums_NxD, batches=done)
            raise
        if kept is not None and (done == len(layout) or time.monotonic() - saved > SECONDS_BETWEEN_SAVES):
            partial.save(kept, key, sums=sums_NxD, batches=done)
            saved = time.monotonic()
    return sums_NxD


def watched(progress: Progress, check: Callable[[], None]) -> Callable[[int], None]:
    """What is called after a piece of work: it shows progress, then calls `check`, which may raise Stopped."""

    def advance(amount: int) -> None:
        progress.update(amount)
        check()

    return advance


def computing() -> dict[str, str]:
    """What a source is encoded on and with, in words."""
    devices = jax.local_devices()
    return {'mesh': f'rows {len(devices)}', **Compute(dtype=suiting(devices)[0]).words()}


def suiting(devices: Sequence[jax.Device]) -> tuple[str, int]:
    """The type of the products, and the places of a batch."""
    if devices[0].platform == 'cpu':
        return 'float32', CPU_PIECES
    return 'bfloat16', DEVICE_PIECES * len(devices)


def add_by_target(sums_NxD: np.ndarray, target_E: np.ndarray, values_ExD: np.ndarray) -> None:
    """Add each row of values to the sum of its target, in place."""
    if len(target_E):
        order_E = np.argsort(target_E, kind='stable')
        targets, firsts = np.unique(target_E[order_E], return_index=True)
        # Each target stands here once: with one that is repeated, `+=` would keep a single addition.
        sums_NxD[targets] += np.add.reduceat(values_ExD[order_E], firsts, axis=0)


def _encoded(
    source: Loaded, dtype: str, mesh: Mesh, layout: BatchLayout, first: int, layers: tuple[int, ...] = ()
) -> Iterator[tuple[WindowBatch, np.ndarray]]:
    """The batches from number `first` on with the states in their slots; the devices are one batch ahead."""
    everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec('rows'))
    parameters = jax.device_put(source.encoder, everywhere)
    waiting: collections.deque[tuple[WindowBatch, jax.Array]] = collections.deque()
    for number in range(first, len(layout)):
        batch = layout.batch(number)
        arrays = (batch.tokens_BxL, batch.segments_BxL, batch.positions_BxL, batch.slots_SxK)
        placed = jax.device_put(arrays, split)
        # Only asked for here: the devices compute this batch while the host lays out the next one.
        waiting.append((batch, _read(layers, parameters, source.architecture, dtype, mesh, *placed)))
        if len(waiting) > 1:
            batch, states_KxD = waiting.popleft()
            yield batch, np.asarray(states_KxD)
    for batch, states_KxD in waiting:
        yield batch, np.asarray(states_KxD)


@functools.partial(jax.jit, static_argnums=(0, 2, 3, 4))
def _read(
    layers: tuple[int, ...],
    parameters: Any,
    architecture: Architecture,
    dtype: str,
    mesh: Mesh,
    *arrays: jax.Array,
) -> jax.Array:
    """States in the slots, of those layers side by side or of the last one: of tokens BxL, segments BxL, positions BxL
    and slots SxK. Every device works on its rows by itself."""
    encode = functools.partial(architecture.encode, compute=Compute(dtype=jnp.dtype(dtype)))

    def shard(parameters: Any, tokens: Any, segments: Any, positions: Any, slots_1xK: Any) -> Any:
        batch = dict(tokens=tokens, segments=segments, positions=positions)
        if not layers:
            return encode(parameters, batch, slots=slots_1xK[0])
        states = encode(parameters, batch, all_layers=True)
        flat = (states[number].reshape(-1, architecture.hidden) for number in layers)
        return jnp.concatenate([jnp.take(f, slots_1xK[0], axis=0, mode='clip') for f in flat], axis=-1)

    rows = PartitionSpec('rows')
    each = jax.shard_map(shard, mesh=mesh, in_specs=(PartitionSpec(), rows, rows, rows, rows), out_specs=rows)
    return each(parameters, *arrays)
