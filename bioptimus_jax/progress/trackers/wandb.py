"""Weights & Biases: a run of project `bioptimus`, gone on with by the same folder; WANDB_MODE=offline sends nothing."""

from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.progress.tracker import PROJECT, Tracker, Write, identity


def opened(workdir: Path, settings: Mapping[str, str]) -> Write:
    """What writes into the run of this folder, gone on with."""
    import wandb

    run = wandb.init(
        project=PROJECT,
        name=workdir.resolve().name,
        id=identity(workdir),
        resume='allow',
        dir=str(workdir),
        config=dict(settings),
    )

    def write(stage: str, step: int, values: Mapping[str, float]) -> None:
        run.define_metric(f'{stage}/*', step_metric=f'{stage}/step')  # steps of every stage begin with 0
        run.log({f'{stage}/step': step, **values})

    return write


TRACKER = Tracker('wandb', opened)
