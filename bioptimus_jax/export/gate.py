"""The gate of an export: transformers must load the folder back and compute what we compute.

Shapes: B texts, L pieces, D hidden size, V vocabulary.
"""

import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import Params
from bioptimus_jax.model.untouched import untouched_in
from bioptimus_jax.tokenizer.subwords import load as load_subwords
from bioptimus_jax.vocab import agreement

TOLERANCE = 1e-4  # largest difference in float32 ...
RELATIVE = 1e-5  # ... or this share of the largest value, where values are large
MAX_PIECES = 512


class GateError(InputError):
    """An exported folder that transformers reads otherwise than we do; the message says where they part."""


def check_export(
    folder: Path,
    architecture: Architecture,
    params: Params,
    tokenizer_folder: Path,
    texts: Sequence[str],
    *,
    threads: int = 1,
    before: Params | None = None,
) -> dict[str, float]:
    """The gate: reload `folder` with transformers and compare everything. Raises GateError.

    Gives the largest differences of hidden states and logits (float32, without padding), and the sizes. `before`: the
    parameters with an adapter that was then merged; they have to agree with the others too, as `merge`.
    """
    import torch

    torch.set_num_threads(threads)
    untouched, _ = untouched_in(folder, architecture)
    model = _reloaded(folder, architecture, untouched)
    _check_weights(folder, architecture, model)
    _check_untouched(folder, untouched)
    ids, pad = _check_tokenizer(folder, architecture, tokenizer_folder, texts)
    tokens_BxL, mask_BxL = _padded(ids, pad, architecture)
    with torch.inference_mode():
        theirs = model(
            input_ids=torch.from_numpy(tokens_BxL),
            attention_mask=torch.from_numpy(mask_BxL),
            output_hidden_states=True,
        )
    arrays = (jnp.asarray(array, jnp.int32) for array in (tokens_BxL, mask_BxL))
    tokens, mask = arrays
    with jax.default_matmul_precision('highest'):  # accelerators would round to bfloat16 or TF32
        hidden_BxLxD, outputs = jax.device_get(_forward(params, architecture, tokens, mask))
        unmerged = {} if before is None else jax.device_get(_forward(before, architecture, tokens, mask)[1])
    pairs = {
        'hidden': (hidden_BxLxD, theirs.hidden_states[-1]),
        **{name: (array, getattr(theirs, name)) for name, array in outputs.items()},
    }
    differences = {
        name: _difference(folder, name, mine, tensor.numpy(), mask_BxL)
        for name, (mine, tensor) in pairs.items()
    }
    if unmerged:
        differences['merge'] = max(
            _difference(
                folder, name, array, unmerged[name], mask_BxL, 'what they were before the adapter was merged'
            )
            for name, array in outputs.items()
        )
    sizes = {'texts': len(tokens_BxL), 'pieces': int(mask_BxL.sum())}
    return {**sizes, **differences, 'logits': max(differences[name] for name in outputs)}


def _difference(
    folder: Path,
    name: str,
    mine: np.ndarray,
    other: np.ndarray,
    mask_BxL: np.ndarray,
    of_other: str = 'transformers',
) -> float:
    """The largest difference between what we and transformers compute, or another; padding does not count."""
    if mine.shape != other.shape:
        raise GateError(f'{folder}: {name} have shape {other.shape} in {of_other}, {mine.shape} here')
    if mine.shape[:2] == mask_BxL.shape:  # of pieces, not of texts
        mine, other = mine[mask_BxL > 0], other[mask_BxL > 0]
    if not (np.isfinite(mine).all() and np.isfinite(other).all()):
        raise GateError(f'{folder}: {name} are not finite; the phase diverged, see its loss in metrics.jsonl')
    difference = float(np.abs(mine - other).max())
    if difference > max(TOLERANCE, RELATIVE * float(np.abs(mine).max())):
        raise GateError(f'{folder}: {name} differ from {of_other} by {difference:.2e}')
    return difference


def _reloaded(folder: Path, architecture: Architecture, untouched: Collection[str]) -> Any:
    """The model as transformers loads it, ready to compute; nothing may be missing, mismatched or, but for what is
    there for other classes of the family, unexpected."""
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    settings = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if (settings.model_type, settings.architectures) != (architecture.model_type, [architecture.hf_class]):
        raise GateError(
            f'{folder / "config.json"}: architectures is {settings.architectures} of {settings.model_type}'
        )
    hf_class = getattr(transformers, architecture.hf_class)
    model, info = hf_class.from_pretrained(
        folder, output_loading_info=True, trust_remote_code=False, local_files_only=True
    )
    for kind in ('missing_keys', 'unexpected_keys', 'mismatched_keys'):
        if wrong := {*map(str, info[kind])}.difference(untouched):
            names = ', '.join(sorted(wrong)[:4])
            raise GateError(f'{folder}: {kind.replace("_", " ")} on reload: {names}')
    return model.eval()


@functools.partial(jax.jit, static_argnums=1)
def _forward(
    params: Params, architecture: Architecture, tokens_BxL: jax.Array, mask_BxL: jax.Array
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Our last states BxLxD and outputs of one document a row."""
    positions_BxL = jnp.broadcast_to(jnp.arange(tokens_BxL.shape[1])[None], tokens_BxL.shape)
    batch = {'tokens': tokens_BxL, 'segments': mask_BxL, 'positions': positions_BxL}
    hidden_BxLxD = architecture.encode(params, batch)
    return hidden_BxLxD, architecture.outputs(params, hidden_BxLxD)


def _check_weights(folder: Path, architecture: Architecture, model: Any) -> None:
    from safetensors import safe_open

    with safe_open(folder / 'model.safetensors', 'np') as file:
        odd = [name for name in file.keys() if file.get_slice(name).get_dtype() != 'F32']  # noqa: SIM118
    if odd:
        raise GateError(f'{folder / "model.safetensors"}: {", ".join(odd[:3])} are not float32')
    # Equal values are not enough: training would part them if they did not share memory.
    for second, first in architecture.tied.items():
        tied = model.get_parameter(second).data_ptr() == model.get_parameter(first).data_ptr()
        if not tied and not architecture.untied:
            raise GateError(f'{folder}: {second} and {first} are not tied on reload')
        if tied and second not in architecture.second_names():
            raise GateError(f'{folder}: {second} and {first} are tied on reload, and were not')


def _check_untouched(folder: Path, untouched: Mapping[str, np.ndarray]) -> None:
    """Whether tensors beside the parameters are what the classes of transformers that have them load."""
    import transformers

    left = dict(untouched)
    for hf_class in ('AutoModel', 'AutoModelForPreTraining', 'AutoModelForSequenceClassification'):
        if not left:
            return
        try:
            model = getattr(transformers, hf_class).from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
        except ValueError:  # the family has no such class
            continue
        state = model.state_dict()
        for name in list(left):
            found = state.get(name, state.get(name.removeprefix(f'{model.base_model_prefix}.')))
            if found is not None and not np.array_equal(found.numpy(), left.pop(name)):
                raise GateError(f'{folder}: {name} is another on reload by {hf_class}')
    if left:
        raise GateError(f'{folder}: no class of transformers loads {", ".join(left)}')


def _check_tokenizer(
    folder: Path, architecture: Architecture, tokenizer_folder: Path, texts: Sequence[str]
) -> tuple[list[list[int]], int]:
    """The ids of `texts` and of padding, after comparing AutoTokenizer with the run's tokenizer."""
    ours = load_subwords(tokenizer_folder)
    try:
        loaded = agreement.check_written(folder, ours, texts)
    except InputError as error:
        raise GateError(str(error)) from error
    if loaded.model_max_length != architecture.positions:
        raise GateError(
            f'{folder}: model_max_length of the tokenizer is {loaded.model_max_length} on reload, '
            f'{architecture.positions} in the run'
        )
    return [ours.reader.encode(text).ids for text in texts], ours.pad


def _padded(
    ids: Sequence[Sequence[int]], pad: int, architecture: Architecture
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of at most MAX_PIECES with padding; random ids where there are no texts."""
    width = min(MAX_PIECES, architecture.positions)
    generator = np.random.default_rng(0)
    lengths = [min(len(i), width) for i in ids] or [width, width // 2 + 1, 3]
    tokens_BxL = np.full((len(lengths), max(lengths)), pad, np.int64)
    mask_BxL = (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64)
    random_BxL = generator.integers(architecture.vocab_size, size=tokens_BxL.shape)
    random_BxL[random_BxL == pad] = (pad + 1) % architecture.vocab_size  # a model may count without padding
    for row, length in enumerate(lengths):
        tokens_BxL[row, :length] = ids[row][:length] if ids else random_BxL[row, :length]
    return tokens_BxL, mask_BxL
