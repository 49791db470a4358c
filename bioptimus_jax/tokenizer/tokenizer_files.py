"""What a folder says of its tokenizer beside the vocabulary: settings, special tokens by role, and tokens added to it.

Read as transformers reads them: tokenizer_config.json, or of older folders special_tokens_map.json and
added_tokens.json too.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import JsonObject, atomic, read_json, write_json
from bioptimus_jax.tokenizer.subwords import LEGACY_FILES, READY, SETTINGS, Roles, Subwords, with_type

NAMES_OF_ROLES = dict(
    pad='pad_token', unknown='unk_token', cls='cls_token', sep='sep_token', mask='mask_token'
)
"""What transformers calls the special tokens, by their roles."""
ENDS = ('bos_token', 'eos_token')
"""Two more, most often of the tokens that are also named cls_token and sep_token."""
EXTRA = ('additional_special_tokens', 'extra_special_tokens')
SWITCHES = {
    'do_lower_case': 'lowercase',
    'strip_accents': 'strip_accents',
    'tokenize_chinese_chars': 'handle_chinese_chars',
}
"""Keys of tokenizer_config.json and what BERT's normaliser calls them."""


INPUTS, UNTYPED = 'model_input_names', ['input_ids', 'attention_mask']
"""The key for what a tokenizer passes to its model, and its value for a model without token types."""


def named_roles(roles: Roles) -> dict[str, str]:
    """The special tokens as tokenizer_config.json names them."""
    return {NAMES_OF_ROLES[role]: token for role, token in roles._asdict().items()}


def write_settings(folder: Path, tokenizer: tokenizers.Tokenizer, settings: JsonObject) -> None:
    """Write tokenizer.json, and tokenizer_config.json, which says how transformers is to read it."""
    with atomic(folder / READY) as file:
        file.write(tokenizer.to_str(pretty=True))
    write_json(folder / SETTINGS, settings)


def leave_types_out(folder: Path, tokenizer: tokenizers.Tokenizer) -> None:
    """Say in tokenizer_config.json that the model has one token type, if the tokenizer gives a second text another.

    transformers would give that type to the model, which has no row for it.
    """
    said = _object(folder / SETTINGS)
    if said and INPUTS not in said and any(tokenizer.encode('a', 'b').type_ids):
        write_json(folder / SETTINGS, {**said, INPUTS: UNTYPED})


def special_tokens(subwords: Subwords) -> list[str]:
    """The special tokens without a role, in order of their ids."""
    added = sorted(subwords.tokenizer.get_added_tokens_decoder().items())
    return [token.content for _, token in added if token.special and token.content not in subwords.roles]


def extra_tokens(subwords: Subwords) -> JsonObject:
    """The special tokens without a role, as tokenizer_config.json names or lists them; empty for none."""
    extra = [token for token in special_tokens(subwords) if token not in subwords.ends.values()]
    return {**subwords.ends, **({EXTRA[0]: extra} if extra else {})}


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


def read_ready(folder: Path) -> tokenizers.Tokenizer:
    """The tokenizer of a folder's tokenizer.json, truncation and padding off. Raises InputError."""
    try:
        if unsaid := unsaid_type(folder):
            tokenizer = tokenizers.Tokenizer.from_str(json.dumps(unsaid))
        else:
            tokenizer = tokenizers.Tokenizer.from_file(str(folder / READY))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the library raises bare Exception, and a panic is not even that
        raise InputError(f'{folder / READY}: is not a tokenizer that can be read ({error})') from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def unsaid_type(folder: Path) -> JsonObject:
    """The tokenizer.json of a folder with the type of its model where that is null, which no library reads; else {}."""
    described = read_json(folder / READY)
    model = described.get('model') if isinstance(described, dict) else None
    unsaid = isinstance(model, dict) and model.get('type', '') is None
    return with_type(described) if unsaid and described else {}


def plain_steps(step: JsonObject | None) -> list[JsonObject]:
    """The steps of a normalizer or a pre-tokenizer, whether or not sequences are around them."""
    if step is None:
        return []
    inner = step.get('normalizers', step.get('pretokenizers'))
    if step.get('type') != 'Sequence' or not isinstance(inner, list):
        return [step]
    return [each for part in inner for each in plain_steps(part)]


def said_roles(folder: Path) -> dict[str, tuple[str, Path]]:
    """Key of transformers -> the special token that a folder names, and the file that is to be mended."""
    return _said(folder, NAMES_OF_ROLES.values())


def named_by(said: Mapping[str, tuple[str, Path]], usual: Roles) -> Roles:
    """The special tokens that `said_roles` found, else the usual ones."""
    return Roles(*(said.get(key, (token,))[0] for key, token in named_roles(usual).items()))


def check_roles(known: Collection[str], roles: Roles, places: Mapping[str, tuple[str, Path]]) -> None:
    """Raises InputError for a special token that a vocabulary lacks, of those whose `places` are known."""
    for key, token in named_roles(roles).items():
        if key in places and token not in known:
            raise InputError(
                f'{places[key][1]}: {key} is {token[:40]!r}, which the vocabulary lacks; name there what the model has'
            )


def said_ends(folder: Path, tokenizer: tokenizers.Tokenizer, roles: Roles) -> dict[str, str]:
    """The tokens of ENDS that a folder names, by key, as far as they are of the tokenizer and have no other role."""
    named_roles = {key: token for key, (token, _) in _said(folder, ENDS).items() if token not in roles}
    return {key: token for key, token in named_roles.items() if tokenizer.token_to_id(token) is not None}


def _said(folder: Path, keys: Iterable[str]) -> dict[str, tuple[str, Path]]:
    file = folder / SETTINGS
    said = _object(file)
    special = {} if 'added_tokens_decoder' in said else _object(folder / LEGACY_FILES[0])
    values = {key: special.get(key) or said.get(key) for key in keys}
    return {key: (_token(value, file).content, file) for key, value in values.items() if value}


def listed_tokens(folder: Path, roles: Roles) -> list[tuple[AddedToken, int | None]]:
    """The tokens that the files of a folder add or describe, in the order in which they get ids; and the id, if said.

    Special tokens in their `roles` are among them where flags are given. Raises InputError for damaged files.
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
    found: dict[str, tuple[AddedToken, int | None]] = {}
    for number in sorted(numbered):
        found[numbered[number].content] = numbered[number], number
    for value in (*_special(special), *_special(said)):
        described = _token(value, file)
        if isinstance(value, dict) or described.content not in roles:
            found.setdefault(described.content, (described, None))
    return list(found.values())


def add_listed(
    tokenizer: tokenizers.Tokenizer, listed: list[tuple[AddedToken, int | None]], folder: Path
) -> None:
    """Add listed tokens. Raises InputError where the library gives one another id than the folder says."""
    tokenizer.add_tokens([token for token, _ in listed])
    _check_ids(tokenizer, {t.content: i for t, i in listed if i is not None}, folder)


def check_ids(tokenizer: tokenizers.Tokenizer, folder: Path) -> None:
    """Raises InputError where an added token of tokenizer.json has not the id that it says."""
    added = (read_json(folder / READY) or {}).get('added_tokens') or ()
    _check_ids(tokenizer, {token['content']: token['id'] for token in added}, folder / READY)


def _check_ids(tokenizer: tokenizers.Tokenizer, said: Mapping[str, int], where: Path) -> None:
    """The library numbers added tokens itself, behind the vocabulary and without a gap, whatever a file says."""
    for token, number in said.items():
        if tokenizer.token_to_id(token) != number:
            raise InputError(
                f'{where}: the added token {token!r} has the id {number}, but every reader gives it '
                f'{tokenizer.token_to_id(token)}, and so the row of another token; correct the id there (without '
                'its entry, later tokens would move)'
            )


def _special(said: JsonObject) -> list[Any]:
    """Special tokens that are named, then those that are listed."""
    listed = [said[key] for key in EXTRA if said.get(key)]
    more = [t for each in listed for t in (each.values() if isinstance(each, dict) else each)]
    return [*(said[key] for key in NAMES_OF_ROLES.values() if said.get(key)), *more]


def _token(value: Any, file: Path, special: bool = True) -> AddedToken:
    """A token that is given by its name, or with flags."""
    try:
        flags = {'content': value} if isinstance(value, str) else dict(value)
        flags.pop('__type', None)
        return AddedToken(**{'special': special, **flags})
    except (TypeError, ValueError) as error:
        raise InputError(f'{file}: {str(value)[:60]!r} is not an added token; fetch it again') from error


def _number(value: Any, file: Path) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f'{file}: {str(value)[:40]!r} is not an id of an added token; fetch it again'
        ) from error


def _mapping(value: Any, file: Path) -> JsonObject:
    if not isinstance(value, dict):
        raise InputError(f'{file}: {str(value)[:40]!r} is where an object is expected; fetch it again')
    return value


def _object(file: Path) -> JsonObject:
    """The object in a JSON file; an empty one where there is no file."""
    value = read_json(file)
    return {} if value is None else _mapping(value, file)
