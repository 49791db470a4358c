#!/usr/bin/env bash
# research-roc-utils 0.1.1: `roc_t_stat`, which compares the areas under two ROC curves, calls equal models different,
# and the more patients there are the more often it does so.
#   - Two models that are equally good, tested on the same patients: |t| is above 1.96 in 8 % of cases with 100
#     patients, in 33 % with 1000 and in 65 % with 20,000. By the formula of Hanley and McNeil, and by DeLong's, it is
#     5 % and less.
#   - 2000 patients and two models that differ a little: t is 2.4 times what it should be.
# The reason: the variance of an area is a sum that is divided by the number of pairs of patients. The function takes
# the root of the sum and divides that by the number of pairs, which is neither the variance nor its root. It goes on
# with it as with a variance. For the covariance, it multiplies these numbers with each other, where their roots are
# asked for. So a correlation of the two models counts for nothing.
# The README says that these functions test hypotheses by the methods of Hanley and McNeil (1982, 1983) and of papers
# that follow them. The variance there is the one above. Nothing is raised. It hurts whoever compares two classifiers or
# two markers on one cohort. Its neighbour `roc_z_score` does not divide at all, and gives nan with a warning of numpy.
# Remedy: `boot_p_val` of the same package, or the test of DeLong.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install research-roc-utils==0.1.1 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
MPLBACKEND=agg MPLCONFIGDIR="$folder" "$folder/env/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
from research_roc_utils.roc_utils import find_r_val, roc_t_stat
from scipy.stats import pearsonr
from sklearn.metrics import roc_auc_score

warnings.simplefilter('error')
print('research-roc-utils', version('research-roc-utils'))


def standard_error(area, ill, well):
    """Hanley and McNeil, 1982."""
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    pairs = area * (1 - area) + (ill - 1) * (first - area**2) + (well - 1) * (second - area**2)
    return np.sqrt(pairs / (ill * well))


def by_hand(labels, first, second):
    """Hanley and McNeil, 1983, with their table of correlations as the package has it."""
    areas = [roc_auc_score(labels, scores) for scores in (first, second)]
    errors = [standard_error(area, (labels == 1).sum(), (labels == 0).sum()) for area in areas]
    within = np.mean([pearsonr(first[labels == label], second[labels == label])[0] for label in (0, 1)])
    r = find_r_val(within, np.mean(areas))
    return (areas[0] - areas[1]) / np.sqrt(errors[0]**2 + errors[1]**2 - 2 * r * errors[0] * errors[1])


def delong(labels, first, second):
    """Each patient's part in both areas."""
    parts = []
    for scores in (first, second):
        ill, well = scores[labels == 1], np.sort(scores[labels == 0])
        parts.append((np.searchsorted(well, ill) / len(well), 1 - np.searchsorted(np.sort(ill), well) / len(ill)))
    order = np.argsort(first[labels == 0]), np.argsort(second[labels == 0])
    of_ill = parts[0][0] - parts[1][0]
    of_well = np.empty((2, (labels == 0).sum()))
    for row, places, part in zip(of_well, order, parts):
        row[places] = part[1]
    of_well = of_well[0] - of_well[1]
    return of_ill.mean() / np.sqrt(of_ill.var(ddof=1) / len(of_ill) + of_well.var(ddof=1) / len(of_well))


# On paper: an area of .8, 100 ill and 100 well. .16 + 99 * (.66667 - .64) + 99 * (.71111 - .64) = 9.84.
assert np.isclose(standard_error(0.8, 100, 100), np.sqrt(9.84 / 10_000), rtol=1e-4)

draw = np.random.default_rng(0)


def cohort(number, better=0.0):
    """Half of the patients are ill. Two scores share half of their noise."""
    labels = np.arange(number) % 2
    common = draw.normal(size=number)
    first, second = (common + draw.normal(size=number) + strength * labels for strength in (1.2, 1.2 + better))
    return labels, first, second


print('patients  |t| > 1.96  by hand  DeLong  spread of t')
for patients, times, seen in ((100, 300, 0.08), (1000, 300, 0.34), (20_000, 60, 0.67)):
    found = []
    for _ in range(times):
        data = cohort(patients)
        found.append((roc_t_stat(*data, pearsonr), by_hand(*data), delong(*data)))
    found = np.array(found)
    rates = (np.abs(found) > 1.96).mean(axis=0)
    print(f'{patients:8} {rates[0]:11.2f} {rates[1]:8.2f} {rates[2]:7.2f} {found[:, 0].std():12.2f}')
    assert abs(rates[0] - seen) < 0.08, 'the variance is another one now'
    assert rates[1] < 0.1 and rates[2] < 0.1

data = [cohort(2000, better=0.1) for _ in range(50)]
ratio = np.mean([roc_t_stat(*one, pearsonr) / by_hand(*one) for one in data])
print(f'2000 patients: t is {ratio:.2f} times what it should be')
assert abs(ratio - 2.4) < 0.15
PYTHON
echo 'As stated: equal models differ, and more patients make it worse.'
