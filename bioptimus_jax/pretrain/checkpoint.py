"""Checkpoints that can be trusted: Orbax, a checksum per leaf, and restore steps back past a damaged one.

Orbax does not checksum array data: a flipped bit is restored as a wrong weight without a word. So each checkpoint
carries a sum per leaf that does not depend on the mesh, and `restore` walks down to the newest one that agrees.
"""

import contextlib
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils
from orbax.checkpoint import checkpoint_managers

from bioptimus_jax.errors import InputError
from bioptimus_jax.pretrain.curriculum import CHECKPOINTS, recorded_phases
from bioptimus_jax.pretrain.sharding import gathered, place_state
from bioptimus_jax.pretrain.state import AVERAGE
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.run.manifests import MANIFEST, read_manifest, rerun_hint
from bioptimus_jax.storage.files import read_json, sha256

logging.getLogger('absl').setLevel(logging.CRITICAL)  # Orbax logs tracebacks of what it raises anyway


OS_ERROR = re.compile(r"os_error_code='(\d+)'")
_hooks: list[Any] = []  # those that were set before


def _without_closed_loops(raised: Any) -> None:
    """An unraisablehook. After the first write that failed Orbax closes its loop; TensorStore tells it of others."""
    if raised.exc_type is not RuntimeError or str(raised.exc_value) != 'Event loop is closed':
        _hooks[-1](raised)


class Marked:
    """The preservation policy of steps that are kept for good; they may change while the run goes on."""

    def __init__(self, steps: Iterable[int]):
        self.steps = set(steps)

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        """Orbax's protocol: one answer for each checkpoint."""
        return [checkpoint.step in self.steps for checkpoint in checkpoints]


def _alone() -> ocp.options.MultiprocessingOptions:
    """Options with which Orbax reads or writes in this process alone; otherwise it waits for the other processes."""
    own = jax.process_index()
    return ocp.options.MultiprocessingOptions(
        primary_host=own, active_processes={own}, barrier_sync_key_prefix=f'process-{own}'
    )


class Checkpoints:
    """The checkpoints of one run: the newest `keep`, and those at `marked` steps: phase ends and snapshots.

    Several processes write into a folder that all of them see. `own_copies`, each has a copy of its own: the first one
    writes the whole state, and each reads its copy.
    """

    def __init__(self, folder: Path, keep: int, marked: Iterable[int], own_copies: bool = False):
        self.marked, self.own_copies = Marked(marked), own_copies
        policies: list[Any] = [checkpoint_managers.LatestN(keep), self.marked]
        # Once in a process: set again, the hook would hand on to itself.
        if sys.unraisablehook is not _without_closed_loops:
            _hooks.append(sys.unraisablehook)
            sys.unraisablehook = _without_closed_loops
        place = (folder / CHECKPOINTS).resolve()
        if own_copies:  # Orbax makes it for all processes or none
            place.mkdir(parents=True, exist_ok=True)
        self.manager = ocp.CheckpointManager(
            place,
            options=ocp.CheckpointManagerOptions(
                preservation_policy=checkpoint_managers.AnyPreservationPolicy(policies),
                cleanup_tmp_directories=True,
                enable_async_checkpointing=True,
                create=not own_copies,
                multiprocessing_options=_alone() if own_copies else ocp.options.MultiprocessingOptions(),
            ),
        )

    def mark(self, steps: Iterable[int]) -> None:
        """Keep these steps for good from now on, and no others: under self-pacing the ends of phases move."""
        self.marked.steps = set(steps)

    def save(self, step: int, state: Any) -> None:
        """Begin to save; arrays are copied before this returns, writing goes on in the background."""
        # Checksum the arrays on the devices, not what is written: a bad write must not get a sum that agrees.
        sums = checksums(state)
        if self.own_copies:
            # Every process has to take part in this, although only the first one writes.
            state = gathered(state)
            if jax.process_index():
                return
        arguments = ocp.args.Composite(state=ocp.args.StandardSave(state), checksums=ocp.args.JsonSave(sums))
        with self._plain_disk_errors():
            # Forced, since the loop decides when to save; Orbax has a rule of its own.
            self.manager.save(step, args=arguments, force=True)

    def wait(self) -> None:
        """Wait until everything begun is on disk. Raises what a background save ran into (a full disk, say)."""
        with self._plain_disk_errors():
            self.manager.wait_until_finished()

    def latest(self) -> int | None:
        return self.manager.latest_step()

    def steps(self) -> list[int]:
        return sorted(self.manager.all_steps())

    def restore(self, like: Any, warn: Any = print) -> tuple[Any, int] | None:
        """The newest undamaged state, shaped and sharded like `like`, and its step; None without any checkpoint.

        Damaged ones above it are deleted, since they will be made again. Raises InputError when there are
        checkpoints and none can be used; then all of them stay.
        """
        found = self._newest(like, warn)
        if self.own_copies:
            # A machine that was killed while its copy was written has fewer: a step that all have is not looked for.
            step = found[1] if found else 0
            steps = multihost_utils.process_allgather(np.array(step)).tolist()
            if len(set(steps)) > 1:
                raise InputError(
                    f'{self.manager.directory}: this process would continue from step {step}, '
                    f'others from {steps}; remove the staging folders, then start all of them again'
                )
        return found

    def _newest(self, like: Any, warn: Any) -> tuple[Any, int] | None:
        damaged: list[int] = []
        for step in reversed(self.steps()):
            try:
                state = self._restore(step, like)
            except Exception as error:  # Orbax raises many kinds for damaged files
                reason = ' '.join(str(error).split())[:200]
                warn(f'checkpoint {step} cannot be used ({reason}); trying the one before')
                damaged.append(step)
                continue
            # Only now: as long as none can be used, all of them stay for a person to look at.
            for higher in damaged:
                self.manager.delete(higher)
            return state, step
        if damaged:
            raise InputError(
                f'{self.manager.directory}: no checkpoint can be used; delete the folder to start over'
            )
        return None

    def _restore(self, step: int, like: Any) -> Any:
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, like)
        if (
            self.own_copies
        ):  # each process reads all of its own copy, and hands its devices their parts afterwards
            here = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
            abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=here), abstract)
        asked = ocp.args.Composite(state=ocp.args.StandardRestore(abstract), checksums=ocp.args.JsonRestore())
        restored = self.manager.restore(step, args=asked)
        # Summed anew from what was read, so that damage on disk or on the way shows.
        _compare(checksums(restored['state']), restored['checksums'])
        if self.own_copies:
            shardings = jax.tree.map(lambda x: x.sharding, like)
            return place_state(jax.tree.map(np.asarray, restored['state']), shardings)
        return restored['state']

    def close(self) -> None:
        with self._plain_disk_errors():
            self.manager.close()

    @contextlib.contextmanager
    def _plain_disk_errors(self) -> Iterator[None]:
        """TensorStore reports a full disk as a ValueError: raise the OSError that it is."""
        try:
            yield
        except ValueError as error:
            code = OS_ERROR.search(str(error))
            if code is None:
                raise
            raise OSError(int(code[1]), os.strerror(int(code[1])), str(self.manager.directory)) from error


def phase_checksums(folder: Path, phase: str) -> dict[str, int]:
    """The checksum of every leaf at the end of a phase, or at a snapshot. InputError where it is not there yet."""
    path = _phase_path(folder, phase) / 'checksums' / 'metadata'
    sums = read_json(path, rerun_hint(folder))
    if not isinstance(sums, dict):
        raise InputError(f'{path}: is damaged or missing; {rerun_hint(folder)}')
    return sums


def _phase_path(folder: Path, phase: str) -> Path:
    steps = recorded_phases(folder)
    if phase not in steps:
        raise InputError(f'{folder}: phase {phase!r} has not ended; finished: {", ".join(steps) or "none"}')
    return (folder / CHECKPOINTS / str(steps[phase])).resolve()


def load_phase(folder: Path, phase: str) -> Any:
    """The parameters at the end of a phase or at a snapshot, or their average: nested, numpy arrays. InputError."""
    path = _phase_path(folder, phase)
    _check_files(folder, path)
    expected = phase_checksums(folder, phase)
    try:
        with ocp.StandardCheckpointer(multiprocessing_options=_alone()) as checkpointer:
            metadata = checkpointer.metadata(path / 'state').item_metadata.tree
            device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
            wanted = jax.tree.map(lambda m: jax.ShapeDtypeStruct(m.shape, m.dtype, sharding=device), metadata)
            state = checkpointer.restore(path / 'state', wanted)
        # The average was what evaluations scored, so it is what is exported.
        part = AVERAGE if AVERAGE in state else 'params'
        own = {n: v for n, v in expected.items() if n.startswith(f'{part}/')}
        _compare(checksums({part: state[part]}), own)
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f'{path}: cannot be read ({" ".join(str(error).split())[:200]}); {rerun_hint(folder)}'
        ) from error
    return jax.tree.map(np.asarray, state[part])


def _check_files(folder: Path, path: Path) -> None:
    """Raise InputError for a file of a checkpoint that is not as in the manifest, which a finished stage has."""
    files = (read_manifest(folder) or Manifest()).files
    for name, entry in files.items():
        file = folder.resolve() / name
        if file.is_relative_to(path) and (not file.is_file() or sha256(file) != entry.sha256):
            what = f'is not what {MANIFEST} says (SHA-256)' if file.is_file() else 'is missing'
            raise InputError(f'{folder / name}: {what}; {rerun_hint(folder)}')


def checksums(state: Any) -> dict[str, int]:
    """Checksum per leaf of a tree, by path."""
    # Compiled as one program for the whole tree: leaf by leaf, every shape and sharding would be one of its own.
    paths = jax.tree_util.tree_flatten_with_path(_sums(state))[0]
    return {jax.tree_util.keystr(path, simple=True, separator='/'): int(value) for path, value in paths}


@jax.jit
def _sums(state: Any) -> Any:
    return jax.tree.map(_checksum, state)


def _checksum(leaf: jax.Array) -> jax.Array:
    """sum(bits * odd weight of the position) mod 2^32: sees every flipped bit, whatever the mesh."""
    if leaf.dtype == jnp.bool_:
        bits = leaf.astype(jnp.uint32)
    else:
        unsigned = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}[leaf.dtype.itemsize]
        bits = jax.lax.bitcast_convert_type(leaf, unsigned).astype(jnp.uint32)
    # Every weight is odd, hence invertible mod 2^32: no single changed number can leave the sum as it was. Weights
    # differ by position, so two that change places are seen too; a sum does not depend on how the leaf is split.
    # The place in the whole leaf, made axis by axis, so that it is split as the leaf is.
    index = jnp.zeros(leaf.shape, jnp.uint32)
    for axis, size in enumerate(leaf.shape):
        index = index * jnp.uint32(size % 2**32) + jax.lax.broadcasted_iota(jnp.uint32, leaf.shape, axis)
    return jnp.sum(bits * ((index * jnp.uint32(2654435761)) | jnp.uint32(1)), dtype=jnp.uint32)


def _compare(found: dict[str, int], expected: dict[str, int]) -> None:
    wrong = [name for name, value in expected.items() if name not in found or found[name] != value]
    if wrong or len(found) != len(expected):
        raise InputError(f'checksum differs for {", ".join(wrong[:3]) or "the list of leaves"}')
