"""`bioptimus forecast`: predict how runs will end from their first steps.

The final held-out loss of runs that are not finished, with an interval, and the chance that each of them ends
lowest. It learns from finished runs of the same sweep or another how the end follows from the loss after the
same share of the steps, and from the learning rates and masking settings of all steps.

Train some candidates to the end, all others for a tenth of their steps, and continue what is worth it:

  bioptimus sweep --config=ablations:forecast,rates=5 --workdir=runs/rates --arms='tokens_15*' ...
  bioptimus sweep --config=ablations:forecast,rates=5 --workdir=runs/rates --config.runtime.until=0.1 ...
  bioptimus forecast runs/rates

Short runs can replace first steps: each candidate goes through its whole schedule on a small share of the words. Then
some are trained for long, and the ends of all others follow from their short runs:

  bioptimus sweep --config=ablations:forecast,rates=5,words=35000 --workdir=runs/short ...
  bioptimus sweep --config=ablations:forecast,rates=5 --workdir=runs/rates --arms='tokens_15*' ...
  bioptimus forecast runs/rates --short=runs/short

reads:  metrics.jsonl, RUN/pretrain/curriculum.json and manifests of each run, or results.jsonl of a sweep
writes: a table to the terminal, and which run to continue
"""

from bioptimus_jax.cli.command import Command, Verb, as_documents, described, flag, folders, json_flag, shares
from bioptimus_jax.run.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.lab.forecast.tables import tell  # imports jax and matplotlib

    options = command.options
    require_local('RUN', *options.runs)
    require_local('--short', *options.short)
    told = tell(options.runs, options.check, options.short)
    command.answer(
        lambda: {'tables': as_documents(told.tables), 'said': told.said or None},
        lambda: '\n\n'.join(filter(None, [*(t.text() for t in told.tables), told.said])),
    )


VERB = Verb(
    *described(__doc__),
    (
        flag('runs', 'run folders, sweeps, or their results.jsonl', None, nargs='+', metavar='RUN'),
        flag(
            '--check',
            'score forecasts after these shares of the steps against the finished runs',
            (),
            type=shares,
            metavar='SHARE,...',
        ),
        flag(
            '--short',
            'short runs, named as the long ones: forecast from these instead of from first steps',
            (),
            type=folders,
            metavar='RUN,...',
        ),
        json_flag(),
    ),
    _call,
)
