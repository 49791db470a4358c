#!/usr/bin/env bash
# netcal 1.4.0 (calibration of classifiers and regressions): `QuantileLoss` (and `PinballLoss`, its other name) does not
# measure the loss of a quantile. A .9 quantile that is far too low costs no more than one that is far too high.
#   - 4,000 patients, and predictions with a standard deviation of 1. Where the mean is 2 too low or 2 too high, the
#     loss at .9 is .56 and .58. By the docstring's formula and by scikit-learn it is .77 and .33.
#   - Predictions that are 2 too low get .56, and predictions that are 3 too high 1.27. By the formula the second are
#     better, .43 for .77.
#   - Right predictions have .124 at .9 and .073 at .1, where both are .17 to .18. At .5 they have .23, where half the
#     mean absolute error, .40, is right.
# The reason: instead of the quantile, the two ends of the interval that holds a share of .9 are used, whichever is
# nearer to the outcome, and the side that counts is not above or below but inside or outside.
# The docstring has the formula with the quantile function and the two cases y above and below. "Two-sided" is said of
# an inner function alone. Nothing is raised. Remedy: sklearn.metrics.mean_pinball_loss with scipy.stats.norm.ppf.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 tqdm==4.70.1
"$folder/env/bin/pip" --quiet install --no-deps netcal==1.4.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from netcal.metrics.regression import PinballLoss, QuantileLoss
from scipy.stats import norm
from sklearn.metrics import mean_pinball_loss

print('netcal', version('netcal'))
draw = np.random.default_rng(0)


def losses(name, mean, spread, outcome, level):
    """What netcal gives, what scikit-learn gives, and the formula of the docstring."""
    given = np.full(len(outcome), mean), np.full(len(outcome), spread)
    found = QuantileLoss().measure(given, outcome, np.array([level]))
    assert found == PinballLoss().measure(given, outcome, np.array([level]))
    quantile = norm.ppf(level, *given)
    right = mean_pinball_loss(outcome, quantile, alpha=level)
    above = outcome >= quantile
    assert np.isclose(right, np.where(above, (outcome - quantile) * level, (quantile - outcome) * (1 - level)).mean())
    reach = norm.ppf((1 + level) / 2) * spread
    apart = abs(outcome - mean)
    assert np.isclose(found, (abs(apart - reach) * np.where(apart <= reach, 1 - level, level)).mean())
    print(f'{name}, {level}: {found:.3f}, by scikit-learn {right:.3f}')
    return float(found), float(right)


outcome = draw.normal(size=4000)
shifts = {'right': 0.0, 'two too low': -2.0, 'two too high': 2.0, 'three too high': 3.0}
right, low, high, higher = (losses(name, mean, 1.0, outcome, 0.9) for name, mean in shifts.items())
assert np.isclose(right[0], 0.124, atol=2e-3), 'it is the loss of a quantile now'
assert abs(low[0] - high[0]) < 0.025 and low[1] > 2 * high[1]
assert low[0] < higher[0] and low[1] > higher[1]
tenth, half = (losses('right', 0.0, 1.0, outcome, level) for level in (0.1, 0.5))
assert np.isclose(tenth[0], 0.072, atol=0.003) and abs(tenth[1] - right[1]) < 0.02
assert np.isclose(half[1], abs(outcome).mean() / 2) and half[0] < 0.6 * half[1]
PYTHON
echo 'As stated: the ends of an interval stand in for the quantile.'
