"""The page of a run while the run goes on: made again in a folder beside the stages, until every stage is done."""

import time
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.report import page
from bioptimus_jax.report.resolved import STAGES
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import read_claim
from bioptimus_jax.run.metrics import MetricsLog

FOLDER = 'live'


def follow(run: Run, seconds: float) -> Path:
    """Write the page into FOLDER of the run every so many seconds; the last one, of the finished run, stays as it is.

    Gives the page. Raises Stopped, and InputError where the records of a finished run are damaged.
    """
    folder = run.workdir / FOLDER
    folder.mkdir(exist_ok=True)
    run.console.say(f'report: {folder / "index.html"} follows the run; Ctrl-C ends it')
    while left := [stage for stage in run.config.stages if stage in STAGES and not run.manifest(stage)]:
        try:
            now = page.Live(_now(run.workdir, run.metrics, left), time.strftime('%X'), seconds)
            page.build(run, folder, now)
        except InputError as error:  # a file may be just being written
            run.console.say(f'report: left as it was: {error}')
        run.console.stopping.wait(seconds)
        run.console.check_stop()
    page.build(run, folder)
    return folder / 'index.html'


def _now(workdir: Path, metrics: MetricsLog, left: list[str]) -> str:
    """`pretrain, step 1,200`, of the stages that are left the first that has begun."""
    begun = next((stage for stage in left if read_claim(workdir / stage)), '')
    records = metrics.of(begun) if begun else []
    return f'{begun}, step {records[-1]["step"]:,}' if records else begun or f'before {left[0]}'
