#!/usr/bin/env bash
# pyirr 0.84.1.2 (agreement of raters, after R's package irr): `kendall(ratings, correct=True)` leaves out subjects
# with a missing rating, but divides as if they were there. So raters who agree perfectly do not.
#   - Three raters put ten patients in the same order: W is 1. With two more patients whom one rater did not see W is
#     .71, with five it is .46 and with ten .26, and p goes from .001 to .73.
#   - The result says that 12, 15 and 20 subjects were compared, where 10 were.
#   - With the incomplete rows left out beforehand W is 1 each time.
# The reason: subjects are counted before rows with missing ratings are dropped. `kappam_light` counts in the same way,
# so its kappa is right and its p-value is not: z is .05 for 30 incomplete subjects beside 20 complete ones, and 1.57
# without them.
# W is a share of the highest sum of squares for the number of subjects that were ranked. The docstring has no word on
# missing ratings, and other functions of the package, such as kappa2, count after dropping. Nothing is raised. Remedy:
# drop incomplete rows before.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pyirr==0.84.1.2 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pyirr import kappa2, kappam_light, kendall
from scipy.stats import friedmanchisquare

print('pyirr', version('pyirr'))
alike = np.tile(np.arange(10.0), (3, 1)).T
SEEN = {0: (10, 1, 0.0014), 2: (12, 0.705, 0.016), 5: (15, 0.458, 0.156), 10: (20, 0.262, 0.727)}
for missing, seen in SEEN.items():
    ratings = np.concatenate([alike, np.tile([3, np.nan, 5], (missing, 1))])
    complete = ratings[~np.isnan(ratings).any(axis=1)]
    found, right = kendall(ratings, correct=True), kendall(complete, correct=True)
    by_scipy = friedmanchisquare(*complete).statistic / 3 / 9
    print(f'{missing} incomplete: {found.subjects} subjects, W {found.value:.3f}, p {found.pvalue:.4f};', end=' ')
    print(f'without them {right.subjects}, {right.value:.3f}, by scipy {by_scipy:.3f}')
    assert np.allclose([found.subjects, found.value, found.pvalue], seen, atol=6e-4), 'W is another one now'
    assert right.subjects == 10 and np.isclose(right.value, 1) and np.isclose(by_scipy, 1)

draw = np.random.default_rng(0)
ratings = draw.integers(0, 3, (50, 3)).astype(float)
ratings[:20, 1] = np.where(draw.random(20) < 0.5, ratings[:20, 0], ratings[:20, 1])
ratings[20:, 2] = np.nan
found, right = kappam_light(ratings), kappam_light(ratings[:20])
pair = kappa2(ratings[:, [0, 2]], 'unweighted')
for name, result in (('all rows', found), ('complete rows', right)):
    print(f'kappam_light, {name}: {result.subjects} subjects, kappa {result.value:.3f}, z {result.statistic:.3f}')
print('kappa2, all rows:', pair.subjects, 'subjects')
assert found.subjects == 50 and right.subjects == pair.subjects == 20
assert np.isclose(found.value, right.value) and found.statistic < 0.1 < 1.5 < right.statistic
PYTHON
echo 'As stated: subjects that are left out are counted.'
