"""Several processes, one program: the first one leads (it does every stage and writes), the others train with it.

Every process is started with the same command and sees the same run folder, or mirrors the same bucket in a folder of
its own. Stages other than `pretrain` are the leader's; the followers wait until their manifests are there.
"""

import time
from collections.abc import Sequence
from typing import Any

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.files import read_json
from bioptimus_jax.run import STARTED, Run, Stage, differences, fingerprint

AUTO = 'auto'
TRAINED_TOGETHER = 'pretrain'
POLL_SECONDS = 0.5
POLL_SECONDS_OF_A_BUCKET = 3.0


def join(setting: str) -> int:
    """Meet the other processes as `config.runtime.distributed` says; this one's number, 0 leads. Raises ConfigError."""
    import jax  # late: the command line stays light for one process

    try:
        if setting == AUTO:
            jax.distributed.initialize()
        else:
            address, count, index = setting.split(',')
            jax.distributed.initialize(address, int(count), int(index))
    except (ValueError, RuntimeError) as error:
        reason = ' '.join(str(error).split())[:200]
        raise ConfigError(
            f'config.runtime.distributed: {setting!r}: {reason}; give auto, or HOST:PORT,PROCESSES,INDEX'
        ) from error
    return jax.process_index()


def meet(place: str) -> None:
    """Wait until every process is here."""
    from jax.experimental import multihost_utils

    multihost_utils.sync_global_devices(place)


def any_of(flag: bool) -> bool:
    """Whether the flag is set in any process; every process must ask at the same place."""
    import numpy as np
    from jax.experimental import multihost_utils

    return bool(multihost_utils.process_allgather(np.array(flag)).any())


def follow(run: Run, stages: Sequence[Stage]) -> None:
    """What a follower does for these stages: train with the leader, wait for it where it works alone."""
    for stage in stages:
        if stage.always:
            continue
        trained = False
        while not _is_done(run, stage):
            if stage.name == TRAINED_TOGETHER and not trained and _has_begun(run, stage):
                run.fetch(stage.name)
                stage.build(run, run.workdir / stage.name)
                trained = True
            time.sleep(POLL_SECONDS_OF_A_BUCKET if run.mirror else POLL_SECONDS)
            run.refresh()
            run.check_stop()


def _is_done(run: Run, stage: Stage) -> bool:
    manifest = run.manifest(stage.name)
    return manifest is not None and _matches(run, stage, manifest)


def _has_begun(run: Run, stage: Stage) -> bool:
    started = read_json(run.workdir / stage.name / STARTED)
    finished = run.manifest(stage.name) is not None
    return started is not None and not finished and _matches(run, stage, started)


def _matches(run: Run, stage: Stage, record: dict[str, Any]) -> bool:
    """Whether a stage is of this configuration; the files that a run in a bucket reads are only where it leads."""
    if run.mirror:
        inputs = {name: content for name, content in record['inputs'].items() if ':' not in name}
        record = {**record, 'inputs': inputs}
    return not differences(record, fingerprint(run, stage, external=not run.mirror))
