#!/usr/bin/env bash
# textdistance 4.6.3: with `qval=None`, which compares texts by words, normalized_distance is a number of words divided
# by a number of letters, so all texts come out nearly equal. With `qval=2` and more it is never 1.
#   - `heart failure` and `renal disease` have no word in common. Levenshtein(qval=None) finds 2 words of 2 to change,
#     and gives a normalized similarity of 0.846; it should be 0. `heart failure` and `heart attack`: 0.923 for 0.5.
#     `the patient has no fever` and `the patient has high fever`: 0.962 for 0.8.
#   - The longer the words the more alike the texts, whatever the words are. The order of candidates changes by it:
#     `gastroesophageal adenocarcinoma` is nearer to `renal failure` than `liver failure` is.
#   - It is so for Levenshtein, DamerauLevenshtein, Hamming and Bag. The reason: `maximum`, by which the distance is
#     divided, looks at the lengths of the texts as they were given and not at the pieces.
#   - For LCSStr and LCSSeq the absolute distance is wrong too, as it is the maximum less what is common:
#     `LCSStr(qval=None).distance(text, text)` of `heart failure` with itself is 11, and LCSSeq gives 1, since it counts
#     the letters of common words, but not the space.
#   - With pairs of letters (qval=2) two names of 4 letters without anything in common have 0.75, and two of 8 have
#     0.875.
#   - Jaccard, Sorensen, Overlap, Cosine and JaroWinkler come out right, so a look at those does not show it.
# By the README normalized_distance is 0 for equal texts and 1 for those that have nothing in common, with any
# algorithm, and qval=None cuts texts into words. Nothing is raised and all is between 0 and 1. Remedy: leave qval out
# and give lists: `levenshtein.normalized_distance(left.split(), right.split())`, also as a rate of errors by words.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install textdistance==4.6.3 rapidfuzz==3.14.6
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import textdistance
from rapidfuzz.distance import Levenshtein

print('textdistance', version('textdistance'))
words = textdistance.Levenshtein(qval=None)
PAIRS = (
    ('heart failure', 'renal disease', 0.846, 0.0),
    ('heart failure', 'heart attack', 0.923, 0.5),
    ('the patient has no fever', 'the patient has high fever', 0.962, 0.8),
)
for left, right, seen, expected in PAIRS:
    changed = words.distance(left, right)
    found = words.normalized_similarity(left, right)
    # By hand (words to change of all words), by lists, and by another library.
    by_hand = 1 - changed / max(len(left.split()), len(right.split()))
    by_lists = textdistance.levenshtein.normalized_similarity(left.split(), right.split())
    other = Levenshtein.normalized_similarity(left.split(), right.split())
    print(f'{left} | {right}: {changed} words, {found:.3f}, by lists {by_lists:.3f}, by RapidFuzz {other:.3f}')
    assert round(found, 3) == seen, 'the number of words is divided by another number now'
    assert round(by_hand, 3) == round(by_lists, 3) == round(other, 3) == expected

query = 'renal failure'
candidates = 'liver failure', 'gastroesophageal adenocarcinoma'
found = [words.normalized_distance(query, candidate) for candidate in candidates]
should = [Levenshtein.normalized_distance(query.split(), candidate.split()) for candidate in candidates]
print(f'from {query} to {" and ".join(candidates)}: {[round(number, 3) for number in found]}, should be {should}')
assert found[0] > found[1] and should == [0.5, 1.0]

for name in ('Levenshtein', 'DamerauLevenshtein', 'Hamming', 'Bag'):
    algorithm = getattr(textdistance, name)
    left, right = 'heart failure', 'renal disease'
    found = algorithm(qval=None).normalized_distance(left, right)
    by_lists = algorithm().normalized_distance(left.split(), right.split())
    print(f'{name}: {found:.3f} by qval=None, {by_lists:.3f} by lists')
    assert abs(found - 2 / 13) < 1e-9 and by_lists == 1.0
for name in ('Jaccard', 'Sorensen', 'Overlap', 'Cosine', 'JaroWinkler'):
    assert getattr(textdistance, name)(qval=None).normalized_distance('heart failure', 'renal disease') == 1.0

text = 'heart failure'
itself = {name: getattr(textdistance, name)(qval=None).distance(text, text) for name in ('LCSStr', 'LCSSeq')}
print(f'distance of {text} from itself: {itself}')
assert itself == {'LCSStr': 11, 'LCSSeq': 1}

pairs = textdistance.Levenshtein(qval=2)
found = [pairs.normalized_distance(name, 'z' * len(name)) for name in ('abcd', 'abcdefgh')]
print('names of 4 and of 8 letters with nothing in common, by pairs of letters:', found)
assert found == [0.75, 0.875]
PYTHON
echo 'As stated: a number of words is divided by a number of letters.'
