"""Where words begin, in pieces: between white space, as the tokenizer cuts, or by Unicode's rules."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import tokenizers

from bioptimus_jax.config.plugins import Table
from bioptimus_jax.errors import ConfigError
from bioptimus_jax.text.words import has_unspaced, word_begins
from bioptimus_jax.tokenizer.metaspace import word_starts

LATER = 0x10000
"""The first character that takes two units of UTF-16, in which ICU counts."""


@dataclasses.dataclass(frozen=True)
class WordRule:
    """What a word is when whole words are masked. `starts(text, encoding)`: True where a piece begins one, bool [L]."""

    meaning: str
    starts: Callable[[str, tokenizers.Encoding], np.ndarray]
    by_tokenizer: bool = False
    """Whether pieces that show it alone need no array."""


def white_space_starts(text: str, offsets: list[tuple[int, int]]) -> np.ndarray:
    """True where a piece is the first of a white-space word."""
    begins, ends, is_space = _spans(text, offsets)
    spaces = np.concatenate([[0], np.cumsum(is_space)])  # before each character
    starts = np.ones(len(begins), bool)
    starts[1:] = spaces[np.maximum(begins[1:], ends[:-1])] > spaces[ends[:-1]]
    return starts


def begun_words(text: str, offsets: list[tuple[int, int]], starts_L: np.ndarray) -> np.ndarray:
    """How many words begin in each piece, [L], in the unit of `text.words.count_words`.

    They are white-space words, whose `starts_L` are given, unless the text has any of a script without blanks.
    """
    if not has_unspaced(text):
        return starts_L
    _, ended_L, _ = _spans(text, offsets)
    pieces = np.searchsorted(ended_L, word_begins(text), side='right')
    return np.bincount(np.minimum(pieces, len(ended_L) - 1), minlength=len(ended_L))


def tokenizer_starts(text: str, encoding: tokenizers.Encoding) -> np.ndarray:
    """True where the tokenizer begins a word."""
    return word_starts(encoding)


def unicode_starts(text: str, encoding: tokenizers.Encoding) -> np.ndarray:
    """True where a piece is the first of a word by Unicode's rules (UAX 29), with ICU's dictionaries.

    These find words in Chinese, Japanese, Thai, Lao, Khmer and Burmese, which put no blanks between them. A piece of
    several words begins one. Raises ConfigError where ICU is not installed.
    """
    begins, ends, _ = _spans(text, encoding.offsets)
    is_break = np.zeros(len(text) + 2, np.int64)
    is_break[[1 + place for place in word_breaks(text)]] = 1
    breaks = np.cumsum(is_break)  # before each character
    starts = np.ones(len(begins), bool)
    # The break before a letter is that of one piece alone: of the space, where that is a piece by itself.
    seen = np.maximum(ends, np.maximum.accumulate(begins) + 1)
    starts[1:] = breaks[begins[1:] + 1] > breaks[np.minimum(seen[:-1], len(text) + 1)]
    return starts


def word_breaks(text: str) -> Iterator[int]:
    """The places in a text, in characters, where Unicode's rules begin a word, a space or a mark."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError as error:
        raise ConfigError(
            "config.rows.words: unicode needs the package icu4py; pip install 'bioptimus-jax[words]'"
        ) from error
    units = (0 if character < chr(LATER) else 1 for character in text)
    place_of = {at: n for n, at in enumerate(itertools.accumulate((1 + u for u in units), initial=0))}
    return (place_of[begin] for begin, _ in WordBreaker(text, 'en').segments())


def _spans(text: str, offsets: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each piece begins and where it and all before it have ended, [L], and which characters are spaces.

    A piece may hold the space before its word: its word begins at the next character that is none.
    """
    spans = np.array(offsets, np.int64).reshape(-1, 2)
    is_space = np.array([character.isspace() for character in text], bool)
    numbers = np.where(is_space, len(text), np.arange(len(text)))
    letters = np.append(np.minimum.accumulate(numbers[::-1])[::-1], len(text))
    # Decomposed text can give a piece that begins before its neighbour ended.
    return letters[spans[:, 0]], np.maximum.accumulate(spans[:, 1]), is_space


WORD_RULES: Table[WordRule] = Table(
    'WORD_RULES',
    {
        'tokenizer': WordRule('as the tokenizer cuts a text', tokenizer_starts, by_tokenizer=True),
        'unicode': WordRule("by Unicode's rules, for scripts without blanks between words", unicode_starts),
    },
)
"""What `config.rows.words` may be."""


def starts_of(words: str, text: str, encoding: tokenizers.Encoding) -> np.ndarray:
    """True where a piece begins a word by the rule of that name (config.rows.words), bool [L]. Raises ConfigError."""
    return WORD_RULES[words].starts(text, encoding)
