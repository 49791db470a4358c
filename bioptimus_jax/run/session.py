"""The run of a command: --workdir and inputs as they are, or mirrored here where they lie in a bucket."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.hosts.config import Configuration
from bioptimus_jax.hosts.lifelines import Lifelines
from bioptimus_jax.hosts.remote.inputs import local_place, remote_inputs, with_local_inputs
from bioptimus_jax.hosts.remote.mirror import Mirror
from bioptimus_jax.hosts.remote.pins import recorded, with_pinned_models
from bioptimus_jax.hosts.remote.store import Store, is_remote
from bioptimus_jax.progress.console import Console
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import read_claim, read_manifest
from bioptimus_jax.run.processes import TRAINED_TOGETHER

Chosen = TypeVar('Chosen', bound=Configuration)


@contextlib.contextmanager
def open_run(
    workdir: str,
    experiment: Chosen,
    stages: tuple[str, ...],
    watch: Callable[[Console], None],
    others: Lifelines | None = None,
    writes: bool = True,
) -> Iterator[Run[Chosen]]:
    """The run in `workdir`, a folder or a URL, for these stages; `watch` is told of it before anything takes long.

    The first of several processes, `others`, leads; over a bucket each has a folder of its own. One that never `writes`
    makes no folder, and mirrors nothing. Raises ConfigError, InputError, Stopped.
    """
    if not writes:
        require_local('--workdir', workdir)
        for key, url in remote_inputs(experiment, stages):
            require_local(f'--config.{key}', url)
    cache = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'bioptimus'
    runtime = experiment.runtime
    staging = Path(runtime.staging or cache).expanduser()
    process = others.number if others else 0
    runs = _of_process(staging / 'runs', process)
    place = local_place(runs, workdir) if is_remote(workdir) else Path(workdir)
    run = Run(place, experiment, leads=process == 0, writes=writes)
    if others and run.leads:
        run.console.stopping = others.stopping
    watch(run.console)
    with contextlib.ExitStack() as stack:
        stack.push(lambda kind, *_: run.withdraw() if kind and issubclass(kind, Exception) else None)
        if is_remote(workdir):
            run.mirror = stack.enter_context(
                Mirror(
                    Store(workdir),
                    place,
                    run.console.stopping,
                    run.leads,
                    runtime.push_seconds,
                    run.console.quiet,
                )
            )
        inputs = _of_process(staging / 'inputs', process)
        if process and run.mirror:  # the others are the leader's
            stages = tuple(name for name in stages if name == TRAINED_TOGETHER)
        run.config = with_local_inputs(
            experiment, stages, inputs, run.console.quiet, run.console.check_stop, run.came_from
        )
        if runtime.cluster and not runtime.staging and (run.mirror or run.config != experiment):
            raise ConfigError(
                'config.runtime.cluster: its workers do not see what is mirrored here from a bucket; set '
                'config.runtime.staging to a folder that all machines see'
            )
        run.config = with_pinned_models(
            run.config, stages, _models_on_record(run.workdir), run.came_from, run.console.say
        )
        yield run


def require_local(flag: str, *places: str) -> None:
    """Raise ConfigError for a URL where only folders of this machine will do."""
    for place in filter(is_remote, places):
        raise ConfigError(
            f'{flag}={place}: must be a folder of this machine; stages alone work in a bucket, and read from one'
        )


def _models_on_record(workdir: Path) -> dict[str, str]:
    """The commits of models of the hub, by their ids, that finished and begun stages of a run were made of."""
    found: dict[str, str] = {}
    for folder in sorted(path for path in workdir.glob('*') if path.is_dir()):
        begun = read_manifest(folder) or read_claim(folder)
        for addresses in (begun.origins or {}).values() if begun else ():
            found |= recorded(addresses)
    return found


def _of_process(folder: Path, process: int) -> Path:
    return folder.with_name(f'{folder.name}.{process}') if process else folder
