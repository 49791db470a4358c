#!/usr/bin/env bash
# methcomp 1.0.0: the line of its Deming regression does not depend on which results belong together, its linear
# regression has the methods swapped, and that of Passing and Bablok is far off for 10, 11, 14 or 15 samples.
#   - The second method measures just twice as much: y = 3.06 + 1.44 x by Deming, and y = 0 + .5 x by linear regression.
#   - 80 samples of which both methods have about the same: Deming's line is 1.73 + .98 x. It is the same if the results
#     of the second method are shuffled, and the slope stays .98 if the second method falls where the first rises. It
#     should be .98 for the pairs, and -.98 for the last. The linear regression has 5.41 + .94 x. It is 8.87 + .91 x.
#   - 14 samples, the second method measures 1.2 times as much: slopes of .51, -2.08 and .02 in three trials by Passing
#     and Bablok. The median of the 91 slopes of pairs, shifted as the authors have it, is 1.21, 1.46 and 1.30. In 200
#     trials 70 slopes are negative, and the typical error is 1.02. It should be .13. With 13 samples it is .10.
# For Deming the variance of the second method stands in the place of the covariance (`np.cov(x, y)[1][1]`), twice. So
# the slope comes from both variances alone. Deming's line (in Linnet 1993, for instance) has the sum of products. The
# linear one fits the first method by the second, draws it the other way round, and shows the lower limit of its
# interval as the estimate. With an odd number N of pairs the rank of the slope of Passing and Bablok is
# `(N + 1) / K + 2` in the place of `(N + 1) / 2 + K`, and K is half of the slopes below 0, in place of those below -1
# (Passing and Bablok 1983). If K is 0 a division by zero is raised, and else nothing. The numbers are in the legends.
# Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install methcomp==1.0.0 numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 matplotlib==3.11.2 \
    statsmodels==0.15.0 shapely==2.2.0
MPLBACKEND=Agg "$folder/env/bin/python" -W ignore - <<'PYTHON'
import re
from importlib.metadata import version

import matplotlib.pyplot as plt
import methcomp
import numpy as np

print('methcomp', version('methcomp'))
AXES = plt.subplots()[1]


def line(function, first, second, **options):
    """Intercept and slope of the line that is drawn, by its label."""
    AXES.clear()
    function(first, second, ax=AXES, **options)
    labels = [each.get_label() for each in AXES.lines if 'Method 1' in each.get_label()]
    return [float(number) for number in re.fullmatch(r'(\S+) \+ (\S+) \* Method 1', labels[0]).groups()]


def by_deming(first, second):
    """Deming's line, if both methods have the same error."""
    (first_variance, both), (_, second_variance) = np.cov(first, second)
    difference = second_variance - first_variance
    slope = (difference + (difference ** 2 + 4 * both ** 2) ** 0.5) / (2 * both)
    return [second.mean() - slope * first.mean(), slope]


x = np.arange(1., 11)
deming, linear = line(methcomp.deming, x, 2 * x, bootstrap=None), line(methcomp.linear, x, 2 * x)
print('twice as much: Deming', deming, 'linear', linear, 'by hand', by_deming(x, 2 * x))
assert np.allclose(by_deming(x, 2 * x), [0, 2])
assert np.allclose(deming, [3.06, 1.44], atol=0.005), 'the products count now'
assert np.allclose(linear, [0, 0.5], atol=0.005), 'the methods are in their places now'

draw = np.random.default_rng(0)
truth = draw.normal(100, 20, 80)
first, second = truth + draw.normal(0, 5, 80), truth + draw.normal(0, 5, 80)
for name, results, right in (('pairs', second, 0.98), ('shuffled', draw.permutation(second), -0.72),
                             ('falling', 200 - second, -0.98)):
    found, hand = line(methcomp.deming, first, results, bootstrap=None), by_deming(first, results)
    print(f'{name}: Deming {found}, by hand {np.round(hand, 2)}')
    assert np.isclose(found[1], 0.98), found
    assert np.isclose(hand[1], right, atol=0.005)
assert line(methcomp.deming, first, np.sort(second), bootstrap=None) == [1.73, 0.98]

linear, hand = line(methcomp.linear, first, second), np.polyfit(first, second, 1)[::-1]
print('linear', linear, 'by least squares', np.round(hand, 2))
assert np.allclose(linear, [5.41, 0.94]) and np.allclose(hand, [8.87, 0.91], atol=0.005)


def shifted_median(first, second):
    """The slope of Passing and Bablok."""
    low, high = np.triu_indices(len(first), 1)
    slopes = np.sort((second[low] - second[high]) / (first[low] - first[high]))
    shift, middle = (slopes < -1).sum(), (len(slopes) - 1) / 2
    return slopes[[int(np.floor(middle)) + shift, int(np.ceil(middle)) + shift]].mean()


def samples(count, seed):
    draw = np.random.default_rng(seed)
    truth = draw.normal(100, 20, count)
    return truth + draw.normal(0, 8, count), 1.2 * truth + draw.normal(0, 8, count)


for count, errors, negative in ((13, (0.1, 0.1), 0), (14, (1.02, 0.13), 70)):
    slopes = np.array([[line(methcomp.passingbablok, *each)[1], shifted_median(*each)] for each in
                       (samples(count, seed) for seed in range(200))])
    found = np.median(np.abs(slopes - 1.2), axis=0)
    print(f'{count} samples: typical error {found[0]:.2f}, by hand {found[1]:.2f}, negative slopes'
          f' {(slopes[:, 0] < 0).sum()}, by hand {(slopes[:, 1] < 0).sum()}, the first slopes', slopes[:3].tolist())
    assert np.allclose(found, errors, atol=0.02), 'the place of the slope is another now'
    assert (slopes < 0).sum(axis=0).tolist() == [negative, 0]
assert np.allclose(slopes[:3], [[0.51, 1.21], [-2.08, 1.46], [0.02, 1.30]], atol=0.005)
PYTHON
echo 'As stated: pairs do not count.'
