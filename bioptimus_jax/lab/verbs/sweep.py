"""`bioptimus sweep`: run the arms of an ablation.

Every arm of an ablation, each an ordinary run in WORKDIR/ARM; corpus, vocabulary, contexts, rows and
whatever else is the same for several arms is made once. One seed of every arm comes before the next of any,
the control first. Finished arms are skipped, an unfinished one continues. With --hours the sweep ends in
time: what runs saves and stops, and the tables are of the finished arms. With --arms only some are made; the
tables are also of the finished arms that were made before.

reads:  what the stages read
writes: WORKDIR/ARM (a run, with log.txt), WORKDIR/results.jsonl, votes.jsonl, arms.md, arms.svg, differences.svg

example:
  bioptimus sweep --config=ablations:table2 --workdir=runs/table2 --config.source.path=FOLDER --jobs=2
"""

from bioptimus_jax.cli.command import Command, Verb, config_flag, described, flag, needed, positive, switch
from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts import signals
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.run.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.lab.sweep import Sweep  # imports matplotlib

    options = command.options
    require_local('--workdir', options.workdir)
    sweep = Sweep(
        options.config,
        options.workdir,
        command.overrides,
        options.arms,
        options.jobs,
        options.control,
        options.hours,
        paths=not options.status,
    )
    if options.status:
        print(sweep.table().text())
        sweep.withdraw()
        return
    with signals.watching() as watch:
        watch(sweep)
        failed = sweep.make()
    print('\n\n'.join(table.text() for table in sweep.tables))
    if failed:
        names = ', '.join(arm.name for arm in failed)
        raise InputError(
            f'{len(failed)} of {numbered(len(sweep.arms), "arm")} failed: {names}; see log.txt in their folders in '
            f'{options.workdir}, then rerun the same command'
        )


VERB = Verb(
    *described(__doc__),
    (
        config_flag('a config with get_arms()'),
        needed('--workdir', 'folder of the arms', 'DIR'),
        flag('--arms', 'make only arms with such names (default: *)', '*', metavar='GLOB,...'),
        flag(
            '--jobs',
            'arms at a time, each with its share of the cores and GPUs (default: 1); on a cluster: one a worker',
            1,
            type=int,
            metavar='N',
        ),
        flag('--control', 'differences to this arm, and the steps that others save', metavar='ARM'),
        flag(
            '--hours',
            'save and stop after so many; the same command goes on',
            None,
            type=positive,
            metavar='N',
        ),
        switch('--status', 'only list the arms and say which stages are done; nothing is made'),
    ),
    _call,
    ('runtime.base_run', 'runtime.cluster'),
    every=True,
)
