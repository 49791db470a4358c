#!/usr/bin/env bash
# kaplanmeier 0.2.0: the band around each survival curve that `plot(results)` draws is an interval of 5 %, and not of
# 95 %. So it is 30 times too narrow, and curves look far apart that are not.
#   - 50 patients in each of two groups: at five years survival in the first is .67. The band goes from .66 to .67. The
#     interval of 95 % goes from .51 to .79.
#   - With a smaller `cii_alpha` the band gets narrower: .01 wide at .05, and .002 at .01. It should get wider.
#   - 400 samples of two groups of 50 with the same survival: the bands at five years do not touch in 93 %. Intervals of
#     95 % do not touch in one sample of 400.
# One would expect that cii_alpha=0.05, the default, is an interval of 95 %, as in lifelines, which makes the curves. Its
# docstring calls it a confidence interval and says no more.
# The reason: lifelines gets 1 - cii_alpha where it expects the alpha.
# Nothing is raised. The curves and the p-value are right. The reader of the plot takes the band for the 95 % that is
# usual, so a small trial looks exact. Remedy: cii_alpha=0.95.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 matplotlib==3.10.8 seaborn==0.13.2 \
    lifelines==0.30.3 kaplanmeier==0.2.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import matplotlib
import numpy as np
from scipy.stats import norm

matplotlib.use('Agg')
import kaplanmeier
from lifelines import KaplanMeierFitter

print('kaplanmeier', version('kaplanmeier'), 'lifelines', version('lifelines'))


def patients(draw, size):
    """Times in years and whether the patient died; the others are censored."""
    death, end = draw.exponential(10, size), draw.exponential(20, size)
    return np.minimum(death, end), (death <= end).astype(int)


def by_hand(times, died, year, level=0.95):
    """Survival at that year, with Greenwood's variance of log(-log)."""
    survival, variance = 1.0, 0.0
    for moment in np.sort(times[(died == 1) & (times <= year)]):
        risk = np.sum(times >= moment)
        survival *= 1 - 1 / risk
        variance += 1 / (risk * (risk - 1))
    half = norm.ppf(0.5 + level / 2) * np.sqrt(variance) / np.log(survival)
    return survival, *sorted(survival ** np.exp(side * half) for side in (1, -1))


def bands(times, died, groups, year, **ways):
    """What the plot draws at that year: the lower and upper edge of the band of each group."""
    found = kaplanmeier.fit(times, died, groups, verbose=0)
    figure, axes = kaplanmeier.plot(found, visible=False, verbose=0, **ways)
    edges = []
    for area in axes.collections:
        corners = area.get_paths()[0].vertices
        # The corners of a step: on both edges, the last point at or before that year.
        middle = len(corners) // 2
        sides = [side[side[:, 0] <= year] for side in (corners[1:middle], corners[middle:][::-1])]
        heights = [side[np.argmax(side[:, 0] + 1e-9 * np.arange(len(side))), 1] for side in sides]
        edges.append(sorted(heights))
    matplotlib.pyplot.close(figure)
    return edges


draw = np.random.default_rng(0)
times, died = patients(draw, 100)
groups = np.repeat(['A', 'B'], 50)
first = groups == 'A'
survival, low, high = by_hand(times[first], died[first], 5)
fit = KaplanMeierFitter().fit(times[first], died[first]).confidence_interval_
right = fit[fit.index <= 5].iloc[-1].to_numpy()
assert np.allclose([low, high], right, atol=1e-6)
seen = bands(times, died, groups, 5)[0]
print(f'survival at five years {survival:.3f}, 95 % by hand {low:.3f} to {high:.3f}, '
      f'the band {seen[0]:.4f} to {seen[1]:.4f}')
assert np.allclose(seen, by_hand(times[first], died[first], 5, 0.05)[1:], atol=1e-6), 'it is not the 5 % interval now'
assert np.allclose([low, high], [0.508, 0.785], atol=0.001) and np.allclose(seen, [0.663, 0.672], atol=0.001)
assert (high - low) / (seen[1] - seen[0]) > 25
widths = {alpha: float(np.diff(bands(times, died, groups, 5, cii_alpha=alpha)[0])[0]) for alpha in (0.01, 0.05, 0.95)}
print('width of the band by cii_alpha:', {alpha: round(width, 4) for alpha, width in widths.items()})
assert widths[0.01] < widths[0.05] < widths[0.95] and np.isclose(widths[0.95], high - low, atol=1e-6)

apart = {0.05: 0, 0.95: 0}
for seed in range(400):
    draw = np.random.default_rng(seed)
    pairs = [patients(draw, 50) for _ in range(2)]
    for level in apart:
        (_, low, high), (_, other_low, other_high) = (by_hand(*pair, 5, level) for pair in pairs)
        apart[level] += low > other_high or other_low > high
print('400 samples without a difference, intervals at five years apart:', {k: v / 400 for k, v in apart.items()})
assert apart[0.05] == 372 and apart[0.95] == 1
PYTHON
echo 'As stated: the band of the plot is an interval of 5 %.'
