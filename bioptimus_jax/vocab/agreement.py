"""Whether transformers reads the tokenizer of a folder as we do; where it does not, what the two part in."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers.normalizers import BertNormalizer

from bioptimus_jax.errors import InputError
from bioptimus_jax.vocab.tokenizer_files import NAMED, SWITCHES
from bioptimus_jax.vocab.wordpiece import PROBES, without_vocabulary, words_of

FLAGS = ('single_word', 'lstrip', 'rstrip', 'normalized', 'special')


def load_in_transformers(folder: Path, **options: Any) -> Any:
    """AutoTokenizer's tokenizer of a folder. Raises InputError where it has none, or one that is not fast."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    if not folder.is_dir():
        raise InputError(f'{folder}: no such folder; give a Hugging Face folder with a tokenizer')
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=False, local_files_only=True, **options
        )
    except Exception as error:  # what a folder holds can lead transformers to any of them
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f'{folder}: holds no tokenizer that transformers can load ({reason})') from error
    if not getattr(tokenizer, 'is_fast', False):
        raise InputError(
            f'{folder}: its tokenizer ({type(tokenizer).__name__}) has no fast version, which the alignment of '
            'words needs'
        )
    return tokenizer


def check_source(folder: Path, ours: tokenizers.Tokenizer) -> None:
    """Raises InputError where transformers reads the source in `folder` otherwise than we do."""
    loaded = load_in_transformers(folder)
    if parted := difference(loaded, ours):
        file = 'tokenizer.json' if (folder / 'tokenizer.json').is_file() else 'vocab.txt'
        raise InputError(
            f'{folder}: the tokenizer cannot be kept, transformers reads it as a {type(loaded).__name__}, otherwise '
            f'than {file} has it ({parted}); write into tokenizer_config.json what the model was trained with (all '
            'of tokenizer.json: "tokenizer_class": "PreTrainedTokenizerFast")'
        )


def check_written(folder: Path, ours: tokenizers.Tokenizer, texts: Iterable[str] = ()) -> Any:
    """What AutoTokenizer makes of a folder of ours. Raises InputError where it is not `ours`."""
    loaded = load_in_transformers(folder)
    if parted := difference(loaded, ours, texts):
        raise InputError(
            f'{folder}: transformers reads another tokenizer than the run has: {parted}; report it'
        )
    return loaded


def difference(loaded: Any, ours: tokenizers.Tokenizer, texts: Iterable[str] = ()) -> str:
    """What transformers' tokenizer and ours part in, the setting named; '' where they are one.

    Compared are every setting, token and flag, and what becomes of `texts` and PROBES, one by one and in pairs.
    """
    for key, name in NAMED.items():
        if getattr(loaded, key) != name:
            return f'{key} is {getattr(loaded, key)!r} in transformers, {name!r} here'
    other, mine = (dict(_facts(t)) for t in (loaded.backend_tokenizer, ours))
    for name in mine | other:
        if mine.get(name) != other.get(name):
            return f'{name} is {other.get(name)} in transformers, {mine.get(name)} here'
    added = [f'a {token.content}b {token.content}' for token in ours.get_added_tokens_decoder().values()]
    previous = ''
    for text in [*texts, *PROBES, *added]:
        for given in (
            (text,),
            (previous, text) if text else ('',),
        ):  # transformers drops an empty second text
            expected, found = ours.encode(*given), loaded(*given, verbose=False)
            types = found.get('token_type_ids', expected.type_ids)
            if (expected.ids, expected.type_ids) != (found['input_ids'], types):
                where = f'{found["input_ids"][:8]} in transformers, {expected.ids[:8]} here'
                return f'other ids for {text[:40]!r}: {where}'
        previous = text
    return ''


def other_words(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any]) -> bool:
    """Whether BERT's normaliser with those settings, the tokenizer's where they say nothing, has other words."""
    normalizer = tokenizer.normalizer
    if not isinstance(normalizer, BertNormalizer):
        return False
    own = {name: getattr(normalizer, name) for name in SWITCHES.values()}
    given = without_vocabulary(**{**own, **settings})
    first, second = ((t.normalizer, t.pre_tokenizer) for t in (without_vocabulary(**own), given))
    return any(words_of(text, *first) != words_of(text, *second) for text in PROBES)


def _facts(tokenizer: tokenizers.Tokenizer) -> Iterator[tuple[str, Any]]:
    """What decides the pieces of a text, by the name of the setting; what comes around them is seen in the ids."""
    state = json.loads(tokenizer.to_str())
    normalizer, model = state['normalizer'] or {}, state['model']
    vocabulary = model.pop('vocab')
    yield 'number of tokens', tokenizer.get_vocab_size()
    yield 'normalizer', normalizer.get('type')
    if normalizer.get('type') == 'BertNormalizer':
        if normalizer['strip_accents'] is None:
            normalizer['strip_accents'] = normalizer['lowercase']
        for key, name in SWITCHES.items():
            yield key, normalizer.pop(name)
    yield 'rest of the normalizer', json.dumps(normalizer)
    yield 'pre_tokenizer', json.dumps(state['pre_tokenizer'])
    for name in sorted(model):
        yield name, model[name]
    for entry in state['added_tokens']:
        flags = ', '.join(flag for flag in FLAGS if entry[flag]) or 'no flag'
        yield f'added token {entry["content"]!r}', f'id {entry["id"]} ({flags})'
    for token, number in vocabulary.items() if isinstance(vocabulary, dict) else ():
        yield f'the id of {token!r}', number
