"""Words of a text in any script, where white space, not a tokenizer, says what a word is.

Scripts that put no blanks between words have no words to count without a dictionary, so there each letter is one: the
same unit wherever words are counted, joined, compared or tagged.
"""

import re
import unicodedata

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
UNSPACED_SCRIPT = re.compile(f'[{UNSPACED}]')
LETTER = re.compile(f'(?![\\W_])[{UNSPACED}]')
LETTER_WITH_MARKS = re.compile(f'{LETTER.pattern}[{COMBINING_MARKS}]*')


def count_words(text: str) -> int:
    """The number of words of a text with single blanks and line breaks, as `corpus.records.squeezed` gives it.

    They are what stands between these, but where letters of scripts without blanks stand there, these letters and what
    else has a letter or digit.
    """
    if not text:
        return 0
    if text.isascii() or not UNSPACED_SCRIPT.search(text):
        return text.count(' ') + text.count('\n') + 1
    return sum(map(_words_in, text.split()))


def spaced(text: str) -> str:
    """The text with blanks around each letter of a script without blanks; the text itself where there is none."""
    if text.isascii() or not UNSPACED_SCRIPT.search(text):
        return text
    return LETTER_WITH_MARKS.sub(r' \g<0> ', text)


def bare(word: str) -> str:
    """What stands between spaces without the punctuation around it; an apostrophe that begins it is its own."""
    first, last = 0, len(word)
    while last > first and _is_punctuation(word[last - 1]):
        last -= 1
    while first < last and _is_punctuation(word[first]) and word[first] not in APOSTROPHES:
        first += 1
    return word[first:last]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] == 'P'


def _words_in(run: str) -> int:
    letters = len(LETTER.findall(run))
    others = LETTER.sub(' ', run).split()
    return letters + sum(any(map(str.isalnum, part)) for part in others) if letters else 1
