r"""`bioptimus score`: score predictions that were made elsewhere.

Scores what any program predicted for a test set, as stage finetune does: every measure of the set, and
its interval over documents or test items. Each test item must be there once, in the order of the test file;
documents with the names of the test set (BRAT, PubTator, "id" in JSON) may have any order.

GOLD:        folder of a set, or its test file, in any form that stage finetune reads
PREDICTIONS: .tsv as the test file, with predicted tags or answers in its last column; our own predictions
             .json (a list) or .jsonl (an object a line):
               {"words": ["Torsade", "de", ...], "predicted": ["B-Disease", "I-Disease", ...]}
               {"text": "Torsade de ...", "entities": [[0, 18, "Disease"]]}   characters, end behind the last
               {"text": "...", "answers": ["yes"]}   labels or one number; "words": [A, B] of two texts; may
                                                     be left out
             entities also as PubTator, or a folder of BRAT (.txt and .ann); all also in the other forms that
             sets have (CSV, BioC, doccano ...), where a label is what was predicted

Of more than two columns of GOLD it is found which holds the words and which the tags, or --word_column and
--tag_column say so. A label that a test file alone does not have counts as wrong.

Entities by characters are compared with the characters of BRAT and PubTator sets. In columns one that begins
or ends within a word is widened to the whole word, which is reported. One that overlaps others counts, too.

writes: lines to the terminal; with --to a record in DIR/NAME, which `bioptimus compare --models` takes

examples:
  bioptimus score ner/bc5-disease scispacy.jsonl --types=DISEASE=Disease --types=CHEMICAL= \
      --to=others --name=scispacy
  bioptimus compare --models others/scispacy runs/small/finetune/0.4
"""

from pathlib import Path

from bioptimus_jax.cli.command import USE, Command, Verb, column_flags, described, flag, json_flag, several
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.finetuning.config import TASKS, Finetune


def _call(command: Command) -> None:
    from bioptimus_jax.finetuning.scoring import score
    from bioptimus_jax.sets.roles import Columns

    options = command.options
    if bool(options.to) != bool(options.name):
        raise ConfigError(
            '--to and --name go together: the folder for the record, and what the model is called'
        )
    if options.name and (Path(options.name).name != options.name or options.name.startswith('.')):
        raise ConfigError(f'--name: {options.name!r} cannot name a folder; choose letters and digits')
    for part in options.types:
        if part.find('=') < 1:
            raise ConfigError(f'--types: {part!r} must be THEIRS=OURS, or THEIRS= to leave them out')
    types = dict(part.partition('=')[::2] for part in options.types)
    columns = Columns(options.word_column, options.tag_column)
    scored = score(Path(options.gold), Path(options.predictions), options.task, types, columns)
    kept = str(scored.keep(Path(options.to), options.name, options.seed)) if options.to else ''
    said = [f'kept in {kept}'] * bool(kept)
    command.answer(
        lambda: {**scored.document(), 'kept': kept or None}, lambda: '\n'.join([*scored.lines(), *said])
    )


VERB = Verb(
    *described(__doc__),
    (
        flag('gold', 'the test set', None, metavar='GOLD'),
        flag('predictions', 'what was predicted for it', None, metavar='PREDICTIONS'),
        flag(
            '--task',
            'task of sets without a record: %(choices)s',
            Finetune.task,
            choices=TASKS,
            metavar='NAME',
        ),
        *column_flags(),
        several(
            '--types',
            'what the set calls a predicted type of entities; THEIRS=: leave it out; may be repeated',
            'THEIRS=OURS',
        ),
        flag('--name', 'what the model is called', '', metavar='NAME'),
        flag('--to', 'keep a record here, in NAME/SET', '', metavar='DIR'),
        flag(
            '--seed',
            'seed of the training, where predictions of several are scored',
            None,
            type=int,
            metavar='N',
        ),
        json_flag(),
    ),
    _call,
    group=USE,
)
