"""Words of a text in any script, where white space, not a tokenizer, says what a word is.

Scripts that put no blanks between words have no words to count without a dictionary, so there each letter is one: the
same unit wherever words are counted, joined, compared or tagged.
"""

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

UNSPACED = (
    '\u3005\u3007\u3040-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff'
    '\uff66-\uff9f\U00020000-\U000323af\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf'
    '\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaadf'
)
"""Scripts that put no blanks between words (Han, Bopomofo, kana, Thai, Lao, Tibetan, Burmese, Khmer, Tai, Balinese,
Javanese): each letter is a word."""
COMBINING_MARKS = ''.join(chr(c) for c in range(0x300, 0xFE30) if unicodedata.category(chr(c))[0] == 'M')
"""Accents, vowel signs and points: they go with the letter before them."""
APOSTROPHES = "'\u2019"
OPENING = {'(': ')', '[': ']', '{': '}'}
CLOSING = {closes: opens for opens, closes in OPENING.items()}
OF_NAMES = '#\u2032\u2033'
UNSPACED_SCRIPT = re.compile(f'[{UNSPACED}]')
RUN = re.compile(r'\S+')
LETTER = re.compile(f'(?![\\W_])[{UNSPACED}]')
LETTER_WITH_MARKS = re.compile(f'{LETTER.pattern}[{COMBINING_MARKS}]*')


def count_words(text: str) -> int:
    """The number of words of a text with single blanks and line breaks, as `corpus.records.squeezed` gives it.

    They are what stands between these, but where letters of scripts without blanks stand there, these letters and what
    else has a letter or digit.
    """
    if not text:
        return 0
    if has_unspaced(text):
        return sum(map(_words_in, text.split()))
    return text.count(' ') + text.count('\n') + 1


def word_begins(text: str) -> list[int]:
    """The places in a text, in characters, where the words that `count_words` counts begin, in order."""
    return sorted(run.start() + begin for run in RUN.finditer(text) for begin in _begins_in(run[0]))


def has_unspaced(text: str) -> bool:
    """Whether a text has any of a script without blanks."""
    return not text.isascii() and UNSPACED_SCRIPT.search(text) is not None


def spaced(text: str) -> str:
    """The text with blanks around each letter of a script without blanks; the text itself where there is none."""
    return LETTER_WITH_MARKS.sub(r' \g<0> ', text) if has_unspaced(text) else text


def bare(word: str) -> str:
    """What stands between spaces without the punctuation around it.

    An apostrophe at the beginning stays, and so does a bracket whose partner is inside: `Fe(II)`, `(R)-warfarin`.
    """
    while word and _is_around(word[-1], word[:-1], CLOSING):
        word = word[:-1]
    while word and _is_around(word[0], word[1:], OPENING) and word[0] not in APOSTROPHES:
        word = word[1:]
    return bare(word[1:-1]) if _is_bracketed(word) else word


def bare_counts(counts: Mapping[str, int]) -> Counter[str]:
    """Counts of `bare` words that have a letter.

    Some tokenizers count a word with the space before it apart, or with the punctuation around it.
    """
    found: Counter[str] = Counter()
    for word, count in counts.items():
        if any(map(str.isalpha, word)):
            found[bare(word.strip())] += count
    return found


def _is_bracketed(word: str) -> bool:
    """Whether the first character is a bracket that the last one closes."""
    if not word or OPENING.get(word[0]) != word[-1]:
        return False
    depths = itertools.accumulate((char == word[0]) - (char == word[-1]) for char in word[:-1])
    return min(depths) > 0


def _is_around(character: str, rest: str, partners: Mapping[str, str]) -> bool:
    """Whether punctuation at one end is not the partner of what the `rest` leaves open; names end in # or a prime."""
    partner = partners.get(character)
    if partner and rest.count(partner) > rest.count(character):
        return False
    return unicodedata.category(character)[0] == 'P' and character not in OF_NAMES


def _words_in(run: str) -> int:
    letters = len(LETTER.findall(run))
    others = LETTER.sub(' ', run).split()
    return letters + sum(any(map(str.isalnum, part)) for part in others) if letters else 1


def _begins_in(run: str) -> list[int]:
    """Where the words begin that `_words_in` counts, first the letters of scripts without blanks."""
    letters = [letter.start() for letter in LETTER.finditer(run)]
    others = RUN.finditer(LETTER.sub(' ', run))
    return letters + [part.start() for part in others if any(map(str.isalnum, part[0]))] if letters else [0]
