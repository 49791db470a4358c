"""Adapters in the form of PEFT, adapter_config.json and adapter_model.safetensors: read, merged and written.

D, E: rows and columns of a matrix of transformers, R: the rank.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.remote.models import ADAPTER
from bioptimus_jax.model.config import Source
from bioptimus_jax.model.lora import Lora
from bioptimus_jax.model.weights import WEIGHTS, check_finite, read_weights, tensor_names
from bioptimus_jax.storage.files import atomic, complete, read_json, write_json

TENSORS = 'adapter_model.safetensors'
BEGINNING = 'base_model.model.'
OF_LAYER = re.compile(r'\.\d+\.')
PART = re.compile(r'^base_model\.model\.(.+)\.lora_([AB])\.weight$')
UNSUPPORTED = {
    'use_dora': 'DoRA, which also scales columns',
    'modules_to_save': 'whole modules beside the matrices (modules_to_save)',
    'trainable_token_indices': 'rows of tokens (trainable_token_indices), without the output bias that they had',
    'alpha_pattern': 'an alpha for each module (alpha_pattern)',
    'fan_in_fan_out': 'matrices the other way round (fan_in_fan_out)',
    'lora_bias': 'biases of its own (lora_bias)',
    'layer_replication': 'layers that are repeated (layer_replication)',
    'target_parameters': 'parameters without a module (target_parameters)',
}
"""Keys of adapter_config.json that make another model of it, and what each stands for."""
OF_BASE = 'base_model_name_or_path'
CHANGING = ('pissa', 'olora', 'corda', 'loftq', 'lora_ga')
"""Beginnings of `init_lora_weights` with which PEFT takes a part of the model's own weights away when it loads."""


class Pair(NamedTuple):
    """The two matrices of a module: their product up @ down, times the scale, is added to its weight DxE."""

    down_RxE: np.ndarray
    up_DxR: np.ndarray


@dataclasses.dataclass(frozen=True)
class Adapter:
    """What a folder holds: the matrices by the names of modules in transformers, and what their products count."""

    folder: Path
    pairs: Mapping[str, Pair]
    alpha: float
    by_root: bool = False

    def change(self, module: str) -> np.ndarray:
        """What is added to the weight of a module, in float32."""
        down_RxE, up_DxR = self.pairs[module]
        rank = len(down_RxE)
        scale = self.alpha / (math.sqrt(rank) if self.by_root else rank)
        return np.float32(scale) * (up_DxR.astype(np.float32) @ down_RxE.astype(np.float32))


def adapter_files(source: Source) -> list[Path]:
    """The files of a source's adapter that decide what it does; none without one. Raises InputError."""
    if not source.adapter:
        return []
    folder = Path(source.adapter)
    if not folder.is_dir():
        raise InputError(
            f'{folder}: no such folder; config.source.adapter must name one of this machine, with {ADAPTER}'
        )
    return [folder / ADAPTER, folder / TENSORS]


def check_adapter(source: Source, base: Path) -> None:
    """Raise InputError where a source has an adapter that cannot be read, or one that is for another model."""
    if source.adapter:
        adapter_files(source)
        adapter, names = read_adapter(Path(source.adapter)), dict.fromkeys(tensor_names(base))
        for module in adapter.pairs if names else ():
            _weight_of(module, names, adapter, base)


def read_adapter(folder: Path) -> Adapter:
    """The adapter of a folder. Raises InputError, which names the file, for one that is damaged or no plain LoRA."""
    file, weights = folder / ADAPTER, folder / TENSORS
    values: Any = read_json(file)
    if not isinstance(values, dict):
        raise InputError(f'{file}: no such file, or no object; an adapter of PEFT has this file')
    kind, merge = (
        values.get('peft_type'),
        'merge it with merge_and_unload() of PEFT, and give the folder of the result',
    )
    if kind != 'LORA':
        raise InputError(f'{file}: peft_type is {kind!r}; only LORA can be read: {merge}')
    bias = {'bias': 'trained biases'} if values.get('bias', 'none') != 'none' else {}
    for name, what in {**UNSUPPORTED, **bias}.items():
        if values.get(name):
            raise InputError(f'{file}: {name} is {values[name]!r}: {what} cannot be read; {merge}')
    way = values.get('init_lora_weights')
    if isinstance(way, str) and way.lower().startswith(CHANGING):
        raise InputError(
            f'{file}: init_lora_weights is {way!r}: with it PEFT changes the weights of the model too, which is not '
            f'done here; {merge}'
        )
    alpha = values.get('lora_alpha')
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not math.isfinite(alpha):
        raise InputError(f'{file}: lora_alpha is {alpha!r}; a number is expected')
    pairs = _pairs(weights)
    return Adapter(folder, pairs, float(alpha), bool(values.get('use_rslora')))


def _pairs(file: Path) -> dict[str, Pair]:
    if not file.is_file():
        raise InputError(f'{file}: no such file; save the adapter with save_pretrained() of PEFT')
    try:
        tensors = safetensors.numpy.load_file(file)
    except (safetensors.SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise InputError(f'{file}: is damaged or not a safetensors file ({error}); fetch it again') from error
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, tensor in tensors.items():
        found = PART.match(name)
        if not found:
            raise InputError(
                f'{file}: holds {name}, which is no matrix of a LoRA on a layer; merge it with PEFT'
            )
        parts.setdefault(found[1], {})[found[2]] = tensor
    for module, both in parts.items():
        if lacking := {'A', 'B'} - both.keys():
            raise InputError(f'{file}: {module} has no lora_{min(lacking)}; fetch it again')
        shapes = both['A'].shape, both['B'].shape
        if [len(shape) for shape in shapes] != [2, 2] or shapes[0][0] != shapes[1][1] or not shapes[0][0]:
            raise InputError(
                f'{file}: {module} has matrices of shapes {shapes[0]} and {shapes[1]}, which do not fit'
            )
    if not parts:
        raise InputError(
            f'{file}: holds no matrix; an adapter has a lora_A and a lora_B for each of its targets'
        )
    check_finite(tensors, file.parent, file)
    return {module: Pair(both['A'], both['B']) for module, both in parts.items()}


def write_merged(base: Path, adapter: Adapter, folder: Path) -> None:
    """A copy of the base's folder with the adapter merged into its weights, all of them float32.

    Raises InputError for an adapter of another model.
    """
    state, where = read_weights(base)
    merged = {name: _in_float32(tensor) for name, tensor in state.items()}
    for module in adapter.pairs:
        name = _weight_of(module, merged, adapter, base)
        change = adapter.change(module)
        if change.shape != merged[name].shape:
            raise InputError(
                f'{adapter.folder / TENSORS}: {module} is for a matrix of shape {change.shape}, but {name} of {where} '
                f'has {merged[name].shape}; this adapter is for another model'
            )
        merged[name] = merged[name] + change
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(base.iterdir()):
        if (
            file.is_file()
            and file.suffix in ('.json', '.txt', '.model')
            and not file.name.endswith('.index.json')
        ):
            with atomic(folder / file.name, 'wb') as copy:
                copy.write(file.read_bytes())
    config: Any = read_json(folder / 'config.json')
    write_json(
        folder / 'config.json', {n: v for n, v in config.items() if n != 'torch_dtype'} | {'dtype': 'float32'}
    )
    with complete(folder / WEIGHTS[0]) as hidden:
        contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in merged.items()}
        safetensors.numpy.save_file(contiguous, hidden, metadata={'format': 'pt'})


def _weight_of(module: str, state: Mapping[str, Any], adapter: Adapter, base: Path) -> str:
    """The tensor of a module; the base may have been saved with or without the model around the encoder."""
    if not OF_LAYER.search(module):
        raise InputError(
            f'{adapter.folder / TENSORS}: has matrices for {module}, which is in no layer; merge it with '
            'merge_and_unload() of PEFT, and give the folder of the result'
        )
    weight = f'{module}.weight'
    # bert.encoder.x in the one may be encoder.x in the other.
    candidates = [
        name for name in state if name == weight or name.endswith(f'.{weight}') or weight.endswith(f'.{name}')
    ]
    exact = [name for name in candidates if name == weight]
    if len(found := exact or candidates) != 1:
        raise InputError(
            f'{adapter.folder / TENSORS}: has matrices for {module}, which {base} does not have'
            f'{" once" if found else ""}; this adapter is for another model'
        )
    return found[0]


def _in_float32(tensor: np.ndarray) -> np.ndarray:
    return tensor if np.issubdtype(tensor.dtype, np.integer) else tensor.astype(np.float32)


def write_adapter(folder: Path, pairs: Mapping[str, Pair], lora: Lora, base: str) -> None:
    """An adapter in PEFT's form, of the model that PEFT will be told to be `base`; its matrices lack the scale."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for module, pair in pairs.items():
        for letter, matrix in zip('AB', pair, strict=True):
            name = f'{BEGINNING}{module}.lora_{letter}.weight'
            tensors[name] = np.ascontiguousarray(matrix, np.float32)
    write_json(
        folder / ADAPTER,
        {
            'peft_type': 'LORA',
            'task_type': None,
            OF_BASE: base,
            'r': lora.rank,
            'lora_alpha': lora.alpha,
            'lora_dropout': 0.0,
            'bias': 'none',
            'fan_in_fan_out': False,
            'inference_mode': True,
            # In full: `output.dense` alone would also be the end of `attention.output.dense`.
            'target_modules': sorted(pairs),
        },
    )
    with complete(folder / TENSORS) as hidden:
        safetensors.numpy.save_file(tensors, hidden, metadata={'format': 'pt'})
