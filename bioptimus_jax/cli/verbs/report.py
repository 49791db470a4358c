"""`bioptimus report`: build the page of a run.

With --live, the page of a run in progress: WORKDIR/live/index.html, rebuilt until its last stage is done; a browser
that shows it reloads it by itself.

  bioptimus report --config=small --workdir=runs/small --live
"""

import os
from pathlib import Path

from bioptimus_jax.cli.command import (
    USE,
    Command,
    Verb,
    described,
    flag,
    make_stage,
    positive,
    run_flags,
    stage_keys,
    stage_text,
)
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.hosts import signals
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.session import require_local

STAGE = STAGES['report']
SECONDS = 30.0
PATIENT = 10
"""Niceness of the process that follows a run: training comes first."""


def _call(command: Command) -> None:
    options = command.options
    if options.live:
        _follow(command)
    elif options.config and options.workdir:
        make_stage(command, STAGE)
    else:
        raise ConfigError('report takes --config and --workdir; see `bioptimus report --help`')


def _follow(command: Command) -> None:
    options = command.options
    if options.replace:
        raise ConfigError('report --live makes the page again all the time; leave --replace out')
    if not (options.config and options.workdir):
        raise ConfigError('report --live takes the --config and --workdir that the run was given')
    require_local('--workdir', options.workdir)
    if not Path(options.workdir).is_dir():
        raise InputError(f'{options.workdir}: no such run folder; start the run first')
    from bioptimus_jax.report import live  # imports matplotlib

    os.nice(PATIENT)
    with signals.watching() as watch:
        run = Run(options.workdir, command.experiment_without_paths)
        watch(run.console)
        live.follow(run, options.live)


VERB = Verb(
    STAGE.summary,
    f'{stage_text(STAGE)}\n\n{described(__doc__)[1]}',
    (
        *run_flags(required=False),
        flag(
            '--live',
            f'follow a run in progress: rebuild its page every SECONDS ({SECONDS:g})',
            None,
            nargs='?',
            const=SECONDS,
            type=positive,
            metavar='SECONDS',
        ),
    ),
    _call,
    stage_keys(STAGE),
    group=USE,
)
