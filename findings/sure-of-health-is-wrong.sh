#!/usr/bin/env bash
# netcal 1.4.0 (calibration of classifiers and regressions): MMCE, the maximum mean calibration error, of yes-or-no
# predictions takes a low risk for a prediction that is hardly sure. Which class is called 1 decides on the result.
#   - 2,000 patients, a quarter of them ill, whose labels are drawn with the very risks that the model gives: MMCE is
#     .470. With the classes exchanged, healthy as 1, it is .034. Given as two columns it is .005, which is right.
#   - A model that is held far too near to one half has .331, so it looks better than the calibrated one. As two columns
#     it has .196. ECE of the same package has .017 for the first and .209 for the second.
#   - A model that is always right and always sure, with a risk of 0 or 1 for each patient, has .740. It should be 0.
# The reason: below one half the label 0 is predicted, and the risk is kept as the confidence in it. A risk of .05 with
# a healthy patient is a hit with a confidence of .05, where it is .95.
# The docstring offers one column for two classes, and defines the confidence as the highest probability of a class.
# Both are not kept. Nothing is raised. ECE, ACE and MCE are right for one column. Remedy: two columns.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 tqdm==4.70.1
"$folder/env/bin/pip" --quiet install --no-deps netcal==1.4.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from netcal.metrics import ECE, MMCE

print('netcal', version('netcal'))
draw = np.random.default_rng(0)
risks = draw.beta(1, 3, 2000)
labels = (draw.random(2000) < risks).astype(int)


def by_definition(risks, labels):
    """The formula of the docstring, with the highest probability as the confidence."""
    sure = np.maximum(risks, 1 - risks)
    gap = ((risks > 0.5) == labels) - sure
    kernel = np.exp(-2.5 * abs(sure[:, None] - sure))
    return float(np.sqrt(gap @ kernel @ gap) / len(labels))


def errors(name, risks, labels):
    """MMCE of one column, of it with the classes exchanged, and of two columns."""
    found = [MMCE().measure(risks, labels), MMCE().measure(1 - risks, 1 - labels)]
    found.append(MMCE().measure(np.stack([1 - risks, risks], 1), labels))
    plain = float(ECE().measure(risks, labels))
    print('{}: MMCE {:.3f}, classes exchanged {:.3f}, two columns {:.3f}; ECE {:.3f}'.format(name, *found, plain))
    assert np.isclose(found[2], by_definition(risks, labels))
    return [float(error) for error in found], plain


good, plain = errors('calibrated', risks, labels)
assert np.allclose(good, [0.4704, 0.0336, 0.0052], atol=1e-3), 'one column is read as two are now'
assert plain < 0.02
flat, plain = errors('too near to one half', risks**0.2 / (risks**0.2 + (1 - risks) ** 0.2), labels)
assert np.isclose(flat[0], 0.331, atol=1e-3) and flat[0] < good[0] and flat[2] > 30 * good[2] and plain > 0.2
perfect, plain = errors('always right and sure', labels.astype(float), labels)
assert np.isclose(perfect[0], 0.74, atol=1e-3) and perfect[2] == 0 and plain < 1e-9
PYTHON
echo 'As stated: a low risk is taken for a prediction that is hardly sure.'
