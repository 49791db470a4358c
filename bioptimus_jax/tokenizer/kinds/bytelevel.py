"""Byte-level pairs, as GPT-2, RoBERTa and ModernBERT have them: no character is unknown, and a piece holds the space
before it, written Ġ.

The pre-tokenizer cuts a text into words, "(p" into "(" and "p", so the same piece may begin a word here and go on with
one there. Whole words are therefore told by the cut, not by the Ġ.
"""

import functools
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.storage.files import atomic, read_json, write_json
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.probes import PROBES
from bioptimus_jax.tokenizer.subwords import READY, SETTINGS, Kind, Roles, Subwords, is_whole
from bioptimus_jax.tokenizer.tokenizer_files import (
    NAMES_OF_ROLES,
    add_listed,
    check_ids,
    extra_tokens,
    listed_tokens,
    named_roles,
    plain_steps,
    read_ready,
    said_ends,
    said_roles,
    special_tokens,
    write_settings,
)
from bioptimus_jax.tokenizer.training import train_model

SPACE = 'Ġ'
ROLES = Roles(pad='<pad>', unknown='<unk>', cls='<s>', sep='</s>', mask='<mask>')
VOCABULARY, MERGES = 'vocab.json', 'merges.txt'


@functools.cache
def _byte_of() -> dict[str, int]:
    """The byte that each letter of the alphabet stands for: printable ones are themselves, others U+0100 and on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


@functools.cache
def _letter_of() -> dict[int, str]:
    return {byte: letter for letter, byte in _byte_of().items()}


def written(text: str) -> str:
    """A text in the letters of the alphabet, one for each byte."""
    return ''.join(map(_letter_of().__getitem__, text.encode('utf-8', 'surrogateescape')))


class ByteLevel(Kind):
    """The kind of RoBERTa's tokenizers."""

    files = (VOCABULARY, MERGES)
    carries_space = words_in_rows = True

    def holds(self, path: Path, described: Mapping[str, Any]) -> bool:
        if path.is_dir() and (path / READY).is_file():
            model = described.get('model') or {}
            return model.get('type') == 'BPE' and '"ByteLevel"' in json.dumps(described.get('pre_tokenizer'))
        return path.name == VOCABULARY or (path / VOCABULARY).is_file()

    def load(self, path: Path) -> Subwords:
        """The tokenizer of a folder (tokenizer.json, else vocab.json and merges.txt) or of a vocab.json.

        Special tokens are those that the folder's files name, then those that the post-processor puts around a text,
        then RoBERTa's own. Raises InputError for damaged files, for tokens without their merges, and where one of the
        special tokens is not in the vocabulary; one that has all bytes needs no unknown token.
        """
        folder = path if path.is_dir() else path.parent
        said, ready = said_roles(folder), path.is_dir() and (path / READY).is_file()
        if ready:
            tokenizer = read_ready(folder)
            check_ids(tokenizer, folder)
        else:
            tokenizer = _read_vocabulary(folder / VOCABULARY if path.is_dir() else path)
        around, known = tokenizer.encode('').tokens, tokenizer.get_vocab()
        usual = ROLES._replace(cls=around[0], sep=around[-1]) if around else ROLES
        if usual.unknown not in known and known.keys() >= _byte_of().keys():
            # Llama's have none: with all bytes nothing is unknown, and padding is in no text either.
            usual = usual._replace(unknown=said.get(NAMES_OF_ROLES['pad'], (usual.pad,))[0])
        roles = Roles(
            *(said.get(NAMES_OF_ROLES[role], (token,))[0] for role, token in usual._asdict().items())
        )
        for key, token in named_roles(roles).items():
            if token not in known:
                where = said[key][1] if key in said else folder / SETTINGS
                raise InputError(
                    f'{where}: {key} is {token[:40]!r}, which the vocabulary lacks; name there what the model has'
                )
        listed = listed_tokens(folder, roles)
        if not ready:
            prefixed = bool((read_json(folder / SETTINGS) or {}).get('add_prefix_space'))
            tokens, merges = sorted(known, key=known.__getitem__), model_state(tokenizer)['merges']
            # transformers reads such a folder so: the mask takes the space before it only where a file says so.
            flags = [AddedToken(token, normalized=False, special=True) for token in roles]
            flags += [token for token, _ in listed]
            tokenizer = _like(_roberta(prefixed), roles, tokens, merges, flags)
        add_listed(tokenizer, listed, folder)
        return self.of(tokenizer, roles, said_ends(folder, tokenizer, roles))

    def of(
        self, tokenizer: tokenizers.Tokenizer, roles: Roles, ends: Mapping[str, str] | None = None
    ) -> Subwords:
        """The subwords of a tokenizer of this kind. Special tokens and those kept free never stand in for others."""
        added = tokenizer.get_added_tokens_decoder().values()
        reserved = {t.content for t in added if t.special or t.content.startswith('[unused')}
        return Subwords.of(self, tokenizer, roles, reserved, ends)

    def save(self, subwords: Subwords, folder: Path, model_max_length: int) -> None:
        """Write tokenizer.json, vocab.json, merges.txt and tokenizer_config.json as AutoTokenizer reads them.

        RoBERTa's own tokenizer transformers makes from the settings; any other it takes from tokenizer.json unchanged.
        """
        tokenizer, roles = subwords.tokenizer, subwords.roles
        merges = model_state(tokenizer)['merges']
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / VOCABULARY, {token: i for i, token in enumerate(subwords.tokens)})
        with atomic(folder / MERGES) as file:
            file.write('\n'.join(['#version: 0.2', *map(' '.join, merges)]) + '\n')
        state = json.loads(tokenizer.to_str())
        prefixed = bool((state['pre_tokenizer'] or {}).get('add_prefix_space'))
        added = tokenizer.get_added_tokens_decoder().values()
        own = json.loads(_like(_roberta(prefixed), roles, subwords.tokens, merges, list(added)).to_str())
        settings: dict[str, Any] = {'tokenizer_class': 'PreTrainedTokenizerFast'}
        if own == state:
            ends = {'bos_token': roles.cls, 'eos_token': roles.sep}
            settings = {'tokenizer_class': 'RobertaTokenizer', 'add_prefix_space': prefixed, **ends}
        settings |= extra_tokens(subwords) | {'model_max_length': model_max_length, **named_roles(roles)}
        write_settings(folder, tokenizer, settings)

    def check(self, subwords: Subwords, where: Path) -> None:
        """Raises InputError, naming the setting, unless the tokenizer is a BPE of words that carry their space."""
        tokenizer = subwords.tokenizer
        model = model_state(tokenizer)
        for name in ('dropout', 'continuing_subword_prefix', 'end_of_word_suffix', 'byte_fallback'):
            if model.get(name):
                raise InputError(
                    f'{where}: {name} of the tokenizer is {model[name]!r}; only none is supported'
                )
        around, (cls, sep) = tokenizer.encode('').tokens, (subwords.roles.cls, subwords.roles.sep)
        if around != [cls, sep]:
            raise InputError(
                f'{where}: post_processor puts {" ".join(around) or "nothing"} around a text; only {cls} ... {sep} '
                'is supported'
            )
        added = (token.content for token in tokenizer.get_added_tokens_decoder().values())
        for text in (*PROBES, *(f'a {content} b' for content in added)):
            apart = [i for each in subwords.encode(self.stretches(text)) for i in each.ids]
            if subwords.encode([text])[0].ids != apart:
                raise InputError(
                    f'{where}: normalizer, pre_tokenizer or an added token cuts {text[:40]!r} otherwise than its parts '
                    'between spaces; only tokenizers whose words end at a space are supported'
                )

    def text(self, token: str) -> str:
        """Bytes that are no whole character are surrogates, so that two tokens never have one text."""
        try:
            characters = bytes(map(_byte_of().__getitem__, token)).decode('utf-8', 'surrogateescape')
        except KeyError:  # an added token, written as it is
            return token
        return characters.removeprefix(' ')

    def begins(self, token: str) -> bool:
        return token.startswith(SPACE)

    def spell(self, tokenizer: tokenizers.Tokenizer, text: str, inside: bool) -> list[int]:
        words = self.words(tokenizer)(text if inside else f' {text}')
        if inside and words and words[0].startswith(' ') and not text.startswith(' '):
            words[0] = words[0][1:]  # of a tokenizer with add_prefix_space
        return [i for word in words for i in self.pieces(tokenizer, word)]

    def spell_token(self, tokenizer: tokenizers.Tokenizer, token: str) -> list[int]:
        return [piece.id for piece in tokenizer.model.tokenize(token)]

    def pieces(self, tokenizer: tokenizers.Tokenizer, word: str) -> list[int]:
        return self.spell_token(tokenizer, written(word))

    def whole(self, subwords: Subwords, words_in: Callable[[str], list[str]], number: int) -> bool:
        """The alphabet has a letter for each byte, reached or not. Parts of characters and punctuation stand beside
        others, so only the merges are asked for them."""
        text, token = subwords.text(number), subwords.tokens[number]
        if len(token) == 1:
            return True
        begun = f' {text}' if self.begins(token) else f'a{text}'
        if is_whole(text) and text.isalnum() and subwords.normalised(begun) != begun:
            return False
        return self.spell_token(subwords.tokenizer, token) == [number]

    def respellable(self, subwords: Subwords) -> set[int]:
        """Ids of all tokens of several bytes that were not added: hidden, they are spelled by the bytes at least."""
        added = subwords.tokenizer.get_added_tokens_decoder()
        own = subwords.tokenizer.get_vocab(with_added_tokens=False)
        letters = all(letter in own for letter in _byte_of())
        return {i for token, i in own.items() if letters and len(token) > 1 and i not in added}

    def without(self, tokenizer: tokenizers.Tokenizer, hidden: Collection[int]) -> tokenizers.Tokenizer:
        """Merges with a token that is hidden go; the entries are renamed, since ids have no gaps."""
        state, gone = json.loads(tokenizer.to_str()), {tokenizer.id_to_token(i) for i in hidden}
        model = state['model']
        model['merges'] = [pair for pair in model['merges'] if not gone & {*pair, ''.join(pair)}]
        # A name with a space is found in no text: the alphabet writes a space as Ġ.
        model['vocab'] = {f'hidden {i}' if t in gone else t: i for t, i in model['vocab'].items()}
        return tokenizers.Tokenizer.from_str(json.dumps(state))

    def blank(self, lowercase: bool) -> tokenizers.Tokenizer:
        return _roberta(False, lowercase)

    def words(self, tokenizer: tokenizers.Tokenizer) -> Callable[[str], list[str]]:
        """Words as the text has them: with the space that their first piece holds."""
        cut = super().words(tokenizer)
        byte_of = _byte_of()
        return lambda text: [bytes(map(byte_of.__getitem__, word)).decode('utf-8') for word in cut(text)]

    def train(self, counts: Mapping[str, int], settings: Vocab, source: Subwords | None) -> Subwords:
        """Bytes and merges; special tokens in RoBERTa's order, the mask last. With a source they have its names, and
        its normalizer, pre-tokenizer and post-processor are kept, and its special tokens without a role come before
        the mask.

        Every byte has an entry, in a fixed order, and the trainer breaks ties by the entries' numbers: the word counts
        alone decide. Raises InputError without any word, ConfigError where the bytes need more than `settings.size`.
        """
        roles = source.roles if source else ROLES
        first = [*dict.fromkeys((roles.cls, roles.pad, roles.sep, roles.unknown))]
        last = [*(special_tokens(source) if source else ()), roles.mask]
        least = len(first) + len(_byte_of()) + len(last)
        if least > settings.size:
            raise ConfigError(
                f'config.vocab.size: {settings.size} is less than the {least} entries that bytes and special tokens '
                'need; raise it'
            )
        if not counts:
            raise InputError('the corpus has no words to train a vocabulary on; check config.corpus.inputs')
        trainer = trainers.BpeTrainer(
            vocab_size=settings.size - len(last),
            min_frequency=settings.min_frequency,
            special_tokens=first,
            initial_alphabet=sorted(_byte_of()),
            show_progress=False,
        )
        trained = train_model(models.BPE(), trainer, {written(word): n for word, n in counts.items()})
        model = model_state(trained)
        tokens = [*dict.fromkeys((*sorted(model['vocab'], key=model['vocab'].__getitem__), *last))]
        like = source.tokenizer if source else _roberta(False, settings.lowercase)
        ends = source.ends if source else None
        return self.of(_like(like, roles, tokens, model['merges']), roles, ends)

    def append(self, source: Subwords, trained: Subwords) -> Subwords:
        """A new token gets a merge behind all others, of the two pieces that those before it leave of it.

        So a text can have each token that is appended. One that is in more than two pieces when its turn comes, in
        order of the ids in `trained`, would never be reached, and is left out.
        """
        tokens, merges = list(source.tokens), model_state(source.tokenizer)['merges']
        known, rank = set(tokens), {tuple(pair): number for number, pair in enumerate(merges)}
        for token in trained.tokens:
            if token not in known and len(pair := _merged(token, rank)) == 2:
                rank[pair[0], pair[1]] = len(rank)
                merges.append(pair)
                tokens.append(token)
        made = self.of(_like(source.tokenizer, source.roles, tokens, merges), source.roles, source.ends)
        if not (left := {tokens[i] for i in self.unreached(made, range(len(source.tokens), len(tokens)))}):
            return made
        # What holds an added token is cut there, and so is all that is merged of it.
        tokens = [token for token in tokens if token not in left]
        merges = [pair for pair in merges if ''.join(pair) not in left]
        return self.of(_like(source.tokenizer, source.roles, tokens, merges), source.roles, source.ends)

    def with_words(self, source: Subwords, words: Iterable[str]) -> Subwords:
        """The beginnings of a word are tokens too: each is merged of the one before it and the next piece.

        New merges come behind all others, so no text has other pieces but where a new token is.
        """
        tokens, merges = dict.fromkeys(source.tokens), model_state(source.tokenizer)['merges']
        rank = {tuple(pair): number for number, pair in enumerate(merges)}
        for word in words:
            while len(pieces := _merged(written(word), rank)) > 1:
                rank[pieces[0], pieces[1]] = len(rank)
                merges.append(pieces[:2])
                tokens.setdefault(pieces[0] + pieces[1])
        return self.of(_like(source.tokenizer, source.roles, [*tokens], merges), source.roles, source.ends)

    def fit(self, given: Subwords, source: Subwords, file: Path) -> Subwords:
        mine, other = (json.loads(each.tokenizer.to_str()) for each in (given, source))
        for name in ('normalizer', 'pre_tokenizer'):
            if plain_steps(mine[name]) != plain_steps(other[name]):
                raise ConfigError(
                    f'config.vocab.file: the {name} of {file} is another than that of the source, so its merges are '
                    "not of the source's words; take a vocabulary that was trained with it"
                )
        return given


KIND = ByteLevel()


def model_state(tokenizer: tokenizers.Tokenizer) -> dict[str, Any]:
    """The settings, the vocabulary and the merges of a tokenizer's model."""
    return json.loads(tokenizer.to_str())['model']


def _read_vocabulary(file: Path) -> tokenizers.Tokenizer:
    """The vocabulary and its merges, without special tokens."""
    merges = file.parent / MERGES
    if file.name != VOCABULARY or not merges.is_file():
        raise InputError(
            f'{file}: lists tokens without the merges that make them; give a {READY}, or a {VOCABULARY} with {MERGES} '
            'beside it'
        )
    try:
        return tokenizers.Tokenizer(models.BPE.from_file(str(file), str(merges)))
    except Exception as error:  # the library raises bare Exception
        raise InputError(f'{file}: is not a vocabulary that goes with {MERGES} ({error})') from error


def _roberta(prefixed: bool, lowercase: bool = False) -> tokenizers.Tokenizer:
    """RoBERTa's tokenizer without a vocabulary."""
    tokenizer = tokenizers.Tokenizer(models.BPE(continuing_subword_prefix='', end_of_word_suffix=''))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefixed)
    tokenizer.decoder = decoders.ByteLevel()
    ends = (ROLES.sep, 0), (ROLES.cls, 0)
    tokenizer.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=prefixed)
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    return tokenizer


def _like(
    like: tokenizers.Tokenizer,
    roles: Roles,
    tokens: list[str],
    merges: list[list[str]],
    added: Iterable[AddedToken] = (),
) -> tokenizers.Tokenizer:
    """A tokenizer with the settings of another, these tokens in order of their ids, and these merges.

    Added tokens have the flags of `added`, or of `like`; of the latter's, those that are among the tokens stay.
    """
    state, ids = json.loads(like.to_str()), {token: i for i, token in enumerate(tokens)}
    state['model'] |= {'vocab': ids, 'merges': merges}
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


def _renumber(processor: dict[str, Any] | None, roles: Roles, ids: Mapping[str, int]) -> None:
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


def _merged(token: str, rank: Mapping[tuple[str, ...], int]) -> list[str]:
    """The pieces of a token by merges of that rank, the lowest first, as the library takes them."""
    pieces = list(token)
    while len(pieces) > 1:
        best = min(itertools.pairwise(pieces), key=lambda pair: rank.get(pair, len(rank)))
        if best not in rank:
            break
        at = 0
        while at < len(pieces) - 1:
            if (pieces[at], pieces[at + 1]) == best:
                pieces[at : at + 2] = [''.join(best)]
            at += 1
    return pieces
