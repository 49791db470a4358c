"""`bioptimus compare`: compare fine-tuned models.

With --models: is model B better than model A at finding entities, on each set and over all? Test F1 over
the seeds that both have: over fine-tunings (paired t-test), and of these models on other test items
(bootstrap, randomisation), each corrected for several sets (Holm). Settings of fine-tuning that differ
come first.

reads:  two folders RUN/finetune/MODEL, or folders below, with :SETTING at the end where a model has several
        settings, or :devel for those that devel chooses; or DIR/NAME of `bioptimus score --to=DIR
        --name=NAME`. Of a stage, finished or not, the finished fine-tunings that its last configuration asks for
writes: a line for each set, to the terminal

examples:
  bioptimus compare --models runs/small/finetune/0.1 runs/small/finetune/0.4
  bioptimus compare --models runs/small/finetune/0.4:standard runs/small/finetune/0.4:frozen
"""

from typing import Any

from bioptimus_jax.cli.command import USE, Command, Verb, described, flag, json_flag, switch
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.storage.files import JsonObject


def _call(command: Command) -> None:
    from bioptimus_jax.finetuning.verdict import compare_models

    options = command.options
    if not options.models:
        raise ConfigError(
            'compare takes two models: bioptimus compare --models RUN/finetune/A RUN/finetune/B'
        )
    if len(options.runs) != 2:
        raise ConfigError(
            f'compare --models takes two folders, RUN/finetune/MODEL each; got {len(options.runs)}'
        )
    command.answer(lambda: document(*options.runs), lambda: '\n'.join(compare_models(*options.runs)))


def document(a: str, b: str) -> JsonObject:
    """What `compare_models` says, as data: scores by seed in percent, and differences, B less A."""
    from bioptimus_jax.finetuning.differing import differing
    from bioptimus_jax.finetuning.finished import read_model
    from bioptimus_jax.finetuning.verdict import compare_both, winner_of

    def numbers(found: Any) -> JsonObject:
        effect = found.over_trainings
        not_tested = {'not_tested': effect.untested} if effect.untested else {}
        better = {'better': winner_of(effect), **not_tested}
        return {**difference(effect), **better, 'on_other_items': difference(found.on_items)}

    def difference(effect: Any) -> JsonObject:
        return {'difference': effect.observed, 'low': effect.low, 'high': effect.high, 'p': effect.holm}

    models = {'A': read_model(a), 'B': read_model(b)}
    both = compare_both(*models.values())
    sets = [
        {
            'set': one.pairing.dataset,
            'measure': one.pairing.metric.label,
            'seeds': one.pairing.seeds,
            one.pairing.unit: one.pairing.units,
            **one.pairing.scores,
            **numbers(found),
            'settings_that_differ': [
                {'setting': each.setting, 'A': each.a, 'B': each.b, 'why': each.why}
                for each in differing(models['A'], models['B'], one.pairing.dataset)
            ],
            'notes': one.notes,
        }
        for one, found in zip(both.of_sets, both.found, strict=True)
    ]
    named = {
        side: {n: getattr(m, n) for n in ('folder', 'name', 'setting', 'left_out')}
        for side, m in models.items()
    }
    over_all = {'measure': both.label, **numbers(both.overall)}
    return {'models': named, 'sets': sets, 'all': over_all}


VERB = Verb(
    *described(__doc__),
    (
        switch('--models', 'two models by what they predict'),
        json_flag(),
        flag('runs', 'A and B', None, nargs='+', metavar='FOLDER'),
    ),
    _call,
    group=USE,
)
