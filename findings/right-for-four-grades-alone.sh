#!/usr/bin/env bash
# pyirr 0.84.1.2 (agreement of raters, after R's package irr): `kripp_alpha` and `rater_bias` are right for four grades
# alone. With two or three, as in yes and no, perfect agreement has an alpha near -1.
#   - Two raters who give the same answer, yes or no, to all 100 texts: alpha is -.99. Where they agree in 90 % it is
#     -.79, and .80 is right. Where the second answers at random it is .08, which is the highest of the three.
#   - With three grades perfect agreement is -.99, and .004 with the level "ordinal".
#   - With four grades alpha is that of the package krippendorff. With five it is right for nominal data and a little
#     off for the other levels.
#   - `rater_bias`, which asks whether one rater gives higher grades, on three grades without any disagreement: a ratio
#     of 1 and p = 0, the strongest bias there is. With 8 higher and 4 lower grades of 120 it is .97 and p = 0, where 8
#     of 12 are .67 and p is .25.
# The reason: what lies above the diagonal of a table is taken with an offset of half the number of grades less one.
# That is the diagonal above the main one for four grades (and five). For two or three it is the main diagonal, where
# the raters agree, so agreement is taken for disagreement. With six grades kripp_alpha raises an error.
# By the README the package is a line-for-line port of R's. Nothing is raised, and alphas below zero are possible.
# Remedy: krippendorff, and McNemar's test on the pairs that differ.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pyirr==0.84.1.2 krippendorff==0.9.0 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 \
    statsmodels==0.15.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import krippendorff
import numpy as np
from pyirr import kripp_alpha, rater_bias
from scipy.stats import chi2

print('pyirr', version('pyirr'), 'krippendorff', version('krippendorff'))


def by_hand(first, second, level):
    """Observed over expected disagreement of two raters without missing grades."""
    every = np.concatenate([first, second])
    counts = {grade: (every == grade).sum() for grade in np.unique(every)}

    def apart(left, right):
        if level == 'nominal':
            return float(left != right)
        low, high = min(left, right), max(left, right)
        between = sum(number for grade, number in counts.items() if low <= grade <= high)
        return float(between - (counts[low] + counts[high]) / 2) ** 2

    observed = np.mean([apart(left, right) for left, right in zip(first, second)])
    pairs = len(every) * (len(every) - 1)
    expected = sum(counts[a] * counts[b] * apart(a, b) for a in counts for b in counts) / pairs
    return 1 - observed / expected


def alphas(name, first, second, level='nominal'):
    found = float(kripp_alpha(np.stack([first, second], 1), level).value)
    right = float(krippendorff.alpha(reliability_data=[first, second], level_of_measurement=level))
    assert np.isclose(right, by_hand(first, second, level))
    print(f'{name}, {level}: {found:.3f}, by krippendorff {right:.3f}')
    return found, right


draw = np.random.default_rng(0)
answers = np.array([0, 1] * 50)
few = np.arange(100) < 10
perfect = alphas('two grades, all alike', answers, answers)
good = alphas('two grades, 90 % alike', answers, np.where(few, 1 - answers, answers))
chance = alphas('two grades, by chance', answers, draw.permutation(answers))
assert np.allclose([perfect[0], good[0]], [-0.99, -0.791], atol=1e-3), 'alpha of two grades is another one now'
assert chance[0] > good[0] > perfect[0] and perfect[1] == 1 and good[1] > 0.79 and abs(chance[1]) < 0.2

grades = np.array([0, 1, 2] * 40)
assert np.isclose(alphas('three grades, all alike', grades, grades)[0], -0.992, atol=1e-3)
assert np.isclose(alphas('three grades, all alike', grades, grades, 'ordinal')[0], 0.004, atol=1e-3)
for number in (4, 5):
    first = draw.integers(0, number, 200)
    second = np.where(draw.random(200) < 0.8, first, draw.integers(0, number, 200))
    for level in ('nominal', 'ordinal'):
        found, right = alphas(f'{number} grades', first, second, level)
        assert np.isclose(found, right, atol=1e-9) == (number == 4 or level == 'nominal')
        assert abs(found - right) < 0.02


def bias(name, first, second):
    found = rater_bias(np.stack([first, second], 1))
    higher, lower = int((second > first).sum()), int((second < first).sum())
    differ = higher + lower
    p = chi2.sf((higher - lower) ** 2 / differ, 1) if differ else 1
    print(f'{name}: ratio {found.value:.3f}, p {found.pvalue:.3g}; {higher} higher, {lower} lower, p {p:.3f}')
    return float(found.value), float(found.pvalue), float(p)


found = bias('three grades, all alike', grades, grades)
assert found[0] == 1 and found[1] < 1e-12 and found[2] == 1
found = bias('three grades, 90 % alike', grades, np.where(np.arange(120) < 12, (grades + 1) % 3, grades))
assert np.isclose(found[0], 0.967, atol=1e-3) and found[1] < 1e-12 and found[2] > 0.2
grades = draw.integers(0, 4, 200)
found = bias('four grades', grades, np.where(draw.random(200) < 0.8, grades, draw.integers(0, 4, 200)))
assert np.isclose(found[1], found[2])
PYTHON
echo 'As stated: with two or three grades, agreement is taken for disagreement.'
