"""Several processes, one program: the first one leads (it does every stage and writes), the others train with it.

Every process is started with the same command and sees the same run folder, or mirrors the same bucket in a folder of
its own. Stages other than `pretrain` are the leader's; the followers wait until their manifests are there. When one is
gone, all others end (`lifelines`).
"""

import ctypes
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.errors import DONE, FAILED, SAVED, ConfigError, Stopped
from bioptimus_jax.hosts import lifelines
from bioptimus_jax.hosts.lifelines import CONNECT_SECONDS, GRACE_SECONDS, Lifelines
from bioptimus_jax.manifests import STARTED, differences, read_record
from bioptimus_jax.progress import crash_file
from bioptimus_jax.run import Run, Stage, fingerprint
from bioptimus_jax.schema import Runtime

AUTO = 'auto'
TRAINED_TOGETHER = 'pretrain'
POLL_SECONDS = 0.5
POLL_SECONDS_OF_A_BUCKET = 3.0
MEETING_PLACE = 'bioptimus/lifelines'  # a key in the store that jax's processes share

_others: Lifelines | None = None
_kept_handler = None  # C code calls it: it must not be collected


def join(runtime: Runtime) -> Lifelines:
    """Meet the other processes as `config.runtime.distributed` says; gives the lines to them. Raises ConfigError."""
    global _others
    import jax  # late: the command line stays light for one process
    from jax._src.distributed import global_state  # Orbax reads it too: the store has no public name

    setting, seconds = runtime.distributed, runtime.lost_after_seconds
    # Lifelines are to notice first: jax aborts with a trace of its C++.
    given: dict[str, Any] = {'heartbeat_timeout_seconds': 2 * seconds + 60}
    try:
        if setting != AUTO:
            address, count, number = setting.split(',')
            given |= {'coordinator_address': address, 'num_processes': int(count), 'process_id': int(number)}
        jax.distributed.initialize(**given)
    except (ValueError, RuntimeError) as error:
        reason = ' '.join(str(error).split())[:200]
        raise ConfigError(
            f'config.runtime.distributed: {setting!r}: {reason}; give auto, or HOST:PORT,PROCESSES,INDEX'
        ) from error
    index = jax.process_index()
    store: Any = global_state.client
    _explain_aborts(keep=index > 0)
    if index == 0:
        server, told = lifelines.listen()
        store.key_value_set(MEETING_PLACE, told)
        _others = lifelines.accept(server, told.split()[1], jax.process_count() - 1, seconds)
    else:
        told = store.blocking_key_value_get(MEETING_PLACE, int(1000 * CONNECT_SECONDS))
        leader = str(global_state.coordinator_address).rpartition(':')[0].strip('[]')
        _others = lifelines.connect(leader, told, index, seconds)
    return _others


def leave(code: int) -> int:
    """The exit code; the other processes are told of it before, and are waited for where the end is in order."""
    if _others is None:
        return code
    _others.tell(f'end {code}')
    if code not in (DONE, *SAVED):
        sys.stdout.flush()
        os._exit(code)  # at an ordinary exit jax would wait for the others, and abort
    _others.wait()
    import jax

    jax.distributed.shutdown()
    return code


def settle() -> None:
    """After an error that nobody foresaw: time to hear that another process is gone, which ends this one."""
    if _others is not None:
        time.sleep(GRACE_SECONDS)


def _explain_aborts(keep: bool) -> None:
    """End with one line where jax's runtime aborts; with `keep`, what it writes to stderr is held back until then.

    A follower whose leader was killed is aborted at once, with a trace, while its lifeline learns of the same.
    """
    global _kept_handler
    held = None
    if keep:
        held = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        sys.stderr = os.fdopen(os.dup(2), 'w', buffering=1)
        os.dup2(held.fileno(), 2)

    def aborted(_: int) -> None:
        time.sleep(2 * GRACE_SECONDS)  # a lifeline that knows why ends the process meanwhile
        where = 'above'
        if held:
            where = f'in {crash_file(os.pread(held.fileno(), 1_000_000, 0).decode(errors="replace"))}'
        lifelines.end(FAILED, f'the runtime of jax gave up; the details are {where}')

    _kept_handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(aborted)
    handle = ctypes.CDLL(None).signal
    handle.argtypes, handle.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    handle(signal.SIGABRT, ctypes.cast(_kept_handler, ctypes.c_void_p))


def meet(place: str) -> None:
    """Wait until every process is here."""
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices(place)


def any_of(flag: bool) -> bool:
    """Whether the flag is set in any process; every process must ask at the same place."""
    import numpy as np
    from jax.experimental import multihost_utils

    return bool(multihost_utils.process_allgather(np.array(flag)).any())


def of_first(numbers: Sequence[float]) -> list[float]:
    """The first process's float32 numbers, in all of them; every process must ask at the same place."""
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    single = np.array(numbers, np.float32)
    if jax.process_count() > 1:
        single = multihost_utils.broadcast_one_to_all(single)
    return [float(number) for number in single]


def follow(run: Run, stages: Sequence[Stage]) -> None:
    """What a follower does for these stages: train with the leader, wait for it where it works alone."""
    assert _others is not None, 'follow comes after join'
    told = False
    for stage in stages:
        if stage.always:
            continue
        trained = False
        while not ((made := run.manifest(stage.name)) and _matches(run, stage, made)):
            claim = None if made else read_record(run.workdir / stage.name, STARTED)
            # A claim means that the leader has begun; it waits in the first collective until all train.
            if stage.name == TRAINED_TOGETHER and not trained and claim and _matches(run, stage, claim):
                run.fetch(stage.name)
                stage.build(run, run.workdir / stage.name)
                trained = True
            time.sleep(POLL_SECONDS_OF_A_BUCKET if run.mirror else POLL_SECONDS)
            run.refresh()
            if run.stopping.is_set() and not told:
                _others.tell('stop')  # the leader saves and leaves, and we with it
                told = True
            if _others.leader_code in SAVED:
                raise Stopped
            if _others.leader_code == DONE:
                return


def _matches(run: Run, stage: Stage, record: dict[str, Any]) -> bool:
    """Whether a stage is of this configuration; the files that a run in a bucket reads are only where it leads."""
    if run.mirror:
        inputs = {name: content for name, content in record['inputs'].items() if ':' not in name}
        record = {**record, 'inputs': inputs}
    return not differences(record, fingerprint(run, stage, external=not run.mirror))
