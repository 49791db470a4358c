#!/usr/bin/env bash
# pycm 4.6: `ConfusionMatrix.weighted_alpha(weight)`, Krippendorff's alpha with weights, gives numbers above 1 and below
# -1, and annotators who agree less may get more.
#   - Two annotators give 300 texts grades from 0 to 3, of which most are 0 (70, 20, 7 and 3 %), and disagreements count
#     by their squares. Annotators who do not look at the text have an alpha of 3.50, and those who agree by far most of
#     the time 1.02. By the definition it is -.07 and .98, and alpha never exceeds 1.
#   - With linear weights the four pairs of annotators below, from the worst to the best, get -1.29, -4.78, 4.33 and
#     .87. Right are -.04, .31, .62 and .96.
#   - Where all grades are about equally frequent, it is close to right, .471 for .481. A test on such data does not
#     show it.
# The chance of a pair of grades i and j is the product of how often each grade is given by both annotators together.
# pycm squares half the sum of the first annotator's share of i and the second one's share of j. The two are the same
# where i is j only, which is all that plain alpha needs. With weights the other pairs count too, and their chances add
# up to more than 1.
# The documentation speaks of Krippendorff's alpha with weights, and asks for a matrix of disagreements, as it does for
# weighted_kappa. Nothing is raised, and `cm.Alpha` and weighted_kappa are right. Severity, relevance and other grades
# with one frequent value are the usual case in medicine. Remedy: the package krippendorff with
# level_of_measurement='interval' for squares, or weighted_kappa.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pycm==4.6 krippendorff==0.9.0 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import krippendorff
import numpy as np
from pycm import ConfusionMatrix

print('pycm', version('pycm'))
GRADES = np.arange(4)


def by_hand(first, second, power):
    """Alpha of two annotators by observed and expected disagreement, from all pairs of given grades."""
    observed = np.mean(np.abs(first - second) ** power)
    every = np.concatenate([first, second])
    expected = (np.abs(every[:, None] - every) ** power).sum() / (len(every) * (len(every) - 1))
    return 1 - observed / expected


def found(first, second, power):
    """What pycm gives."""
    weights = {int(i): {int(j): int(abs(i - j) ** power) for j in GRADES} for i in GRADES}
    return ConfusionMatrix(first.tolist(), second.tolist()).weighted_alpha(weights)


draw = np.random.default_rng(0)
SHARES = [0.7, 0.2, 0.07, 0.03]
SEEN = {
    0: (3.50, -1.29, -0.07, -0.04), 0.3: (1.47, -4.78, 0.28, 0.31),
    0.6: (1.22, 4.33, 0.61, 0.62), 0.9: (1.02, 0.87, 0.98, 0.96),
}
for agreement, seen in SEEN.items():
    first = draw.choice(4, 300, p=SHARES)
    second = np.where(draw.random(300) < 1 - agreement, draw.choice(4, 300, p=SHARES), first)
    matrix = ConfusionMatrix(first.tolist(), second.tolist())
    alphas = [found(first, second, power) for power in (2, 1)]
    right = [by_hand(first, second, power) for power in (2, 1)]
    other = krippendorff.alpha(np.array([first, second]), level_of_measurement='interval')
    plain = krippendorff.alpha(np.array([first, second]), level_of_measurement='nominal')
    same = (first == second).mean()
    print(f'{same:.2f} of grades equal: squares {alphas[0]:.3f}, linear {alphas[1]:.3f}; '
          f'right {right[0]:.3f} and {right[1]:.3f}, by krippendorff {other:.3f}')
    assert np.isclose(right[0], other) and np.isclose(matrix.Alpha, plain)
    assert np.allclose(right, seen[2:], atol=0.006)
    assert np.allclose(alphas, seen[:2], atol=0.006), 'weighted_alpha is another number now'

# Grades that are about equally frequent: nearly right.
draw = np.random.default_rng(0)
for _ in range(2):
    first = draw.integers(1, 5, 200)
    second = np.where(draw.random(200) < 0.5, draw.integers(1, 5, 200), first)
GRADES = np.arange(1, 5)
near, right = found(first, second, 2), by_hand(first, second, 2)
print(f'equally frequent grades: {near:.3f}, right {right:.3f}')
assert 0.002 < abs(near - right) < 0.03
PYTHON
echo 'As stated: the weighted alpha of annotators who do not look is 3.5.'
