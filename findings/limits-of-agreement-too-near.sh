#!/usr/bin/env bash
# pyCompare 1.5.4 (Bland-Altman plots): the limits of agreement are too near to each other, and the more so the fewer
# the pairs.
#   - The example of Bland and Altman's own paper (peak flow of 17 people with two meters): printed in the paper are a
#     standard deviation of 38.8 and limits, two of these from the mean, of -79.7 and 75.5. With `limitOfAgreement=2`
#     the plot has -77.3 and 73.1.
#   - Four pairs: the limits are 13 % too near. In one example a paired t-test has p = .06, and the band of 95 % around
#     the mean difference leaves zero out. Without any bias, it does so in 7 % of samples of four pairs, not 5 %.
#   - The bands of the method "exact paired", which the documentation recommends for few pairs, shrink with it.
# The reason: `numpy.std` divides by the number of pairs, not by one less, and all formulas after it (t with n - 1, the
# coefficients of Carkeet) are made for the latter. Nothing is said of it. Remedy: the limits are right with 1.96 times
# the root of n / (n - 1) as `limitOfAgreement`, but the bands are not; calculate these by hand.
# Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pyCompare==1.5.4 numpy==2.4.6 scipy==1.17.1 matplotlib==3.10.7
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import multiprocessing
from importlib.metadata import version

import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt
import numpy as np
from pyCompare import blandAltman
from scipy.stats import t, ttest_rel

multiprocessing.set_start_method('fork')  # the exact bands are calculated in two processes
print('pyCompare', version('pyCompare'))


def plotted(one, other, **options):
    """The heights of the three dashed lines, and of the lowest and highest edge of the three bands."""
    figure, axes = plt.subplots()
    blandAltman(one, other, ax=axes, **options)
    lines = sorted(float(line.get_ydata()[0]) for line in axes.lines if line.get_linestyle() == '--')
    bands = sorted((float(box.y0), float(box.y1)) for box in (patch.get_extents().transformed(
        axes.transData.inverted()) for patch in axes.patches))
    plt.close(figure)
    return lines, bands


wright = np.array([494, 395, 516, 434, 476, 557, 413, 442, 650, 433, 417, 656, 267, 478, 178, 423, 427])
mini = np.array([512, 430, 520, 428, 500, 600, 364, 380, 658, 445, 432, 626, 260, 477, 259, 350, 451])
(low, middle, high), _ = plotted(wright, mini, limitOfAgreement=2)
deviation = (wright - mini).std(ddof=1)
print('limits of the plot:', low, high, ' of the paper: -79.7 75.5')
assert abs(middle - 2 * deviation + 79.7) < 0.1 and abs(middle + 2 * deviation - 75.5) < 0.1
assert [round(low, 1), round(high, 1)] == [-77.3, 73.1] and round(deviation, 1) == 38.8

one, other = np.array([101.0, 104, 105, 109]), np.array([100.0] * 4)
p = ttest_rel(one, other).pvalue
(low, middle, high), bands = plotted(one, other)
right = 1.96 * (one - other).std(ddof=1)
print('four pairs: p', p, 'band', bands[1], 'limits', low, high, 'should be', middle - right, middle + right)
assert 0.06 < p < 0.07 and 0.1 < bands[1][0] < 0.3
assert round((high - low) / 2 / right, 3) == round((3 / 4) ** 0.5, 3) == 0.866

share = 2 * t.sf(t.ppf(0.975, 3) * (3 / 4) ** 0.5, 3)
print('samples of four pairs without bias whose band leaves zero out:', share)
assert round(share, 3) == 0.070
width = t.ppf(0.975, 3) * (one - other).std() / 2  # with the deviation of the package, this is the band it draws
assert np.allclose(bands[1], (middle - width, middle + width))

_, exact = plotted(one, other, confidenceIntervalMethod='exact paired')
print('outer edge of the exact band:', exact[2][1])
outer = 8.1046  # the package's own coefficient, in standard deviations: carkeetCIest(4, 0.975, 1.96)
assert np.isclose(exact[2][1], middle + outer * (one - other).std(), rtol=1e-4)
assert round((exact[2][1] - middle) / outer / (one - other).std(ddof=1), 3) == 0.866
PYTHON
echo 'As stated: the limits of agreement are too near to each other, with four pairs by 13 %.'
