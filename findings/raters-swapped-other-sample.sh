#!/usr/bin/env bash
# pyirr 0.84.1.2 (agreement of raters, after R's package irr): `N_cohen_kappa(rate1, rate2, k1, k0)`, how many patients
# a study of agreement needs, depends on which of the two raters comes first, and is right for neither order.
#   - One rater calls 50 % of patients ill, the other 20 %. To tell a kappa of .3 from .1: 78 patients if the first is
#     named first, 155 if the second is. By the delta method it is 96 both ways.
#   - With 50 % and 30 %, .5 against .3: 105 and 130 patients, where 111 is right.
#   - With equal rates, 30 % and 30 %, .6 against .4: 141, which is right.
#   - In 4,000 studies of 78 patients of the first kind the test finds the difference in 72 %, and not in the 80 % that
#     were asked for. With 96 it does in 79 %.
# The reason: in the variance under the null hypothesis one of the two mixed cells is multiplied by the share of the
# first rater twice, that is by 1. The variance under the alternative has it right.
# Kappa does not know a first rater and a second, nor does the docstring. Nothing is raised. Remedy: compute the
# variance from the four cells, as in this script.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pyirr==0.84.1.2 numpy==2.4.6 scipy==1.17.1 pandas==3.1.1 statsmodels==0.15.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from math import ceil

import numpy as np
from pyirr import N_cohen_kappa
from scipy.stats import norm

print('pyirr', version('pyirr'))


def kappa(cells):
    """Cohen's kappa of shares: both ill, first alone, second alone, neither; the last axis."""
    both, first, second, neither = np.moveaxis(cells / cells.sum(-1, keepdims=True), -1, 0)
    chance = (both + first) * (both + second) + (neither + first) * (neither + second)
    return (both + neither - chance) / (1 - chance)


def shares(rate1, rate2, value):
    """The four cells that have these rates and this kappa."""
    chance = rate1 * rate2 + (1 - rate1) * (1 - rate2)
    both = (value * (1 - chance) + chance - 1 + rate1 + rate2) / 2
    cells = np.array([both, rate1 - both, rate2 - both, 1 - rate1 - rate2 + both])
    assert (cells > 0).all()
    return cells


def spread(cells):
    """Standard deviation of kappa for one patient, by the delta method."""
    slopes = np.array([kappa(cells + step) - kappa(cells - step) for step in 1e-6 * np.eye(4)]) / 2e-6
    return float(np.sqrt(cells @ slopes**2 - (cells @ slopes) ** 2))


def size(rate1, rate2, k1, k0, alpha=0.05, power=0.8):
    null, other = (spread(shares(rate1, rate2, value)) for value in (k0, k1))
    return ceil(((norm.ppf(1 - alpha) * null + norm.ppf(power) * other) / (k1 - k0)) ** 2)


CASES = {
    (0.5, 0.2, 0.3, 0.1): (78, 155, 96),
    (0.5, 0.3, 0.5, 0.3): (105, 130, 111),
    (0.3, 0.3, 0.6, 0.4): (141, 141, 141),
}
for (rate1, rate2, k1, k0), seen in CASES.items():
    found = N_cohen_kappa(rate1, rate2, k1, k0), N_cohen_kappa(rate2, rate1, k1, k0), size(rate1, rate2, k1, k0)
    print('{} and {}: {} patients, raters exchanged {}, by the four cells {}'.format(rate1, rate2, *found))
    assert found == seen, 'the number of patients is another one now'
    assert found[2] == size(rate2, rate1, k1, k0)

draw = np.random.default_rng(0)
truth, null = shares(0.5, 0.2, 0.3), spread(shares(0.5, 0.2, 0.1))
power = {}
for patients in (78, 96):
    values = kappa(draw.multinomial(patients, truth, 4000).astype(float))
    power[patients] = float(np.mean((values - 0.1) * patients**0.5 / null > norm.ppf(0.95)))
    print(f'{patients} patients: found in {power[patients]:.3f} of 4,000 studies')
assert power[78] < 0.75 and 0.77 < power[96] < 0.83
PYTHON
echo 'As stated: the number of patients depends on the order of the raters.'
