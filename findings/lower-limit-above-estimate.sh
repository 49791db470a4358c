#!/usr/bin/env bash
# pyirr 0.84.1.2 (agreement of raters, after R's package irr) with numpy 1.26.4: by `rel_inter_intra(ratings, nraters)`
# the lower limit of a rater's reliability (how alike the same rater's repeated measurements are) is 1, however poor it
# is.
#   - 29 patients, each measured three times by two raters. Measurements that are close: reliability .954, lower limit
#     1. Measurements with much noise: .281, lower limit 1 again. By the formula the limits are .92 and .03.
#   - The limits of each rater by itself, low_intra_part, are 1 and 1 for .95 and .96, for .25 and .33, and for .06 and
#     .05.
#   - With more noise still the first one is -1.99, where a reliability of .056 has a limit of -.25.
#   - The limits between raters, lowinter_random and lowinter_fixed, lie below their estimates, as they should.
# The reason: the limit is computed with 1 minus the quantile of the F distribution in the place of the quantile. That
# of each rater is cut at 1 from below and not from above.
# A one-sided lower limit lies below the estimate; the docstring speaks of a one-sided confidence interval. Nothing is
# raised. Whoever looks at the limit alone sees perfect raters. Remedy: compute the limit from the mean squares, as in
# this script.
# Seen on 2026-11-30, in the newest version. It calls np.NaN, which numpy 2 does not have.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pyirr==0.84.1.2 numpy==1.26.4 scipy==1.13.1 pandas==2.2.3 statsmodels==0.14.4
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import re
from importlib.metadata import version

import numpy as np
from pyirr import rel_inter_intra
from scipy.stats import f

print('pyirr', version('pyirr'), 'numpy', np.__version__)
PATIENTS, RATERS, TIMES = 29, 2, 3


def package(ratings):
    """The numbers that the result prints, by name."""
    found = {}
    printed = rel_inter_intra(ratings, RATERS).detail
    for name, numbers in re.findall(r"'(\w+)': (array\(\[[^\]]*\]\)|[-\d.e]+)", printed):
        found[name] = [float(number) for number in re.findall(r'-?\d+\.?\d*', numbers)]
    return found


def by_hand(ratings):
    """Reliability of a rater, and its one-sided lower limit of 95 %, from the mean squares; then for each rater."""
    table = ratings.reshape(PATIENTS, RATERS, TIMES)
    patient, rater, cell = table.mean((1, 2)), table.mean((0, 2)), table.mean(2)
    between = RATERS * TIMES * patient.var(ddof=1)
    mixed = cell - patient[:, None] - rater + table.mean()
    mixed = TIMES * (mixed**2).sum() / (PATIENTS - 1) / (RATERS - 1)
    errors = [table[:, one].var(axis=1, ddof=1).mean() for one in range(RATERS)]
    error = float(np.mean(errors))
    true = (between - error) / RATERS / TIMES + (RATERS - 1) * (mixed - error) / TIMES / RATERS
    quantile = f.ppf(0.95, PATIENTS - 1, PATIENTS * (TIMES - 1))
    share = between / RATERS
    limits = [
        (share - quantile * one) / (share + (TIMES - 1) * quantile * one) for one in (error, *errors)
    ]
    return true / (true + error), limits


draw = np.random.default_rng(0)
truth = draw.normal(50, 5, PATIENTS)
found = {}
for noise in (1, 5, 20):
    ratings = np.stack([truth + draw.normal(0, noise, PATIENTS) for _ in range(RATERS * TIMES)], 1)
    seen, (estimate, limits) = package(ratings), by_hand(ratings)
    found[noise] = seen['rhohat_intra_fixed'][0], seen['low_intra'][0], limits[0]
    print('noise {}: reliability {:.3f}, lower limit {:.3f}, by hand {:.3f}'.format(noise, *found[noise]), end='; ')
    print('each rater', seen['rhohat_intra_fixed_part'], seen['low_intra_part'], np.round(limits[1:], 3))
    assert np.isclose(estimate, found[noise][0], atol=2e-4) and limits[0] < estimate
    assert seen['low_intra_part'] == [1, 1], 'the limits of each rater are others now'
    assert max(limits[1:]) < 0.96
    for kind in ('random', 'fixed'):
        assert seen[f'lowinter_{kind}'][0] < seen[f'rhohat_inter_{kind}'][0]
assert found[1][1] == found[5][1] == 1, 'the limit is another one now'
assert found[1][2] > 0.9 and found[5][2] < 0.1
assert found[20][1] < -1.9 and found[20][2] > -0.3
PYTHON
echo 'As stated: the lower limit lies above the estimate.'
