"""How the states of a text become its vector, and the files in which sentence-transformers looks for it.

A folder of transformers says nothing of it. What sentence-transformers needs beside it are modules.json, a list of what
a text goes through, and the settings of the part that pools, in a folder of its own.

Legend: B rows, L pieces a row, G texts of a row, D hidden size.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import read_json

MODULES, SETTINGS = 'modules.json', '1_Pooling/config.json'
PARTS = ('Transformer', 'Pooling', 'Normalize')
"""The last parts of the types of modules that are read here, in their order; the last one may be missing."""
FEWEST = 3
"""Pieces of the shortest text, with the special ones."""
ANEW = 'export the model again, or take another model'


@dataclasses.dataclass(frozen=True)
class Pooling:
    """How a vector is made of states. `pool(states_BxLxD, segments_BxL, texts)`: those of the texts 1, 2, ... of every
    row, BxGxD, zeros where a row has fewer; `hf_name`: what sentence-transformers calls it."""

    meaning: str
    hf_name: str
    pool: Callable[[jax.Array, jax.Array, int], jax.Array]


def of_texts(segments_BxL: jax.Array, texts: int) -> jax.Array:
    """Whether a piece is of a text of its row, BxGxL, as `segments_BxL` numbers them from 1."""
    return segments_BxL[:, None, :] == jnp.arange(1, texts + 1)[None, :, None]


def _means(states_BxLxD: jax.Array, segments_BxL: jax.Array, texts: int) -> jax.Array:
    of_text_BxGxL = of_texts(segments_BxL, texts).astype(jnp.float32)
    sums_BxGxD = jnp.einsum('bgl,bld->bgd', of_text_BxGxL, states_BxLxD.astype(jnp.float32))
    return sums_BxGxD / jnp.maximum(of_text_BxGxL.sum(axis=-1, keepdims=True), 1)


def _firsts(states_BxLxD: jax.Array, segments_BxL: jax.Array, texts: int) -> jax.Array:
    of_text_BxGxL = of_texts(segments_BxL, texts)
    first_BxG = of_text_BxGxL.argmax(axis=-1)
    found_BxGxD = jnp.take_along_axis(states_BxLxD, first_BxG[..., None], axis=1).astype(jnp.float32)
    return found_BxGxD * of_text_BxGxL.any(axis=-1)[..., None]


POOLINGS = {
    'mean': Pooling('the mean over all pieces, special ones too', 'mean', _means),
    'cls': Pooling('the state of the first piece', 'cls', _firsts),
}
"""What `config.objective.contrastive.pooling` may be."""
FLAG = 'pooling_mode_'
FLAGS = {'cls_token': 'cls', 'mean_tokens': 'mean'}
"""Ends of keys, in the older spelling of these files -> how the newer one says it."""


def files_for_sentence_transformers(pooling: str, size: int) -> dict[str, Any]:
    """The values of these files for vectors of that size, by the paths of the files in a model's folder."""
    names = ('', '1_Pooling', '2_Normalize')
    modules = [
        {
            'idx': number,
            'name': str(number),
            'path': path,
            'type': f'sentence_transformers.models.{kind}',
        }
        for number, (path, kind) in enumerate(zip(names, PARTS, strict=True))
    ]
    modes = {f'{FLAG}{end}': POOLINGS[pooling].hf_name == name for end, name in FLAGS.items()}
    return {MODULES: modules, SETTINGS: {'word_embedding_dimension': size, **modes}}


def pooling_in(folder: Path) -> str | None:
    """How a folder says that its vectors are pooled, a name of POOLINGS; None where it says nothing.

    Raises InputError for what is not done here.
    """
    modules = read_json(folder / MODULES)
    if modules is None:
        return None
    kinds = _kinds(modules)
    if kinds not in (PARTS, PARTS[:-1]):
        raise InputError(
            f'{folder / MODULES}: the modules are {", ".join(kinds) or "none"}, but only {", ".join(PARTS)} are read '
            'here; take a model without others, or its own library'
        )
    path = next(one.get('path') for one in modules if _kind(one) == PARTS[1])
    file = folder / str(path) / 'config.json'
    said = read_json(file)
    if not isinstance(said, dict):
        raise InputError(f'{file}: is missing or says nothing of pooling; {ANEW}')
    ends = [key.removeprefix(FLAG) for key, value in said.items() if key.startswith(FLAG) and value is True]
    found = [FLAGS.get(end, end) for end in ends] or [str(said.get('pooling_mode'))]
    named = {one.hf_name: name for name, one in POOLINGS.items()}
    if len(found) != 1 or found[0] not in named:
        raise InputError(
            f'{file}: pools by {", ".join(found)}, and what is done here is one of {", ".join(named)}; {ANEW}'
        )
    return named[found[0]]


def longest_in(folder: Path) -> int | None:
    """The most pieces of a text that a folder says it reads; None where no file says it."""
    bounds = []
    for name, key in (
        ('sentence_bert_config.json', 'max_seq_length'),
        ('tokenizer_config.json', 'model_max_length'),
    ):
        said = read_json(folder / name)
        bound = said.get(key) if isinstance(said, dict) else None
        if isinstance(bound, int | float) and bound >= FEWEST:
            bounds.append(int(bound))
    return min(bounds, default=None)


def _kinds(modules: Any) -> tuple[str, ...]:
    return tuple(map(_kind, modules)) if isinstance(modules, list) else ()


def _kind(module: Any) -> str:
    return str(module.get('type')).rpartition('.')[2] if isinstance(module, dict) else str(module)[:20]
