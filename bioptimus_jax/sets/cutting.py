"""Words and sentences of a text, from the text alone: the rules for sets that are read, and for finished taggers.

No rule knows where a mention is: what a model is shown must not say where the answers begin and end.
"""

import collections
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.text.words import COMBINING_MARKS, LETTER, UNSPACED, UNSPACED_SCRIPT, has_unspaced

WordPlace = tuple[int, int]
"""First character of a word, and the one behind its last."""
Cut = Callable[[str], list[list[WordPlace]]]
"""Text -> the words of every sentence that has one."""

# Letters and digits with their accents and what is invisible among them; or any other single character.
WORD = re.compile(f'(?:[^\\W_{UNSPACED}]|[{COMBINING_MARKS}\u00ad\u200b-\u200d\u2060\ufeff])+|[^\\s]')
SPACED = re.compile(r'\S+')
CHARACTER = re.compile(r'\S')
COMPOUND = re.compile(f'[^\\W_{UNSPACED}](?:[^\\s{UNSPACED}]*[^\\W_{UNSPACED}])?|\\S')
"""Punctuation within a word stays, as in `IL-2`; at its edges each mark is a word."""
WIDE = '\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f'
"""Marks of Chinese and Japanese, which have no blank beside them."""
ALONE = re.compile(f'(?<!\\S)[.,;:!?()\\[\\]{WIDE}](?!\\S)')
"""A mark between blanks, as in text that was cut into words before."""
ATTACHED = re.compile(
    r'(?<=\w)(?:[,;:!?)\]]|\.(?! [a-z.,;:!?()\[\]]))(?!\S)|(?<!\S)[(\[](?=\w)'
    f'|(?<=[\\w{UNSPACED}])[{WIDE}]|(?<=[{UNSPACED}])[.,;:!?()\\[\\]]|[.,;:!?()\\[\\]{WIDE}](?=[{UNSPACED}])'
)
"""A mark at the edge of a word, as in running text; not a stop within a sentence, as in `E. coli` and `et al. ,`."""
HYPHEN_ALONE = re.compile(r'(?<!\S)[-/]+(?!\S)')
HYPHEN_WITHIN = re.compile(r'[^\W_][-/]+(?=[^\W_])')
LONG = 5
"""Letters without a blank between them, on average, that only running text of a script without blanks has."""
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
    """Lines that are cut into words already are sentences of these words; running text is read as prose.

    Where no other mark tells which they are, `-` and `/` between blanks or within words do.
    """
    return _tokens_or(text, WORD, by_hyphens=True)


def compounds(text: str) -> list[list[WordPlace]]:
    """Lines that are cut already, as `columns` reads them; in running text punctuation within a word stays (`IL-2`)."""
    return _tokens_or(text, COMPOUND, by_hyphens=False)


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
    """The text of words in columns, with blanks between them.

    Where half of them are of a script without blanks, or all are single letters and some of such a script, blanks are
    only between words of other scripts.
    """
    unspaced = sum(map(has_unspaced, words))
    others = sum(any(map(str.isalnum, word)) for word in words) - unspaced if unspaced else 0
    if not unspaced or (unspaced < others and any(len(word) > 1 for word in words)):
        return ' '.join(words)
    return ''.join(
        f' {word}' if len(before + word) > 2 and _is_of_others(before[-1:] + word[:1]) else word
        for before, word in itertools.pairwise(('', *words))
    )


def long_words(sentences: Iterable[Sequence[str]]) -> bool:
    """Whether words of scripts without blanks have several letters, which no rule finds in running text."""
    words = [word for sentence in sentences for word in sentence if has_unspaced(word)]
    return sum(len(LETTER.findall(word)) > 1 for word in words) > SOME * len(words)


def in_letters(text: str, words: Sequence[WordPlace]) -> bool:
    """Whether neighbouring letters of a script without blanks are words of their own: running text was cut."""
    pairs = itertools.pairwise(words) if has_unspaced(text) else ()
    return any(
        b - a == len(LETTER.findall(text, a, b)) == 2 for (a, end), (start, b) in pairs if end == start
    )


def count_cut_otherwise(sentences: Iterable[Sentence], cut: str) -> int:
    """The number of sentences in columns whose text has other words by a rule of CUTS."""
    own = [sentence for sentence in sentences if not sentence.marked]
    return sum(
        [tuple(text[a:b] for a, b in words) for words in found] != [sentence.words]
        for sentence, (text, found) in zip(own, bare_lines(own, cut), strict=True)
    )


def bare_lines(sentences: Iterable[Sentence], cut: str) -> Iterator[tuple[str, list[list[WordPlace]]]]:
    """The bare text of each sentence in columns, and the words of every sentence that a rule of CUTS finds in it, where
    it is a line of its document."""
    for _, of_one in itertools.groupby(sentences, key=lambda sentence: sentence.document):
        texts = [bare_text(sentence.words) for sentence in of_one]
        found, start = collections.deque(CUTS[cut]('\n'.join(texts))), 0
        for text in texts:
            own = []
            while found and found[0][0][0] < start + len(text):
                own.append([(a - start, b - start) for a, b in found.popleft()])
            yield text, own
            start += len(text) + 1


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split('\n') if line.strip()]


def _is_of_others(letters: str) -> bool:
    """Whether these are two letters or digits, and none of a script without blanks."""
    return len(letters) == 2 and letters.isalnum() and not has_unspaced(letters)


def _tokens_or(text: str, running: re.Pattern[str], by_hyphens: bool) -> list[list[WordPlace]]:
    """The tokens of lines that were cut into tokens before; of other lines the words that `running` finds.

    Most marks of a line tell which it is, or those of the whole text where they do not.
    """
    plain = text.replace('\0', ' ')
    of_lines = [(line, _leaning(line, ALONE, ATTACHED)) for line in plain.split('\n')]
    whole = sum(leaning for _, leaning in of_lines) or _leaning_of_words(plain, by_hyphens)
    found, start = [], 0
    for line, leaning in of_lines:
        is_running = (leaning or whole) > 0
        inside = _in_sentences(line, *((split_sentences, running) if is_running else (_lines, SPACED)))
        found += [[(start + a, start + b) for a, b in words] for words in inside]
        start += len(line) + 1
    return found


def _leaning(text: str, cut: re.Pattern[str], running: re.Pattern[str]) -> int:
    """How many more signs a text has of running text than of text that is cut into words."""
    return len(running.findall(text)) - len(cut.findall(text))


def _leaning_of_words(text: str, by_hyphens: bool) -> int:
    """What words tell of a text without marks: above 0 it is running."""
    between = SPACED.findall(text) if has_unspaced(text) else ()
    runs = [letters for one in between if (letters := len(LETTER.findall(one)))]
    if any(letters > 1 for letters in runs):
        return 1 if len(runs) == 1 or sum(runs) >= LONG * len(runs) else -1
    return _leaning(text, HYPHEN_ALONE, HYPHEN_WITHIN) if by_hyphens else 0


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
