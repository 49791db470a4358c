"""`bioptimus report`: build the page of a run, or the tables of several runs.

For several runs, or sweeps: the paper's Tables 2, 3, 5, 6 and 7, orders and corruption from whatever they hold,
beside the paper's numbers. What a run answers is read from its manifests; runs whose corpora, vocabularies, budgets
or fine-tuning differ are not mixed, and the page says in what they differ. It also shows what each arm took, in words,
FLOPs, hours. For one run, all tables and figures of that run come first. Writes index.html, tables.md and
csv/TABLE.csv into DIR, and results.jsonl, from which alone `bioptimus report` makes the same tables when the run
folders are gone.

With --live, the page of a run in progress: WORKDIR/live/index.html, rebuilt until its last stage is done; a browser
that shows it reloads it by itself.

  bioptimus report --config=small --workdir=runs/small --live
  bioptimus report runs/small
  bioptimus report runs/table2 runs/orders --loss=2.5,2 --f1=80
"""

import os
from pathlib import Path

from bioptimus_jax.cli.command import (
    Command,
    Verb,
    described,
    flag,
    levels,
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
TAKEN = 'what each arm took to get there (default: what all of them reach)'


def _call(command: Command) -> None:
    options = command.options
    if options.live:
        _follow(command)
        return
    if options.config and options.workdir and not options.runs:
        make_stage(command, STAGE)
        return
    from bioptimus_jax.report import comparison  # imports matplotlib

    require_local('RUN', *options.runs)
    if not options.runs:
        raise ConfigError(
            'report takes run folders, or --config and --workdir; see `bioptimus report --help`'
        )
    if options.config or options.workdir or command.overrides or options.replace:
        raise ConfigError(
            'report of run folders takes no --config, --workdir, --replace: how they were made is read from them'
        )
    to = comparison.write(options.runs, Path(options.to) if options.to else None, options.loss, options.f1)
    print(f'report: {to / "index.html"}')


def _follow(command: Command) -> None:
    options = command.options
    if not (options.config and options.workdir) or options.runs or options.replace:
        raise ConfigError('report --live takes the --config and --workdir that the run was given, and no RUN')
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
            'runs',
            'run folders, sweeps, or their results.jsonl; no --config, no --workdir',
            None,
            nargs='*',
            metavar='RUN',
        ),
        flag(
            '--live',
            f'follow a run in progress: rebuild its page every SECONDS ({SECONDS:g})',
            None,
            nargs='?',
            const=SECONDS,
            type=positive,
            metavar='SECONDS',
        ),
        flag('--to', 'folder of their page (default: tables, beside or in them)', metavar='DIR'),
        flag('--loss', f'held-out losses: {TAKEN}', (), type=levels, metavar='X,X'),
        flag('--f1', f'devel F1, percent: {TAKEN}', (), type=levels, metavar='X,X'),
    ),
    _call,
    stage_keys(STAGE),
)
