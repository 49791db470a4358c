"""`bioptimus score`: what anybody has predicted for a test set, by the scorer of stage finetune."""

from pathlib import Path

from bioptimus_jax.command import Command, Verb, flag, json_flag
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.schema import TASKS, Finetune


def _call(command: Command) -> None:
    from bioptimus_jax.finetune.scoring import score

    options = command.options
    if bool(options.to) != bool(options.name):
        raise ConfigError(
            '--to and --name go together: the folder for the record, and what the model is called'
        )
    if options.name and (Path(options.name).name != options.name or options.name.startswith('.')):
        raise ConfigError(f'--name: {options.name!r} cannot name a folder; choose letters and digits')
    types = dict(part.partition('=')[::2] for part in options.types)
    if not all(types) or not all('=' in part for part in options.types):
        raise ConfigError(f'--types: {options.types[0]!r} must be THEIRS=OURS, or THEIRS= to leave them out')
    scored = score(Path(options.gold), Path(options.predictions), options.task, types)
    kept = str(scored.keep(Path(options.to), options.name, options.seed)) if options.to else ''
    said = [f'kept in {kept}'] * bool(kept)
    command.answer(
        lambda: {**scored.document(), 'kept': kept or None}, lambda: '\n'.join([*scored.lines(), *said])
    )


VERB = Verb(
    'score predictions that were made elsewhere',
    'Scores what any program predicted for a test set, as stage finetune does: every measure of the set, and\n'
    'its interval over documents or test items. Each test item must be there once, in the order of the test file.\n\n'
    'GOLD:        folder of a set, or its test file, in any form that stage finetune reads\n'
    'PREDICTIONS: .tsv as the test file, with predicted tags or answers in its last column; our own predictions\n'
    '             .json (a list) or .jsonl (an object a line):\n'
    '               {"words": ["Torsade", "de", ...], "predicted": ["B-Disease", "I-Disease", ...]}\n'
    '               {"text": "Torsade de ...", "entities": [[0, 18, "Disease"]]}   characters, end behind the last\n'
    '               {"text": "...", "answers": ["yes"]}   labels or one number; "words": [A, B] of two texts; may\n'
    '                                                     be left out\n'
    '             entities also as PubTator, or a folder of BRAT (.txt and .ann)\n\n'
    'Entities by characters are aligned to the words of the test set: one that begins or ends within a word is\n'
    'widened to the whole word, which is counted and reported.\n\n'
    'writes: lines to the terminal; with --to a record in DIR/NAME, which `bioptimus compare --models` takes\n\n'
    'examples:\n  bioptimus score ner/bc5-disease scispacy.jsonl --types=DISEASE=Disease --types=CHEMICAL= \\\n'
    '      --to=others --name=scispacy\n'
    '  bioptimus compare --models others/scispacy runs/small/finetune/0.4',
    (
        flag('gold', 'the test set', None, metavar='GOLD'),
        flag('predictions', 'what was predicted for it', None, metavar='PREDICTIONS'),
        flag('--task', 'of sets without a record: %(choices)s', Finetune.task, choices=TASKS, metavar='NAME'),
        flag(
            '--types',
            'what the set calls a predicted type of entities; THEIRS=: leave it out; may be repeated',
            [],
            action='append',
            metavar='THEIRS=OURS',
        ),
        flag('--name', 'what the model is called', '', metavar='NAME'),
        flag('--to', 'keep a record here, in NAME/SET', '', metavar='DIR'),
        flag(
            '--seed', 'of the training, where predictions of several are scored', None, type=int, metavar='N'
        ),
        json_flag(),
    ),
    _call,
)
