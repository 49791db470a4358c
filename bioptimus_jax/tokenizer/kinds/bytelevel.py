"""Byte-level pairs, as GPT-2, RoBERTa and ModernBERT have them: no character is unknown, and a piece holds the space
before it, written Ġ.

The pre-tokenizer cuts a text into words, "(p" into "(" and "p", so the same piece may begin a word here and go on with
one there. Whole words are therefore told by the cut, not by the Ġ.
"""

import functools
import json
from collections.abc import Collection, Mapping
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.storage.files import JsonObject, atomic, read_json, write_json
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.pairs import LEFT_OUT, Pairs, like_pairs, model_state
from bioptimus_jax.tokenizer.spaced import ROLES
from bioptimus_jax.tokenizer.subwords import READY, SETTINGS, Subwords
from bioptimus_jax.tokenizer.tokenizer_files import (
    NAMES_OF_ROLES,
    add_listed,
    check_ids,
    extra_tokens,
    listed_tokens,
    named_roles,
    read_ready,
    said_roles,
    special_tokens,
    write_settings,
)

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


class ByteLevel(Pairs):
    """The kind of RoBERTa's tokenizers."""

    files = (VOCABULARY, MERGES)
    space = 'Ġ'
    refused = (*LEFT_OUT, 'byte_fallback')

    def holds(self, path: Path, described: JsonObject) -> bool:
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
        usual, known = self.around(tokenizer), tokenizer.get_vocab()
        if usual.unknown not in known and known.keys() >= _byte_of().keys():
            # Llama's have none: with all bytes nothing is unknown, and padding is in no text either.
            usual = usual._replace(unknown=said.get(NAMES_OF_ROLES['pad'], (usual.pad,))[0])
        roles = self.named(tokenizer, folder, said, usual)
        listed = listed_tokens(folder, roles)
        if not ready:
            prefixed = bool((read_json(folder / SETTINGS) or {}).get('add_prefix_space'))
            tokens, merges = sorted(known, key=known.__getitem__), model_state(tokenizer)['merges']
            # transformers reads such a folder so: the mask takes the space before it only where a file says so.
            flags = [AddedToken(token, normalized=False, special=True) for token in roles]
            flags += [token for token, _ in listed]
            tokenizer = like_pairs(_roberta(prefixed), roles, tokens, merges, flags)
        add_listed(tokenizer, listed, folder)
        return self.kept(tokenizer, folder, roles)

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
        own = json.loads(like_pairs(_roberta(prefixed), roles, subwords.tokens, merges, list(added)).to_str())
        settings: JsonObject = {'tokenizer_class': 'PreTrainedTokenizerFast'}
        if own == state:
            ends = {'bos_token': roles.cls, 'eos_token': roles.sep}
            settings = {'tokenizer_class': 'RobertaTokenizer', 'add_prefix_space': prefixed, **ends}
        settings |= extra_tokens(subwords) | {'model_max_length': model_max_length, **named_roles(roles)}
        write_settings(folder, tokenizer, settings)

    def text(self, token: str) -> str:
        """Bytes that are no whole character are surrogates, so that two tokens never have one text."""
        try:
            characters = bytes(map(_byte_of().__getitem__, token)).decode('utf-8', 'surrogateescape')
        except KeyError:  # an added token, written as it is
            return token
        return characters.removeprefix(' ')

    def written(self, text: str) -> str:
        return ''.join(map(_letter_of().__getitem__, text.encode('utf-8', 'surrogateescape')))

    def read(self, word: str) -> str:
        return bytes(map(_byte_of().__getitem__, word)).decode('utf-8')

    def is_byte(self, token: str) -> bool:
        return len(token) == 1

    def has_letters(self, token: str, known: Collection[str]) -> bool:
        return True

    def blank(self, lowercase: bool) -> tokenizers.Tokenizer:
        return _roberta(False, lowercase)

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
        written = {self.written(word): n for word, n in counts.items()}
        return self.merged(written, sorted(_byte_of()), first, last, settings, source)


KIND = ByteLevel()


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
