"""A tokenizer made again with other tokens: all its settings stay, and what numbers tokens gets their new numbers."""

import json
from collections.abc import Iterable, Mapping, Sequence

import tokenizers
from tokenizers import AddedToken

from bioptimus_jax.storage.files import JsonObject
from bioptimus_jax.tokenizer.subwords import Roles


def rebuilt(
    like: tokenizers.Tokenizer,
    roles: Roles,
    tokens: Sequence[str],
    model: JsonObject,
    added: Iterable[AddedToken] = (),
) -> tokenizers.Tokenizer:
    """A tokenizer with the settings of another, these tokens in order of their ids, and these settings of the model.

    Added tokens have the flags of `added`, or of `like`; of the latter's, those that are among the tokens stay.
    """
    state, ids = json.loads(like.to_str()), {token: i for i, token in enumerate(tokens)}
    state['model'] |= model
    flags = {t: AddedToken(t, lstrip=t == roles.mask, normalized=False, special=True) for t in roles}
    flags |= {t.content: t for t in like.get_added_tokens_decoder().values()} | {t.content: t for t in added}
    names = ('content', 'single_word', 'lstrip', 'rstrip', 'normalized', 'special')
    state['added_tokens'] = [
        {'id': i, **{name: getattr(flags[token], name) for name in names}}
        for token, i in ids.items()
        if token in flags
    ]
    _renumber(state['post_processor'], roles, ids)
    return tokenizers.Tokenizer.from_str(json.dumps(state))


def _renumber(processor: JsonObject | None, roles: Roles, ids: Mapping[str, int]) -> None:
    """Write the ids of the special tokens into the state of a post-processor."""
    match processor:
        case {'type': 'Sequence', 'processors': parts}:
            for part in parts:
                _renumber(part, roles, ids)
        case {'type': 'TemplateProcessing', 'special_tokens': special}:
            for token in special.values():
                token['ids'] = [ids.get(name, 0) for name in token['tokens']]
        case {'cls': cls, 'sep': sep}:
            cls[:], sep[:] = (roles.cls, ids[roles.cls]), (roles.sep, ids[roles.sep])
