"""`bioptimus export`: write finished phases as Hugging Face folders; with a MODEL, that model in another form.

With a MODEL and --form=onnx, one file for onnxruntime, without PyTorch: a masked language model, a tagger or a
classifier gives logits, an encoder of texts its vectors. The file is only let out if it computes the same: its values
are compared with PyTorch in float32, one text alone, two and more, of several lengths; and of a fine-tuned model within
its run the test score, which must be within its interval. Needs the extra onnx.

  float32   the same within rounding
  float16   half the size; slower than float32 on most CPUs
  int8      matrices in 8 bits, tables of embeddings as they are: smaller and faster, a little less exact

MODEL:  a Hugging Face folder; a hub id; or a run, or part of one, with one model that was kept or exported
writes: --to, a folder with model.onnx (above 2 GB of weights with model.onnx.data), config.json, the tokenizer,
        onnx.json (inputs, opset, precision, versions, what was measured) and a card; `predict` reads it

examples:
  bioptimus export runs/first/export/0.4 --form=onnx --to=model-onnx
  bioptimus export runs/finetune --form=onnx --precision=int8 --to=tagger-int8
"""

from pathlib import Path

from bioptimus_jax.cli.command import (
    OF_STAGES,
    Command,
    Verb,
    count,
    described,
    flag,
    make_stage,
    run_flags,
    stage_keys,
    stage_text,
)
from bioptimus_jax.errors import ConfigError, printable
from bioptimus_jax.experiment.stages import STAGES

STAGE = STAGES['export']
ONNX = 'onnx'


def _call(command: Command) -> None:
    options = command.options
    if not options.model and not options.form:
        if not (options.config and options.workdir):
            raise ConfigError(
                'export takes --config and --workdir, or a MODEL with --form=onnx and --to; see '
                '`bioptimus export --help`'
            )
        make_stage(command, STAGE)
        return
    for name, given, what in (
        ('MODEL', options.model, 'the folder of a model'),
        ('--form', options.form, '--form=onnx'),
        ('--to', options.to, 'a new folder for the file'),
    ):
        if not given:
            raise ConfigError(f'export: {name} is missing; give {what}')
    if options.config or options.workdir:
        raise ConfigError(
            'export: MODEL is a folder and belongs to no --config or --workdir; leave these out'
        )
    from bioptimus_jax.inference.model import model_at
    from bioptimus_jax.inference.onnx.build import export_onnx  # imports torch

    def say(line: str) -> None:
        print(printable(f'export: {line}'), flush=True)

    export_onnx(model_at(options.model), Path(options.to), options.precision, options.threads, say)
    say(f'{options.to} computes the same; use it by `bioptimus predict`, or as its README.md says')


VERB = Verb(
    STAGE.summary,
    f'{stage_text(STAGE)}\n\n{described(__doc__)[1]}',
    (
        flag('model', 'a finished model, for --form', None, nargs='?', metavar='MODEL'),
        *run_flags(required=False),
        flag('--form', 'form of the file that is made of MODEL', None, choices=(ONNX,)),
        flag('--to', 'folder to make for it', None, metavar='FOLDER'),
        flag(
            '--precision',
            'precision of its numbers (default: %(default)s)',
            'float32',
            choices=('float32', 'float16', 'int8'),
        ),
        count('--threads', 'threads of the CPU that both are timed with', 1),
    ),
    _call,
    stage_keys(STAGE),
    group=OF_STAGES,
)
