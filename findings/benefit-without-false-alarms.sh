#!/usr/bin/env bash
# pmvalsampsize 0.2.1: the net benefit that it prints for a prediction model leaves out the false positives. The
# standardised net benefit is the sensitivity, however many false alarms the model gives.
#   - Prevalence .05 and threshold .1: standardised net benefit .56. By the definition it is .26.
#   - Prevalence .43 and threshold .3: .87. By the definition it is .59, and treating everybody has .44.
#   - Prevalence .2 and threshold .05: .99. By the definition it is .80, and treating everybody has .79. The model seems
#     to add .20, and it adds .01.
# The reason: the assignment is split over two lines without parentheses. The second line begins with a minus sign, so
# it is a statement of its own, and its value is dropped. Both branches of the code have it.
# By the docstring it is the standardised net benefit at the risk threshold, after Riley and colleagues. Nothing is
# raised. The value stands in the table as criterion 4, and in the result as `standardised_nb` and `net_benefit`. The
# number of patients for this criterion is right, because its formula does not use the net benefit. A protocol promises
# a benefit that no study can find. Remedy: take `sensitivity` and `specificity` of the result, and compute sensitivity
# - (1 - specificity) * (1 - prevalence) / prevalence * threshold / (1 - threshold).
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
draw = np.random.default_rng(0)
SEEN = {
    (0.5, 9.5, 0.78, 0.1): (0.56, 0.26, -1.11),
    (1.33, 1.75, 0.74, 0.3): (0.87, 0.59, 0.44),
    (2, 8, 0.68, 0.3): (0.38, 0.13, -0.71),
    (2, 8, 0.68, 0.2): (0.68, 0.30, 0.0),
    (2, 8, 0.68, 0.05): (0.99, 0.80, 0.79),
}
for (alpha, beta, auc, threshold), (seen, expected, everybody) in SEEN.items():
    prevalence, odds = alpha / (alpha + beta), threshold / (1 - threshold)
    plan = pmvalsampsize(
        type='b', prevalence=prevalence, cstatistic=auc, lpbeta=(alpha, beta), threshold=threshold, simobs=100_000,
        noprint=True,
    )
    row = next(row for row in plan['results_table'] if 'Net Benefit' in row[0])

    # Shares of patients by the distribution of risks, and counted in simulated ones.
    positive = stats.beta.sf(threshold, alpha, beta)
    true = prevalence * stats.beta.sf(threshold, alpha + 1, beta)
    by_hand = (true - (positive - true) * odds) / prevalence
    risks = draw.beta(alpha, beta, 1_000_000)
    sick = draw.random(1_000_000) < risks
    alarms = risks > threshold
    counted = ((alarms & sick).mean() - (alarms & ~sick).mean() * odds) / prevalence
    all_treated = (prevalence - (1 - prevalence) * odds) / prevalence
    print(f'prevalence {prevalence:.2f}, threshold {threshold}: printed {float(row[2]):.3f}, sensitivity '
          f'{plan["sensitivity"]:.3f}; by hand {by_hand:.3f}, counted {counted:.3f}, everybody {all_treated:.2f}')
    assert np.isclose(plan['standardised_nb'], plan['sensitivity']), 'false positives count now'
    assert np.allclose((plan['standardised_nb'], by_hand, all_treated), (seen, expected, everybody), atol=0.01)
    assert abs(by_hand - counted) < 0.01
PYTHON
echo 'As stated: net benefit has no false positives.'
