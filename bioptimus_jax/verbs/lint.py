"""`bioptimus lint`: what is worth knowing about NER sets before a model is trained on them."""

from pathlib import Path

from bioptimus_jax.command import Command, Verb, flag
from bioptimus_jax.errors import InputError, printable
from bioptimus_jax.progress import complain


def _call(command: Command) -> None:
    from bioptimus_jax.finetune.entities import lint
    from bioptimus_jax.vocab.agreement import load_for_words

    folders = [Path(name) for name in command.options.model]
    short = len({folder.name for folder in folders}) == len(folders)
    models = {folder.name if short else str(folder): load_for_words(folder) for folder in folders}
    records, errors = lint.lint_folder(Path(command.options.sets), models)
    for record in records:
        print(printable('\n'.join(lint.lines(record))), flush=True)
    if errors:
        for error in errors[1:]:
            complain(error)
        raise InputError(errors[0])


VERB = Verb(
    'look through NER sets',
    'What is worth knowing about NER sets before a model is trained on them: counts beside those of BLURB, tag '
    'scheme,\nrepairs, orphan I- tags, sentences that are in two splits or tagged in two ways; with a model, words '
    'that its\ntokenizer loses and sentences too long for one window.\n\n'
    'reads:  a set (train, devel, test as .tsv, .conll, PubTator, BRAT or TFDS), or a folder of sets\n'
    'writes: lines to the terminal; exit code 3 where a set cannot be read\n\n'
    'example:\n  bioptimus lint --sets=$BIOPTIMUS_DATA/ner --model=runs/small/export/0.4',
    (
        flag('--sets', 'a set or a folder of sets', None, required=True, metavar='FOLDER'),
        flag('--model', 'count its pieces too; may be repeated', [], action='append', metavar='HF_FOLDER'),
    ),
    _call,
)
