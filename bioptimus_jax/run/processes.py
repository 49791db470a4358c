"""Several processes, one program: the first one leads (it does every stage and writes), the others train with it.

Every process is started with the same command and sees the same run folder, or mirrors the same bucket in a folder of
its own. Stages other than `pretrain` are the leader's; the followers wait until their manifests are there. When one is
gone, all others end (`lifelines`).
"""

import ctypes
import dataclasses
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from bioptimus_jax.errors import DONE, FAILED, LOST, SAVED, ConfigError, Stopped, reason_of
from bioptimus_jax.hosts import clusters, devices, lifelines, rollcall
from bioptimus_jax.hosts.config import Runtime
from bioptimus_jax.hosts.lifelines import CONNECT_SECONDS, GRACE_SECONDS, Lifelines
from bioptimus_jax.progress.console import crash_file
from bioptimus_jax.records.manifests import Begun
from bioptimus_jax.run.fingerprint import StageOfRun
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import read_claim
from bioptimus_jax.run.stage import Stage

TRAINED_TOGETHER = 'pretrain'
POLL_SECONDS = 0.5
POLL_SECONDS_OF_A_BUCKET = 3.0
MEETING_PLACE = 'bioptimus/lifelines'  # a key in the store that jax's processes share

_others: Lifelines | None = None
_meeting = ''  # the address at which jax's processes are meeting just now
_kept_handler = None  # C code calls it: it must not be collected


def join(runtime: Runtime) -> Lifelines:
    """Meet the other processes as `config.runtime.distributed` says, and find all devices; gives the lines to them.

    Raises ConfigError.
    """
    global _others, _meeting
    group = clusters.member(runtime.distributed)
    visible, warning = clusters.devices(group)
    if warning:
        print(f'WARNING: {warning}', flush=True)
    rollcall.meet(group)
    import jax  # late: the command line stays light for one process
    from jax._src.distributed import global_state  # Orbax reads it too: the store has no public name

    seconds = runtime.lost_after_seconds
    _meeting = group.address
    show_again = _explain_aborts()
    try:
        jax.distributed.initialize(
            group.address,
            group.count,
            group.index,
            visible,
            cluster_detection_method='deactivate',  # else a cluster that jax detects would decide on the GPUs
            heartbeat_timeout_seconds=2 * seconds
            + 60,  # lifelines are to notice first: jax aborts with a trace
        )
    except Exception as error:  # of jax, and of its C++
        raise ConfigError(
            f'config.runtime.distributed: the processes do not meet at {group.address} ({reason_of(error)}); give '
            'another port, and let the hosts connect to each other on all ports'
        ) from error
    _meeting = ''
    store: Any = global_state.client
    if group.index == 0:
        show_again()
        server, told = lifelines.listen()
        store.key_value_set(MEETING_PLACE, told)
        _others = lifelines.accept(server, told.split()[1], group.count - 1, seconds)
    else:
        told = store.blocking_key_value_get(MEETING_PLACE, int(1000 * CONNECT_SECONDS))
        _others = lifelines.connect(group.host, told, group.index, seconds)
    # No process gets devices before all ask for them, and the first one needs its own long before the others train.
    try:
        devices.present()
    except ConfigError:  # jax says the same where another process has none and is gone
        _others.give_way()
        raise
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


def _explain_aborts() -> Callable[[], None]:
    """End with one line where jax's runtime aborts; what it writes to stderr is held back until then.

    Returns what ends the holding back.

    A follower whose leader was killed is aborted at once, with a trace, while its lifeline learns of the same.
    """
    global _kept_handler
    held = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
    sys.stderr = os.fdopen(os.dup(2), 'w', buffering=1)
    os.dup2(held.fileno(), 2)

    def aborted(_: int) -> None:
        if not _meeting:
            time.sleep(2 * GRACE_SECONDS)  # a lifeline that knows why ends the process meanwhile
        where = 'above'
        if trace := os.pread(held.fileno(), 1_000_000, 0):
            where = f'in {crash_file(trace.decode(errors="replace"))}'
        if _meeting:
            lifelines.end(
                LOST,
                f'config.runtime.distributed: jax gave up while the processes met at {_meeting}; let the hosts connect '
                'to each other on all ports, unset proxies (http_proxy) for them, and start all again; the details '
                f'are {where}',
            )
        lifelines.end(FAILED, f'the runtime of jax gave up; the details are {where}')

    _kept_handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(aborted)
    handle = ctypes.CDLL(None).signal
    handle.argtypes, handle.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
    handle(signal.SIGABRT, ctypes.cast(_kept_handler, ctypes.c_void_p))

    def show_again() -> None:
        os.dup2(sys.stderr.fileno(), 2)
        held.truncate(0)

    return show_again


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
        own, trained = StageOfRun(run, stage), False
        while not ((made := run.manifest(stage.name)) and _matches(own, made)):
            claim = None if made else read_claim(run.workdir / stage.name)
            # A claim means that the leader has begun; it waits in the first collective until all train.
            if stage.name == TRAINED_TOGETHER and not trained and claim and _matches(own, claim):
                run.fetch(stage.name)
                stage.build(run, run.workdir / stage.name)
                trained = True
            time.sleep(POLL_SECONDS_OF_A_BUCKET if run.mirror else POLL_SECONDS)
            run.refresh()
            if run.console.stopping.is_set() and not told:
                _others.tell('stop')  # the leader saves and leaves, and we with it
                told = True
            if _others.leader_code in SAVED:
                raise Stopped
            if _others.leader_code == DONE:
                return


def _matches(own: StageOfRun, record: Begun) -> bool:
    """Whether a stage is of this configuration; the files that a run in a bucket reads are only where it leads."""
    in_bucket = own.run.mirror is not None
    if in_bucket:
        inputs = {name: content for name, content in record.inputs.items() if ':' not in name}
        record = dataclasses.replace(record, inputs=inputs)
    return not own.changes(record, own.fingerprint(external=not in_bucket))
