#!/usr/bin/env bash
# briertools 0.0.4 (Brier score, log loss and regret of predicted risks): the scorer for scikit-learn that each class
# offers picks the worst model. It reads yes or no in the place of the risks as well.
#   - Breast cancer, logistic regression, five values of C by `GridSearchCV(scoring=BrierScorer().scorer)`: it picks
#     C = 0.00001, with which all tumours are called benign. Its Brier score is .23. The best, C = 1, has .021.
#   - The "Brier score" of that grid for C = 1 is .019, the share of wrong answers, and for C = 0.00001 it is .373, the
#     share of malignant tumours.
#   - `LogLossScorer().scorer` is infinite for each model with a wrong answer, so the search by it takes the first C of
#     the grid. By scikit-learn the log loss is .08 for C = 1.
# One would expect that the scorer of a loss prefers the smaller one, and that a scorer for risks reads the risks. The
# docstring recommends it for classifiers in scikit-learn, and the plots of the same classes call the lower value the
# better one.
# The reason: the scorer is made with greater_is_better=True for all classes, and without response_method.
# Nothing is raised. `BrierScorer().score(labels, risks)` is right. Whoever tunes or compares models by the scorer takes
# the worst one. Remedy: make_scorer(BrierScorer().score, greater_is_better=False, response_method='predict_proba').
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2 scikit-learn==1.9.1
"$folder/env/bin/pip" --quiet install --no-deps briertools==0.0.4
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import matplotlib
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

matplotlib.use('Agg')
from briertools.scorers import BrierScorer, LogLossScorer

print('briertools', version('briertools'))
features, labels = load_breast_cancer(return_X_y=True)
strengths = [1e-5, 1e-3, 0.1, 1, 100]


def model(strength=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))


def search(scoring):
    """The C that is picked, and the mean score of each."""
    found = GridSearchCV(model(), {'logisticregression__C': strengths}, scoring=scoring, cv=5).fit(features, labels)
    return found.best_params_['logisticregression__C'], found.cv_results_['mean_test_score']


brier, losses, wrong = [], [], []
for strength in strengths:
    risks = cross_val_predict(model(strength), features, labels, cv=5, method='predict_proba')[:, 1]
    brier.append(brier_score_loss(labels, risks))
    losses.append(log_loss(labels, risks))
    wrong.append(np.mean((risks > 0.5) != labels))
    # The function itself is right.
    assert np.isclose(BrierScorer().score(labels, risks), brier[-1])
    assert np.isclose(LogLossScorer().score(labels, risks), losses[-1])
print('C                          ', strengths)
print('Brier score by scikit-learn', np.round(brier, 3))
print('log loss by scikit-learn   ', np.round(losses, 3))
print('share of wrong answers     ', np.round(wrong, 3))

picked, scores = search(BrierScorer().scorer)
print('BrierScorer().scorer       ', np.round(scores, 3), 'picks', picked)
assert picked == 1e-5 and np.argmax(brier) == 0, 'the worst model is not picked any more'
assert np.allclose(scores, wrong, atol=0.002), 'it reads the risks now'
assert np.allclose([scores[0], scores[3]], [0.373, 0.019], atol=0.001)
assert np.allclose([brier[0], brier[3]], [0.230, 0.021], atol=0.001)
assert np.all(cross_val_predict(model(1e-5), features, labels, cv=5) == 1)

picked, scores = search(LogLossScorer().scorer)
print('LogLossScorer().scorer     ', scores, 'picks', picked)
assert np.all(np.isinf(scores)) and picked == 1e-5
assert np.isclose(losses[3], 0.081, atol=0.002) and np.argmin(losses) in (2, 3)

for kind in (BrierScorer, LogLossScorer):
    right = make_scorer(kind().score, greater_is_better=False, response_method='predict_proba')
    picked, scores = search(right)
    print('made by hand, lower is better, of risks:', np.round(-scores, 3), 'picks', picked)
    assert picked == 1
assert search('neg_brier_score')[0] == 1
PYTHON
echo 'As stated: the scorer prefers the larger loss and reads yes or no.'
