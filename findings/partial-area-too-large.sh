#!/usr/bin/env bash
# pauc 0.2.2: a partial area under the ROC curve is too large, and its confidence interval and the test that compares two
# of them are made with the variance of the whole area.
#   - Five patients and five controls, of which the first two controls come after two and after four patients: the area
#     for a specificity of at least 60 % is .24 by counting. `ROC(labels, scores, partial_auc=(0.6, 1)).auc` is .30.
#   - For specificities from 90 % on, it is 11 % too large on average with 30 patients and 30 controls, and 6 % with 100.
#   - 100 patients and 100 controls: `ci_auc(roc)` gives -.043 to .087, although no such area can be below 0. A bootstrap
#     gives .010 to .036. Over 300 samples, intervals of 95 % are 4.6 times as wide as the partial area scatters.
#   - Two markers of these patients, of which one is better at high specificity: `compare(roc_a, roc_b)` gives p = .60,
#     and a paired bootstrap of the partial areas gives p = .01.
#   - With method='bootstrap' the interval does not know of `standardize_pauc`: for a standardized .59 it is .01 to .04.
# One would expect the area under the steps of the curve, as scikit-learn gives it, and an interval of that number. The
# README lists intervals for the partial area by bootstrapping or DeLong's method, of which DeLong's is the default.
# The reason for the area: where the curve rises at one false-positive rate, only its upper end is kept, and a slope
# from the point before it takes the place of the step.
# Nothing is raised, and the whole area is right. A marker for screening is reported with too large an area and with an
# interval that hides its gain. Remedy: scikit-learn's `roc_auc_score(max_fpr=...)` and a bootstrap.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pauc==0.2.2 numpy==2.4.6 scipy==1.17.1 matplotlib==3.11.2 scikit-learn==1.9.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pauc import ROC, ci_auc, compare
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

print('pauc', version('pauc'))


def area(labels, scores, rate=0.1):
    """The area where the false-positive rate is at most this, out of scikit-learn's standardized one."""
    low = rate**2 / 2
    return low + (2 * roc_auc_score(labels, scores, max_fpr=rate) - 1) * (rate - low)


def partial(labels, scores, rate=0.1, **ways):
    return ROC(labels, scores, partial_auc=(1 - rate, 1), direction='<', **ways)


# The first two of five controls come after two and after four of five patients: .2 x .4 + .2 x .8.
ranks = np.array([1, 1, 0, 1, 1, 0, 1, 0, 0, 0])
found, right = partial(ranks, -np.arange(10.0), 0.4).auc, area(ranks, -np.arange(10.0), 0.4)
print(f'five and five: pauc {found:.3f}, scikit-learn {right:.3f}, by counting {0.2 * 0.4 + 0.2 * 0.8:.3f}')
assert np.isclose(right, 0.24) and found > 0.27, 'the area is another one now'

for size in (30, 100):
    pairs, labels = [], np.repeat([0, 1], size)
    for seed in range(300):
        scores = np.random.default_rng(seed).normal(size=2 * size) + 1.1 * labels
        assert np.isclose(ROC(labels, scores, direction='<').auc, roc_auc_score(labels, scores))
        pairs.append((partial(labels, scores).auc, area(labels, scores)))
    found, right = np.mean(pairs, 0)
    print(f'{size} and {size}: pauc {found:.4f}, scikit-learn {right:.4f}, ratio {found / right:.2f}')
    assert found / right > (1.1 if size == 30 else 1.05)


def sample(seed):
    """Two markers of the same patients: B is better at low specificity, A at high specificity."""
    draw = np.random.default_rng(seed)
    shared = draw.normal(size=200)
    a = np.where(labels & (draw.random(200) < 0.45), 3.0, 0.35 * labels) + 0.8 * shared + 0.6 * draw.normal(size=200)
    b = 1.1 * labels + 0.8 * shared + 0.6 * draw.normal(size=200)
    return a, b


def bootstrap(statistic):
    """The statistic for 1000 draws of patients and of controls."""
    draw = np.random.default_rng(1)
    kinds = [np.flatnonzero(labels == kind) for kind in (0, 1)]
    rows = (np.concatenate([draw.choice(kind, len(kind)) for kind in kinds]) for _ in range(1000))
    return np.array([statistic(row) for row in rows])


a, b = sample(0)
low, high = ci_auc(partial(labels, b))
whole = ci_auc(ROC(labels, b, direction='<'))
right = np.percentile(bootstrap(lambda rows: area(labels[rows], b[rows])), [2.5, 97.5])
print('B: ci_auc {:.3f} to {:.3f}, bootstrap {:.3f} to {:.3f}'.format(low, high, *right))
assert low < 0 < right[0] and np.isclose(high - low, whole[1] - whole[0]), 'it is not the variance of the whole area'

areas, widths = [], []
for seed in range(300):
    roc = partial(labels, sample(seed)[1])
    areas.append(roc.auc)
    widths.append(np.diff(ci_auc(roc)))
ratio = np.mean(widths) / (2 * 1.96 * np.std(areas))
print(f'300 samples: intervals are {ratio:.1f} times as wide as the partial area scatters')
assert ratio > 3.5

found = compare(partial(labels, a), partial(labels, b))
gains = bootstrap(lambda rows: area(labels[rows], a[rows]) - area(labels[rows], b[rows]))
p = 2 * norm.sf((area(labels, a) - area(labels, b)) / gains.std())
print(f'A and B: compare p = {found.p_value:.3f}, bootstrap p = {p:.3f}')
assert found.p_value > 5 * p

roc = partial(labels, b, standardize_pauc=True)
np.random.seed(1)
low, high = ci_auc(roc, method='bootstrap')
right = np.percentile(bootstrap(lambda rows: roc_auc_score(labels[rows], b[rows], max_fpr=0.1)), [2.5, 97.5])
print('B standardized: {:.2f}, ci_auc {:.2f} to {:.2f}, bootstrap {:.2f} to {:.2f}'.format(roc.auc, low, high, *right))
assert high < roc.auc and right[0] < roc.auc < right[1]
PYTHON
echo 'As stated: the partial area is too large, and its interval and test have the variance of the whole area.'
