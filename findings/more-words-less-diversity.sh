#!/usr/bin/env bash
# textcomplexity 0.11.0: `surface.hdd(text)`, the lexical diversity HD-D, is far too small, and mostly texts with more
# different words get less. A text in which every word is different gets half of what a text of 50 words gets.
#   - 1000 words, all different: .0238, where 1.0 is right, the maximum. One word 1000 times: .001, where .0238 is
#     right.
#   - 500 words, each twice: .0238, where .98 is right. It is .0238 for any text whose words all come equally often, if
#     there are many of them.
#   - Texts drawn by Zipf's law from 5000, 300 and 50 words score .093, .102 and .048. By the definition it is .83, .64
#     and .47.
#   - 400 pairs of texts, each drawn from 50 to 5000 words: 280 pairs are in the wrong order.
#   - `surface.gries_dp`, the deviation of proportions, is twice what it should be: 1.8 for a text of words that all
#     differ, where .9 is right and nothing above 1 is possible. `gries_dp_norm`, whose maximum is 1, gives 2.
# The reason: HD-D adds up, over all words, the probability that a sample of 42 holds the word. The function goes
# through the frequency spectrum, which says how many words there are of each frequency, and takes the number of words
# for the frequency. A frequency counts once, not once for each word that has it. In DP the division by 2 is missing.
# The docstring names the paper and no other range. Nothing is raised, and `txtcomplexity --preset all` prints it as
# HD-D beside other measures. It hurts whoever compares notes, abstracts or generated texts: the more varied text may
# be called the poorer one. Remedy: the sum of 1 - scipy.stats.hypergeom.pmf(0, length, frequency, 42) over all words,
# divided by 42.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install textcomplexity==0.11.0 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
from collections import Counter, namedtuple
from importlib.metadata import version
from math import comb

import numpy as np
from textcomplexity import surface
from textcomplexity.utils.text import Text

print('textcomplexity', version('textcomplexity'))
Token = namedtuple('Token', 'word pos')
SAMPLE = 42


def read(words):
    return Text.from_tokens([Token(word, '_') for word in words])


def by_hand(words):
    """HD-D: the expected share of different words in a sample of 42."""
    length = len(words)
    absent = [comb(length - count, SAMPLE) / comb(length, SAMPLE) for count in Counter(words).values()]
    return sum(1 - share for share in absent) / SAMPLE


def dp_by_hand(words, parts):
    """The mean over words of half the sum of the differences between observed and expected shares of the parts."""
    size = len(words) // parts
    counts = [Counter(words[part * size:(part + 1) * size]) for part in range(parts)]
    total = Counter(words)
    return np.mean([sum(abs(count[word] / total[word] - 1 / parts) for count in counts) / 2 for word in total])


def zipf(vocabulary, draw):
    weights = 1 / np.arange(1, vocabulary + 1)
    return [f'word{number}' for number in draw.choice(vocabulary, 1000, p=weights / weights.sum())]


# The definition, checked by drawing.
draw = np.random.default_rng(0)
small = zipf(300, draw)
drawn = np.mean([len(set(draw.choice(small, SAMPLE, replace=False))) / SAMPLE for _ in range(4000)])
print(f'different words in samples of 42: {drawn:.3f} by drawing, {by_hand(small):.3f} by hand')
assert abs(drawn - by_hand(small)) < 0.005

different = [f'word{number}' for number in range(1000)]
draw = np.random.default_rng(0)
texts = {
    'all words different': (different, 0.0238, 1.0),
    'each word twice': (different[:500] * 2, 0.0238, 0.98),
    'one word': (['word'] * 1000, 0.001, 0.0238),
    'of 5000 words': (zipf(5000, draw), 0.093, 0.83),
    'of 300 words': (zipf(300, draw), 0.102, 0.64),
    'of 50 words': (zipf(50, draw), 0.048, 0.47),
}
for name, (words, seen, expected) in texts.items():
    found = surface.hdd(read(words))
    print(f'{name}: {len(set(words))} different words, HD-D {found:.4f}, by hand {by_hand(words):.4f}')
    assert np.isclose(found, seen, atol=0.001), 'HD-D looks at the frequencies of words now'
    assert np.isclose(by_hand(words), expected, atol=0.005)
    # The function takes the number of words of a frequency for the frequency.
    spectrum = Counter(Counter(words).values())
    mistaken = sum(1 - comb(1000 - count, SAMPLE) / comb(1000, SAMPLE) for count in spectrum.values()) / SAMPLE
    assert np.isclose(found, mistaken)

wrong = 0
for _ in range(400):
    first, second = (zipf(int(draw.integers(50, 5000)), draw) for _ in range(2))
    wrong += (surface.hdd(read(first)) < surface.hdd(read(second))) != (by_hand(first) < by_hand(second))
print(f'{wrong} of 400 pairs of texts in the wrong order')
assert 250 < wrong < 320

for name, limit in (('all words different', 1), ('of 5000 words', 1)):
    words = texts[name][0]
    found, right = surface.gries_dp(read(words), 10), dp_by_hand(words, 10)
    norm = surface.gries_dp_norm(read(words), 10)
    print(f'{name}: DP {found:.3f}, by hand {right:.3f}, normalised {norm:.3f}, by hand {right / 0.9:.3f}')
    assert np.isclose(found, 2 * right) and np.isclose(norm, 2 * right / 0.9) and right <= limit < found
PYTHON
echo 'As stated: HD-D takes how many words have a frequency for the frequency.'
