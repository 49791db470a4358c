"""Parameters and the tensors of a Hugging Face folder: read a model, write one that transformers loads.

The architecture's `tensor_name` maps parameter paths to tensors; matrices are transposed, and the rows that pad the
vocabulary are cut on the way out and added on the way in.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy

from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import HEAD, Architecture
from bioptimus_jax.model.config import FAMILIES, Model
from bioptimus_jax.model.folder import config_values
from bioptimus_jax.model.trees import FlatParams, Params, flatten, merge_strict, unflatten
from bioptimus_jax.model.weights import (
    WEIGHTS,
    check_finite,
    read_weights,
    refuse_wrapped,
    tensor_names,
    weight_files,
)
from bioptimus_jax.storage.files import atomic, complete, write_json
from bioptimus_jax.tokenizer import subwords
from bioptimus_jax.tokenizer.tokenizer_files import leave_types_out

NOTHING: Mapping[str, np.ndarray] = {}


def read_architecture(folder: Path) -> Architecture:
    """The architecture in `folder/config.json`. Raises InputError for a family or a shape that cannot be computed."""
    values, file = config_values(folder), folder / 'config.json'
    model_type: Any = values.get('model_type')
    if values.get('is_encoder_decoder'):
        raise InputError(
            f'{file}: model_type {model_type!r} is an encoder-decoder (is_encoder_decoder); only encoders can be read'
        )
    if model_type not in FAMILIES:
        listed = ', '.join(f'"{name}"' for name in FAMILIES)
        raise InputError(f'{file}: model_type is {model_type!r}; only {listed} can be read')
    return cast(Architecture, FAMILIES.load(model_type).from_config(values, file))


def own_architecture(model: Model, vocab_size: int) -> Architecture:
    """The shape of config.model: of a run without a source."""
    shape = (model.hidden, model.layers, model.heads, model.intermediate, model.max_positions)
    rates = {name: getattr(model, name) for name in ('dropout', 'attention_dropout', 'initializer_range')}
    return FAMILIES.load(model.family)(vocab_size, *shape, **rates)


def load_folder(
    folder: Path, key: jax.Array | None = None, masked_lm: bool = True
) -> tuple[Architecture, Params, list[str]]:
    """Architecture, parameters (numpy, float32) and the paths that the folder lacks and `key` drew at random.

    Only the head may be missing, and it is that of a masked language model, or with `masked_lm` false the model's own.
    Raises InputError, naming file and tensors, for a folder without config or weights, a damaged file, and tensors
    missing, unknown, of another shape or not finite.
    """
    architecture = read_architecture(folder)
    if masked_lm:
        architecture = architecture.masked_lm()
    state, file = read_weights(folder)
    plain_name = architecture.plain_name
    used = {name: tensor for name, tensor in state.items() if not architecture.ignores(plain_name(name))}
    check_finite(used, folder, file)
    params, fresh = from_tensors(state, architecture, key, where=str(file))
    return architecture, params, fresh


def from_tensors(
    state: Mapping[str, np.ndarray],
    architecture: Architecture,
    key: jax.Array | None = None,
    where: str = 'weights',
) -> tuple[Params, list[str]]:
    """Parameters from a state dict, with or without the family's prefix, and the paths of a missing head.

    A head that is missing altogether is drawn with `key` (default: seed 0) and listed; anything else that
    does not fit raises InputError that begins with `where`.
    """
    check_family(state, architecture, where)
    tensors = architecture.from_hf_tensors(_plain_tensors(state, architecture, where))
    shapes = architecture.shapes()
    known = {architecture.plain_name(architecture.tensor_name(path)): path for path in shapes}
    # A tensor that no parameter is called after keeps its name, by which `merge_strict` refuses it.
    given = {
        known.get(name, name): _from_tensor(known.get(name, ''), value) for name, value in tensors.items()
    }
    # Views of one zero: a config of absurd sizes takes no memory before it is refused.
    template = {path: _cut(path, np.broadcast_to(0, shape), architecture) for path, shape in shapes.items()}
    fresh = [path for path in shapes if path.startswith(f'{HEAD}/')]
    if _holds_head(architecture, given, state):
        fresh = []
    else:
        given |= {path: template[path] for path in fresh}
    merged = flatten(merge_strict(template, given, where))
    if fresh:  # drawn only now: a config of absurd sizes was refused for the tensors that it does not fit
        key = jax.random.key(0, impl='threefry2x32') if key is None else key
        drawn = flatten(architecture.initial_parameters(key))
        merged |= {path: np.asarray(_cut(path, drawn[path], architecture)) for path in fresh}
    rows = architecture.padded_vocab_size - architecture.vocab_size
    for path in architecture.padded:
        merged[path] = np.pad(merged[path], [(0, rows)] + [(0, 0)] * (merged[path].ndim - 1))
    return unflatten(merged), fresh


def encoder_parameters(tensors: Mapping[str, jax.Array], architecture: Architecture) -> Params:
    """Parameters of an encoder, without a head, from transformers' tensors by plain names.

    It may be traced and differentiated, so a gradient by the parameters becomes one by the tensors, whatever is cut,
    turned or added on the way. Raises ValueError that names tensors which are missing or of no parameter.
    """
    paths = [path for path in architecture.shapes() if not path.startswith(f'{HEAD}/')]
    known = {architecture.plain_name(architecture.tensor_name(path)): path for path in paths}
    given = architecture.from_hf_tensors(cast(Any, dict(tensors)))
    if odd := sorted(given.keys() ^ known.keys()):
        raise ValueError(', '.join(odd))
    rows = architecture.padded_vocab_size - architecture.vocab_size
    found: FlatParams = {}
    for name, path in known.items():
        tensor: Any = given[name]
        found[path] = tensor.T if path.endswith('/kernel') else tensor
        if path in architecture.padded:
            found[path] = jnp.pad(tensor, [(0, rows), (0, 0)])
    return unflatten(found)


def has_head(folder: Path) -> bool:
    """Whether the weights of a folder hold the head of a masked language model, by the names of their tensors.

    True where there are no names without reading the file (PyTorch's).
    """
    architecture, names = read_architecture(folder).masked_lm(), tensor_names(folder)
    known = {architecture.plain_name(architecture.tensor_name(path)): path for path in architecture.shapes()}
    plain = [name for name in map(architecture.plain_name, names) if not architecture.ignores(name)]
    return not names or _holds_head(architecture, [known.get(name, name) for name in plain], names)


def lacks_head(folder: Path) -> bool:
    """Whether a folder has weights and no masked-LM head among them."""
    return bool(weight_files(folder)) and not has_head(folder)


def head_note(head_steps: int) -> str:
    """What to say of a source that lacks a masked-LM head; `head_steps`: those in which it alone is trained."""
    fitted = (
        f'it alone is trained in the first {head_steps:,} of the steps'
        if head_steps
        else 'set config.pretrain.head_steps to fit it before the encoder is trained, say a tenth of the steps'
    )
    return f'no masked-LM head in the source: one starts at random; {fitted}'


def _holds_head(architecture: Architecture, paths: Iterable[str], names: Iterable[str]) -> bool:
    paths = list(paths)
    if not any(path.startswith(f'{HEAD}/') for path in architecture.shapes()):
        return True  # its head is the table of embeddings
    if architecture.output_bias not in paths and any(name.startswith('classifier.') for name in names):
        # What a classifier of the same family calls its head was trained for classes.
        return False
    return any(path.startswith(f'{HEAD}/') for path in paths)


def parameters_in(
    folder: Path, architecture: Architecture, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, np.ndarray]:
    """The parameters, of some, that a folder has. Raises InputError for one of another shape or not finite."""
    state, where = read_weights(folder)
    names, found = {architecture.plain_name(name): name for name in state}, {}
    for path, shape in shapes.items():
        if name := names.get(architecture.plain_name(architecture.tensor_name(path))):
            check_finite({name: state[name]}, folder, where)
            found[path] = _from_tensor(path, state[name])
            if found[path].shape != shape:
                raise InputError(f'{where}: {path} has shape {found[path].shape}; {shape} is expected')
    return found


def to_tensors(params: Params, architecture: Architecture) -> dict[str, np.ndarray]:
    """The state dict of the family's class in transformers, float32 and contiguous.

    Second names of tied tensors and the rows that pad the vocabulary are left out; if the tables are not tied,
    transformers ties nothing, and has a bias under both names.
    """
    state = {}
    for path, leaf in flatten(params).items():
        tensor = np.asarray(_cut(path, leaf, architecture), np.float32)
        if path.endswith('/kernel'):
            tensor = tensor.T
        state[architecture.tensor_name(path)] = np.ascontiguousarray(tensor)
    if architecture.untied:
        state |= {second: state[first].copy() for second, first in architecture.second_names().items()}
    return architecture.to_hf_tensors(state)


def write_folder(
    folder: Path,
    architecture: Architecture,
    params: Params,
    tokenizer_folder: Path,
    untouched: Mapping[str, np.ndarray] = NOTHING,
) -> None:
    """A Hugging Face folder: tokenizer files, config.json, and last model.safetensors (float32).

    `untouched`: tensors beside the parameters, by transformers' names. What config.json says of the tokenizer's ids
    follows from `tokenizer_folder`. Raises InputError where that has no tokenizer, or one with more tokens than there
    are rows.
    """
    folder, tokenizer_folder = Path(folder), Path(tokenizer_folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = subwords.load(tokenizer_folder)
    check_vocabulary(known, architecture, tokenizer_folder)
    architecture = architecture.padded_with(known.pad)
    for name in subwords.file_names():
        if (tokenizer_folder / name).is_file() and tokenizer_folder.resolve() != folder.resolve():
            with atomic(folder / name, 'wb') as file:
                file.write((tokenizer_folder / name).read_bytes())
    if architecture.segment_types < 2:
        leave_types_out(folder, known.tokenizer)
    fixed = {
        'architectures': [architecture.hf_class],
        'model_type': architecture.model_type,
        'dtype': 'float32',
    }
    ids = {key: getattr(known, role) for key, role in architecture.token_keys.items()}
    values = {**fixed, **architecture.to_config(), **ids}
    if architecture.tied:
        values['tie_word_embeddings'] = not architecture.untied
    write_json(folder / 'config.json', values)
    # Last: a folder without weights cannot be loaded as a model, so a crash leaves none that is incomplete.
    with complete(folder / WEIGHTS[0]) as hidden:
        state = {**to_tensors(params, architecture), **untouched}
        safetensors.numpy.save_file(state, hidden, metadata={'format': 'pt'})


def _cut(path: str, values: Any, architecture: Architecture) -> Any:
    return values[: architecture.vocab_size] if path in architecture.padded else values


def _from_tensor(path: str, tensor: np.ndarray) -> np.ndarray:
    tensor = np.asarray(tensor).astype(np.float32)
    return np.ascontiguousarray(tensor.T if path.endswith('/kernel') else tensor)


def _plain_tensors(
    state: Mapping[str, np.ndarray], architecture: Architecture, where: str
) -> dict[str, np.ndarray]:
    """Tensors by their plain names, one for every tied pair; those that the model does not have are left out."""
    plain: dict[str, np.ndarray] = {}
    names: dict[str, str] = {}
    for name, tensor in state.items():
        if other := names.get(short := architecture.plain_name(name)):
            raise InputError(
                f'{where}: {other} and {name} are one tensor of the model; leave out the one that it was not trained '
                'with'
            )
        plain[short], names[short] = tensor, name
    for second, first in architecture.second_names().items():
        if second not in plain:
            continue
        if architecture.untied:  # then the first has no effect, and a training has left it as it was
            plain[architecture.plain_name(first)] = plain[second]
            continue
        # transformers computes with the second: where the two differ, the first, which is read here, has no effect.
        kept = plain.setdefault(architecture.plain_name(first), plain[second])
        if not np.array_equal(kept, plain[second]):
            raise InputError(
                f'{where}: {first} differs from {second}, which transformers computes with: leave out the '
                'one that the model was not trained with, or, if it has two tables, say "tie_word_embeddings": '
                'false in config.json'
            )
    return {name: tensor for name, tensor in plain.items() if not architecture.ignores(name)}


def check_vocabulary(known: subwords.Subwords, architecture: Architecture, folder: Path) -> None:
    """Raise InputError where a folder's tokenizer has more tokens than the model has rows, or other padding."""
    if flaw := padding_flaw(known, architecture):
        raise InputError(f'{folder}: {flaw}')
    if len(known.tokens) > architecture.vocab_size:
        raise InputError(
            f'{folder}: the vocabulary has {len(known.tokens)} tokens, but the model has {architecture.vocab_size} '
            'rows; these are not the weights of this tokenizer'
        )


def padding_flaw(known: subwords.Subwords, architecture: Architecture) -> str | None:
    """What is wrong with the id that a tokenizer pads with, in words, where transformers takes another for padding."""
    if architecture.only_pad in (None, known.pad):
        return None
    return (
        f'the tokenizer pads with {known.tokens[known.pad]}, id {known.pad}, but transformers counts the positions of '
        f'{architecture.title} from id {architecture.only_pad}, whatever config.json says; take one that has its '
        'padding there'
    )


def check_family(names: Iterable[str], architecture: Architecture, where: str) -> None:
    """Raise InputError for tensors of another family than config.json says, or of a module that held the model.

    Their names tell.
    """
    names = list(names)
    own = _table_of(type(architecture))
    bare = architecture.plain_name(own)
    families = [FAMILIES.load(family) for family in FAMILIES]
    if any(architecture.plain_name(name) == bare for name in names):
        refuse_wrapped(names, (), where)
        return
    # The table of another family is none with a beginning before its name.
    foreign = {_table_of(family) for family in families} - {own}
    refuse_wrapped([name for name in names if name not in foreign], (own, bare), where)
    found = [family for family in families if _table_of(family) in names]
    if not found and not any(name.startswith(architecture.prefix) for name in names):
        found = [family for family in families if any(name.startswith(family.prefix) for name in names)]
    if found:
        name = next(name for name in names if name.startswith(found[0].prefix))
        titles = ' or '.join(', '.join(family.title for family in found).rsplit(', ', 1))
        raise InputError(
            f'{where}: holds {name}, a tensor of {titles}, but model_type in '
            f'config.json is {architecture.model_type!r}; take both from one model'
        )


def _table_of(family: type[Architecture]) -> str:
    """The name of the table of embeddings in transformers."""
    return family.tensor_name(family.table)
