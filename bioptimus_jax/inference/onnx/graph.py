"""The ONNX file of a model: traced by torch.onnx at a fixed opset, in one of several precisions.

Shapes: B texts, L pieces, D hidden size.
"""

import contextlib
import copy
import dataclasses
import inspect
import io
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.loading import load_weights
from bioptimus_jax.finetuning.texts.windows import tells_apart
from bioptimus_jax.inference.model import kind_of
from bioptimus_jax.inference.onnx.session import GRAPH, LOGITS, VECTORS
from bioptimus_jax.model.folder import has_sentence_vectors
from bioptimus_jax.model.pooling import POOLINGS, USUAL, pooling_in

OPSET = 18
"""The version of ONNX's operators: the one that torch.onnx writes without converting, and onnxruntime reads since 1.14.
Under 23 ModernBERT's graph runs for one text at a time only."""
ONE_FILE_BYTES = 2_000_000_000
"""Weights above this have a file of their own: a file of protobuf holds 2 GiB."""
QUANTISED = ('MatMul', 'Gemm')
"""Operators with int8 weights; a table of embeddings would get one scale for all of its rows."""


@dataclasses.dataclass(frozen=True)
class Purpose:
    """What a graph is for: a class of transformers, and what it gives. `pooling`: of vectors."""

    hf_class: str
    output: str = LOGITS
    pooling: str = ''


def load(folder: Path) -> tuple[Any, Purpose]:
    """The model of a folder in float32 on the CPU, and what its graph is for, by its files.

    Raises InputError for a model that answers nothing, and one without some of its weights.
    """
    from transformers.utils import logging as of_transformers

    of_transformers.set_verbosity_error()
    of_transformers.disable_progress_bar()
    purposes = [Purpose('AutoModel', VECTORS, pooling_in(folder) or USUAL)]
    if not has_sentence_vectors(folder):
        kind = kind_of(folder)
        # Of models that were pre-trained with a head beside masked words only some have one for these.
        purposes = [Purpose(kind.hf_class), *[Purpose('AutoModelForPreTraining')] * kind.hides]
    for purpose in purposes:
        model, info = load_weights(folder, purpose.hf_class)
        lacking = sorted(map(str, [*info['missing_keys'], *info['mismatched_keys']]))
        # A pooler is above the states, and no vector is made of it.
        lacking = [name for name in lacking if purpose.output == LOGITS or not name.startswith('pooler.')]
        if not lacking:
            return model.eval(), purpose
    raise InputError(f'{folder}: lacks {", ".join(lacking[:3])}, so its answers would be random')


class Traced(torch.nn.Module):
    """What is traced: ids, and whether they are text, to logits or vectors in float32, whatever it computes in."""

    def __init__(self, model: Any, purpose: Purpose) -> None:
        super().__init__()
        self.model, self.purpose = model, purpose

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits, or vectors BxD of length 1."""
        types = {} if token_type_ids is None else {'token_type_ids': token_type_ids}
        given = self.model(input_ids=input_ids, attention_mask=attention_mask, **types)
        if self.purpose.output == LOGITS:
            return given[0].float()
        weights_Bx1xL = POOLINGS[self.purpose.pooling].weights(attention_mask[:, None].float())
        vectors_BxD = (weights_Bx1xL @ given[0].float())[:, 0]
        return torch.nn.functional.normalize(vectors_BxD, dim=-1)


def inputs_of(model: Any) -> tuple[str, ...]:
    """What the graph of a model takes: ids of pieces, whether they are text, and of which of two texts they are, where
    the model tells those apart."""
    takes = 'token_type_ids' in inspect.signature(model.forward).parameters
    return (
        'input_ids',
        'attention_mask',
        *(['token_type_ids'] if takes and tells_apart(model.config) else []),
    )


def write_float32(model: Any, purpose: Purpose, folder: Path) -> None:
    """Leave the graph as the model computes it."""
    _traced(model, purpose, folder)


def write_float16(model: Any, purpose: Purpose, folder: Path) -> None:
    """Leave the graph of the model in half precision; its output is float32."""
    _traced(copy.deepcopy(model).half(), purpose, folder)


def write_int8(model: Any, purpose: Purpose, folder: Path) -> None:
    """Leave the graph with matrices of int8, a scale for each column; what they multiply is quantised as it comes."""
    from onnxruntime import quantization

    with tempfile.TemporaryDirectory(prefix='bioptimus-') as name, _silence():
        plain = _traced(model, purpose, Path(name))
        quantization.quantize_dynamic(
            plain,
            folder / GRAPH,
            op_types_to_quantize=[*QUANTISED],
            per_channel=True,
            # Seven bits: sums of eight saturate on CPUs without VNNI, and a model has one answer wherever it runs.
            reduce_range=True,
            use_external_data_format=_is_large(model),
        )


PRECISIONS: Mapping[str, Callable[[Any, Purpose, Path], None]] = {
    'float32': write_float32,
    'float16': write_float16,
    'int8': write_int8,
}
"""How a graph is written, by its precision."""


def _is_large(model: Any) -> bool:
    return sum(p.numel() * p.element_size() for p in model.parameters()) > ONE_FILE_BYTES


def _traced(model: Any, purpose: Purpose, folder: Path) -> Path:
    """The file of a model's graph in the folder. Raises InputError for a model that torch.onnx cannot trace."""
    names = inputs_of(model)
    # Two texts of unlike lengths: of one text torch.export might take the batch for a constant.
    ids_BxL = torch.full((2, 9), min(7, model.config.vocab_size - 1))
    mask_BxL = torch.ones_like(ids_BxL)
    ids_BxL[1, 5:], mask_BxL[1, 5:] = model.config.pad_token_id or 0, 0
    arrays = {'input_ids': ids_BxL, 'attention_mask': mask_BxL, 'token_type_ids': torch.zeros_like(ids_BxL)}
    axes = {0: torch.export.Dim('batch'), 1: torch.export.Dim('length')}
    with _silence():
        try:
            program: Any = torch.onnx.export(
                Traced(model, purpose).eval(),
                (),
                kwargs={name: arrays[name] for name in names},
                input_names=[*names],
                output_names=[purpose.output],
                dynamic_shapes=dict.fromkeys(names, axes),
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
        except Exception as error:  # of torch.export, of its decompositions, of onnxscript
            # The first line of the outer error says no more than that it failed.
            said = str(error.__cause__ or error).strip().splitlines()[0][:200]
            raise InputError(
                f'{model.name_or_path}: torch.onnx cannot trace a {type(model).__name__} ({said}); use it in PyTorch'
            ) from error
        # Every node has the paths of this machine's source files, and the file of a small model is mostly these.
        for node in program.model.graph.all_nodes():
            node.metadata_props.clear()
        program.save(folder / GRAPH, external_data=_is_large(model))
    return folder / GRAPH


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """A context in which neither torch.onnx nor onnxruntime's quantisation says what it passes over.

    torch.export prints the whole graph where it fails.
    """
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action='ignore'), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)
