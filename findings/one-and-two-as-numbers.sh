#!/usr/bin/env bash
# venn-abers 1.5.4 (calibration): with probabilities of one's own, `VennAbersCalibrator` takes two labels as numbers.
# They have to be 0 and 1, and `predict` returns the labels that were given all the same.
#   - 2,000 patients for calibration and 2,000 others, of whom 49 % are ill. With the labels 0 and 1, 83.7 % of the
#     others are called rightly. With 1 and 2, as in data sets of survival, all of them are called ill: 49 %.
#   - With -1 and 1, 65 % of the ill are found, in place of 83 %: only patients with a calibrated risk of three quarters
#     are called ill, not those with one half.
#   - The probabilities are none then: from -80 to 1 for -1 and 1, from 0.75 to 92 for 1 and 2. With 0 and 1 they are
#     within .03 of the right ones on the average.
#   - With an estimator in place of probabilities, labels of 1 and 2, or -1 and 1, give what 0 and 1 give.
# The reason: the formula of the isotonic regression adds up the labels. With an estimator they are compared first.
# The docstring has "Calibration set labels" and "Associated binary class labels", without a word on 0 and 1. Nothing is
# raised. Remedy: `(labels == ill).astype(int)`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scipy==1.17.1 scikit-learn==1.9.1 venn-abers==1.5.4
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from sklearn.linear_model import LogisticRegression
from venn_abers import VennAbersCalibrator

print('venn-abers', version('venn-abers'))
draw = np.random.default_rng(0)
scores = draw.random(4000)
risks = scores**2 / (scores**2 + (1 - scores) ** 2)
ill = draw.random(4000) < risks
columns = np.stack([1 - scores, scores], axis=1)
known, others = slice(0, 2000), slice(2000, 4000)


def by_probabilities(labels):
    given = {'p_cal': columns[known], 'y_cal': labels[known], 'p_test': columns[others]}
    called = VennAbersCalibrator().predict(**given, one_hot=False)
    return VennAbersCalibrator().predict_proba(**given)[:, 1], np.ravel(called)


def by_estimator(labels):
    model = VennAbersCalibrator(LogisticRegression(), inductive=True, cal_size=0.5, random_state=0)
    model.fit(scores[known, None], labels[known])
    return model.predict_proba(scores[others, None])[:, 1]


LABELS = {'0 and 1': (0, 1), '1 and 2': (1, 2), '-1 and 1': (-1, 1)}
results = {}
estimated = {}
for name, (healthy_label, ill_label) in LABELS.items():
    labels = np.where(ill, ill_label, healthy_label)
    found, called = by_probabilities(labels)
    estimated[name] = by_estimator(labels)
    assert set(called.tolist()) <= {healthy_label, ill_label}
    right = float((called == labels[others]).mean())
    sensitivity = float((called[ill[others]] == ill_label).mean())
    results[name] = found, right, sensitivity
    print(f'labels {name}: {100 * right:.1f} % right, {100 * sensitivity:.1f} % of the ill found, "probabilities" from'
          f' {found.min():.2f} to {found.max():.2f}, off by {np.abs(found - risks[others]).mean():.3f} on the average')
print(f'{100 * float(ill[others].mean()):.1f} % are ill')
found, right, sensitivity = results['0 and 1']
assert np.isclose(right, 0.837, atol=1e-3) and np.isclose(sensitivity, 0.834, atol=1e-3)
assert np.abs(found - risks[others]).mean() < 0.03
calibrated = found
found, right, sensitivity = results['1 and 2']
assert sensitivity == 1 and np.isclose(right, 0.4905, atol=1e-3), 'labels are compared now'
assert np.isclose(found.min(), 0.75, atol=0.01) and np.isclose(found.max(), 92, atol=0.5)
found, right, sensitivity = results['-1 and 1']
lowest = float(calibrated[found >= 0.5].min())
print(f'with -1 and 1, those called ill have a calibrated risk of {lowest:.2f} or more')
assert np.isclose(sensitivity, 0.647, atol=1e-3) and 0.7 < lowest < 0.8 and found.min() < -80
assert all(np.allclose(values, estimated['0 and 1']) for values in estimated.values())
PYTHON
echo 'As stated: labels are taken as numbers.'
