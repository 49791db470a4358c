#!/usr/bin/env bash
# simstring-fast 0.6.0: approximate look-up of names by the Dice measure does not find even a name that is in the dictionary
# letter by letter, at any threshold that is of use. simstring-pure 1.0.0, of which it is a fork, does the same.
#   - With a dictionary of 8 names of diseases and drugs and pieces of two letters, search(name, 1.0) finds none of the 8,
#     and search('hypertensions', 0.7) does not find `hypertension`. By CosineMeasure and JaccardMeasure all are found.
#   - How many pieces two names must share is taken from the *product* of their lengths, where Dice needs the sum: 0.5 * 0.7
#     * 14 * 13 = 64 pieces, of names that have 14 and 13. The limit can only be reached by names of a few letters.
#   - Names of two to four letters are found in part, and not by any rule: `IL` at 1.0 and not at 0.8. The README's example
#     with `foo` and `fooo` comes out right by Dice, too, so a small test passes.
#   - ranked_search finds as little.
# The README says "100% exact retrieval" and lists Dice among the measures. Nothing is raised: an empty list is what a name
# without a match gives as well, so mentions simply have no identifier, and it looks as if the terminology did not have
# them. Remedy: JaccardMeasure with alpha / (2 - alpha) gives exactly the names whose Dice value is alpha or more.
# Seen on 2026-11-29, in the newest versions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/try.py" <<'PYTHON'
import sys
from importlib.metadata import version

from simstring.database.dict import DictDatabase
from simstring.feature_extractor.character_ngram import CharacterNgramFeatureExtractor
from simstring.measure.cosine import CosineMeasure
from simstring.measure.dice import DiceMeasure
from simstring.measure.jaccard import JaccardMeasure
from simstring.searcher import Searcher

NAMES = (
    'hypertension',
    'heart failure',
    'diabetes mellitus',
    'aspirin',
    'acetylsalicylic acid',
    'interleukin 2',
    'pneumonia',
    'fever',
)
print(sys.argv[1], version(sys.argv[1]))
pieces = CharacterNgramFeatureExtractor(2)
database = DictDatabase(pieces)
for name in NAMES:
    database.add(name)


def dice(left, right):
    left, right = set(pieces.features(left)), set(pieces.features(right))
    return 2 * len(left & right) / (len(left) + len(right))


for measure, right in ((CosineMeasure, True), (JaccardMeasure, True), (DiceMeasure, False)):
    searcher = Searcher(database, measure())
    found = [name for name in NAMES if name in searcher.search(name, 1.0)]
    near = searcher.search('hypertensions', 0.7)
    print(f'{measure.__name__}: {len(found)} of {len(NAMES)} names found by themselves, hypertensions -> {near}')
    if right:
        assert len(found) == len(NAMES) and near == ['hypertension']
    else:
        assert found == [] and near == [], 'Dice finds names now'

value = dice('hypertensions', 'hypertension')
print(f'Dice of hypertensions and hypertension: {value:.3f}')
assert value > 0.85

searcher = Searcher(database, DiceMeasure())
low = searcher.search('hypertensions', 0.1)
print('by Dice at 0.1:', low)
assert 'hypertension' in low

short = DictDatabase(pieces)
for name in ('IL', 'foo', 'fooo', 'bar'):
    short.add(name)
searcher = Searcher(short, DiceMeasure())
example = searcher.search('foo', 0.8)
print("the README's example, by Dice:", example)
assert sorted(example) == ['foo', 'fooo']
found = {alpha: searcher.search('IL', alpha) for alpha in (1.0, 0.8, 0.7)}
print('IL by Dice, by threshold:', found)
assert found == {1.0: ['IL'], 0.8: [], 0.7: []}

# What Dice should give, by way of Jaccard.
for query in (*NAMES, 'hypertensions', 'interleukin 12', 'heart failures', 'pneumonias'):
    for alpha in (0.5, 0.7, 0.9):
        wanted = {name for name in NAMES if dice(query, name) >= alpha}
        assert wanted == set(Searcher(database, JaccardMeasure()).search(query, alpha / (2 - alpha))), (query, alpha)
print('Jaccard with alpha / (2 - alpha) gives what Dice should')
PYTHON
for package in simstring-fast==0.6.0 simstring-pure==1.0.0; do
  python3 -m venv --clear "$folder/env"
  "$folder/env/bin/pip" --quiet install "$package"
  "$folder/env/bin/python" "$folder/try.py" "${package%%=*}"
done
echo 'As stated: by the Dice measure a name does not find itself.'
