"""`bioptimus lint`: check data sets for problems.

What is worth knowing about sets before a model is trained on them: how columns are read, counts beside the
published ones, texts that are in two splits. For entities also tag scheme, repairs, orphan I- tags, sentences
tagged in two ways. With a model, words that its tokenizer loses, and what is too long for one window.

reads:  a set (train, devel, test as .tsv, .conll, .json, .jsonl, .csv, .parquet, BioC, PubTator, BRAT or TFDS), or
        a folder of sets
writes: lines to the terminal; exit code 3 where a set cannot be read

example:
  bioptimus lint --sets=$BIOPTIMUS_DATA/ner --model=runs/small/export/0.4
"""

from pathlib import Path

from bioptimus_jax.cli.command import (
    USE,
    Command,
    Verb,
    column_flags,
    described,
    flag,
    json_flag,
    needed,
    several,
)
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import TASKS, Finetune
from bioptimus_jax.hosts.remote.models import model_folder
from bioptimus_jax.progress.console import complain


def _call(command: Command) -> None:
    from bioptimus_jax.finetuning.look import look_through
    from bioptimus_jax.sets.roles import Columns
    from bioptimus_jax.vocab.agreement import load_for_words

    folders = [model_folder(name, '--model') for name in command.options.model]
    short = len({folder.name for folder in folders}) == len(folders)
    models = {folder.name if short else str(folder): load_for_words(folder) for folder in folders}
    options = command.options
    columns = Columns(options.word_column, options.tag_column)
    looked = look_through(Path(options.sets), models, options.task, columns)
    command.answer(
        looked.json,
        lambda: '\n'.join('\n'.join(lines) for lines in looked.lines),
    )
    if looked.errors:
        # The first one ends the program, which prints it and sets the exit code.
        for error in looked.errors[1:]:
            complain(error)
        raise InputError(looked.errors[0])


VERB = Verb(
    *described(__doc__),
    (
        needed('--sets', 'a set or a folder of sets', 'FOLDER'),
        flag(
            '--task',
            'task of sets without a record: %(choices)s',
            Finetune.task,
            choices=TASKS,
            metavar='NAME',
        ),
        *column_flags(),
        several('--model', 'count its pieces too; may be repeated', 'HF_FOLDER'),
        json_flag(),
    ),
    _call,
    group=USE,
)
