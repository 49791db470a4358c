"""`bioptimus predict`: apply a finished model to text.

What a finished model predicts for new text, on the GPU if there is one. It reads text as it was trained to: its
reading.json has the rule for words and sentences, and the length of windows. Its config.json decides what it says:

  a tagger        entities with their types; a plain file is one document
  a classifier    labels, or a number, for every line of a plain file; two texts are divided by a tab
  a masked LM     words for every [MASK], in every line of a plain file

MODEL:  a Hugging Face folder, or one of `export --form=onnx`; a hub id, as OWNER/NAME or OWNER/NAME@REVISION;
        or a run, or part of one, with one model that --config.finetune.keep=best has kept, one folder of seeds
        that answer together (keep=ensemble), or one export
INPUT:  .txt; .json or .jsonl with {"text": "..."} or {"words": [A, B]} and perhaps "id"; .csv with a column "text";
        every other form of a set, without its answers; each also as .gz; a folder of such files, with the folders
        in it; - for standard input

writes: to the terminal, or with --to into a file, compressed where it is called .gz; text (entities in colour),
        tsv, json (a line for each text, which `bioptimus score` reads), html (a page), brat (a folder of .txt and
        .ann files)

examples:
  bioptimus predict runs/finetune --text='Torsade de pointes induced by metoclopramide.'
  bioptimus predict MODEL notes/ --as=brat --to=tagged
  bioptimus predict runs/small/export/0.4 --text='Aspirin is a [MASK].'
"""

import sys
from pathlib import Path

from bioptimus_jax.cli.command import USE, Command, Verb, count, described, flag, several, switch
from bioptimus_jax.errors import ConfigError, printable
from bioptimus_jax.progress.console import complain


def _call(command: Command) -> None:
    from bioptimus_jax.finetuning.kept import read_reads
    from bioptimus_jax.inference.forms import BRAT, require_file_names, write
    from bioptimus_jax.inference.given import read_given
    from bioptimus_jax.inference.model import Settings, kind_of, load_for_answers, model_at
    from bioptimus_jax.model.folder import config_values
    from bioptimus_jax.tokenizer.quoted import quotation_note, quotations

    options = command.options
    folder = model_at(options.model)
    kind = kind_of(folder)
    named = config_values(folder).get('id2label')
    labels = [str(name) for name in named.values()] if isinstance(named, dict) else []
    given = read_given(options.inputs, options.text, kind.by_line, labels, read_reads(folder).apart)
    to = Path(options.to) if options.to else None
    if options.form == BRAT and not (kind.brat and to):
        raise ConfigError(
            f'--as={BRAT}: holds entities alone, but the class of the model is {kind.hf_class}; choose another form'
            if to
            else f'--as={BRAT} needs --to, a folder for the .txt and .ann files'
        )
    if options.form == BRAT:
        require_file_names(given)
    for one in given:
        if one.called:
            complain(f'{one.place}: is called {one.name} here, as an earlier text is called {one.called}')
    loaded = load_for_answers(folder, kind, options.threads)
    if loaded.reads.remark:
        complain(f'{folder}: WARNING: on devel {loaded.reads.remark}; train it anew, with other settings')
    if count := sum(quotations(one.texts, loaded.tokenizer.quoted) for one in given):
        complain(quotation_note(count))
    settings = Settings(options.max_pieces, options.lines, options.best, complain)
    write(kind.answers(loaded, given, settings), options.form, to)
    if to:
        print(printable(f'{len(given):,} answered by {folder}: {to}'), file=sys.stderr)


VERB = Verb(
    *described(__doc__),
    (
        flag('model', 'the model', None, metavar='MODEL'),
        flag('inputs', 'what it reads', [], nargs='*', metavar='INPUT'),
        several('--text', 'a text itself; may be repeated', 'TEXT'),
        flag(
            '--as',
            'form of the answers',
            'text',
            dest='form',
            choices=('text', 'tsv', 'json', 'html', 'brat'),
        ),
        flag('--to', 'file for the answers; a folder for brat', '', metavar='FILE'),
        switch('--lines', 'a line is a sentence and words end at white space, as in clinical notes'),
        count(
            '--max_pieces',
            'pieces of a window; default as in training, else 128 for taggers, which read long sentences in several, '
            'and 512 for classifiers',
            0,
        ),
        count('--best', 'words for a [MASK]', 5),
        count('--threads', 'threads of the CPU', 1),
    ),
    _call,
    group=USE,
)
