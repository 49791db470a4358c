#!/usr/bin/env bash
# seizurekit 0.1.1 (evaluation of seizure detectors): `calculate_agreement_metrics` calls the first of two detectors the
# better one by DeLong's test, whichever it is. Its p-value for the difference of two kappas is .5, whatever that is.
#   - One detector has an area of .99, another one of .68. With the good one as `comparative_modality` it prints
#     Z = -14.678, p = 0.000, "(Fusion AUC higher)". With the bad one it prints just the same.
#   - Their kappas differ by .74, and this has a p-value of .52. Differences of .04 and .09 have .54 and .52.
# The reasons: Z is minus the absolute difference of the areas, and a negative one is read as "AUC_fusion is higher". And
# the p-value is the share of bootstrap samples whose difference is larger than the one observed, which is half of them,
# as they lie around it and not around 0. The docstring has "two-sided p-value". Nothing is raised.
# Remedy: look at the areas themselves, and at the interval of the difference.
# Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scipy==1.17.1 scikit-learn==1.9.1 tqdm==4.67.1
"$folder/env/bin/pip" --quiet install --no-deps seizurekit==0.1.1
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import contextlib
import io
from importlib.metadata import version

import numpy as np
from seizurekit.eval_epochs import calculate_agreement_metrics
from sklearn.metrics import roc_auc_score

print('seizurekit', version('seizurekit'))
draw = np.random.default_rng(0)
seizure = (draw.random(1000) < 0.2).astype(int)


def detector(strength):
    return np.clip(0.5 + strength * (2 * seizure - 1) + draw.normal(0, 0.2, 1000), 0, 1)


def compared(first, second):
    """What is said of two detectors: the verdict of DeLong's test, its Z and p, and difference and p of the kappas."""
    words = io.StringIO()
    with contextlib.redirect_stdout(words):
        result = calculate_agreement_metrics(
            {'comparative_modality': first, 'other': second}, seizure, smoothing_window=1, hysteresis_high=0.5,
            hysteresis_low=0.5, n_bootstraps=300,
        )
    line = next(line.strip() for line in words.getvalue().splitlines() if 'Z = ' in line)
    areas = [round(float(roc_auc_score(seizure, chance)), 2) for chance in (first, second)]
    difference, p_value = float(result['delta_kappa']['other']), float(result['delta_kappa_p']['other'])
    print(f'areas {areas}: "{line}", difference of kappas {difference:.2f}, p {p_value:.2f}')
    return line, result['delong']['other'], difference, p_value


good, bad = detector(0.35), detector(0.05)
right, wrong = compared(good, bad), compared(bad, good)
assert right[0] == wrong[0] and 'Fusion AUC higher' in wrong[0], 'the sign of Z counts now'
assert right[1] == wrong[1] and right[1][0] < -14
assert right[2] == -wrong[2] > 0.5 and abs(right[3] - 0.5) < 0.1 and abs(wrong[3] - 0.5) < 0.1, 'p-values are others now'
alike = [compared(detector(0.2), detector(0.2))[3] for _ in range(3)]
assert all(0.2 < p_value < 1 for p_value in alike)
PYTHON
echo 'As stated: the first detector is called the better one, and p is a half.'
