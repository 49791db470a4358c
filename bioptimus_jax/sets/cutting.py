"""Words and sentences of a text, from the text alone: the rules for sets that are read, and for finished taggers.

No rule knows where a mention is: what a model is shown must not say where the answers begin and end.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.text.words import COMBINING_MARKS, UNSPACED, UNSPACED_SCRIPT

WordPlace = tuple[int, int]
"""First character of a word, and the one behind its last."""
Cut = Callable[[str], list[list[WordPlace]]]
"""Text -> the words of every sentence that has one."""

# Letters and digits with their accents and what is invisible among them; or any other single character.
WORD = re.compile(f'(?:[^\\W_{UNSPACED}]|[{COMBINING_MARKS}\u00ad\u200b-\u200d\u2060\ufeff])+|[^\\s]')
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


def prose(text: str) -> list[list[WordPlace]]:
    """Sentences by the project's splitter; words end at white space and at punctuation."""
    return _in_sentences(text, split_sentences, WORD)


def lines(text: str) -> list[list[WordPlace]]:
    """A line is a sentence, and words end at white space, as in clinical notes."""
    return _in_sentences(text, _lines, SPACED)


def notes(text: str) -> list[list[WordPlace]]:
    """A line is a sentence; words end at white space, and marks at their edges stand alone: `3/4/99` before a stop."""
    return _in_sentences(text, _lines, COMPOUND)


def characters(text: str) -> list[list[WordPlace]]:
    """A line is a sentence, and each character is a word."""
    return _in_sentences(text, _lines, CHARACTER)


def columns(text: str) -> list[list[WordPlace]]:
    """Lines that are cut into words already are sentences of these words; running text is read as prose."""
    return _tokens_or(text, WORD)


def compounds(text: str) -> list[list[WordPlace]]:
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
        without_blanks = bool(UNSPACED_SCRIPT.search(word))
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
    without = all(len(word) == 1 for word in words) and any(map(UNSPACED_SCRIPT.match, words))
    return ('' if without else ' ').join(words)


def count_cut_otherwise(sentences: Iterable[Sentence], cut: str) -> int:
    """The number of sentences in columns whose text has other words by a rule of CUTS."""
    return sum(not s.marked and words_in(bare_text(s.words), cut) != [s.words] for s in sentences)


def words_in(text: str, cut: str) -> list[tuple[str, ...]]:
    """The words of every sentence of a text by a rule of CUTS."""
    return [tuple(text[start:end] for start, end in sentence) for sentence in CUTS[cut](text)]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split('\n') if line.strip()]


def _tokens_or(text: str, running: re.Pattern[str]) -> list[list[WordPlace]]:
    """The tokens of lines that were cut into tokens before; of other lines the words that `running` finds."""
    found, start = [], 0
    for line in text.split('\n'):
        plain = line.replace('\0', ' ')
        before = ALONE.search(plain) or not ATTACHED.search(plain)
        inside = _in_sentences(line, *((_lines, SPACED) if before else (split_sentences, running)))
        found += [[(start + a, start + b) for a, b in words] for words in inside]
        start += len(line) + 1
    return found


def _in_sentences(
    text: str, sentences_of: Callable[[str], Sequence[str]], word: re.Pattern[str]
) -> list[list[WordPlace]]:
    """The words that a pattern finds in each sentence; NUL is a blank, as the splitter reads it."""
    plain = text.replace('\0', ' ')
    starts, position = list[int](), 0
    for sentence in sentences_of(plain):
        starts.append(plain.index(sentence, position))
        position = starts[-1] + len(sentence)
    # Stretches that cover the whole text, one for each sentence.
    stretches = zip((0, *starts[1:]), (*starts[1:], len(plain)), strict=True) if starts else ()
    found = ([m.span() for m in word.finditer(plain, *stretch)] for stretch in stretches)
    return list(filter(None, found))
