"""What a folder says of BERT's tokenizer beside its vocabulary: its settings, and the tokens added to it.

Read as transformers reads them: tokenizer_config.json, or of older folders special_tokens_map.json and
added_tokens.json too.
"""

from pathlib import Path
from typing import Any

from tokenizers import AddedToken

from bioptimus_jax.errors import InputError
from bioptimus_jax.files import read_json
from bioptimus_jax.vocab.subwords import LEGACY_FILES, SETTINGS

NAMED = dict(pad_token='[PAD]', unk_token='[UNK]', cls_token='[CLS]', sep_token='[SEP]', mask_token='[MASK]')
"""Keys of tokenizer_config.json and the special tokens that BERT gives them."""
EXTRA = ('additional_special_tokens', 'extra_special_tokens')
SWITCHES = {
    'do_lower_case': 'lowercase',
    'strip_accents': 'strip_accents',
    'tokenize_chinese_chars': 'handle_chinese_chars',
}
"""Keys of tokenizer_config.json and what BERT's normaliser calls them."""


def normalizer_settings(folder: Path) -> dict[str, bool | None]:
    """The settings of BERT's normaliser that tokenizer_config.json gives, by the normaliser's names."""
    said = _object(folder / SETTINGS)
    found = {}
    for key, name in SWITCHES.items():
        if key in said:
            if not isinstance(said[key], bool) and not (key == 'strip_accents' and said[key] is None):
                raise InputError(
                    f'{folder / "tokenizer_config.json"}: {key} is {str(said[key])[:40]!r}; true or false is expected'
                )
            found[name] = said[key]
    return found


def listed_tokens(folder: Path) -> list[tuple[AddedToken, int | None]]:
    """The tokens that the files of a folder add or describe, in the order in which they get ids; and the id, if said.

    Raises InputError for files that cannot be read, and where [CLS] and the like have other names.
    """
    file = folder / SETTINGS
    said, special = _object(file), {}
    numbered: dict[int, AddedToken] = {}
    if 'added_tokens_decoder' in said:
        for key, value in _mapping(said['added_tokens_decoder'], file).items():
            numbered[_number(key, file)] = _token(value, file, special=False)
    else:
        special, added = (_object(folder / name) for name in LEGACY_FILES)
        names = {_token(value, file).content for value in _special(said)}
        for token, value in added.items():
            numbered[_number(value, folder / LEGACY_FILES[1])] = AddedToken(token, special=token in names)
    for key, name in NAMED.items():
        value = special.get(key) or said.get(key) or name
        if (content := _token(value, file).content) != name:
            raise InputError(
                f'{file}: {key} is {content[:40]!r}; only {name} is supported, rename it there and in the vocabulary'
            )
    found: dict[str, tuple[AddedToken, int | None]] = {}
    for number in sorted(numbered):
        found[numbered[number].content] = numbered[number], number
    for value in (*_special(special), *_special(said)):
        described = _token(value, file)
        if isinstance(value, dict) or described.content not in NAMED.values():
            found.setdefault(described.content, (described, None))
    return list(found.values())


def _special(said: dict[str, Any]) -> list[Any]:
    """Special tokens that are named, then those that are listed."""
    listed = [said[key] for key in EXTRA if said.get(key)]
    more = [t for each in listed for t in (each.values() if isinstance(each, dict) else each)]
    return [*(said[key] for key in NAMED if said.get(key)), *more]


def _token(value: Any, file: Path, special: bool = True) -> AddedToken:
    """A token that is given by its name, or with flags."""
    try:
        flags = {'content': value} if isinstance(value, str) else dict(value)
        flags.pop('__type', None)
        return AddedToken(**{'special': special, **flags})
    except (TypeError, ValueError) as error:
        raise InputError(f'{file}: {str(value)[:60]!r} is no added token; fetch it again') from error


def _number(value: Any, file: Path) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f'{file}: {str(value)[:40]!r} is no id of an added token; fetch it again') from error


def _mapping(value: Any, file: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f'{file}: {str(value)[:40]!r} stands where an object is expected; fetch it again')
    return value


def _object(file: Path) -> dict[str, Any]:
    """The object in a JSON file; an empty one where there is no file."""
    value = read_json(file)
    return {} if value is None else _mapping(value, file)
