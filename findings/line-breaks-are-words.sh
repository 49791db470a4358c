#!/usr/bin/env bash
# textdescriptives 2.8.4 (spaCy 3.8.18): line breaks and runs of spaces count as words, so the readability of a text
# depends on how its lines are broken.
#   - Two sentences of 24 words: n_tokens 24, Flesch reading ease -6.3, Flesch-Kincaid grade 17.1, Coleman-Liau 30.0.
#     The same words in lines of at most 40 characters: 29, 11.2, 15.3 and 23.1. With two spaces between words: 47,
#     39.0, 13.7 and 10.5. All of them should stay.
#   - A break is a word of one letter and one syllable, so texts with short lines come out easier, by all eight scores
#     but SMOG and RIX. token_length, syllables, sentence_length, n_tokens and the share of unique tokens move too.
#   - spaCy makes a token of a line break, and of spaces beyond the first. The words of a document are its tokens less
#     punctuation and less those with an apostrophe, and a line break is neither.
# The pages of the package give the formulas in words and syllables, and its own function speaks of words in a document.
# No warning comes. Clinical notes, MEDLINE records and text taken from PDFs have broken lines, and simplified texts
# mostly have not: then a comparison of the two measures the line breaks. Remedy: `' '.join(text.split())` before the
# pipeline. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install spacy==3.8.18 pandas==2.3.3 numpy==1.26.4 pyphen==0.18.1 ftfy==6.3.1
# It asks for spaCy's tables of words as well, which are large and not used here.
"$folder/env/bin/pip" --quiet install --no-deps textdescriptives==2.8.4
"$folder/env/bin/python" - <<'PYTHON'
import textwrap
from importlib.metadata import version

import spacy
import textdescriptives  # noqa: F401
from pyphen import Pyphen

print('textdescriptives', version('textdescriptives'), 'spaCy', version('spacy'))
SENTENCES = (
    'Patients with chronic obstructive pulmonary disease were randomised to inhaled corticosteroids or placebo.',
    'Exacerbations requiring hospitalisation occurred significantly less frequently '
    'in participants receiving treatment.',
)
pipeline = spacy.blank('en')
pipeline.add_pipe('sentencizer')
pipeline.add_pipe('textdescriptives/readability')
NAMES = ('flesch_reading_ease', 'flesch_kincaid_grade', 'coleman_liau_index', 'lix')


def scores(text):
    document = pipeline(text)
    found = [document._.counts['n_tokens'], *(round(document._.readability[name], 1) for name in NAMES)]
    assert document._.counts['n_sentences'] == 2
    return found, document


def by_hand(text):
    """The same scores, of words between white space."""
    words = [word.strip('.') for word in text.split()]
    hyphens = Pyphen(lang='en')
    syllables = sum(hyphens.inserted(word.lower()).count('-') + 1 for word in words) / len(words)
    letters, length = sum(map(len, words)) / len(words), len(words) / 2
    long = sum(len(word) > 6 for word in words)
    values = (
        206.835 - 1.015 * length - 84.6 * syllables,
        0.39 * length + 11.8 * syllables - 15.59,
        5.88 * letters - 0.296 * 100 / length - 15.8,
        length + 100 * long / len(words),
    )
    return [len(words), *(round(value, 1) for value in values)]


flat = ' '.join(SENTENCES)
wrapped = '\n'.join(textwrap.wrap(flat, 40))
assert wrapped.split() == flat.split()
print('scores: n_tokens,', ', '.join(NAMES))
for name, text in (('one line', flat), ('lines of 40', wrapped), ('two spaces', flat.replace(' ', '  '))):
    print(f'{name:12s} {scores(text)[0]}, by hand {by_hand(text)}')
right = [24, -6.3, 17.1, 30.0, 87.0]
assert scores(flat)[0] == by_hand(flat) == by_hand(wrapped) == right
found, document = scores(wrapped)
assert found == [29, 11.2, 15.3, 23.1, 76.6], 'line breaks no longer count as words'
breaks = [token for token in document if token.is_space]
assert len(breaks) == wrapped.count('\n') == 5 == found[0] - right[0]
spaced = scores(flat.replace(' ', '  '))[0]
assert spaced == [47, 39.0, 13.7, 10.5, 61.8]
assert scores(' '.join(wrapped.split()))[0] == right
PYTHON
echo 'As stated: broken lines make a text easier to read.'
