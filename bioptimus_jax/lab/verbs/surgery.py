"""`bioptimus surgery`: the stage, and the probe of all its strategies.

With --probe: which strategy and variant is best for this source and corpus? Needs the stages corpus and vocab and
makes no stage: it hides tokens from the source, rebuilds their rows by every strategy and variant, and says how close
they come to the true rows. Writes WORKDIR/probe.json and prints a table, the best first.
"""

from bioptimus_jax.cli.command import (
    OF_STAGES,
    Command,
    Verb,
    described,
    flag,
    in_run,
    make_stage,
    run_flags,
    stage_keys,
    stage_text,
    switch,
)
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.run.folder import Run

STAGE = STAGES['surgery']


def _call(command: Command) -> None:
    options = command.options

    def probed(run: Run) -> None:
        from bioptimus_jax.lab.probe import probe  # imports jax
        from bioptimus_jax.lab.sections.probe import probe as table
        from bioptimus_jax.report.measures import read_measures

        probe(run, options.probe_tokens, options.probe_contexts, options.probe_fit_steps)
        print(table(read_measures(run)).text())

    if options.probe:
        in_run(command, (), probed)
    else:
        make_stage(command, STAGE)


VERB = Verb(
    STAGE.summary,
    f'{stage_text(STAGE)}\n\n{described(__doc__)[1]}',
    (
        *run_flags(),
        switch('--probe', 'compare all strategies in place of the stage'),
        flag('--probe-tokens', 'tokens hidden (default: %(default)s)', 1000, type=int, metavar='N'),
        flag('--probe-contexts', 'sentences a token (default: %(default)s)', 10, type=int, metavar='N'),
        flag('--probe-fit-steps', 'a gradient fit too (default: %(default)s)', 0, type=int, metavar='N'),
    ),
    _call,
    stage_keys(STAGE),
    OF_STAGES,
)
