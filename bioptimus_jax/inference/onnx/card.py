"""The card of a folder with a model as ONNX, README.md: how it is run, how far it is from PyTorch, how fast it is."""

import contextlib
from pathlib import Path

from huggingface_hub import ModelCard, ModelCardData

from bioptimus_jax.export.card import NAME
from bioptimus_jax.finetuning.kept import read_reads
from bioptimus_jax.inference.model import KINDS
from bioptimus_jax.inference.onnx.answering import ANSWERING
from bioptimus_jax.inference.onnx.session import ABOUT, GRAPH
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.onnx import OnnxForm
from bioptimus_jax.storage.files import JsonObject

OF_MODEL = 'model-card.md'
"""The card of the model itself, beside that of its file."""
KEPT = ('license', 'language', 'base_model', 'datasets', 'pipeline_tag')
"""What the metadata of a model say that hold for its file."""
CARD = """---
{data}
---

# {name} as ONNX, {precision}

A model that {does}, as one graph of ONNX, made by bioptimus-jax{more}.
It takes {inputs} (int64, batch and length as they come, each of them needed) and gives `{output}` in float32.
A text may have {positions:,} pieces.

## Use

With onnxruntime and the tokenizer of transformers alone:

```python
{code}```
{predict}
## Checked

{checked}
`{about}` has these numbers for programs, and `sha256sums` the checksums of the files.
"""
PREDICT = """
`bioptimus predict . --text={command}`, or `bx.predict('.', [{python}])` in Python, reads a text as this model was
trained to, and needs the extra `onnx` of bioptimus-jax.
"""


def onnx_card(folder: Path, form: OnnxForm) -> str:
    """The card of the file of a model's folder."""
    means = ANSWERING[form.hf_class]
    answers = any(kind.hf_class == form.hf_class for kind in KINDS.values())
    return CARD.format(
        data=_data(folder).to_yaml(),
        name=_title(folder),
        precision=form.precision,
        does=means.does,
        more=f'; what it is and how it was trained says [the card of the model]({OF_MODEL})'
        * (folder / NAME).is_file(),
        inputs=', '.join(f'`{name}`' for name in form.inputs),
        output=form.output,
        positions=form.positions,
        code=means.code(form.output),
        predict=PREDICT.format(**read_reads(folder).shown) * answers,
        checked=''.join(f'- {line}\n' for line in lines(form)),
        about=ABOUT,
    )


def lines(form: OnnxForm) -> list[str]:
    """What was measured, in words."""
    found, speed, score = form.agreement, form.speed, form.score
    alike = '' if found.alike is None else f', {found.alike:.2%} of the answers are the same'
    said = [
        f'{form.precision}, opset {form.opset}: {found.pieces:,} pieces of {found.rows} texts, alone, in pairs and in '
        f'batches: values within {found.largest:.1e} of PyTorch in float32, {found.relative:.1e} of their standard '
        f'deviation{alike}'
    ]
    if score:
        said.append(
            f'test of {score.dataset}, {score.items:,} items: {score.metric} {100 * score.onnx:.2f}, PyTorch '
            f'{100 * score.pytorch:.2f} [{100 * score.low:.2f}, {100 * score.high:.2f}; 95 % over {score.drawn}]'
        )
    size = sum(size for name, size in form.bytes.items() if name.startswith(GRAPH))
    said.append(f'{size / 1e6:,.1f} MB, PyTorch {form.pytorch_bytes / 1e6:,.1f} MB')
    said.append(
        f'{speed.onnx:,.0f} texts/s, PyTorch in float32 {speed.pytorch:,.0f} (texts of {speed.pieces:.0f} pieces, '
        f'{numbered(speed.threads, "thread")} of {speed.machine})'
    )
    return said


def _title(folder: Path) -> str:
    """The heading of the model's own card, else the name of its folder."""
    if (folder / NAME).is_file():
        for line in (folder / NAME).read_text('utf-8', 'replace').splitlines():
            if line.startswith('# '):
                return line.removeprefix('# ').strip()
    return folder.resolve().name


def _data(folder: Path) -> ModelCardData:
    known: JsonObject = {}
    if (folder / NAME).is_file():
        with contextlib.suppress(Exception):  # somebody else's: without metadata, or with broken ones
            said = ModelCard.load(folder / NAME, ignore_metadata_errors=True).data.to_dict()
            known = {name: said[name] for name in KEPT if name in said}
    return ModelCardData(tags=['onnx', 'bioptimus-jax'], **known)
