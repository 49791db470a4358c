r"""`bioptimus advise`: estimate whether a new vocabulary is worth it.

What keeping the source's vocabulary, appending to it and replacing it do to your texts and sets, before any
training: pieces saved, text per FLOP, mentions that are spelled otherwise. With pairs of fine-tuned models, one
with the old vocabulary and one with a new one, also the F1 to expect on your sets.

reads:  config.json and tokenizer of the source; the beginning of up to four files of the texts; training and
        devel of the sets; of pairs the predictions, and the tokenizers in RUN/export
writes: tables to the terminal, and at their end what to do

examples:
  bioptimus advise --source=/models/bert --texts='texts/*.jsonl.gz' --sets=ner
  bioptimus advise --source=/models/bert --texts='texts/*.jsonl.gz' --sets=ner \
      --pair runs/copy/finetune/0.1 runs/new/finetune/0.1
"""

from bioptimus_jax.cli.command import (
    BEFORE,
    Command,
    Verb,
    as_documents,
    count,
    described,
    flag,
    json_flag,
    needed,
    positive,
    task_flag,
)


def _call(command: Command) -> None:
    from bioptimus_jax.lab.advise import AdviceRequest, advise  # imports jax
    from bioptimus_jax.start.texts import local_texts

    options = command.options
    asked = AdviceRequest(
        options.source,
        local_texts(options.texts),
        options.revision,
        options.sets,
        options.task,
        options.size,
        options.pieces,
        [(kept, other) for kept, other in options.pair],
        command.overrides,
    )
    advice = advise(asked)
    tables = advice.tables()

    said = f'{advice.vocabulary}: {advice.why}.'
    command.answer(
        lambda: {'vocabulary': advice.vocabulary, 'why': advice.why, 'tables': as_documents(tables)},
        lambda: '\n\n'.join([*(table.text() for table in tables), said]),
    )


VERB = Verb(
    *described(__doc__),
    (
        needed('--source', 'Hugging Face folder of the model, or a hub id', 'FOLDER'),
        flag('--revision', 'commit or tag of a hub id', metavar='REVISION'),
        needed('--texts', 'files or globs, as config.corpus.inputs', 'GLOBS'),
        flag('--sets', 'folder of sets', metavar='FOLDER'),
        task_flag(),
        count('--size', "entries of a new vocabulary (default: as many as the source's)", 0),
        flag(
            '--pieces',
            'pieces that you can train on (default: as many as it takes)',
            0,
            type=positive,
            metavar='N',
        ),
        flag(
            '--pair',
            'RUN/finetune/MODEL with the old vocabulary and one with a new one; may be repeated',
            [],
            action='append',
            nargs=2,
            metavar='FOLDER',
        ),
        json_flag(),
    ),
    _call,
    ('corpus',),
    group=BEFORE,
)
