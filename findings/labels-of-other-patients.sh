#!/usr/bin/env bash
# pycalib 0.1.0.dev6 (PyCalib, for calibrating classifiers): `ECE(labels, probabilities)` and `MCE(..., mce_full=True)`
# of two classes compare the probabilities of one patient with the labels of others. The better model may come out as
# the worse one.
#   - 20,000 patients whose labels are drawn with the very risks that the model gives: ECE is .167, and .003 is right.
#     MCE is .71 for .01.
#   - With the two probabilities of each patient exchanged, which is as wrong as a model can be, ECE is again .166. By
#     hand it is .56. With the labels shuffled between patients it is .17 for .10.
#   - Breast cancer, logistic regression: a model that is held too far back by its penalty has .07 and one that is well
#     calibrated has .23. By hand it is the other way round, .26 and .02.
#   - With three classes and with four both functions agree with a computation by hand.
# The reason: labels are spread over columns by scikit-learn's label_binarize, which makes one column for two classes.
# The probabilities have two. Both are made flat and paired one by one, so the first half of the probabilities meets
# the labels, and the second half none.
# The docstring asks for probabilities of shape (samples, classes), and has no word on two classes. Nothing is raised,
# and the result is between 0 and 1. conf_ECE, binary_ECE and classwise_ECE of the same package are right. Remedy: one
# of those.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pycalib==0.1.0.dev6 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 \
    statsmodels==0.15.0 matplotlib==3.11.2
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pycalib.metrics import ECE, MCE, binary_ECE, classwise_ECE, conf_ECE
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

print('pycalib', version('pycalib'))


def by_hand(labels, scores, bins=15):
    """The error over the probabilities of all classes in one set of bins, and the largest of a bin."""
    hits = (labels[:, None] == np.arange(scores.shape[1])).ravel()
    places = np.ceil(scores.ravel() * bins).clip(1)
    inside = [places == place for place in np.unique(places)]
    gaps = [abs(hits[part].mean() - scores.ravel()[part].mean()) for part in inside]
    return float(np.dot(gaps, [part.mean() for part in inside])), float(max(gaps))


def both(name, labels, scores):
    found = float(ECE(labels, scores)), float(MCE(labels, scores, mce_full=True))
    right = by_hand(labels, scores)
    print('{}: ECE {:.3f} and MCE {:.3f}, by hand {:.3f} and {:.3f}'.format(name, *found, *right))
    return found, right


draw = np.random.default_rng(0)
risk = draw.beta(1, 3, 20_000)
scores, labels = np.stack([1 - risk, risk], 1), (draw.random(20_000) < risk).astype(int)
found, right = both('calibrated', labels, scores)
assert np.allclose(found, [0.167, 0.714], atol=2e-3) and np.allclose(right, [0.003, 0.0125], atol=2e-3)
assert np.allclose(ECE(np.eye(2)[labels], scores), found[0])
others = [conf_ECE(labels, scores), binary_ECE(labels, risk), classwise_ECE(np.eye(2)[labels], scores)]
print('the other three functions:', np.round(others, 3))
assert max(others) < 0.01
found, right = both('exchanged', labels, scores[:, ::-1])
assert abs(found[0] - 0.166) < 2e-3 and right[0] > 0.55
found, right = both('shuffled', draw.permutation(labels), scores)
assert abs(found[0] - 0.165) < 5e-3 and right[0] > 0.09

features, labels = load_breast_cancer(return_X_y=True)
errors = {}
for name, strength in (('held back', 1e-4), ('well calibrated', 1)):
    model = LogisticRegression(C=strength, max_iter=5000)
    scores = cross_val_predict(model, features / features.std(0), labels, method='predict_proba', cv=5)
    errors[name] = both(name, labels, scores)
held, well = errors.values()
assert held[0][0] < 0.1 and well[0][0] > 0.2, 'two classes are compared as they should be now'
assert held[1][0] > 0.25 and well[1][0] < 0.03

for classes in (3, 4):
    scores = draw.dirichlet(np.ones(classes), 5000)
    found, right = both(f'{classes} classes', (draw.random((5000, 1)) < scores.cumsum(1)).argmax(1), scores)
    assert np.allclose(found, right)
PYTHON
echo 'As stated: with two classes, probabilities meet the labels of other patients.'
