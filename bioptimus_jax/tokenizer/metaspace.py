"""What SentencePiece's two kinds of tokenizers have in common: characters as they are, and a space written ▁.

A word is what stands between spaces, with its punctuation, unless the pre-tokenizer cuts more. A character that the
vocabulary lacks is unknown, or with byte fallback the bytes of its UTF-8, written <0xCE>.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers, processors

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.storage.files import JsonObject
from bioptimus_jax.tokenizer.config import Vocab
from bioptimus_jax.tokenizer.spaced import ROLES, Spaced
from bioptimus_jax.tokenizer.subwords import READY, Subwords
from bioptimus_jax.tokenizer.tokenizer_files import (
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
from bioptimus_jax.tokenizer.training import alphabet

SPACE = '▁'
BYTES = tuple(f'<0x{byte:02X}>' for byte in range(256))
BYTE = re.compile('<0x([0-9A-F]{2})>')
WORD = re.compile(f'{SPACE}*[^{SPACE}\\s]+|{SPACE}+|\\s')
"""A word with the spaces before it: some pre-tokenizers leave a text in one."""


class Metaspace(Spaced):
    """A kind that writes characters as they are, and a space as ▁."""

    space = SPACE
    model: str
    """What `tokenizers` calls the type of the model."""

    def holds(self, path: Path, described: JsonObject) -> bool:
        model = described.get('model') or {}
        return path.is_dir() and model.get('type') == self.model and self.spaces(described)

    def spaces(self, described: JsonObject) -> bool:
        """Whether a tokenizer.json writes a space as ▁."""
        return SPACE in str([described.get(name) for name in ('normalizer', 'pre_tokenizer')])

    def load(self, path: Path) -> Subwords:
        """The tokenizer of a folder with a tokenizer.json; special tokens are those that the folder's files name, then
        those that the post-processor puts around a text, then XLM-R's. Raises InputError."""
        if not (path / READY).is_file():
            raise InputError(f'{path}: holds no {READY}; give a folder with one')
        tokenizer = read_ready(path)
        check_ids(tokenizer, path)
        roles = self.named(tokenizer, path, said_roles(path), self.around(tokenizer))
        add_listed(tokenizer, listed_tokens(path, roles), path)
        return self.kept(tokenizer, path, roles)

    def save(self, subwords: Subwords, folder: Path, model_max_length: int) -> None:
        """Write tokenizer.json and tokenizer_config.json; transformers takes the former as it stands."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = {'tokenizer_class': 'PreTrainedTokenizerFast', 'model_max_length': model_max_length}
        settings |= extra_tokens(subwords) | named_roles(subwords.roles)
        write_settings(folder, subwords.tokenizer, settings)

    def text(self, token: str) -> str:
        """A byte is a surrogate, so that it is never taken for a character."""
        if byte := BYTE.fullmatch(token):
            return chr(0xDC00 + int(byte[1], 16))
        return self.read(token).removeprefix(' ')

    def written(self, text: str) -> str:
        return text.replace(' ', SPACE)

    def read(self, word: str) -> str:
        return word.replace(SPACE, ' ')

    def with_spaces(self, normal: str) -> str:
        return self.read(normal)

    def is_byte(self, token: str) -> bool:
        return BYTE.fullmatch(token) is not None

    def is_spelled(self, token: str, letters: Collection[str]) -> bool:
        return BYTES[0] in letters or super().is_spelled(token, letters)

    def words(self, tokenizer: tokenizers.Tokenizer) -> Callable[[str], list[str]]:
        cut = super().words(tokenizer)
        return lambda text: [self.read(w) for word in cut(text) for w in WORD.findall(self.written(word))]

    def blank(self, lowercase: bool) -> tokenizers.Tokenizer:
        """XLM-R's words: normalised as SentencePiece does, and cut at white space."""
        tokenizer = self.empty()
        lowered = [normalizers.Lowercase()] if lowercase else []
        steps = [normalizers.Nmt(), normalizers.NFKC(), *lowered, normalizers.Replace(Regex(r'\s+'), ' ')]
        tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE, 'always')]
        )
        tokenizer.decoder = decoders.Metaspace(SPACE, 'always')
        cls, sep = ROLES.cls, ROLES.sep
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f'{cls} $A {sep}',
            pair=f'{cls} $A {sep} {sep} $B {sep}',
            special_tokens=[(cls, 0), (sep, 2)],
        )
        return tokenizer

    @abstractmethod
    def empty(self) -> tokenizers.Tokenizer:
        """A tokenizer with the model of this kind, and nothing else."""

    def first_tokens(self, source: Subwords | None) -> list[str]:
        """The special tokens in XLM-R's order, then bytes, where the source falls back on them; the mask comes last."""
        roles = source.roles if source else ROLES
        bytes_of = BYTES if source and BYTES[0] in source.tokens else ()
        return [*dict.fromkeys((roles.cls, roles.pad, roles.sep, roles.unknown, *bytes_of))]

    def counted(
        self, counts: Mapping[str, int], settings: Vocab, source: Subwords | None
    ) -> tuple[dict[str, int], list[str], list[str], list[str]]:
        """Words as they are written, all letters, and the special tokens that come first and last.

        Of characters the `vocab.limit_alphabet` commonest are kept, and words with others are left out; so are words
        that hold a line break or a tab, which a normalizer without a rule for them leaves there. Raises
        InputError without any word, ConfigError where the letters need more than `settings.size`.
        """
        first = self.first_tokens(source)
        mask = source.roles.mask if source else ROLES.mask
        last = [t for t in (*(special_tokens(source) if source else ()), mask) if t not in first]
        written = Counter[str]()
        for word, count in counts.items():
            if '\t' not in word and len(f'{word}.'.splitlines()) == 1:
                written[self.written(word)] += count
        letters = alphabet(written, settings.limit_alphabet)
        known = set(letters)
        usable = {word: n for word, n in written.items() if known.issuperset(word) and not word.isspace()}
        if not usable:
            raise InputError('the corpus has no words to train a vocabulary on; check config.corpus.inputs')
        if (least := len(first) + len(letters) + len(last)) > settings.size:
            raise ConfigError(
                f'config.vocab.size: {settings.size} is less than the {least} entries that single characters and '
                'special tokens need; raise it, or lower config.vocab.limit_alphabet'
            )
        return usable, letters, first, last


def word_starts(encoding: tokenizers.Encoding) -> np.ndarray:
    """True where the tokenizer begins a word, bool [L].

    Some pre-tokenizers leave a text in one, as Gemma's does; then a piece with the space before it begins a word.
    """
    numbers = np.array(encoding.word_ids)
    spaced = np.array([token.startswith(SPACE) for token in encoding.tokens], bool)
    return np.append(True, (numbers[1:] != numbers[:-1]) | spaced[1:])[: len(numbers)]


def count_words(encoding: tokenizers.Encoding, unknown: int) -> tuple[int, int]:
    """The words of a text, and those that are one piece; an `unknown` piece is no whole word."""
    starts_L = word_starts(encoding)
    known_L = np.array(encoding.ids) != unknown
    return int(starts_L.sum()), int((starts_L & np.append(starts_L[1:], True) & known_L).sum())
