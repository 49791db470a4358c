"""`bioptimus run`: every stage of a run."""

from bioptimus_jax.command import Command, Verb, in_run, run_flags
from bioptimus_jax.stages import run_all


def _call(command: Command) -> None:
    in_run(command, command.experiment.stages, lambda run: run_all(run, command.options.replace))


VERB = Verb(
    'every stage in order',
    'Every stage of config.stages in order; finished ones are skipped, an unfinished one goes on.\n\n'
    'reads:  what the stages read\nwrites: WORKDIR/STAGE for each, WORKDIR/metrics.jsonl\n\n'
    'example:\n  bioptimus run --config=small --workdir=runs/small --config.source.path=FOLDER',
    run_flags(),
    _call,
    ('seed', 'stages', 'source'),
)
