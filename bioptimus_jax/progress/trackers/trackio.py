"""trackio: a run of project `bioptimus` in its own folder of the cache; `trackio show` opens it."""

from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.progress.tracker import PROJECT, Tracker, Write, identity


def opened(workdir: Path, settings: Mapping[str, str]) -> Write:
    """What writes into the run of this folder."""
    import trackio

    name = f'{workdir.resolve().name}-{identity(workdir)}'
    run = trackio.init(project=PROJECT, name=name, resume='allow', config=dict(settings))

    def write(stage: str, step: int, values: Mapping[str, float]) -> None:
        run.log({f'{stage}/step': step, **values})

    return write


TRACKER = Tracker('trackio', opened)
