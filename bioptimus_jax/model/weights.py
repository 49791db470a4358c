"""The weights in a Hugging Face folder: one file or several with an index, safetensors or PyTorch's, all finite."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from bioptimus_jax.errors import InputError, pickled_code
from bioptimus_jax.records.kept import ENCODER
from bioptimus_jax.storage.files import read_json, refuse_pointer

WEIGHTS = (
    'model.safetensors',
    'model.safetensors.index.json',
    'pytorch_model.bin',
    'pytorch_model.bin.index.json',
)
"""What transformers takes, the first that is there. An index names the file of every tensor."""
SHARDS = ('model-*-of-*.safetensors', 'pytorch_model-*-of-*.bin')  # as transformers calls them


def has_weights(folder: Path) -> bool:
    """Whether there is a file of weights, whole or not."""
    return any((folder / name).is_file() for name in WEIGHTS)


def weight_files(folder: Path) -> list[Path]:
    """The files that hold the weights, an index behind those that it names; none in a folder without weights.

    Raises InputError for an index that is damaged, or that names a file which is not there, and for a pointer of Git
    LFS in the place of a file.
    """
    first = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if first is None:
        return []
    files = [*_shards(first, _weight_map(first)), first] if first.suffix == '.json' else [first]
    for file in files:
        refuse_pointer(file)
    return files


def no_weights(folder: Path) -> InputError:
    """What to raise for a folder that has none, or that has them in a folder of its own."""
    encoder = folder / ENCODER
    remedy = f'its encoder is in {encoder}: give that' if encoder.is_dir() else 'give the folder of a model'
    return InputError(f'{folder}: holds no weights ({", ".join(WEIGHTS)}); {remedy}')


def read_weights(folder: Path) -> tuple[dict[str, np.ndarray], Path]:
    """Every tensor by its name, and the file to name in messages (the index of several).

    Raises InputError, naming file and tensor, for weights that are absent, damaged or not what the index says.
    """
    *files, last = weight_files(folder) or [folder]
    if last == folder:
        raise no_weights(folder)
    if last.suffix != '.json':
        return _read(last), last
    listed = _weight_map(last)
    state: dict[str, np.ndarray] = {}
    for file in files:
        tensors = _read(file)
        for name in tensors:
            if listed.get(name) != file.name:
                raise InputError(
                    f'{last}: gives {name} to {listed.get(name, "no file")}, but {file.name} holds it; '
                    'fetch index and files of one model again'
                )
        if absent := [name for name, of in listed.items() if of == file.name and name not in tensors]:
            raise InputError(f'{file}: lacks {absent[0]}, which {last.name} gives it; fetch it again')
        state |= tensors
    return state, last


def tensor_names(folder: Path) -> list[str]:
    """Names of the tensors as an index or a header has them; none of PyTorch's, which would have to be read."""
    files = weight_files(folder)
    if files and files[-1].suffix == '.json':
        return list(_weight_map(files[-1]))
    if not files or files[0].suffix != '.safetensors':
        return []
    try:
        with safetensors.safe_open(files[0], 'np') as file:
            return list(file.keys())
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(
            f'{files[0]}: is damaged or not a safetensors file ({error}); fetch it again'
        ) from error


def check_finite(state: Mapping[str, np.ndarray], folder: Path, where: Path) -> None:
    """Raises InputError, naming file and tensor, where a number is NaN or infinite."""
    for name, tensor in state.items():
        wrong = tensor.size - int(np.isfinite(tensor).sum())
        if wrong:
            file = folder / _weight_map(where)[name] if where.suffix == '.json' else where
            raise InputError(
                f'{file}: in {name}, {wrong:,} of {tensor.size:,} numbers are NaN or infinite; these weights are '
                'unusable, take others'
            )


def refuse_wrapped(names: Iterable[str], tables: Iterable[str], where: object) -> None:
    """Raise InputError where the table of embeddings is called as one of `tables`, but with a beginning before it.

    So it is where a module held the model whose weights were saved. An adapter that was not merged is named first.
    """
    names, tables = list(names), list(tables)
    if inner := next((name for name in names if '.base_layer.' in name), ''):
        raise InputError(
            f'{where}: holds {inner}, of an adapter that was not merged; merge it with merge_and_unload() of PEFT, and '
            'save the result with save_pretrained()'
        )
    for name in names:
        if table := next((table for table in tables if name.endswith(f'.{table}')), ''):
            raise InputError(
                f'{where}: its names begin with {name.removesuffix(table)!r} ({name}), as where Lightning, '
                'DataParallel or torch.compile held the model; load the weights into the model without this beginning, '
                'and save that with save_pretrained()'
            )


def _weight_map(index: Path) -> dict[str, str]:
    content: Any = read_json(index)
    listed = content.get('weight_map') if isinstance(content, dict) else None
    if not isinstance(listed, dict) or not listed or not all(isinstance(v, str) for v in listed.values()):
        raise InputError(f'{index}: has no weight_map of tensors and files; fetch it again')
    return listed


def _shards(index: Path, listed: Mapping[str, str]) -> list[Path]:
    names = sorted(set(listed.values()))
    ending = '.safetensors' if 'safetensors' in index.name else '.bin'
    for name in names:
        # The index is not trusted: a name with folders in it could lead out of this one.
        if Path(name).name != name or not name.endswith(ending):
            raise InputError(f'{index}: names {name!r}; a {ending} file beside the index is expected')
        if not (index.parent / name).is_file():
            raise InputError(f'{index}: names {name}, which is not there; fetch it too')
    return [index.parent / name for name in names]


def _read(file: Path) -> dict[str, np.ndarray]:
    return _read_safetensors(file) if file.suffix == '.safetensors' else _read_bin(file)


def _read_safetensors(file: Path) -> dict[str, np.ndarray]:
    try:
        return safetensors.numpy.load_file(file)
    except (safetensors.SafetensorError, OSError, KeyError, ValueError, TypeError) as error:
        raise InputError(f'{file}: is damaged or not a safetensors file ({error}); fetch it again') from error


def _read_bin(file: Path) -> dict[str, np.ndarray]:
    import torch  # slow to import, and few folders need it

    try:
        state = torch.load(file, map_location='cpu', weights_only=True)
        if inner := next((name for name, value in state.items() if isinstance(value, Mapping)), None):
            raise InputError(
                f'{file}: is a checkpoint of a training, with {", ".join(map(str, state))}; load what is in its '
                f'{inner!r} into the model, and save that with save_pretrained()'
            )
        return {name: tensor.to(torch.float32).numpy() for name, tensor in state.items()}
    except InputError:
        raise
    except Exception as error:  # torch.load raises whatever the bytes lead it to
        if flaw := pickled_code(error):
            raise InputError(f'{file}: {flaw}') from error
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f'{file}: is damaged or not a plain state dict ({reason}); fetch it again'
        ) from error
