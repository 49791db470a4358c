#!/usr/bin/env bash
# uncertainty-toolbox 0.1.1: `recalibration.get_quantile_recalibrator(predicted, std, true)` moves quantiles away from
# the truth. A model's bias is doubled, not taken away.
#   - Predictions that are one standard deviation too low, 4,000 cases to recalibrate by and 4,000 to test. Below the
#     median lie 16 % of the test cases before recalibration and 2 % after it; below the quantile .9 lie 61 % before and
#     22 % after. They should be 50 % and 90 %, and by hand they become so.
#   - No bias, but skewed errors, as those of a length of stay are: below the quantile .975 lie 95.4 % before and 85.8 %
#     after, below the median 64 % before and 73 % after.
#   - `get_proportion_under_quantile` at .1 gives 40 % for the biased model. 1.2 % of the cases are below that quantile.
#     The same goes for `get_proportion_lists`, its vectorised form and `plot_calibration` with prop_type='quantile': a
#     model that predicts too little is drawn as one that predicts too much.
# The reason: predicted less true is compared with the quantile, where it should be true less predicted. So the curve is
# turned about its middle. With symmetric errors and no bias it stays as it is, and so do mean errors and areas for any
# errors, and these are what one looks at.
# By the docstrings the recalibrated quantile comes out, and the proportion is that of the data below the predicted
# quantile. Nothing is raised. Remedy: give the two the other way round, as in
# `get_quantile_recalibrator(true, std, predicted)`, and to the proportions too.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install uncertainty-toolbox==0.1.1 numpy==2.1.3 scipy==1.15.3 scikit-learn==1.9.1 \
    pandas==2.2.3
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from uncertainty_toolbox import metrics_calibration as metrics
from uncertainty_toolbox.recalibration import get_quantile_recalibrator

print('uncertainty-toolbox', version('uncertainty-toolbox'))
CASES = 4000
draw = np.random.default_rng(0)
predicted, std = draw.normal(size=2 * CASES), np.ones(2 * CASES)
ERRORS = {
    'too low by one': 1 + draw.normal(size=2 * CASES),
    'skewed': draw.exponential(size=2 * CASES) - 1,
    'symmetric': 0.6 * draw.normal(size=2 * CASES),
}
LEVELS = 0.025, 0.1, 0.5, 0.9, 0.975
fit, test = slice(CASES), slice(CASES, None)
below, right = {}, {}


def recalibrated(recalibrator, true):
    """What part of the test cases lies below each recalibrated quantile."""
    return np.array([np.mean(true[test] <= recalibrator(predicted[test], std[test], q)) for q in LEVELS])


for name, errors in ERRORS.items():
    true = predicted + errors
    before = np.array([np.mean(true[test] <= metrics.get_quantile(predicted[test], std[test], q)) for q in LEVELS])
    after = recalibrated(get_quantile_recalibrator(predicted[fit], std[fit], true[fit]), true)
    swapped = recalibrated(get_quantile_recalibrator(true[fit], std[fit], predicted[fit]), true)
    # By hand: the quantiles of the errors that were seen.
    seen = np.quantile((true[fit] - predicted[fit]) / std[fit], LEVELS)
    by_hand = np.array([np.mean(true[test] <= predicted[test] + std[test] * q) for q in seen])
    print(f'{name}: quantiles {LEVELS}')
    for what, found in ('before', before), ('after', after), ('by hand', by_hand), ('swapped', swapped):
        print(f'  below, {what:8s}', np.round(found, 3))
    assert np.allclose(by_hand, LEVELS, atol=0.03) and np.allclose(swapped, LEVELS, atol=0.03)
    below[name] = before, after

before, after = below['too low by one']
assert np.allclose(before[2:4], (0.16, 0.61), atol=0.01), before
assert np.allclose(after[2:4], (0.02, 0.22), atol=0.01), 'recalibration goes the right way now'
before, after = below['skewed']
assert np.allclose((before[4], after[4]), (0.954, 0.858), atol=0.002), 'skewed errors are mended now'
assert np.allclose((before[2], after[2]), (0.64, 0.73), atol=0.005)
before, after = below['symmetric']
assert np.allclose(after, LEVELS, atol=0.02) and abs(before[3] - 0.9) > 0.05

# The proportions alone.
true = predicted + ERRORS['too low by one']
found = metrics.get_proportion_under_quantile(predicted, std, true, 0.1)
counted = np.mean(true <= metrics.get_quantile(predicted, std, 0.1))
print(f'under the quantile 0.1: {found:.3f}, counted {counted:.4f}')
assert round(found, 2) == 0.40 and round(counted, 3) == 0.012
levels, listed = metrics.get_proportion_lists(predicted, std, true, prop_type='quantile')
_, vectorised = metrics.get_proportion_lists_vectorized(predicted, std, true, prop_type='quantile')
counted = np.array([np.mean(true <= metrics.get_quantile(predicted, std, q)) for q in levels[1:-1]])
assert np.allclose(listed, vectorised) and (counted < levels[1:-1]).all()
assert (np.array(listed)[1:-1] > levels[1:-1]).all() and np.allclose(np.array(listed)[1:-1], 1 - counted[::-1])
PYTHON
echo 'As stated: recalibration doubles the bias.'
