#!/usr/bin/env bash
# permetrics 2.1.0: micro scores take no notice of `labels`, and what is given to ClassificationMetric itself for
# labels, pos_label and average takes no effect at all.
#   - Relations are scored by micro F1 over the classes that are relations, without `none`. With 1,000 pairs, 9 in 10
#     of them `none`, `f1_score(average='micro', labels=['cause', 'treat'])` gives .964; the F1 of the two classes is
#     .782. The .964 is accuracy. It is so for precision, recall, F-beta, Jaccard and all other scores.
#   - With macro, weighted and no average the same `labels` are looked at, and come out as scikit-learn's.
#   - `ClassificationMetric(truth, predicted, pos_label=0).f1_score()` is the F1 of class 1, .84, not that of class 0,
#     .99. With average='macro' it is .84 as well, and not .92.
# Micro counts are taken from the table of all classes and returned before labels are read. The constructor stores its
# arguments, and each score reads its own instead, which have defaults.
# The documentation of each score says that labels are those to be included, and the page of the class lists labels,
# pos_label and average among its parameters. Nothing is raised. A class that is nearly everything hides all errors of
# the others. Remedy: scikit-learn's f1_score for micro, and all arguments at each call.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install permetrics==2.1.0 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
from permetrics import ClassificationMetric
from sklearn import metrics

print('permetrics', version('permetrics'))
warnings.simplefilter('error')
draw = np.random.default_rng(0)
NAMES = np.array(['none', 'cause', 'treat'])
truth = draw.choice(NAMES, 1000, p=[0.9, 0.05, 0.05])
sure = np.where(truth == 'none', 0.97, 0.7)
predicted = np.where(draw.random(1000) < sure, truth, draw.choice(NAMES, 1000))
scores = ClassificationMetric(truth, predicted)
labels = ['cause', 'treat']
PAIRS = (
    ('precision_score', metrics.precision_score), ('recall_score', metrics.recall_score),
    ('f1_score', metrics.f1_score), ('jaccard_similarity_index', metrics.jaccard_score),
)
for name, other in PAIRS:
    score = getattr(scores, name)
    found, whole = score(average='micro', labels=labels), score(average='micro')
    right = other(truth, predicted, average='micro', labels=labels)
    print(f'{name}, micro, of {labels}: {found:.3f}, right {right:.3f}, of all classes {whole:.3f}')
    assert found == whole, 'labels are read now'
    assert found - right > 0.12
    for average in ('macro', 'weighted'):
        expected = other(truth, predicted, average=average, labels=labels)
        assert np.isclose(score(average=average, labels=labels), expected)
found = scores.f1_score(average='micro', labels=labels)
right = metrics.f1_score(truth, predicted, average='micro', labels=labels)
hits = ((truth == predicted) & (truth != 'none')).sum()
by_hand = 2 * hits / ((truth != 'none').sum() + (predicted != 'none').sum())
print(f'F1 by hand {by_hand:.3f}, accuracy {(truth == predicted).mean():.3f}')
assert np.isclose(found, (truth == predicted).mean()) and np.isclose(right, by_hand)
assert np.allclose((found, right), (0.964, 0.782), atol=0.001)

two, guess = (truth == 'cause').astype(int), (predicted == 'cause').astype(int)
for arguments in ({'pos_label': 0}, {'average': 'macro'}):
    given = ClassificationMetric(two, guess, **arguments).f1_score()
    at_call = ClassificationMetric(two, guess).f1_score(**arguments)
    right = metrics.f1_score(two, guess, **arguments)
    print(f'{arguments} for the class: {given:.3f}, at the call {at_call:.3f}, right {right:.3f}')
    assert given == ClassificationMetric(two, guess).f1_score(), 'arguments of the class are read now'
    assert np.isclose(at_call, right) and right - given > 0.07
PYTHON
echo 'As stated: micro F1 of some classes is the accuracy of all.'
