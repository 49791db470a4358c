"""What a folder with a model as ONNX says of it: onnx.json."""

import dataclasses
from collections.abc import Mapping

from bioptimus_jax.records.record import Record, or_null


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agreement(Record):
    """How far the file is from PyTorch in float32, on the same `rows` of that many real `pieces`.

    `largest`: the largest difference of a value. `relative`: the root mean square of all differences, as a share of
    the values' standard deviation. `alike`: the share of equal answers, None where the answers are numbers.
    """

    rows: int
    pieces: int
    largest: float
    relative: float
    alike: float | None = or_null()


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnnxScore(Record):
    """Scores of both on the test items that the fine-tuning was scored on: shares, not percent.

    `low`, `high`: the interval of PyTorch's score over `drawn` items.
    """

    dataset: str
    metric: str
    items: int
    pytorch: float
    onnx: float
    low: float
    high: float
    drawn: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Speed(Record):
    """Texts a second of both on the CPU of one `machine`, with as many `threads`, in `texts` texts of mean `pieces`."""

    pytorch: float
    onnx: float
    threads: int
    texts: int
    pieces: float
    machine: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnnxForm(Record):
    """A model as ONNX.

    `hf_class`: the class of transformers that was traced. `inputs`: what the graph takes, all of them, int64 of batch
    and length. `output`: what it gives, float32: logits, or vectors of length 1. `opset`: of ONNX. `positions`: the
    most pieces of a text. `bytes`: by file; `pytorch_bytes`: of the weights that it was made from. `made_from`: digest
    of those.
    """

    hf_class: str
    inputs: tuple[str, ...]
    output: str
    opset: int
    precision: str
    positions: int
    bytes: Mapping[str, int]
    pytorch_bytes: int
    made_from: str
    agreement: Agreement
    score: OnnxScore | None = or_null()
    speed: Speed
    versions: Mapping[str, str]
