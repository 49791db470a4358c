"""Whether transformers reads the tokenizer of a folder as we do; where it does not, what the two part in."""

import contextlib
import copy
import json
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import normalizers
from tokenizers.pre_tokenizers import ByteLevel

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import read_json, refuse_pointer, write_json
from bioptimus_jax.tokenizer import spm
from bioptimus_jax.tokenizer.probes import PROBES
from bioptimus_jax.tokenizer.quoted import reader_of_texts
from bioptimus_jax.tokenizer.subwords import (
    READY,
    SETTINGS,
    Subwords,
    Vocabulary,
    check_added,
    deciding_file,
    file_names,
    load,
)
from bioptimus_jax.tokenizer.tokenizer_files import ENDS, NAMES_OF_ROLES, SWITCHES, plain_steps, unsaid_type

CONFIG = 'config.json'
UNLIMITED = 10**30
"""What transformers takes for the longest text where nothing says it."""
UNKNOWN = ('unk_token', 'fuse_unk')
"""Settings of a model that decide what becomes of characters that it lacks."""
FLAGS = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')


def load_for_words(folder: Path) -> Any:
    """AutoTokenizer's tokenizer of a folder, for text that is split into words: each is spelled as within a sentence.

    Raises InputError.
    """
    tokenizer = load_in_transformers(folder)
    if _spaces_tell(tokenizer):
        # Byte-level vocabularies (RoBERTa's) spell a word otherwise unless a space precedes it.
        tokenizer = load_in_transformers(folder, add_prefix_space=True)
    if _spaces_tell(tokenizer):
        # A tokenizer that transformers takes from tokenizer.json as it stands (ModernBERT's) does not heed that.
        backend, space = tokenizer.backend_tokenizer, normalizers.Prepend(' ')
        own = [backend.normalizer] if backend.normalizer else []
        for steps in ([*own, space], [space, *own]):  # Gemma's normalizer writes spaces as a letter
            if _spaces_tell(tokenizer):
                backend.normalizer = normalizers.Sequence(steps)
    return for_texts(tokenizer)


def for_texts(tokenizer: Any, kept: Collection[str] = ()) -> Any:
    """A tokenizer of transformers for texts from outside: special tokens that they quote are text but for the `kept`.

    It is a copy, saved as the tokenizer itself is; its `quoted` are the tokens that are text.
    """
    reader, named = (
        copy.copy(tokenizer),
        (getattr(tokenizer, key) for key in (*NAMES_OF_ROLES.values(), *ENDS)),
    )
    reader.quoted = {token for token in named if token} - set(kept)
    reader._tokenizer = reader_of_texts(tokenizer.backend_tokenizer, reader.quoted)
    reader.split_special_tokens = True
    reader.save_pretrained = tokenizer.save_pretrained
    return reader


def _spaces_tell(tokenizer: Any) -> bool:
    """Whether words of a list have other pieces than the same words in a text."""
    options = dict(add_special_tokens=False, verbose=False)
    given = [tokenizer('a a', **options), tokenizer(['a', 'a'], is_split_into_words=True, **options)]
    return given[0]['input_ids'] != given[1]['input_ids']


def masked_by(tokenizer: Any) -> Vocabulary:
    """What masking reads of any tokenizer of transformers; where words begin is said by the rows, not by the tokens."""
    special, named = set(tokenizer.all_special_ids), tokenizer.get_vocab()
    size = max(named.values()) + 1  # ids may have gaps
    around = {getattr(tokenizer, f'{NAMES_OF_ROLES[role]}_id') for role in ('pad', 'cls', 'sep', 'mask')}
    special_V = np.array([i in special and (i in around or i != tokenizer.unk_token_id) for i in range(size)])
    free = special.union(i for token, i in named.items() if token.startswith('[unused'))
    drawn = np.array(sorted(set(named.values()) - free), np.int32)
    return Vocabulary(tokenizer.mask_token_id, np.ones(size, bool), special_V, drawn)


def load_in_transformers(folder: Path, **options: Any) -> Any:
    """AutoTokenizer's tokenizer of a folder. Raises InputError where it has none, or one that is not fast."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; give a Hugging Face folder with a tokenizer')
    for name in file_names():
        refuse_pointer(folder / name)
    try:
        with _readable(folder) as place:
            tokenizer = AutoTokenizer.from_pretrained(
                place, trust_remote_code=False, local_files_only=True, **options
            )
        tokenizer.name_or_path = str(folder)
    except Exception as error:  # what a folder holds can lead transformers to any of them
        raise InputError(
            f'{folder}: holds no tokenizer that transformers can load ({said_by(error)})'
        ) from error
    if not getattr(tokenizer, 'is_fast', False):
        raise InputError(
            f'{folder}: its tokenizer ({type(tokenizer).__name__}) has no fast version, which the alignment of '
            'words needs'
        )
    check_added(tokenizer.backend_tokenizer, folder)
    return tokenizer


@contextlib.contextmanager
def _readable(folder: Path) -> Iterator[Path]:
    """The folder; or a copy of its tokenizer that transformers reads as the model was trained.

    That is one where tokenizer.json has null for the type of its model, and one of SentencePiece's file alone
    (tokenizer/spm.py).
    """
    described, own = unsaid_type(folder), _of_sentencepiece(folder)
    if not described and own is None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix='bioptimus-') as name:
        for file in filter(Path.is_file, (folder / name for name in (*file_names(), CONFIG))):
            shutil.copyfile(file, Path(name) / file.name)
        if own is None:
            write_json(Path(name) / READY, described)
        else:
            lengths = (read_json(folder / CONFIG) or {}).get('max_position_embeddings'), _said_length(folder)
            own.save(Path(name), min(filter(None, lengths), default=UNLIMITED))
        yield Path(name)


def _of_sentencepiece(folder: Path) -> Subwords | None:
    """The tokenizer of a folder that has SentencePiece's file alone, where we read it without transformers."""
    with contextlib.suppress(InputError):
        return load(folder) if spm.file_of(folder) else None
    return None


def _said_length(folder: Path) -> int | None:
    said = (read_json(folder / SETTINGS) or {}).get('model_max_length')
    return said if isinstance(said, int) else None


def said_by(error: Exception) -> str:
    """The first line of an error of another library."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def check_source(folder: Path, ours: Subwords) -> None:
    """Raises InputError where transformers reads the source in `folder` otherwise than we do."""
    loaded = load_in_transformers(folder)
    if parted := difference(loaded, ours):
        raise InputError(
            f'{folder}: the tokenizer cannot be kept, transformers reads it as {type(loaded).__name__}, otherwise '
            f'than {deciding_file(folder).name} has it ({parted}); write into tokenizer_config.json what the model was '
            'trained with (all of tokenizer.json: "tokenizer_class": "PreTrainedTokenizerFast")'
        )


def check_written(folder: Path, ours: Subwords, texts: Iterable[str] = ()) -> Any:
    """What AutoTokenizer makes of a folder of ours. Raises InputError where it is not `ours`."""
    loaded = load_in_transformers(folder)
    if parted := difference(loaded, ours, texts):
        raise InputError(
            f'{folder}: transformers reads another tokenizer than the run has: {parted}; report it'
        )
    return loaded


def difference(loaded: Any, ours: Subwords, texts: Iterable[str] = ()) -> str:
    """What transformers' tokenizer and ours part in, the setting named; '' where they are one.

    Compared are every setting, token and flag, and what becomes of `texts` and PROBES, one by one and in pairs.
    """
    for role, key in NAMES_OF_ROLES.items():
        name, found = ours.tokens[getattr(ours, role)], getattr(loaded, key)
        # Llama's have no names for these; the ids below show what is put around a text.
        if found != name and not (found is None and role in ('unknown', 'cls', 'sep')):
            return f'{key} is {found!r} in transformers, {name!r} here'
    other, mine = (dict(_facts(t)) for t in (loaded.backend_tokenizer, ours.tokenizer))
    for name in mine | other:
        if mine.get(name) != other.get(name):
            return f'{name} is {other.get(name)} in transformers, {mine.get(name)} here'
    contents = (token.content for token in ours.tokenizer.get_added_tokens_decoder().values())
    added = [f'a {content}b {content}' for content in contents]
    previous = ''
    for text in [*texts, *PROBES, *added]:
        # Transformers drops an empty second text.
        for given in ((text,), (previous, text) if text else ('',)):
            expected, found = (
                ours.tokenizer.encode(*given),
                loaded(*given, verbose=False, split_special_tokens=False),
            )
            types = found.get('token_type_ids', expected.type_ids)
            if (expected.ids, expected.type_ids) != (found['input_ids'], types):
                where = f'{found["input_ids"][:8]} in transformers, {expected.ids[:8]} here'
                return f'other ids for {text[:40]!r}: {where}'
        previous = text
    return ''


def _facts(tokenizer: tokenizers.Tokenizer) -> Iterator[tuple[str, Any]]:
    """What decides the pieces of a text, by the name of the setting; what comes around them is seen in the ids."""
    state = json.loads(tokenizer.to_str())
    steps, model = plain_steps(state['normalizer']), state['model']
    vocabulary = model.pop('vocab')
    yield 'number of tokens', tokenizer.get_vocab_size()
    yield 'normalizer', ', '.join(step['type'] for step in steps) or None
    for step in steps:
        if step['type'] == 'BertNormalizer':
            # Left open, accents are stripped where capitals are lowered.
            if step['strip_accents'] is None:
                step['strip_accents'] = step['lowercase']
            for key, name in SWITCHES.items():
                yield key, step.pop(name)
    yield 'rest of the normalizer', json.dumps(steps)
    yield 'pre_tokenizer', ', '.join(map(json.dumps, plain_steps(state['pre_tokenizer'])))
    if 'merges' in model and vocabulary.keys() >= set(ByteLevel.alphabet()):
        # No byte is unknown.
        model |= dict.fromkeys(UNKNOWN)
    for name in sorted(model):
        # Nothing before or behind a piece, and no dropout, are written in two ways.
        yield name, model[name] or None
    for entry in state['added_tokens']:
        flags = ', '.join(flag for flag in FLAGS if entry[flag]) or 'no flag'
        yield f'added token {entry["content"]!r}', f'id {entry["id"]} ({flags})'
    if isinstance(vocabulary, dict):
        for token, number in vocabulary.items():
            yield f'the id of {token!r}', number
    else:  # the library reads the last digits of a number otherwise than it wrote them
        for number, (token, score) in enumerate(vocabulary):
            yield f'id and score of {token!r}', (number, f'{score:.9g}')
