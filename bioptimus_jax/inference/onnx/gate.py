"""The gate of a model as ONNX: onnxruntime must compute what PyTorch does in float32, for one text, two and more.

Real pieces alone are compared: what a graph gives for padding may be anything.

Shapes: B texts, L pieces of the longest.
"""

import dataclasses
import itertools
import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.batches import padded
from bioptimus_jax.inference.onnx.answering import Answering
from bioptimus_jax.records.onnx import Agreement, Speed

LONGEST = 512
"""Pieces of the longest text that is compared, where the model can number as many."""
EACH = 7
"""Every such piece is hidden from a model that fills in masked words."""
AT_ONCE, COMPARED, TIMED, ROUNDS = 8, 32, 64, 3
"""Texts of a batch, texts that are compared, texts that are timed, and how often: the best time counts."""
Values = np.ndarray
Compute = Callable[[dict[str, torch.Tensor]], Values]
"""Tensors by the names of a graph's inputs -> what it gives."""


class OnnxGateError(InputError):
    """A file that computes something else than the model; the message says how far it is off."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """How far a precision may be off: see `Agreement`."""

    relative: float
    alike: float


BOUNDS = {
    'float32': Bound(1e-4, 0.999),
    'float16': Bound(0.02, 0.98),
    'int8': Bound(0.3, 0.9),
}
"""Bounds by precision."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A text as a model reads it: ids of pieces, and of which of two texts each is."""

    pieces: tuple[int, ...]
    types: tuple[int, ...]


def rows_of(tokenizer: Any, texts: Sequence[Sequence[str]], longest: int, hides: bool) -> list[Row]:
    """Rows of texts, or of two texts that are read together; `hides`: the model is to say some of the pieces."""
    rows = []
    for given in texts:
        encoded = tokenizer(*given[:2], truncation=True, max_length=longest, return_token_type_ids=True)
        pieces, types = encoded['input_ids'], encoded['token_type_ids']
        if hides and tokenizer.mask_token_id is not None:
            hidden = range(EACH // 2, len(pieces) - 1, EACH)
            pieces = [tokenizer.mask_token_id if at in hidden else piece for at, piece in enumerate(pieces)]
        rows.append(Row(tuple(pieces), tuple(types)))
    return rows


def batches(rows: Sequence[Row], vocabulary: int, longest: int) -> Iterator[list[Row]]:
    """One text, its first two pieces, two texts, many, and one as long as the model can read beside a short one."""
    drawn = np.random.default_rng(0).integers(vocabulary, size=longest).tolist()
    yield [rows[0]]
    yield [Row(rows[0].pieces[:2], rows[0].types[:2])]
    yield [*itertools.islice(itertools.cycle(rows), 1, 3)]
    for start in range(0, len(rows), AT_ONCE):
        yield [*rows[start : start + AT_ONCE]]
    yield [Row(tuple(drawn), (0,) * longest), rows[0]]


def tensors_of(batch: Sequence[Row], pad: int) -> dict[str, torch.Tensor]:
    """The inputs of a graph, padded to the longest row."""
    lengths_Bx1 = np.array([[len(row.pieces)] for row in batch])
    ids_BxL = padded([row.pieces for row in batch], pad)
    mask_BxL = (np.arange(ids_BxL.shape[1]) < lengths_Bx1).astype(np.int64)
    arrays = {
        'input_ids': ids_BxL,
        'attention_mask': mask_BxL,
        'token_type_ids': padded([r.types for r in batch], 0),
    }
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def compared(
    ours: Compute, theirs: Compute, given: Sequence[Sequence[Row]], config: Any, means: Answering, mask: int
) -> Agreement:
    """How far `ours` is from `theirs` on these batches; answers are compared where a piece is the `mask`, if any is."""
    count, total, squares, squared, largest = 0, 0.0, 0.0, 0.0, 0.0
    same, asked, pieces = 0, 0, 0
    for batch in given:
        tensors = tensors_of(batch, config.pad_token_id or 0)
        real_BxL = tensors['attention_mask'].numpy() > 0
        hidden_BxL = tensors['input_ids'].numpy() == mask
        left, right = ours(tensors), theirs(tensors)
        if means.per_piece:
            hidden = hidden_BxL[real_BxL]
            left, right = left[real_BxL], right[real_BxL]
        difference = (left - right).astype(np.float64)
        count, pieces = count + right.size, pieces + int(real_BxL.sum())
        total, squares = (
            total + right.sum(dtype=np.float64),
            squares + np.square(right, dtype=np.float64).sum(),
        )
        squared += np.square(difference).sum()
        largest = max(largest, float(np.abs(difference).max(initial=0)))
        answers, expected = means.answers(left, config), means.answers(right, config)
        if answers is not None and expected is not None:
            chosen = hidden if means.per_piece and mask >= 0 and hidden.any() else slice(None)
            same += int((answers[chosen] == expected[chosen]).sum())
            asked += int(answers[chosen].size)
    deviation = math.sqrt(max(squares / count - (total / count) ** 2, 0))
    # A NaN anywhere is one in the sums, and is within no bound.
    relative = math.sqrt(squared / count) / max(deviation, 1e-30)
    return Agreement(
        rows=sum(map(len, given)),
        pieces=pieces,
        largest=largest,
        relative=relative,
        alike=same / asked if asked else None,
    )


def require_alike(found: Agreement, precision: str, model: str) -> None:
    """Raise OnnxGateError where a file is farther off than its precision may be."""
    bound = BOUNDS[precision]
    if not found.relative <= bound.relative:
        raise OnnxGateError(
            f'{model}: as ONNX in {precision} its values are off by {found.relative:.1e} of their standard deviation, '
            f'at most {found.largest:.1e}; allowed are {bound.relative:g}{_instead(precision)}'
        )
    if found.alike is not None and found.alike < bound.alike:
        raise OnnxGateError(
            f'{model}: as ONNX in {precision} {found.alike:.1%} of its answers are the same; needed are '
            f'{bound.alike:.1%}{_instead(precision)}'
        )


def _instead(precision: str) -> str:
    return '' if precision == 'float32' else '; take --precision=float32'


def timed(ours: Compute, theirs: Compute, rows: Sequence[Row], pad: int, threads: int) -> Speed:
    """Texts a second of both, in turns, in batches of similar length."""
    some = sorted(itertools.islice(itertools.cycle(rows), TIMED), key=lambda row: len(row.pieces))
    given = [tensors_of(some[at : at + AT_ONCE], pad) for at in range(0, len(some), AT_ONCE)]
    best = [math.inf, math.inf]
    for _ in range(ROUNDS):
        for side, compute in enumerate((ours, theirs)):
            started = time.monotonic()
            for tensors in given:
                compute(tensors)
            best[side] = min(best[side], time.monotonic() - started)
    return Speed(
        onnx=len(some) / best[0],
        pytorch=len(some) / best[1],
        threads=threads,
        texts=len(some),
        pieces=sum(len(row.pieces) for row in some) / len(some),
        machine=processor(),
    )


def processor() -> str:
    """What the CPU of this machine is called."""
    try:
        with open('/proc/cpuinfo', encoding='utf-8') as file:
            named = [line.partition(':')[2].strip() for line in file if line.startswith('model name')]
    except OSError:
        named = []
    return named[0] if named else platform.processor() or platform.machine()
