"""`bioptimus perplexity`: how well a masked language model knows every text, to choose texts by.

A number for each document: exp of the mean loss of 15 % of its pieces, hidden at random, under any masked language
model that transformers can load. With config.corpus.content.scores=FILE the corpus has a field `perplexity`: choose by
it (content.prefer=-perplexity: what the model knows best), or leave out what is far off (content.where).

MODEL:  a Hugging Face folder; a hub id, as OWNER/NAME or OWNER/NAME@REVISION
reads:  config.corpus.inputs, as stage corpus does
writes: lines of JSON, {"id": "...", "perplexity": 31.4}. The same command goes on with what was cut off

example:
  bioptimus perplexity runs/small/export/0.4 --config=mine.py --to=scores.jsonl
"""

from pathlib import Path

from bioptimus_jax.cli.command import USE, Command, Verb, config_flag, count, described, flag, needed
from bioptimus_jax.progress.console import Console, numbered


def _call(command: Command) -> None:
    from bioptimus_jax.analysis.masked_lm import load  # imports torch
    from bioptimus_jax.analysis.perplexities import write_perplexities
    from bioptimus_jax.corpus.readers import read_inputs
    from bioptimus_jax.inference.model import model_at

    options, console = command.options, Console()
    settings = command.experiment_without_paths.corpus
    model = load(model_at(options.model), options.threads)
    progress = console.progress('perplexity', 0, 'documents')
    made = write_perplexities(model, read_inputs(settings), Path(options.to), progress.update)
    console.say(f'perplexity: {numbered(made, "document")} in {options.to}')


VERB = Verb(
    *described(__doc__),
    (
        flag('model', 'the model', None, metavar='MODEL'),
        config_flag(),
        needed('--to', 'file for the numbers', 'FILE'),
        count('--threads', 'threads of the CPU', 1),
    ),
    _call,
    ('corpus',),
    group=USE,
)
