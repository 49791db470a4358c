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

from pathlib import Path

from bioptimus_jax.cli.command import USE, Command, Verb, described, flag, levels, stage_keys, stage_text
from bioptimus_jax.cli.verbs import report
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.run.session import require_local

TAKEN = 'what each arm took to get there (default: what all of them reach)'


def _call(command: Command) -> None:
    options = command.options
    if options.live and options.runs:
        raise ConfigError('report --live takes the --config and --workdir that the run was given, and no RUN')
    if options.live or (options.config and options.workdir and not options.runs):
        report.VERB.call(command)
        return
    from bioptimus_jax.lab import comparison  # imports matplotlib

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


VERB = Verb(
    report.STAGE.summary,
    f'{stage_text(report.STAGE)}\n\n{described(__doc__)[1]}',
    (
        *report.VERB.flags,
        flag(
            'runs',
            'run folders, sweeps, or their results.jsonl; no --config, no --workdir',
            None,
            nargs='*',
            metavar='RUN',
        ),
        flag('--to', 'folder of their page (default: tables, beside or in them)', metavar='DIR'),
        flag('--loss', f'held-out losses: {TAKEN}', (), type=levels, metavar='X,X'),
        flag('--f1', f'devel F1, percent: {TAKEN}', (), type=levels, metavar='X,X'),
    ),
    _call,
    stage_keys(report.STAGE),
    group=USE,
)
