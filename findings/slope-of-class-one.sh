#!/usr/bin/env bash
# calzone-tool 0.1.0: the calibration slope and intercept of a model with three classes are those of class 1, whichever
# class is asked for.
#   - 3000 patients, three diagnoses, and a model whose probabilities of diagnosis 2 are far too extreme: its slope is
#     .45 and its intercept -.43. `CalibrationMetrics(class_to_calculate=2).calculate_metrics(..., ['COX'])` reports .85
#     and -.13, with an interval of .78 to .92 for the slope. The same numbers, to the last digit, come for class 0 and
#     class 1.
#   - `COX ICI` of the same call puts this slope and intercept onto the probabilities of class 2: .015 is reported where
#     .08 is right. Its neighbours `Loess ICI` and `ECE-H` are .07 and .08, as they look at class 2.
#   - `cox_regression_analysis(..., class_to_calculate=2)` takes the labels of class 2 and the probabilities of class 1.
#     So it gives a slope of -.33, and for class 0 one of -.31: the model seems to be worse than none.
# One would expect the class that was asked for: the documentation says that models with several classes are looked at
# one class against the rest, that users name the class, and that each class is to be tested for the calibration of the
# whole. Nothing is raised. A class whose risks are far too extreme passes as nearly calibrated, and whoever
# recalibrates by the slope uses that of another class.
# Remedy: give it two columns, 1 - p and p of the class, and labels of 0 and 1, or fit the logistic regression with
# statsmodels.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install calzone-tool==0.1.0 numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata

import numpy as np
import statsmodels.api
from calzone.metrics import CalibrationMetrics, cox_regression_analysis

print('calzone-tool', importlib.metadata.version('calzone-tool'))

# Labels follow `true`. What the model says of class 2 is more extreme, and it shares out the rest as is right.
draw = np.random.default_rng(0)
true = np.exp(draw.normal(0, 1.2, (3000, 3)) + [1, 0, -0.5])
true /= true.sum(1, keepdims=True)
labels = np.array([draw.choice(3, p=row) for row in true])
extreme = 1 / (1 + np.exp(-2.2 * np.log(true[:, 2] / (1 - true[:, 2])) - 1))
others = true[:, :2] / true[:, :2].sum(1, keepdims=True)
model = np.column_stack([others * (1 - extreme[:, None]), extreme])
assert np.allclose(model.sum(1), 1)


def logistic(k):
    """Slope, intercept and the mean distance of recalibrated probabilities for class k against the rest."""
    logits = np.log(model[:, k] / (1 - model[:, k]))
    fit = statsmodels.api.Logit((labels == k).astype(int), statsmodels.api.add_constant(logits)).fit(disp=0)
    intercept, slope = fit.params
    return slope, intercept, np.mean(np.abs(1 / (1 + np.exp(-slope * logits - intercept)) - model[:, k]))


told, right, direct, pairs = [], [], [], []
for k in range(3):
    scores = CalibrationMetrics(class_to_calculate=k).calculate_metrics(labels, model, ['COX', 'Loess', 'ECE-H'])
    told.append([scores['COX coef'], scores['COX intercept'], scores['COX ICI']])
    right.append(logistic(k))
    direct.append(cox_regression_analysis(labels, model, class_to_calculate=k)[0])
    pair = np.column_stack([1 - model[:, k], model[:, k]])
    pairs.append(CalibrationMetrics().calculate_metrics((labels == k).astype(int), pair, ['COX'])['COX coef'])
    print(f'class {k}: slope {told[k][0]:.3f} ({scores["COX coef lowerci"]:.2f} to {scores["COX coef upperci"]:.2f}), '
          f'intercept {told[k][1]:.3f}, ICI {told[k][2]:.3f}; '
          f'right: {right[k][0]:.3f}, {right[k][1]:.3f}, {right[k][2]:.3f}')
    print(f'  slope by cox_regression_analysis {direct[k]:.3f}, from two columns {pairs[k]:.3f}, '
          f'Loess ICI {scores["Loess ICI"]:.3f}, ECE-H {scores["ECE-H"]:.3f}')
told, right = np.array(told), np.array(right)
assert np.allclose(told[1], right[1], atol=1e-3) and np.allclose(pairs, right[:, 0], atol=1e-3)
assert (told[:, :2] == told[1, :2]).all(), 'classes have slopes of their own now'
assert abs(right[2, 0] - 0.45) < 0.01 and abs(right[2, 1] + 0.43) < 0.01 and abs(told[2, 0] - 0.85) < 0.01
assert abs(told[2, 2] - 0.015) < 0.001 and abs(right[2, 2] - 0.08) < 0.005
assert abs(scores['Loess ICI'] - 0.07) < 0.005 and abs(scores['ECE-H'] - 0.08) < 0.006
assert abs(direct[2] + 0.33) < 0.01 and abs(direct[0] + 0.31) < 0.01
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: slope and intercept are those of class 1, whichever class is asked for.'
