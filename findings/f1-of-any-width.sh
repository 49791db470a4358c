#!/usr/bin/env bash
# pmvalsampsize 0.2.1: how many patients the F1 score of a prediction model needs does not depend on `f1ciwidth`, the
# width that its interval should have. The table prints the width that was asked for beside a number for another.
#   - Prevalence .05 and threshold .1: 2493 patients for each of the widths .05, .1 and .2. By hand it is 9757, 2439 and
#     610. In simulated studies of 2493 patients, 95 % of F1 scores lie in a range of .1, and of 9757 in one of .05.
#   - Prevalence .43 and threshold .3: 553 for each width. By hand it is 1586, 396 and 99.
#   - Accuracy, recall, specificity, precision and NPV follow their widths: for accuracy 806, 204 and 51.
# The reason: the search for the number of patients compares the standard error with a constant, .0255, which belongs
# to a width of .1. The standard error for the width that was asked for is computed after it, and only printed. Besides,
# the covariance of precision and recall has a second term, which is not there if patients are one random sample. Where
# the disease is frequent, it makes the number for .1 too large as well (553 in place of 396).
# By the docstring, `f1ciwidth` is the target width of the 95 % interval. Nothing is raised: the row of the table has
# the number, the standard error and the width side by side, as the rows of the other measures have. A study that asks
# for a width of .05 is planned with a quarter of the patients that it needs. Remedy: for
# F = 2 TP / (2 TP + FP + FN) the number is 15.37 F (1 - F) (2 - F) / (2 TP + FP + FN) / width^2, with TP, FP and FN as
# shares of all patients.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pmvalsampsize==0.2.1 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pmvalsampsize.pmvalsampsize import pmvalsampsize
from scipy import stats

print('pmvalsampsize', version('pmvalsampsize'))
WIDTHS = (0.05, 0.1, 0.2)
draw = np.random.default_rng(0)


def cells(alpha, beta, threshold):
    """Shares of TP, FP, FN and TN if risks have a beta distribution and are right."""
    prevalence = alpha / (alpha + beta)
    positive = stats.beta.sf(threshold, alpha, beta)
    true = prevalence * stats.beta.sf(threshold, alpha + 1, beta)
    return np.array([true, positive - true, prevalence - true, 1 - positive - prevalence + true])


def scores(shares, patients):
    """F1 scores of simulated studies."""
    tp, fp, fn, _ = draw.multinomial(patients, shares, size=20_000).T
    return 2 * tp / (2 * tp + fp + fn)


for alpha, beta, threshold, auc, seen, expected, accuracy in (
    (0.5, 9.5, 0.1, 0.78, 2493, (9757, 2439, 610), (806, 204, 51)),
    (1.33, 1.75, 0.3, 0.74, 553, (1586, 396, 99), (1363, 344, 86)),
):
    shares = cells(alpha, beta, threshold)
    tp, fp, fn, _ = shares
    f1 = 2 * tp / (2 * tp + fp + fn)
    print(f'prevalence {tp + fn:.3f}, threshold {threshold}, F1 {f1:.3f}')
    for width, right, others in zip(WIDTHS, expected, accuracy):
        plan = pmvalsampsize(
            type='b', prevalence=alpha / (alpha + beta), cstatistic=auc, lpbeta=(alpha, beta), threshold=threshold,
            f1ciwidth=width, accuracyciwidth=width, simobs=100_000, noprint=True,
        )
        rows = {row[0]: row[1:] for row in plan['additional_results']}
        found, value, _, printed = map(float, rows['F1-score'])
        by_hand = 15.3664 * f1 * (1 - f1) * (2 - f1) / (2 * tp + fp + fn) / width**2
        spread = np.ptp(np.quantile(scores(shares, round(by_hand)), (0.025, 0.975)))
        used = np.ptp(np.quantile(scores(shares, int(found)), (0.025, 0.975)))
        print(f'    width {printed}: {found:.0f} patients, simulated width {used:.3f}; by hand {by_hand:.0f}, '
              f'simulated {spread:.3f}; for accuracy {rows["Accuracy"][0]}')
        assert printed == width and abs(value - f1) < 0.01
        assert abs(found / seen - 1) < 0.03, 'the width counts now'
        assert abs(by_hand / right - 1) < 0.01 and abs(spread / width - 1) < 0.06
        assert abs(rows['Accuracy'][0] / others - 1) < 0.03
PYTHON
echo 'As stated: the number of patients for F1 is the same for each width.'
