"""Hugging Face folders: read a BERT's config and weights, write one that transformers loads.

One rule maps parameter paths to tensor names (`_tensor_name`); matrices are transposed, and the rows that pad
the vocabulary are cut on the way out and added on the way in.
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import safetensors.numpy

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.files import atomic, complete, read_json, write_json
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.bert import PADDED, initial_parameters, parameter_shapes
from bioptimus_jax.model.weights import SHARDS, WEIGHTS, check_finite, read_weights, weight_files
from bioptimus_jax.schema import LARGEST_SIZE, MOST_LAYERS, Source
from bioptimus_jax.trees import flatten, merge_strict, unflatten
from bioptimus_jax.vocab import subwords

# Architecture field -> key of config.json
CONFIG_KEYS = {
    'vocab_size': 'vocab_size',
    'hidden': 'hidden_size',
    'layers': 'num_hidden_layers',
    'heads': 'num_attention_heads',
    'intermediate': 'intermediate_size',
    'max_positions': 'max_position_embeddings',
    'token_types': 'type_vocab_size',
    'layer_norm_epsilon': 'layer_norm_eps',
    'dropout': 'hidden_dropout_prob',
    'attention_dropout': 'attention_probs_dropout_prob',
    'initializer_range': 'initializer_range',
    'activation': 'hidden_act',
}
# Tensors of BERT checkpoints that a masked language model does not have, or has twice.
IGNORED = re.compile(
    r'pooler\.|embeddings\.position_ids$|cls\.seq_relationship\.|cls\.predictions\.decoder\.|classifier\.|qa_outputs\.'
)
EXPECTED = {
    'int': f'a whole number from 1 to {LARGEST_SIZE} ({MOST_LAYERS} for layers)',
    'float': 'a number from 0 to 1',
    'str': 'a name',
}


def read_architecture(folder: Path) -> Architecture:
    """The architecture in `folder/config.json`. Raises InputError for anything that is not a plain BERT."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; a Hugging Face BERT folder is needed')
    file = folder / 'config.json'
    values = read_json(file)
    if values is None:
        raise InputError(f'{file}: no such file; the folder must hold a Hugging Face model')
    if not isinstance(values, dict) or values.get('model_type') != 'bert':
        kind = values.get('model_type') if isinstance(values, dict) else None
        raise InputError(f'{file}: model_type is {kind!r}; only "bert" can be read')
    for name, plain in (
        ('position_embedding_type', 'absolute'),
        ('is_decoder', False),
        ('tie_word_embeddings', True),
    ):
        if values.get(name, plain) != plain:
            raise InputError(f'{file}: {name} is {values[name]!r}; only {plain!r} is supported')
    fields = {f.name: f for f in dataclasses.fields(Architecture)}
    settings = {}
    for field, name in CONFIG_KEYS.items():
        if name in values:
            settings[field] = values[name]
        elif fields[field].default is dataclasses.MISSING:
            raise InputError(f'{file}: has no {name!r}; it is needed to build the model')
        if field in settings and not _is_plausible(settings[field], fields[field].type, name):
            kind = str(getattr(fields[field].type, '__name__', fields[field].type))
            raise InputError(
                f'{file}: {name} is {str(settings[field])[:40]!r}; {EXPECTED.get(kind, kind)} is expected'
            )
    try:
        return Architecture(**settings)
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise InputError(f'{file}: {error}') from error


def load_folder(folder: Path, key: jax.Array | None = None) -> tuple[Architecture, dict[str, Any], list[str]]:
    """Architecture, parameters (numpy, float32) and the paths that the folder lacks and `key` drew at random.

    Only the masked-language-model head may be missing. Raises InputError, naming file and tensors, for a
    folder without config or weights, a damaged file, and tensors missing, unknown, of another shape or not finite.
    """
    folder = Path(folder)
    architecture = read_architecture(folder)
    state, file = read_weights(folder)
    used = {name: tensor for name, tensor in state.items() if not IGNORED.match(name.removeprefix('bert.'))}
    check_finite(used, folder, file)
    params, fresh = from_hf(state, architecture, key, where=str(file))
    return architecture, params, fresh


def from_hf(
    state: Mapping[str, np.ndarray],
    architecture: Architecture,
    key: jax.Array | None = None,
    where: str = 'weights',
) -> tuple[dict[str, Any], list[str]]:
    """Parameters from a BERT state dict, with or without `bert.` in front, and the paths of a missing head.

    A head that is missing altogether is drawn with `key` (default: seed 0) and listed; anything else that
    does not fit raises InputError that begins with `where`.
    """
    tensors = _plain_names(state, where)
    shapes = parameter_shapes(architecture)
    known = {_tensor_name(path).removeprefix('bert.'): path for path in shapes}
    given = {
        known.get(name, name): _from_tensor(known.get(name, ''), value) for name, value in tensors.items()
    }
    template = {path: _cut(path, np.broadcast_to(0, shape), architecture) for path, shape in shapes.items()}
    fresh = [path for path in shapes if path.startswith('cls/')]
    if any(path in given for path in fresh):
        fresh = []
    else:
        given |= {path: template[path] for path in fresh}
    merged = flatten(merge_strict(template, given, where))
    if fresh:  # drawn only now: a config of absurd sizes was refused for the tensors that it does not fit
        key = jax.random.key(0, impl='threefry2x32') if key is None else key
        drawn = flatten(initial_parameters(architecture, key))
        merged |= {path: np.asarray(_cut(path, drawn[path], architecture)) for path in fresh}
    rows = architecture.padded_vocab_size - architecture.vocab_size
    for path in PADDED:
        merged[path] = np.pad(merged[path], [(0, rows)] + [(0, 0)] * (merged[path].ndim - 1))
    return unflatten(merged), fresh


def to_hf(params: Mapping[str, Any], architecture: Architecture) -> dict[str, np.ndarray]:
    """The state dict of transformers' BertForMaskedLM, float32 and contiguous.

    The decoder, which is tied, and the rows that pad the vocabulary are left out.
    """
    state = {}
    for path, leaf in flatten(params).items():
        tensor = np.asarray(_cut(path, leaf, architecture), np.float32)
        if path.endswith('/kernel'):
            tensor = tensor.T
        state[_tensor_name(path)] = np.ascontiguousarray(tensor)
    return state


def write_folder(
    folder: Path, architecture: Architecture, params: Mapping[str, Any], tokenizer_folder: Path
) -> None:
    """A Hugging Face folder: tokenizer files, config.json, and last model.safetensors (float32).

    Raises InputError where `tokenizer_folder` has no tokenizer, or one with more tokens than there are rows.
    """
    folder, tokenizer_folder = Path(folder), Path(tokenizer_folder)
    folder.mkdir(parents=True, exist_ok=True)
    pad_id = _check_tokenizer(tokenizer_folder, architecture)
    for name in subwords.file_names():
        if (tokenizer_folder / name).is_file() and tokenizer_folder.resolve() != folder.resolve():
            with atomic(folder / name, 'wb') as file:
                file.write((tokenizer_folder / name).read_bytes())
    values = {name: getattr(architecture, field) for field, name in CONFIG_KEYS.items()}
    fixed = {'architectures': ['BertForMaskedLM'], 'model_type': 'bert', 'dtype': 'float32'}
    write_json(
        folder / 'config.json', {**fixed, **values, 'pad_token_id': pad_id, 'tie_word_embeddings': True}
    )
    with complete(folder / WEIGHTS[0]) as hidden:
        safetensors.numpy.save_file(to_hf(params, architecture), hidden, metadata={'format': 'pt'})


def deciding_files(folder: Path) -> list[Path]:
    """The files of a Hugging Face folder that decide what it computes: config.json, weights, tokenizer."""
    weights = weight_files(folder) or [folder / WEIGHTS[0]]
    tokenizer = [folder / name for name in subwords.file_names() if (folder / name).is_file()]
    return [folder / 'config.json', *weights, *tokenizer]


def source_folder(
    source: Source, keys: tuple[str, str] = ('config.source.path', 'config.source.revision')
) -> Path | None:
    """The local folder of the source model; None without one. A hub id is downloaded at its revision.

    Raises ConfigError for a hub id without a revision, InputError for a folder or download that is not there;
    messages name the `keys` that path and revision come from.
    """
    if not source.path:
        return None
    if Path(source.path).is_dir():
        return Path(source.path)
    if not re.fullmatch(r'\w[\w.-]*(/\w[\w.-]*)?', source.path):
        raise InputError(f'{source.path}: no such folder; {keys[0]} must name a Hugging Face model')
    if not source.revision:
        raise ConfigError(
            f'{keys[0]}: no folder {source.path!r}; if it is a hub id, set {keys[1]} to a commit or tag'
        )
    import huggingface_hub

    try:
        patterns = ['config.json', 'README.md', *WEIGHTS, *SHARDS, *subwords.file_names()]
        return Path(
            huggingface_hub.snapshot_download(source.path, revision=source.revision, allow_patterns=patterns)
        )
    except Exception as error:  # the hub client raises many kinds: network, credentials, names
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f'{source.path}@{source.revision}: cannot be downloaded ({reason})') from error


def _is_plausible(value: Any, kind: Any, name: str) -> bool:
    """Whether a value of config.json can be that of a BERT."""
    if kind in (str, 'str'):
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if kind in (float, 'float'):
        return 0 <= value <= 1
    return isinstance(value, int) and 1 <= value <= (
        MOST_LAYERS if name == 'num_hidden_layers' else LARGEST_SIZE
    )


def _tensor_name(path: str) -> str:
    *modules, leaf = path.split('/')
    name = '.'.join([*modules, 'bias' if leaf == 'bias' else 'weight'])
    return name if modules[0] == 'cls' else f'bert.{name}'


def _cut(path: str, values: Any, architecture: Architecture) -> Any:
    return values[: architecture.vocab_size] if path in PADDED else values


def _from_tensor(path: str, tensor: np.ndarray) -> np.ndarray:
    tensor = np.asarray(tensor).astype(np.float32)
    return np.ascontiguousarray(tensor.T if path.endswith('/kernel') else tensor)


def _plain_names(state: Mapping[str, np.ndarray], where: str) -> dict[str, np.ndarray]:
    """Tensors by names without `bert.`; TensorFlow's LayerNorm names (gamma, beta) become PyTorch's."""
    plain = {}
    for name, tensor in state.items():
        name = re.sub(r'LayerNorm\.gamma$', 'LayerNorm.weight', name.removeprefix('bert.'))
        plain[re.sub(r'LayerNorm\.beta$', 'LayerNorm.bias', name)] = tensor
    matrix, table = (
        plain.get('cls.predictions.decoder.weight'),
        plain.get('embeddings.word_embeddings.weight'),
    )
    if matrix is not None and table is not None and not np.array_equal(matrix, table):
        raise InputError(
            f'{where}: cls.predictions.decoder.weight differs from the word embeddings; '
            'only tied ones are supported'
        )
    if 'cls.predictions.decoder.bias' in plain:
        second = plain['cls.predictions.decoder.bias']
        if not np.array_equal(plain.setdefault('cls.predictions.bias', second), second):
            raise InputError(
                f'{where}: cls.predictions.bias differs from cls.predictions.decoder.bias, which transformers computes '
                'with; only tied ones are supported: leave out the one that the model was not trained with'
            )
    return {name: tensor for name, tensor in plain.items() if not IGNORED.match(name)}


def _check_tokenizer(folder: Path, architecture: Architecture) -> int:
    """The id of padding in the tokenizer of `folder`, which must fit the model's rows."""
    known = subwords.load(folder)
    if len(known.tokens) > architecture.vocab_size:
        raise InputError(
            f'{folder}: {len(known.tokens)} tokens, but the model has {architecture.vocab_size} rows'
        )
    return known.pad
