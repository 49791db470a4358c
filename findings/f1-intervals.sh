#!/usr/bin/env bash
# confidenceinterval 1.0.5: macro F1 and all micro scores depend on which numbers the classes have, and macro intervals do not
# hold what they say.
#   - Classes are taken to be 0, 1, ... up to the largest number. With 1, 2 and 3 there is a fourth class, 0, whose F1 is 0: a
#     macro F1 of .794 is reported as .595, and its 95 % interval ends far below .794. With 10, 11 and 12 it is .183.
#   - With -1, 0 and 1 (negative, neutral, positive) all rows of class -1 are left out of what is counted, but not of what it is
#     divided by: micro F1, precision and recall are .55 where .795 is right, and macro F1 is .875 where .794 is right.
#   - Macro precision and macro recall of the same call are right in each case, so macro F1 lies outside of both.
#   - The interval of macro precision is too narrow and that of macro F1 too wide: with three classes of 60, 30 and 10 % and 200
#     rows, 95 % intervals are .8 and 1.3 times as wide as the scores scatter over 300 samples. method='bootstrap_percentile' gives
#     the right width for both.
# One would expect scikit-learn's numbers whatever the classes are called, as the README promises its names and interface.
# Nothing is raised, and with classes 0, 1, 2 all scores are right. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install confidenceinterval==1.0.5 scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
cat > try.py <<'PYTHON'
import confidenceinterval
import numpy as np
import sklearn.metrics

random = np.random.default_rng(0)
gold = random.integers(0, 3, 400)
predicted = np.where(random.random(400) < 0.7, gold, random.integers(0, 3, 400))
found = {}
for names in ((0, 1, 2), (1, 2, 3), (10, 11, 12), (-1, 0, 1)):
    rows = np.array(names)[gold], np.array(names)[predicted]
    print('classes', *names)
    for name in ('f1_score', 'precision_score', 'recall_score'):
        for average in ('macro', 'micro'):
            score, (low, high) = getattr(confidenceinterval, name)(*rows, average=average)
            right = getattr(sklearn.metrics, name)(*rows, average=average)
            found[names, name, average] = float(score - right), bool(low <= right <= high)
            print(f'  {average} {name}: {score:.3f} ({low:.3f} to {high:.3f}), scikit-learn {right:.3f}')
for (names, name, average), (difference, inside) in found.items():
    wrong = (names != (0, 1, 2) and (name, average) == ('f1_score', 'macro')) or (names[0] < 0 and average == 'micro')
    assert (abs(difference) > 0.05) is wrong and inside is not wrong, (names, name, average, difference)

# How wide an interval of 95 % is, and how wide it should be by how much the score scatters.
widths = {'f1_score': [], 'precision_score': []}
scores = {'f1_score': [], 'precision_score': []}
drawn = {'f1_score': [], 'precision_score': []}
for seed in range(300):
    random = np.random.default_rng(seed)
    gold = random.choice(3, 200, p=[0.6, 0.3, 0.1])
    predicted = np.where(random.random(200) < 0.7, gold, random.integers(0, 3, 200))
    for name in widths:
        score, (low, high) = getattr(confidenceinterval, name)(gold, predicted, average='macro')
        widths[name].append(high - low)
        scores[name].append(score)
        if seed < 20:
            ways = dict(method='bootstrap_percentile', n_resamples=200, random_state=np.random.default_rng(0))
            _, (low, high) = getattr(confidenceinterval, name)(gold, predicted, average='macro', **ways)
            drawn[name].append(high - low)
for name in widths:
    told, scatter, bootstrap = np.mean(widths[name]), 2 * 1.96 * np.std(scores[name]), np.mean(drawn[name])
    print(f'macro {name}: interval {told:.3f} wide, by bootstrap {bootstrap:.3f}, scatter {scatter:.3f}')
    widths[name] = told / scatter
    assert abs(bootstrap / scatter - 1) < 0.1
assert widths['f1_score'] > 1.2 and widths['precision_score'] < 0.88, 'the intervals are others now'
PYTHON
env/bin/python try.py
echo 'As stated: macro F1 and micro scores change with the numbers of the classes, and macro intervals have the wrong width.'
