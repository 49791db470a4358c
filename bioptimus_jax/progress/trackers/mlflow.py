"""MLflow: a run of experiment `bioptimus`, in WORKDIR/mlflow.db unless MLFLOW_TRACKING_URI says where."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from bioptimus_jax.progress.tracker import PROJECT, Tracker, Write, identity


def opened(workdir: Path, settings: Mapping[str, str]) -> Write:
    """What writes into the run of this folder, gone on with, or begun with its settings."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    here = f'sqlite:///{(workdir / "mlflow.db").resolve()}'
    client = MlflowClient(os.environ.get('MLFLOW_TRACKING_URI') or here)
    found = client.get_experiment_by_name(PROJECT)
    experiment = found.experiment_id if found else client.create_experiment(PROJECT)
    tags = {'bioptimus.id': identity(workdir)}
    # Found by a tag, since several runs of MLflow may have one name.
    known = client.search_runs([experiment], f"tags.`bioptimus.id` = '{identity(workdir)}'")
    if known:
        run = known[0].info.run_id
    else:
        run = client.create_run(experiment, tags=tags, run_name=workdir.resolve().name).info.run_id
        for name, value in settings.items():
            client.log_param(run, name, str(value))

    def write(stage: str, step: int, values: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        # MLflow refuses other letters in names.
        named = {re.sub(r'[^/\w.\- ]', '_', name): value for name, value in values.items()}
        client.log_batch(run, [Metric(name, value, now, step) for name, value in named.items()])

    return write


TRACKER = Tracker('mlflow', opened)
