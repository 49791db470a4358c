"""Subwords: all that the house may know of a tokenizer, and what a kind of tokenizer has to do for it.

A *token* is an entry of a vocabulary, a *piece* is a token where it occurs in a text, a *word* is what the tokenizer
cuts into pieces by itself. V: entries of the vocabulary, N: those that may stand in for others.
"""

import abc
import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import JsonObject, read_json
from bioptimus_jax.tokenizer.config import TOKENIZERS, Vocab
from bioptimus_jax.tokenizer.quoted import quotations, reader_of_texts

READY, SETTINGS = 'tokenizer.json', 'tokenizer_config.json'
LEGACY_FILES = ('special_tokens_map.json', 'added_tokens.json')
TOLD_BY = {'merges': 'BPE', 'max_input_chars_per_word': 'WordPiece'}
"""Settings that only one type of a model of `tokenizers` has."""
SINGLE_SPACE = re.compile(r'(?<=\S)(?= \S)')


class Roles(NamedTuple):
    """The special tokens of a tokenizer by what they are for."""

    pad: str
    unknown: str
    cls: str
    sep: str
    mask: str


@dataclasses.dataclass(frozen=True, eq=False)
class Vocabulary:
    """What masking reads of any vocabulary, by id.

    `mask`: the id that hides a piece. `begins_V`: a word begins with this token, as far as the token alone says so
    (`Kind.words_in_rows`). `special_V`: never hidden; the unknown token is none of them. `drawn_N`: ids that may
    replace a piece.
    """

    mask: int
    begins_V: np.ndarray
    special_V: np.ndarray
    drawn_N: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Subwords(Vocabulary):
    """A tokenizer: its kind, the tokens in order of their ids, and the ids of its special tokens by role.

    Texts are given to `reader`, which reads special tokens in them as text, never to `tokenizer`, which is written.
    """

    kind: 'Kind'
    tokenizer: tokenizers.Tokenizer
    tokens: list[str]
    pad: int
    unknown: int
    cls: int
    sep: int
    ends: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Special tokens that transformers calls bos_token and eos_token, where they are others than `cls` and `sep`."""

    @classmethod
    def of(
        cls,
        kind: 'Kind',
        tokenizer: tokenizers.Tokenizer,
        roles: Roles,
        reserved: Collection[str] = (),
        ends: Mapping[str, str] | None = None,
    ) -> 'Subwords':
        """The subwords of a tokenizer that has all its special tokens. Raises InputError where an id is missing.

        `reserved`: tokens that never stand in for others.
        """
        ids = tokenizer.get_vocab()
        tokens = sorted(ids, key=ids.__getitem__)
        if tokens and ids[tokens[-1]] != len(tokens) - 1:
            gap = next(i for i, token in enumerate(tokens) if ids[token] != i)
            raise InputError(
                f'the vocabulary has no single token with id {gap}; ids must be 0 .. {len(tokens) - 1}: give that id '
                f'to a token [unused{gap}], so that all others keep theirs'
            )
        # A piece that is unknown is text like any other: it is predicted, though nothing is replaced by it.
        special_V = np.array([token in (roles.pad, roles.cls, roles.sep, roles.mask) for token in tokens])
        begins_V = np.array([token in roles or kind.begins(token) for token in tokens])
        drawn = [i for i, token in enumerate(tokens) if token not in roles and token not in reserved]
        arrays = begins_V, special_V, np.array(drawn, np.int32)
        pad, unknown, begin, end, mask = (ids[token] for token in roles)
        return cls(mask, *arrays, kind, tokenizer, tokens, pad, unknown, begin, end, ends or {})

    @property
    def lowercase(self) -> bool:
        """Whether capitals are lowered before anything is looked up."""
        return self.normalised('A') == 'a'

    def normalised(self, text: str) -> str:
        """The text as it is before it is cut."""
        normalizer = self.tokenizer.normalizer
        return self.kind.with_spaces(normalizer.normalize_str(text)) if normalizer else text

    @property
    def reader(self) -> tokenizers.Tokenizer:
        """The tokenizer for texts, in which special tokens are text; it puts its own around them."""
        self._reader.encode_special_tokens = True  # pickle leaves that out
        return self._reader

    @functools.cached_property
    def _reader(self) -> tokenizers.Tokenizer:
        return reader_of_texts(self.tokenizer, self._quoted)

    def encode(self, texts: Iterable[str]) -> list[tokenizers.Encoding]:
        """The pieces of each text, without special tokens: those that it quotes are text."""
        return self.reader.encode_batch(list(texts), add_special_tokens=False)

    def quotations(self, texts: Iterable[str]) -> int:
        """How often texts quote a special token."""
        return quotations(texts, self._quoted)

    @property
    def _quoted(self) -> set[str]:
        return {*self.roles, *self.ends.values()}

    @property
    def roles(self) -> Roles:
        """The special tokens by what they are for."""
        return Roles(*(self.tokens[getattr(self, role)] for role in Roles._fields))

    def encode_words(self, texts: Iterable[str]) -> list[tokenizers.Encoding]:
        """The pieces of each text as it is spelled within a sentence, behind a space."""
        return self.encode(f' {text}' if self.kind.carries_space else text for text in texts)

    def text(self, number: int) -> str:
        """The characters that a token stands for."""
        return self.kind.text(self.tokens[number])

    def pieces(self, word: str) -> list[int]:
        """The pieces of a word that `Kind.words` gives."""
        return self.kind.pieces(self.reader, word)

    def spell(self, text: str, inside: bool = False) -> list[int]:
        """The pieces of a text that follows a space, or goes on `inside` a word; unknown ones are left out."""
        return [i for i in self.kind.spell(self.reader, text, inside) if i != self.unknown]

    def spell_token(self, token: str) -> list[int]:
        """The pieces of a token of another vocabulary of this kind; empty where there are none."""
        return [i for i in self.kind.spell_token(self.reader, token) if i != self.unknown]

    def spell_tokens(self, other: 'Subwords', numbers: Iterable[int]) -> list[list[int]]:
        """The pieces of tokens of another vocabulary, of whatever kind."""
        if other.kind is self.kind:
            return [self.spell_token(other.tokens[i]) for i in numbers]
        spelled = ((other.text(i), not other.begins_V[i]) for i in numbers)
        return [self.spell(text, inside) if is_whole(text) else [] for text, inside in spelled]

    def shared_with(self, source: 'Subwords') -> np.ndarray:
        """For every token the id of the same token in `source`, or -1: int64 [V].

        Special tokens are the same where their roles are. For others the strings decide, never the ids; in vocabularies
        of two kinds the characters that the token stands for, and whether a word begins with it. Where several tokens
        of the source have these, the lowest id is taken.
        """
        one_kind = source.kind is self.kind
        numbers = {meaning: i for i, meaning in reversed(list(enumerate(source._meanings(one_kind))))}
        return np.array([numbers.get(meaning, -1) for meaning in self._meanings(one_kind)], np.int64)

    def _meanings(self, as_written: bool) -> list[Any]:
        """What each token is compared by. Punctuation begins a word, with a space before it or without."""
        roles = {getattr(self, role): (role,) for role in reversed(Roles._fields)}
        found: list[Any] = []
        for i, token in enumerate(self.tokens):
            if i in roles or as_written:
                found.append(roles.get(i, token))
            else:
                text = self.text(i)
                found.append((text, bool(self.begins_V[i]) or not any(map(str.isalnum, text))))
        return found

    def without(self, hidden: Collection[int]) -> 'Subwords':
        """The same as if these ids were not in the vocabulary; every other token keeps its id."""
        left_N = self.drawn_N[~np.isin(self.drawn_N, list(hidden))]
        return dataclasses.replace(self, tokenizer=self.kind.without(self.tokenizer, hidden), drawn_N=left_N)

    def save(self, folder: Path, model_max_length: int) -> None:
        """Write the files of which transformers' AutoTokenizer makes the same tokenizer."""
        self.kind.save(self, folder, model_max_length)


def is_whole(text: str) -> bool:
    """Whether a text is made of whole characters; bytes that are none are surrogates."""
    return not any('\ud800' <= character <= '\udfff' for character in text)


class Kind(abc.ABC):
    """A kind of tokenizer: one file in tokenizer/kinds/, which holds one object of a subclass as KIND.

    It knows what a token looks like, what a word is, how a vocabulary is trained, read and written. Nobody else does.
    """

    files: tuple[str, ...] = ()
    """The names of its files beside tokenizer.json and those in which transformers keeps settings."""
    read_from: tuple[str, ...] = ()
    """The names of other files that it is read from; they are not written."""
    carries_space = False
    """Whether a piece holds the space before it, so that text may be cut before a space, but not behind it."""
    words_in_rows = False
    """Whether the same token may begin a word here and go on with one there: rows then say where words begin."""

    @abc.abstractmethod
    def holds(self, path: Path, described: JsonObject) -> bool:
        """Whether a file or folder holds a tokenizer of this kind; `described`: its tokenizer.json, {} without one."""

    @abc.abstractmethod
    def load(self, path: Path) -> Subwords:
        """The tokenizer of a file or folder, truncation and padding off. Raises InputError for damaged files."""

    @abc.abstractmethod
    def save(self, subwords: Subwords, folder: Path, model_max_length: int) -> None:
        """Write the tokenizer; see `Subwords.save`."""

    @abc.abstractmethod
    def check(self, subwords: Subwords, where: Path) -> None:
        """Raise InputError, naming the setting, for a source's tokenizer whose settings cannot be kept."""

    @abc.abstractmethod
    def text(self, token: str) -> str:
        """The characters that a token stands for, without what says where in a word it may be."""

    def with_spaces(self, normal: str) -> str:
        """A normalised text with spaces, where the normalizer writes them as a letter."""
        return normal

    @abc.abstractmethod
    def begins(self, token: str) -> bool:
        """Whether a word begins with the token, as far as the token alone says so."""

    @abc.abstractmethod
    def spell(self, tokenizer: tokenizers.Tokenizer, text: str, inside: bool) -> list[int]:
        """Pieces of a text, unknown ones among them; see `Subwords.spell`."""

    def spell_token(self, tokenizer: tokenizers.Tokenizer, token: str) -> list[int]:
        """The pieces of a token of another vocabulary of this kind; unknown pieces are among them."""
        return self.spell(tokenizer, self.text(token), inside=not self.begins(token))

    def pieces(self, tokenizer: tokenizers.Tokenizer, word: str) -> list[int]:
        """The pieces of a word as `words` gives it."""
        return tokenizer.encode(word, add_special_tokens=False).ids

    @abc.abstractmethod
    def respellable(self, subwords: Subwords) -> set[int]:
        """Ids of tokens that other pieces spell where they are hidden, whatever else is hidden; none was added."""

    @abc.abstractmethod
    def without(self, tokenizer: tokenizers.Tokenizer, hidden: Collection[int]) -> tokenizers.Tokenizer:
        """The tokenizer without hidden tokens; see `Subwords.without`."""

    @abc.abstractmethod
    def blank(self, lowercase: bool) -> tokenizers.Tokenizer:
        """A tokenizer with the words of this kind, and no pieces for them."""

    @abc.abstractmethod
    def train(self, counts: Mapping[str, int], settings: Vocab, source: Subwords | None) -> Subwords:
        """A tokenizer trained on counted words; those of `source` where there is one. ConfigError, InputError."""

    @abc.abstractmethod
    def append(self, source: Subwords, trained: Subwords) -> Subwords:
        """The source's tokens, and behind them those of `trained` that it lacks and that a text can have then."""

    @abc.abstractmethod
    def with_words(self, source: Subwords, words: Iterable[str]) -> Subwords:
        """The source's tokens, and behind them what makes each of these words, as `words` gives them, one piece."""

    @abc.abstractmethod
    def fit(self, given: Subwords, source: Subwords, file: Path) -> Subwords:
        """The tokens of a vocabulary that was read from `file`, with the words of the source. Raises ConfigError."""

    @abc.abstractmethod
    def whole(self, subwords: Subwords, words_in: Callable[[str], list[str]], number: int) -> bool:
        """Whether the characters of a token are a word, or the end of one, and their pieces are that token alone.

        `words_in`: what `words` gives for the tokenizer.
        """

    def unreached(self, subwords: Subwords, numbers: Iterable[int]) -> list[int]:
        """The ids, among these, of entries that no text has; added and reserved tokens aside.

        Such are an entry that is cut into others, one with characters that the normaliser changes, one that is longer
        than a word may be, and one that has an added token in it, which is taken out of every text first.
        """
        added, words_in = subwords.tokenizer.get_added_tokens_decoder(), self.words(subwords.tokenizer)
        drawn = set(subwords.drawn_N.tolist())

        def is_cut(number: int) -> bool:
            text = subwords.text(number)
            text = (' ' * self.carries_space if subwords.begins_V[number] else 'a') + text
            return is_whole(text) and not added.keys().isdisjoint(subwords.encode([text])[0].ids)

        asked = (i for i in numbers if i in drawn and i not in added)
        return [i for i in asked if not self.whole(subwords, words_in, i) or (added and is_cut(i))]

    def words(self, tokenizer: tokenizers.Tokenizer) -> Callable[[str], list[str]]:
        """A function that gives the words of a text, normalised."""
        normalizer, pre_tokenizer = tokenizer.normalizer, tokenizer.pre_tokenizer

        def words(text: str) -> list[str]:
            normal = normalizer.normalize_str(text) if normalizer else text
            return [word for word, _ in pre_tokenizer.pre_tokenize_str(normal)] if pre_tokenizer else [normal]

        return words

    def stretches(self, text: str) -> list[str]:
        """The text cut at its spaces, into what is tokenised by itself as it is within the text."""
        # Only the last of several spaces goes with the word: a text is cut before a space between two other characters.
        return SINGLE_SPACE.split(text) if self.carries_space else text.split(' ')

    def count_words(
        self, texts: Iterable[str], lowercase: bool, like: tokenizers.Tokenizer | None = None
    ) -> Counter[str]:
        """How often each word occurs; of `like`, or in that casing. Counts of parts add up."""
        raw: Counter[str] = Counter()
        for text in texts:  # stretches repeat: each is cut into words once
            raw.update(self.stretches(text if self.carries_space else text.replace('\n', ' ')))
        words_in = self.words(like or self.blank(lowercase))
        words: Counter[str] = Counter()
        for stretch, count in raw.items():
            for word in words_in(stretch):
                words[word] += count
        return words


def load(path: Path) -> Subwords:
    """The tokenizer of a folder, or of the file of a vocabulary, as its kind reads it. Raises InputError."""
    path = Path(path)
    path = path.parent if path.name == READY else path
    described = with_type((read_json(path / READY) if path.is_dir() else None) or {})
    for kind in map(TOKENIZERS.load, TOKENIZERS):
        if kind.holds(path, described):
            found = kind.load(path)
            check_added(found.tokenizer, path)
            return found
    if not described:
        raise InputError(f'{path}: holds no tokenizer ({", ".join(main_files())}); give a folder with one')
    raise InputError(
        f'{path / READY}: type of the tokenizer is {described.get("model", {}).get("type")!r}, with settings that no '
        f'kind of tokenizer here has; the kinds are {", ".join(TOKENIZERS)}'
    )


def with_type(described: JsonObject) -> JsonObject:
    """The contents of a tokenizer.json with the type of its model, which old libraries left out.

    Merges tell pairs, a longest word tells WordPiece, as the library reads such a file itself.
    """
    model = described.get('model')
    if not isinstance(model, dict) or model.get('type') is not None:
        return described
    told = next((name for key, name in TOLD_BY.items() if key in model), None)
    return {**described, 'model': {**model, 'type': told}}


def check_added(tokenizer: tokenizers.Tokenizer, where: Path) -> None:
    """Raises InputError for two added tokens that are one after normalisation: libraries draw which id a text gets."""
    normalizer, seen = tokenizer.normalizer, dict[str, str]()
    for _, token in sorted(tokenizer.get_added_tokens_decoder().items()):
        if token.normalized and normalizer:
            content = normalizer.normalize_str(token.content)
            if (other := seen.setdefault(content, token.content)) != token.content:
                raise InputError(
                    f'{where}: the added tokens {other!r} and {token.content!r} are both {content!r} for the '
                    'normalizer, and which of their ids a text gets differs from load to load; rename one to what no '
                    'text has, such as [unused0], with "normalized": false'
                )


def kind_name(kind: Kind) -> str:
    """What the configuration calls a kind: the name of its file."""
    return next(name for name in TOKENIZERS if TOKENIZERS.load(name) is kind)


def main_files() -> tuple[str, ...]:
    """The names of files each of which can hold a tokenizer."""
    kinds = list(map(TOKENIZERS.load, TOKENIZERS))
    return (READY, *(name for kind in kinds for name in (*kind.files, *kind.read_from)))


def file_names() -> tuple[str, ...]:
    """The names of all files that a tokenizer in a folder can be made of."""
    return (*main_files()[1:], READY, SETTINGS, *LEGACY_FILES)


def deciding_file(path: Path) -> Path:
    """The file that holds the tokenizer of a folder; of a file, that file."""
    found = (path / name for name in main_files() if (path / name).is_file())
    return next(found, path / READY) if path.is_dir() else path
