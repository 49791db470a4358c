"""`bioptimus difficulty`: measure the perplexity of models under each masking setting.

How hard is each masking setting for a model? Perplexity of any Hugging Face masked language model on any
texts under the setting of every phase: geometric mean and interval over config.curriculum.samples samples,
by what stands at a position ([MASK], another token, the token itself) and over all. The texts should be of
a domain that the models were not trained on. config.curriculum.order=easy_to_hard trains in this order.

reads:  config.curriculum.texts (of a .csv column config.corpus.tsv_column), else corpus/; the models
writes: WORKDIR/difficulty.json; a table. `bioptimus report` shows both

example:
  bioptimus difficulty --config=small --workdir=runs/small --model=initial --model=FOLDER \
--config.curriculum.texts=news.csv
"""

from bioptimus_jax.cli.command import (
    OF_A_RUN,
    Command,
    Verb,
    config_flag,
    described,
    in_run,
    json_flag,
    needed,
    several,
)
from bioptimus_jax.experiment.stages import keys
from bioptimus_jax.run.folder import Run


def _call(command: Command) -> None:
    def lead(run: Run) -> None:
        from bioptimus_jax.analysis.difficulty import measure  # imports jax and torch
        from bioptimus_jax.lab.sections.difficulty import difficulty
        from bioptimus_jax.report.measures import read_measures

        measured = measure(run, command.options.model)
        command.answer(measured.json, lambda: difficulty(read_measures(run)).text())

    in_run(command, ('difficulty',), lead)


VERB = Verb(
    *described(__doc__),
    (
        config_flag(),
        needed('--workdir', 'run folder, created if missing', 'DIR'),
        several(
            '--model',
            'initial, source, a phase of this run, a Hugging Face folder or NAME=FOLDER; may be repeated '
            '(default: config.curriculum.probe)',
            'MODEL',
        ),
        json_flag(),
    ),
    _call,
    (
        *('phases', 'phase', 'curriculum', 'evaluation', 'source'),
        *('corpus.tsv_column', 'rows.max_document_pieces'),
        *keys('pretrain', 'objective word max_word_pieces dtype'),
        *keys('runtime', 'devices attention torch_threads deterministic'),
        *OF_A_RUN,
    ),
)
