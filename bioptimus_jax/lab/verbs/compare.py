"""`bioptimus compare`: compare runs or fine-tuned models side by side.

Runs side by side: word-level loss at step 0 and after each phase, test F1, and what each took to reach what
all of them reach. For arms of an ablation.
With --models: is model B better than model A at finding entities, on each set and over all? Test F1 over
the seeds that both have: over fine-tunings (paired t-test), and of these models on other test items
(bootstrap, randomisation), each corrected for several sets (Holm). Settings of fine-tuning that differ
come first.

reads:  RUN/analyze, RUN/finetune, RUN/metrics.jsonl of each; with --models two folders
        RUN/finetune/MODEL, or folders below, with :SETTING at the end where a model has several settings,
        or :devel for those that devel chooses; or DIR/NAME of `bioptimus score --to=DIR --name=NAME`. Of
        a stage, finished or not, the finished fine-tunings that its last configuration asks for
writes: the tables that a sweep has of its arms, or a line for each set, to the terminal

examples:
  bioptimus compare --config=small --config.source.path=FOLDER runs/averaged_input runs/contextualized
  bioptimus compare --models runs/small/finetune/0.1 runs/small/finetune/0.4
  bioptimus compare --models runs/small/finetune/0.4:standard runs/small/finetune/0.4:frozen
"""

from pathlib import Path

from bioptimus_jax.cli.command import USE, Command, Verb, as_documents, config_flag, described, flag, switch
from bioptimus_jax.cli.verbs import compare
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.session import require_local


def _call(command: Command) -> None:
    options = command.options
    if not options.models:
        _compare_runs(command)
        return
    if options.config or command.overrides or options.markdown:
        raise ConfigError(
            'compare --models takes two folders, and no --config, no --config keys, no --markdown'
        )
    compare.VERB.call(command)


def _compare_runs(command: Command) -> None:
    from bioptimus_jax.lab import arms  # imports matplotlib
    from bioptimus_jax.report.measures import read_measures

    options = command.options
    if not options.config:
        raise ConfigError(
            '--config=NAME_or_FILE[:argument] is missing: it names the phases; or did you mean --models?'
        )
    experiment = command.experiment_without_paths
    for folder in options.runs:
        require_local('FOLDER', folder)
        if not Path(folder).is_dir():
            raise InputError(f'{folder}: no such run folder')
    runs = [read_measures(Run(folder, experiment, quiet=True)) for folder in options.runs]
    tables = arms.all_tables(arms.alone(runs))
    command.answer(
        lambda: {'tables': as_documents(tables)},
        lambda: '\n\n'.join(table.markdown() if options.markdown else table.text() for table in tables),
    )


VERB = Verb(
    *described(__doc__),
    (
        config_flag('names the phases; not with --models', required=False),
        switch('--markdown', 'print the table as Markdown'),
        *compare.VERB.flags[:-1],
        flag('runs', 'run folders; with --models A and B', None, nargs='+', metavar='FOLDER'),
    ),
    _call,
    ('phases', 'phase', 'finetune.tuned_on'),
    group=USE,
)
