"""`bioptimus compare`: runs side by side, or two models by what they predict."""

from pathlib import Path

from bioptimus_jax.command import Command, Verb, config_flag, flag
from bioptimus_jax.errors import ConfigError, InputError, printable
from bioptimus_jax.hosts.remote.session import require_local
from bioptimus_jax.run import Run


def _call(command: Command) -> None:
    if command.options.models:
        _compare_models(command)
    else:
        _compare_runs(command)


def _compare_runs(command: Command) -> None:
    from bioptimus_jax.report import arms  # imports matplotlib
    from bioptimus_jax.report.measures import read_measures

    options = command.options
    if not options.config:
        raise ConfigError(
            '--config=NAME_or_FILE[:argument] is missing: it names the phases; or did you mean --models?'
        )
    experiment = command.experiment
    for folder in options.runs:
        require_local('FOLDER', folder)
        if not Path(folder).is_dir():
            raise InputError(f'{folder}: no such run folder')
    runs = [read_measures(Run(folder, experiment, quiet=True)) for folder in options.runs]
    tables = arms.all_tables(arms.alone(runs))
    print('\n\n'.join(table.markdown() if options.markdown else table.text() for table in tables))


def _compare_models(command: Command) -> None:
    from bioptimus_jax.finetune.verdict import compare_models

    options = command.options
    if options.config or command.overrides or options.markdown:
        raise ConfigError(
            'compare --models takes two folders, and no --config, no --config keys, no --markdown'
        )
    if len(options.runs) != 2:
        raise ConfigError(
            f'compare --models takes two folders, RUN/finetune/MODEL each; got {len(options.runs)}'
        )
    print(printable('\n'.join(compare_models(*options.runs))))


VERB = Verb(
    'runs or fine-tuned models side by side',
    'Runs side by side: word-level loss at step 0 and after each phase, test F1, and what each took to reach what\n'
    'all of them reach. For arms of an ablation.\n'
    'With --models: is model B better than model A at finding entities, on each set and over all? Test F1 over\n'
    'the seeds that both have: over fine-tunings (paired t-test), and of these models on other test items\n'
    '(bootstrap, randomisation), each corrected for several sets (Holm).\n\n'
    'reads:  RUN/analyze, RUN/finetune, RUN/metrics.jsonl of each; with --models two folders\n'
    '        RUN/finetune/MODEL, or folders below, with :SETTING behind where a model has several settings,\n'
    '        or :devel for those that devel chooses; or DIR/NAME of `bioptimus score --to=DIR --name=NAME`\n'
    'writes: the tables that a sweep has of its arms, or a line for each set, to the terminal\n\n'
    'examples:\n  bioptimus compare --config=small --config.source.path=FOLDER '
    'runs/averaged_input runs/contextualized\n'
    '  bioptimus compare --models runs/small/finetune/0.1 runs/small/finetune/0.4\n'
    '  bioptimus compare --models runs/small/finetune/0.4:standard runs/small/finetune/0.4:frozen',
    (
        config_flag('names the phases; not with --models', required=False),
        flag('--markdown', 'print the table as Markdown', False, action='store_true'),
        flag('--models', 'two models by what they predict', False, action='store_true'),
        flag('runs', 'run folders; with --models A and B', None, nargs='+', metavar='FOLDER'),
    ),
    _call,
    (),
)
