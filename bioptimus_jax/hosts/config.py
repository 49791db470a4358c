"""How a run is carried out: the section `runtime`. Nothing here changes a result."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self

from bioptimus_jax.config.fields import common_key, key
from bioptimus_jax.config.plugins import Names
from bioptimus_jax.progress.tracker import TRACKERS
from bioptimus_jax.records.manifests import Begun

MOST_WORKERS = 4096  # processes or threads of one machine


@dataclasses.dataclass(frozen=True)
class Runtime:
    """How a run is carried out. Nothing here changes a result."""

    base_run: tuple[str, ...] = key(
        (), 'runs, or folders of runs, whose finished stages are used if they match', path=True
    )
    devices: int = common_key(0, 'accelerators used for training; 0: all', low=0)
    distributed: str = key(
        '', 'several processes: auto (SLURM, TPU, Open MPI 4, Kubernetes), or HOST:PORT,PROCESSES,INDEX'
    )
    lost_after_seconds: int = key(
        60, 'several processes: a host silent for this long is gone, and all others end', low=6, high=86_400
    )
    fsdp: int = key(1, 'devices that parameters and optimiser state are split over', low=1)
    tensor: int = key(1, 'devices that heads, feed-forward columns and vocabulary are split over', low=1)
    attention: str = key(
        'auto',
        'attention; auto: the fastest that passes a check, measured once in a run; xla where something is dropped',
        one_of=Names('KERNELS', 'auto', 'xla', 'pallas_gpu', 'cudnn', 'cudnn_packed', 'splash'),
    )
    remat: str = key(
        'auto',
        'what the backward pass computes again; auto: dots beyond 12 layers',
        one_of=('auto', 'none', 'dots', 'full'),
    )
    scan_layers: str = key('auto', 'a layer in a loop; auto: beyond 12 layers', one_of=('auto', 'yes', 'no'))
    profile_steps: tuple[int, ...] = key((), 'first and last step of a profiler trace; empty: none', low=0)
    workers: int = common_key(
        0,
        'processes of corpus, vocab, contexts, rows, and cores of fine-tuning; 0: all cores',
        low=0,
        high=MOST_WORKERS,
    )
    cluster: str = key(
        '',
        'HOST:PORT of a dask scheduler instead, for fine-tuning and arms of a sweep, too; workers see the same files',
    )
    torch_threads: int = key(
        1, 'threads of PyTorch in fine-tuning, at most one per core', low=1, high=MOST_WORKERS
    )
    deterministic: bool = key(
        False,
        'GPU: deterministic kernels, for bit-identical resuming; slower: no cuDNN attention, no autotuning',
    )
    log_every_steps: int = key(20, 'lines in metrics.jsonl', low=1)
    until: float = key(
        1.0,
        'pre-training saves and ends the command after this share of its steps, for `bioptimus forecast`; with a '
        'larger one the same command continues',
        low=0.0001,
        high=1,
    )
    train_hours: float = key(
        0.0,
        'hours after the beginning of the command when pre-training ends: steps that do not fit are taken away once '
        'their speed is known, from each phase its share; a command that resumes keeps what was decided; 0: no limit',
        low=0,
        high=100_000,
    )
    checkpoint_every_steps: int = key(200, 'steps between checkpoints', low=1)
    keep_checkpoints: int = key(2, 'newest ones kept beside the phase ends', low=1)
    trackers: tuple[str, ...] = key(
        (), 'other places for the numbers of metrics.jsonl: files of trackers/', one_of=TRACKERS
    )
    tensorboard: bool = key(False, 'the same as trackers=tensorboard')
    staging: str = key(
        '',
        "local folder that mirrors a --workdir and inputs in a bucket; empty: bioptimus in the user's cache",
        path=True,
    )
    push_seconds: float = key(
        60.0,
        'a --workdir in a bucket: unfinished work is put there no more often, and in no more than 5 % of the time; 0: '
        'whenever there is something new',
        low=0,
    )

    @property
    def tracked(self) -> tuple[str, ...]:
        """Names of all trackers."""
        return tuple(dict.fromkeys((*self.trackers, *('tensorboard',) * self.tensorboard)))


class Configuration(Protocol):
    """What a run reads of its configuration, whatever its stages are; a frozen record."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def runtime(self) -> Runtime: ...

    @property
    def resolved(self) -> Self:
        """The same with every setting of its objectives."""
        ...

    def recorded_by(self, manifest: Callable[[str], Begun | None]) -> Self:
        """The same with every key that the manifests of stages record."""
        ...
