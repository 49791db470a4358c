#!/usr/bin/env bash
# calzone-tool 0.1.0: patients to whom a model gives a risk of exactly 0 are in no bin, and so in none of the binned
# measures.
#   - 1000 patients: 600 have a risk of 0 and 60 of them are ill, 400 have a risk of .3 and 120 of them are ill. All of
#     ECE-H, ECE-C, MCE-H and MCE-C are 0, and both Hosmer-Lemeshow statistics are 0: the model seems to be perfect. The
#     right expected calibration error is .06 (600 patients with an error of .1), and the right maximum is .1.
#   - `reliability_diagram` counts 400 patients, so the diagram has none of the 600. It is given all 1000.
#   - Spiegelhalter's z of the same call looks at all patients, and is far from 0.
#   - With bins of equal counts it is the lowest risk that is left out, whatever it is: of 1000 different risks 999 are
#     counted, and where 300 patients share the lowest risk of .02, all 300 are missing.
# One would expect all patients to be counted: the documentation describes ECE as the absolute differences of the bins,
# weighted by the number of samples in each. Isotonic calibration, trees and forests give many a risk of exactly 0.
# Nothing is raised. The patients whom a model declares safe are those whose errors are worst, and they are not looked
# at.
# Remedy: for bins of equal width `numpy.clip(risks, 1e-9, 1)` before the call; for equal counts compare with
# scikit-learn.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install calzone-tool==0.1.0 numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata

import numpy as np
from calzone.metrics import CalibrationMetrics
from calzone.utils import reliability_diagram

print('calzone-tool', importlib.metadata.version('calzone-tool'))
MEASURES = ['ECE-H', 'MCE-H', 'HL-H', 'ECE-C', 'MCE-C', 'HL-C', 'SpiegelhalterZ']
BINNED = ['ECE-H', 'MCE-H', 'HL-H score', 'ECE-C', 'MCE-C', 'HL-C score']


def counted(risks, ill, equal):
    """How many patients are in the bins of the reliability diagram for class 1."""
    both = np.column_stack([1 - risks, risks])
    return int(reliability_diagram(ill, both, class_to_plot=1, is_equal_freq=equal)[3].sum())


def told(risks, ill):
    """All measures of the package for class 1."""
    return CalibrationMetrics().calculate_metrics(ill, np.column_stack([1 - risks, risks]), MEASURES)


risks = np.repeat([0, 0.3], [600, 400])
ill = np.concatenate([np.arange(600) < 60, np.arange(400) < 120]).astype(int)
errors = [abs(ill[risks == risk].mean() - risk) for risk in (0, 0.3)]
right = 0.6 * errors[0] + 0.4 * errors[1], max(errors)
scores = told(risks, ill)
print({name: round(float(scores[name]), 4) for name in BINNED}, 'right ECE and MCE:', np.round(right, 4))
print('counted of 1000:', [counted(risks, ill, equal) for equal in (False, True)],
      f'Spiegelhalter z {scores["SpiegelhalterZ score"]:.1f}')
assert np.allclose(right, (0.06, 0.1))
assert max(scores[name] for name in BINNED) < 1e-6, 'patients without risk are counted now'
assert counted(risks, ill, False) == counted(risks, ill, True) == 400
assert scores['SpiegelhalterZ score'] > 3

mended = told(np.clip(risks, 1e-9, 1), ill)
print('with 1e-9 for 0:', {name: round(float(mended[name]), 4) for name in BINNED[:2]})
assert np.allclose([mended['ECE-H'], mended['MCE-H']], right)

different = np.linspace(0.01, 0.9, 1000)
shared = np.where(np.arange(1000) < 300, 0.02, different)
numbers = [[counted(risks, ill, equal) for equal in (False, True)] for risks in (different, shared)]
print('equal widths and equal counts, 1000 different risks:', numbers[0], '300 at .02:', numbers[1])
assert numbers == [[1000, 999], [1000, 700]]
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: patients with a risk of 0 are in no bin.'
