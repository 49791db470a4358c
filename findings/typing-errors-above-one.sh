#!/usr/bin/env bash
# py_stringmatching 0.4.7: `SoftTfIdf(corpus).get_raw_score(first, second)` gives similarities far above 1, or 0, for a
# word that is misspelled and so is not in the corpus. Misspelled words are what this measure is for.
#   - A list of eight names of drugs is the corpus. `metformin tablet` and `metformine tablet` have 4.86. By the formula
#     it is 0.95. In the other order they have 0.37, and `metformine` and `metformin` alone have 0.
#   - The nearest name for `metformine tablet` is `aspirin tablet` with 0.51, and not `metformin tablet`.
#   - Where all words are in the corpus, scores are right and do not depend on the order. With the misspelled name added
#     to the corpus it is 0.96 in both orders.
#   - The reason: a word that the corpus does not have is left out of the length of its text's vector, and also out of
#     the sum if it stands in the first text. If it stands in the second, it does count in the sum, and with the highest
#     weight. So a large number is divided by a small one.
# The docstring takes tokens for a match as soon as their similarity is above the threshold, and the paper that the
# measure comes from (Cohen, Ravikumar and Fienberg 2003) multiplies vectors of length 1, so no score is above 1.
# Nothing is raised. It hurts whoever links names in records to a terminology and builds the corpus from the
# terminology: a threshold accepts pairs for 4.86, and misses what it should find. Remedy: build the corpus from both
# sides, the texts that are looked up included. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install py-stringmatching==0.4.7 numpy==1.26.4 rapidfuzz==3.14.6
cat > "$folder/try.py" <<'PYTHON'
import math
from collections import Counter
from importlib.metadata import version

from py_stringmatching import SoftTfIdf
from rapidfuzz.distance import Jaro

print('py-stringmatching', version('py-stringmatching'))
NAMES = ('metformin tablet', 'metformin solution', 'aspirin tablet', 'aspirin capsule', 'aspirin powder',
         'warfarin tablet', 'digoxin tablet', 'ibuprofen tablet')
THRESHOLD = 0.9
corpus = [name.split() for name in NAMES]
frequency = Counter(word for name in corpus for word in set(name))


def by_hand(first, second):
    """Products of the weights of matching words, by vectors of length 1. An unknown word weighs like one seen once."""
    def vector(text):
        weights = {word: times * len(NAMES) / frequency.get(word, 1) for word, times in Counter(text.split()).items()}
        length = math.sqrt(sum(weight ** 2 for weight in weights.values()))
        return {word: weight / length for word, weight in weights.items()}
    left, right = vector(first), vector(second)
    total = 0.0
    for word, weight in left.items():
        likeness, other = max((Jaro.similarity(word, other), other) for other in right)
        if likeness > THRESHOLD:
            total += weight * right[other] * likeness
    return total


measure = SoftTfIdf(corpus, threshold=THRESHOLD)


def by_the_package(first, second):
    return measure.get_raw_score(first.split(), second.split())


CASES = (
    ('metformin tablet', 'metformine tablet', 4.86, 0.95),
    ('metformine tablet', 'metformin tablet', 0.37, 0.95),
    ('metformin', 'metformine tablet', 4.83, 0.95),
    ('metformine', 'metformin', 0.0, 0.97),
    # All words are known.
    ('metformin tablet', 'metformin solution', None, None),
    ('aspirin tablet', 'tablet aspirin capsule', None, None),
)
for first, second, seen, right in CASES:
    found, hand = by_the_package(first, second), by_hand(first, second)
    print(f'{first} | {second}: {found:.2f}, by hand {hand:.2f}')
    if seen is None:
        assert abs(found - hand) < 1e-6 and abs(found - by_the_package(second, first)) < 1e-6
    else:
        assert round(found, 2) == seen, 'unknown words are counted otherwise now'
        assert round(hand, 2) == right

query = 'metformine tablet'
nearest = {name: max(NAMES, key=lambda candidate: function(query, candidate))
           for name, function in (('package', by_the_package), ('hand', by_hand))}
print(f'nearest to {query}: {nearest}, {by_the_package(query, nearest["package"]):.2f}')
assert nearest == {'package': 'aspirin tablet', 'hand': 'metformin tablet'}

# The remedy.
measure.set_corpus_list(corpus + [query.split()])
both = [by_the_package(*pair) for pair in ((query, 'metformin tablet'), ('metformin tablet', query))]
print(f'with the query in the corpus: {both[0]:.2f} and {both[1]:.2f}')
assert abs(both[0] - both[1]) < 1e-6 and 0.9 < both[0] < 1
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: a misspelled word makes a similarity above 1, or 0.'
