#!/usr/bin/env bash
# episia 0.1.3: `proportion_ci(0, n, method='clopper_pearson')`, the exact interval of a proportion, ends far too early
# where nothing was observed, and begins far too late where all were.
#   - No adverse event in 100 patients: the package says 0 to .74 %. The exact interval is 0 to 3.62 %, and by the rule
#     of three it is 3 %.
#   - 20 of 20 patients answer: the package says 96.3 to 100 %. It is 83.2 to 100 %.
#   - With a higher confidence the interval is shorter: for 0 of 100 it ends at 1.04, .74 and .70 % with a confidence of
#     70, 95 and 99 %, and it should be 1.88, 3.62 and 5.16 %.
#   - A true rate of 2 %, and 50 patients: in 36 % of studies nothing is observed, and each of these intervals, 0 to
#     1.48 %, leaves the truth out. So an interval of 95 % holds it in 62 %. The exact one holds it in 98 %.
# The reason: in these two cases the confidence is halved, .95 / 2, where the error is to be halved, .05 / 2.
# The docstring says "guaranteed coverage at least (1-alpha)", and the README that intervals are checked against
# OpenEpi. Nothing is raised. With 1 or more events the interval is right, so a test with usual numbers passes. A new
# drug without an adverse event seems five times as safe as it is. Remedy: the default method, Wilson's, or
# scipy's `binomtest(k, n).proportion_ci()`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==3.1.1 scipy==1.17.1
"$folder/env/bin/pip" --quiet install --no-deps episia==0.1.3
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from episia.stats.descriptive import proportion_ci
from scipy.stats import beta, binom, binomtest

print('episia', version('episia'))


def both(count, size, confidence=0.95):
    """The interval of the package, and the exact one by scipy, checked by the distribution itself."""
    found = proportion_ci(count, size, method='clopper_pearson', confidence=confidence)
    exact = binomtest(count, size).proportion_ci(confidence, method='exact')
    if count < size:
        assert np.isclose(binom.cdf(count, size, exact.high), (1 - confidence) / 2)
        assert np.isclose(exact.high, beta.isf((1 - confidence) / 2, count + 1, size - count))
    return (found.ci_lower, found.ci_upper), (exact.low, exact.high)


for count, size, seen, right in (
    (0, 100, (0, 0.0074), (0, 0.0362)), (20, 20, (0.9635, 1), (0.8316, 1)), (1, 100, (0.0003, 0.0545), (0.0003, 0.0545))
):
    found, exact = both(count, size)
    print('{} of {}: episia {:.4f} to {:.4f}, exact {:.4f} to {:.4f}'.format(count, size, *found, *exact))
    assert np.allclose(found, seen, atol=0.0001), 'the interval is another one now'
    assert np.allclose(exact, right, atol=0.0001)

ends = [[limits[1] for limits in both(0, 100, confidence)] for confidence in (0.7, 0.95, 0.99)]
found, exact = np.transpose(ends)
print('0 of 100, confidence 70, 95 and 99 %: episia', *found.round(4), 'exact', *exact.round(4))
assert np.all(np.diff(found) < 0) and np.all(np.diff(exact) > 0)
assert np.allclose(found, [0.0104, 0.0074, 0.0070], atol=0.0001)
assert np.allclose(exact, [0.0188, 0.0362, 0.0516], atol=0.0001)

size, rate = 50, 0.02
held = np.array([[low <= rate <= high for low, high in both(count, size)] for count in range(size + 1)])
chances = binom.pmf(np.arange(size + 1), size, rate)
coverage = chances @ held
print(f'rate {rate}, {size} patients: none observed in {chances[0]:.2f}; the rate is in the interval of episia in '
      f'{coverage[0]:.2f}, in the exact one in {coverage[1]:.2f}')
assert np.isclose(chances[0], 0.36, atol=0.01) and not held[0, 0] and held[0, 1]
assert coverage[0] < 0.65 and coverage[1] > 0.95
PYTHON
echo 'As stated: the exact interval of no event is far too short.'
