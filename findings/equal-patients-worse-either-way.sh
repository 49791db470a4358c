#!/usr/bin/env bash
# shiftES 1.0.7: `effectsize(x, y)`, Wilcox's robust effect size, calls two equal groups different if values are tied,
# as they are on each clinical scale. The effect is negative, whichever of the two groups comes first.
#   - The group 0, 0, 0, 1 compared with itself gives -.625. The docstring calls .4 large.
#   - Patients of two equal groups on an item of a questionnaire, from 0 to 3: about -.36 on average. With 60 patients
#     in each, the interval of effectsize_ci leaves out 0 in each of 20 trials. Counts of lymph nodes: about -.3.
#   - A treatment that lowers the Rankin scale (0 to 6) by a grade: -.42 with treatment first, +.15 with control first.
#     One of them is large and the other small. By definition they are opposite, and ties that count half give -.29 and
#     +.29.
#   - Values without ties are right.
# The reason: the effect is the share of differences that lie below the median difference after this median is taken
# away. Differences equal to it count as not below. If nothing differs, the median is 0, and all pairs of equal patients
# are counted on one side. A comment in the code says "less than or equal", which would be as far off on the other side.
# By the docstring 0 is no effect. README and docstring do not speak of ties or of scales. Nothing is raised. Who
# compares scores of patients, or ratings of two systems, publishes an effect that is not there, or turns a large one
# into a small one. Remedy: count half of the differences that are equal to the median.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install shiftES==1.0.7 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from scipy import stats
from shiftES.shiftes import effectsize, effectsize_ci

print('shiftES', version('shiftES'))


def by_hand(x, y):
    """Wilcox's effect size; a difference that is equal to the median counts half."""
    differences = np.subtract.outer(np.asarray(x, float), np.asarray(y, float)).ravel()
    median = np.median(differences)
    shifted = differences - median
    return 2 * ((shifted < median).mean() + (shifted == median).mean() / 2) - 1


# 16 differences: 3 below 0, 10 equal to 0, 3 above. 3/16 are below, 2 * 3/16 - 1 = -.625.
group = [0, 0, 0, 1]
found = effectsize(group, group)
print(f'{group} and itself: {found:.3f}, by hand {by_hand(group, group):.3f}')
assert np.isclose(found, -0.625), 'ties count in another way now'
assert by_hand(group, group) == 0

# Two groups that do not differ.
draw = np.random.default_rng(0)
np.random.seed(0)
SCALES = {
    'item from 0 to 3': lambda: draw.choice(4, 60, p=[0.5, 0.3, 0.12, 0.08]),
    'lymph nodes': lambda: draw.poisson(1.0, 60),
    'without ties': lambda: draw.normal(size=60),
}
for name, sample in SCALES.items():
    rows, outside = [], 0
    for _ in range(20):
        x, y = sample(), sample()
        effect, low, high = effectsize_ci(x, y, nboot=200)
        rows.append((effect, effectsize(y, x), by_hand(x, y), stats.mannwhitneyu(y, x).statistic / 1800 - 1))
        outside += not low <= 0 <= high
    one, other, right, ranks = np.mean(rows, axis=0)
    print(f'equal groups, {name}: {one:.2f}, swapped {other:.2f}; by hand {right:.2f}, by Mann and Whitney {ranks:.2f}')
    print(f'    0 is outside of the interval in {outside} of 20')
    assert abs(right) < 0.07 and abs(ranks) < 0.07
    if name == 'without ties':
        assert outside < 8 and np.allclose(np.array(rows)[:, 0], np.array(rows)[:, 2], atol=1e-3)
        assert np.isclose(one, -other, atol=1e-3)
    else:
        assert one < -0.25 and other < -0.25 and outside >= 18

# A treatment that works, 150 patients in each arm, grades 0 to 6 of the Rankin scale.
treated = np.repeat(np.arange(7), [27, 30, 24, 24, 21, 12, 12])
control = np.repeat(np.arange(7), [12, 18, 20, 24, 33, 22, 21])
found = effectsize(treated, control), effectsize(control, treated)
right = by_hand(treated, control), by_hand(control, treated)
ranks = 2 * stats.mannwhitneyu(treated, control).statistic / 150**2 - 1
print(f'Rankin scale: {found[0]:.2f}, swapped {found[1]:.2f}; by hand {right[0]:.2f} and {right[1]:.2f}')
print(f'    probability of a lower grade less that of a higher one: {-ranks:.2f}')
assert np.allclose(found, (-0.42, 0.15), atol=0.005), 'ties count in another way now'
assert np.isclose(right[0], -right[1]) and np.isclose(right[1], 0.29, atol=0.005)
PYTHON
echo 'As stated: tied values make an effect of two groups that are equal.'
