"""Words and sentences of a text, from the text alone: the rules for sets that are read, and for finished taggers.

No rule knows where a mention is: what a model is shown must not say where the answers begin and end.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.splitting import split_sentences

Place = tuple[int, int]
"""First character of a word, and the one behind its last."""
Cut = Callable[[str], list[list[Place]]]
"""Text -> the words of every sentence that has one."""

UNSPACED = (
    '\u3005\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f'
    '\U00020000-\U0002fa1f\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff'
)
"""Scripts that put no blanks between words (Han, kana, Thai, Lao, Tibetan, Burmese, Khmer): each letter is a word."""
# Letters and digits with their accents and what is invisible among them; or any other single character.
MARKS = ''.join(chr(c) for c in range(0x300, 0xFE30) if unicodedata.category(chr(c))[0] == 'M')
"""Accents, vowel signs and points: they go with the letter before them."""
WORD = re.compile(f'(?:[^\\W_{UNSPACED}]|[{MARKS}\u00ad\u200b-\u200d\u2060\ufeff])+|[^\\s]')
SPACED = re.compile(r'\S+')
CHARACTER = re.compile(r'\S')
COMPOUND = re.compile(r'[^\W_](?:\S*[^\W_])?|\S')
"""Punctuation within a word stays, as in `IL-2`; at its edges each mark is a word."""
ALONE = re.compile(r'(?<!\S)[.,;:!?)\]](?!\S)')
"""A mark between blanks: running text has none, so the text was cut into words before."""
ATTACHED = re.compile(r'(?<=\w)[.,;:!?)\]](?!\S)|(?<!\S)[(\[](?=\w)')
"""A mark at the edge of a word, as in running text."""
MARK_WITHIN = re.compile(r'[^\W_][^\w\s]+[^\W_]')
MOST, SOME = 0.99, 0.05
"""Shares of the words of a set: single letters, and letters of scripts without blanks, where each letter is a word."""
UNSPACED_LETTER = re.compile(f'[{UNSPACED}]')


def prose(text: str) -> list[list[Place]]:
    """Sentences by the project's splitter; words end at white space and at punctuation."""
    plain = _without_nul(text)
    return _in_sentences(plain, split_sentences(plain), WORD)


def lines(text: str) -> list[list[Place]]:
    """A line is a sentence, and words end at white space, as in clinical notes."""
    plain = _without_nul(text)
    return _in_sentences(plain, _lines(plain), SPACED)


def notes(text: str) -> list[list[Place]]:
    """A line is a sentence; words end at white space, and marks at their edges stand alone: `3/4/99` before a stop."""
    plain = _without_nul(text)
    return _in_sentences(plain, _lines(plain), COMPOUND)


def characters(text: str) -> list[list[Place]]:
    """A line is a sentence, and each character is a word."""
    plain = _without_nul(text)
    return _in_sentences(plain, _lines(plain), CHARACTER)


def columns(text: str) -> list[list[Place]]:
    """Lines that are cut into words already are sentences of these words; running text is read as prose."""
    return _tokens_or(text, WORD)


def compounds(text: str) -> list[list[Place]]:
    """Lines that are cut already, as `columns` reads them; in running text punctuation within a word stays (`IL-2`)."""
    return _tokens_or(text, COMPOUND)


CUTS: dict[str, Cut] = {rule.__name__: rule for rule in (prose, lines, notes, characters, columns, compounds)}
"""Rules by their names, which the folder of a finished tagger keeps."""


def cut_of_columns(sentences: Iterable[Sequence[str]]) -> str:
    """The rule that gives the words of these sentences, which stand in columns, from text.

    compounds: more marks stand between two letters of a word than alone.
    """
    words = unspaced = single = within = alone = 0
    for word in (word for sentence in sentences for word in sentence):
        words += 1
        single += len(word) == 1
        without_blanks = bool(UNSPACED_LETTER.search(word))
        unspaced += without_blanks
        alone += word in ('-', '/')
        within += bool(MARK_WITHIN.search(word)) and not without_blanks
    # A few words of Latin letters may stand among single letters, and marks and digits among those.
    if single >= MOST * words and unspaced >= SOME * words:
        return characters.__name__
    return (compounds if within > alone else columns).__name__


def bare_text(words: Sequence[str]) -> str:
    """The text of words in columns: with blanks between them, but not between single letters where one of them is of a
    script without blanks."""
    without = all(len(word) == 1 for word in words) and any(map(UNSPACED_LETTER.match, words))
    return ('' if without else ' ').join(words)


def cut_otherwise(sentences: Iterable[Sentence], cut: str) -> list[Sentence]:
    """The sentences of columns whose text has other words by a rule of CUTS."""
    found = []
    for sentence in sentences:
        text = bare_text(sentence.words)
        if not sentence.marked and words_in(text, cut) != [sentence.words]:
            found.append(sentence)
    return found


def words_in(text: str, cut: str) -> list[tuple[str, ...]]:
    """The words of every sentence of a text by a rule of CUTS."""
    return [tuple(text[start:end] for start, end in sentence) for sentence in CUTS[cut](text)]


def _without_nul(text: str) -> str:
    """The text with blanks for NUL, as the splitter reads it."""
    return text.replace('\0', ' ')


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split('\n') if line.strip()]


def _tokens_or(text: str, running: re.Pattern[str]) -> list[list[Place]]:
    """The tokens of lines that were cut into tokens before; of other lines the words that `running` finds."""
    found, start = [], 0
    for line in _without_nul(text).split('\n'):
        before = ALONE.search(line) or not ATTACHED.search(line)
        pattern, sentences = (SPACED, [line.strip()]) if before else (running, split_sentences(line))
        inside = _in_sentences(line, [s for s in sentences if s], pattern)
        found += [[(start + a, start + b) for a, b in words] for words in inside]
        start += len(line) + 1
    return found


def _in_sentences(text: str, sentences: Sequence[str], word: re.Pattern[str]) -> list[list[Place]]:
    found = ([m.span() for m in word.finditer(text, *span)] for span in _stretches(text, sentences))
    return list(filter(None, found))


def _stretches(text: str, sentences: Sequence[str]) -> Iterator[Place]:
    """Stretches that cover the whole text, one for each sentence."""
    starts, position = list[int](), 0
    for sentence in sentences:
        starts.append(text.index(sentence, position))
        position = starts[-1] + len(sentence)
    yield from zip((0, *starts[1:]), (*starts[1:], len(text)), strict=True) if starts else ()
