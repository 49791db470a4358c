"""`bioptimus status`: show what a run has done and is doing.

Which stages of a run are done, unfinished or not begun, and whether a process is working on one now; the step,
rate and time left of pre-training; finished cells of fine-tuning; disk used; the newest record. Nothing is
changed, and a run in progress is not disturbed.

reads:  RUN/STAGE/manifest.json, RUN/metrics.jsonl, locks
writes: a table to the terminal

example:
  bioptimus status runs/small
"""

import dataclasses
from pathlib import Path

from bioptimus_jax.cli.command import START, Command, Verb, described, flag, json_flag
from bioptimus_jax.run.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.cli.status import status_of  # imports the sets

    require_local('RUN', command.options.run)
    found = status_of(Path(command.options.run))
    command.answer(lambda: dataclasses.asdict(found), found.text)


VERB = Verb(
    *described(__doc__),
    (flag('run', 'a run folder', None, metavar='RUN'), json_flag()),
    _call,
    group=START,
)
