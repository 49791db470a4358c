"""`bioptimus forecast`: how runs will end, and which to take."""

from typing import Any

from bioptimus_jax.command import Command, Verb, flag, json_flag, shares
from bioptimus_jax.hosts.remote.session import require_local


def _call(command: Command) -> None:
    from bioptimus_jax.forecast.tables import tell  # imports jax and matplotlib

    options = command.options
    for folder in options.runs:
        require_local('RUN', folder)
    told = tell(options.runs, options.check)

    def document() -> dict[str, Any]:
        tables = [{'title': t.title, 'rows': t.records(), 'note': t.note or None} for t in told.tables]
        return {'tables': tables, 'said': told.said or None}

    command.answer(document, lambda: '\n\n'.join(filter(None, [*(t.text() for t in told.tables), told.said])))


VERB = Verb(
    'how runs will end, from their first steps',
    'The final held-out loss of runs that are not finished, with an interval, and the chance that each of them ends\n'
    'lowest. It learns from finished runs of the same sweep or another how the end follows from the loss after the\n'
    'same share of the steps, and from the learning rates and masking settings of all steps.\n\n'
    'Train some candidates to the end, all others for a tenth of their steps, and continue what is worth it:\n\n'
    "  bioptimus sweep --config=ablations:forecast,rates=5 --workdir=runs/rates --arms='tokens_15*' ...\n"
    '  bioptimus sweep --config=ablations:forecast,rates=5 --workdir=runs/rates --config.runtime.until=0.1 ...\n'
    '  bioptimus forecast runs/rates\n\n'
    'reads:  metrics.jsonl, RUN/pretrain/curriculum.json and manifests of each run, or results.jsonl of a sweep\n'
    'writes: a table to the terminal, and which run to continue',
    (
        flag('runs', 'run folders, sweeps, or their results.jsonl', None, nargs='+', metavar='RUN'),
        flag(
            '--check',
            'how good forecasts after such shares of the steps are, by the finished runs',
            (),
            type=shares,
            metavar='SHARE,...',
        ),
        json_flag(),
    ),
    _call,
)
