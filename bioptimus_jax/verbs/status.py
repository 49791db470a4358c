"""`bioptimus status`: what a run has done, and what it is doing."""

import dataclasses
from pathlib import Path

from bioptimus_jax.command import Command, Verb, flag, json_flag
from bioptimus_jax.hosts.remote.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.status import status_of  # imports the sets

    require_local('RUN', command.options.run)
    found = status_of(Path(command.options.run))
    command.answer(lambda: dataclasses.asdict(found), found.text)


VERB = Verb(
    'what a run has done, and what it is doing',
    'Which stages of a run are done, unfinished or not begun, and whether a process is working on one now; the step,\n'
    'rate and time left of pre-training; finished cells of fine-tuning; disk used; the newest record. Nothing is\n'
    'changed, and a run in progress is not disturbed.\n\n'
    'reads:  RUN/STAGE/manifest.json, RUN/metrics.jsonl, locks\n'
    'writes: a table to the terminal\n\n'
    'example:\n  bioptimus status runs/small',
    (flag('run', 'a run folder', None, metavar='RUN'), json_flag()),
    _call,
)
