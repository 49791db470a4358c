"""`bioptimus run`: run every stage in order.

Every stage of config.stages in order; finished ones are skipped, an unfinished one continues. Whatever can
be known to be wrong with any of them is refused before the first one begins. Ends with the table of the phases,
what the adaptation brought, and where the models and the page are.

reads:  what the stages read
writes: WORKDIR/STAGE for each, WORKDIR/metrics.jsonl

examples:
  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER
  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER --dry-run
"""

import time

from bioptimus_jax.cli.command import OF_A_RUN, START, Command, Verb, described, in_run, run_flags, switch
from bioptimus_jax.experiment.stages import foreseen, run_all
from bioptimus_jax.run.folder import Run


def _call(command: Command) -> None:
    options = command.options

    def lead(run: Run) -> None:
        if options.dry_run:
            for name, said in foreseen(run, options.replace).items():
                run.console.say(f'{name}: {said}')
            return
        run_all(run, options.replace)
        from bioptimus_jax.report.ending import ending  # imports the sections

        if last := ending(run, time.time() - run.started):
            run.console.say(last)

    in_run(command, command.experiment.stages, lead, writes=not options.dry_run)


VERB = Verb(
    *described(__doc__),
    (
        *run_flags(),
        switch('--dry-run', 'check all, say what each stage would do, write nothing'),
    ),
    _call,
    ('seed', 'stages', 'source', *OF_A_RUN),
    every=True,
    group=START,
)
