"""How the states of a text become its vector, and the files in which sentence-transformers looks for it.

A folder of transformers says nothing of it. What sentence-transformers needs beside it are modules.json, a list of what
a text goes through, and the settings of the part that pools, in a folder of its own.

Legend: B rows, L pieces a row, G texts of a row, D hidden size. Arrays are those of numpy, jax or torch.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import JsonObject, read_json
from bioptimus_jax.tokenizer.subwords import SETTINGS, load

MODULES, POOLED = 'modules.json', '1_Pooling/config.json'
OF_TEXTS, LONGEST = 'sentence_bert_config.json', 'max_seq_length'
OLDER = 'sentence_*_config.json'
"""The same file of old models, which have the name of their family in it."""
PROMPTS = 'config_sentence_transformers.json'
PARTS = ('Transformer', 'Pooling', 'Normalize')
"""The last parts of the types of modules that are read here, in their order; the last one may be missing."""
FEWEST = 3
"""Pieces of the shortest text, with the special ones."""
ANEW = 'export the model again, or take another model'


@dataclasses.dataclass(frozen=True)
class Pooling:
    """How a vector is made of states: their sum, weighted.

    `weights`: 1.0 where a piece is of a text and 0.0 elsewhere, BxGxL -> how much each piece counts for each text.
    `hf_name`: what sentence-transformers calls it.
    """

    meaning: str
    hf_name: str
    weights: Callable[[Any], Any]


POOLINGS = {
    'mean': Pooling(
        'the mean over all pieces, special ones too',
        'mean',
        lambda of_text_BxGxL: of_text_BxGxL / of_text_BxGxL.sum(-1)[..., None].clip(1),
    ),
    'cls': Pooling(
        'the state of the first piece',
        'cls',
        lambda of_text_BxGxL: of_text_BxGxL * (of_text_BxGxL.cumsum(-1) == 1),
    ),
}
"""What `config.objective.contrastive.pooling` may be."""
USUAL = 'mean'
"""How vectors are made where nobody says it."""
FLAG = 'pooling_mode_'
FLAGS = {'cls_token': 'cls', 'mean_tokens': 'mean'}
"""Ends of keys, in the older spelling of these files -> how the newer one says it."""


def files_for_sentence_transformers(pooling: str, size: int, longest: int = 0) -> JsonObject:
    """The values of these files for vectors of that size, by the paths of the files in a model's folder.

    `longest`: how many pieces are read of a text, if not all that its tokenizer lets through.
    """
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
    found: JsonObject = {MODULES: modules, POOLED: {'word_embedding_dimension': size, **modes}}
    return {**found, OF_TEXTS: {LONGEST: longest}} if longest else found


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
    said_of_prompts: Any = read_json(folder / PROMPTS)
    said_of_prompts = said_of_prompts if isinstance(said_of_prompts, dict) else {}
    prompt = said_of_prompts.get('default_prompt_name')
    # An empty prompt changes nothing.
    if prompt is not None and (said_of_prompts.get('prompts') or {}).get(prompt) != '':
        raise InputError(
            f'{folder / PROMPTS}: the prompt {prompt!r} comes before every text by default, which is not done here; '
            'put it before your texts, and set default_prompt_name to null'
        )
    _check_reading(folder)
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


def _check_reading(folder: Path) -> None:
    """Raise InputError where texts would be read in another way than is done here."""
    file = _file_of_texts(folder)
    if _said(file, 'do_lower_case') is True and not load(folder).lowercase:
        raise InputError(
            f'{file}: do_lower_case is true, and the tokenizer keeps capitals; make small letters of your '
            'texts, and set it to false'
        )
    if _said(folder / SETTINGS, 'truncation_side') == 'left':
        raise InputError(
            f'{folder / SETTINGS}: truncation_side is left, but of long texts the beginning is read here; set it to '
            'right'
        )


def longest_in(folder: Path) -> int | None:
    """The most pieces of a text that a folder says it reads; None where no file says it.

    As in sentence-transformers, the limit of the tokenizer counts only where no other is given.
    """
    for file, key in ((_file_of_texts(folder), LONGEST), (folder / SETTINGS, 'model_max_length')):
        bound = _said(file, key)
        if isinstance(bound, int | float) and bound >= FEWEST:
            return int(bound)
    return None


def _file_of_texts(folder: Path) -> Path:
    """The file that says how texts are read, of several the first."""
    files = [folder / OF_TEXTS, *sorted(folder.glob(OLDER))]
    return next((file for file in files if read_json(file)), files[0])


def _said(file: Path, key: str) -> Any:
    said = read_json(file)
    return said.get(key) if isinstance(said, dict) else None


def _kinds(modules: Any) -> tuple[str, ...]:
    return tuple(map(_kind, modules)) if isinstance(modules, list) else ()


def _kind(module: Any) -> str:
    return str(module.get('type')).rpartition('.')[2] if isinstance(module, dict) else str(module)[:20]
