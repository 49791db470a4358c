#!/usr/bin/env bash
# uncertainty-calibration 0.1.4: the confidence interval of a calibration error is the whole range of the 100 bootstrap
# samples, whatever level one asks for.
#   - `get_calibration_error_uncertainties(probabilities, labels)` is to give a 90 % interval, as alpha is .1, and is
#     1.6 times as wide as it should be below: .026 to .094, where .039 to .083 is right.
#   - An interval for alpha=.5, of 50 %, is as wide as one for alpha=.01, of 99 %.
#   - alpha / 2 goes to numpy's percentile, which takes percent: of 100 samples it takes those at .05 and at 99.95 %,
#     the smallest and the largest. With alpha=10 the interval is the 90 % one, and with alpha=50 the 50 % one.
#   - `get_top_calibration_error_uncertainties` does the same.
# The documentation says "1-alpha confidence intervals", and the default is .1. Nothing is raised, the middle is right,
# and a wide interval looks careful. But whether calibration by temperature lowered the error of an encoder is read from
# such an interval, and it says that nothing can be known: two models that differ do not seem to. Remedy: alpha=10 for
# 90 %. Samples come from numpy's global state, so np.random.seed makes them repeatable.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install uncertainty-calibration==0.1.4 scikit-learn==1.9.1 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import calibration
import numpy as np

print('uncertainty-calibration', version('uncertainty-calibration'))
draw = np.random.default_rng(0)
probabilities = draw.random(1000)
labels = (draw.random(1000) < probabilities**1.3).astype(int)

# The same statistic, samples of our own, the interval as the package builds it: twice the error minus each quantile.
error = calibration.get_calibration_error(probabilities, labels, debias=False)
samples = []
for _ in range(1000):
    rows = draw.integers(0, 1000, 1000)
    samples.append(calibration.get_calibration_error(probabilities[rows], labels[rows], debias=False))


def right(alpha):
    low, high = 2 * error - np.quantile(samples, [1 - alpha / 2, alpha / 2])
    return low, high


def found(**options):
    np.random.seed(0)
    low, _, high = calibration.get_calibration_error_uncertainties(probabilities, labels, **options)
    return low, high


def width(interval):
    return interval[1] - interval[0]


print(f'error, not debiased: {error:.4f}')
cases = ({}, 0.1), ({'alpha': 0.01}, 0.01), ({'alpha': 0.5}, 0.5), ({'alpha': 10}, 0.1), ({'alpha': 50}, 0.5)
for options, alpha in cases:
    low, high = found(**options)
    expected = right(alpha)
    print(f'{options or "default"}: {low:.4f} to {high:.4f}; {1 - alpha:.0%}: {expected[0]:.4f} to {expected[1]:.4f}')

assert width(found()) > 1.4 * width(right(0.1)), 'the default interval is one of 90 % now'
assert width(found(alpha=0.5)) > 3 * width(right(0.5))
assert width(found(alpha=0.5)) > 0.95 * width(found(alpha=0.01)), 'the level matters now'
for percent in (10, 50):
    ratio = width(found(alpha=percent)) / width(right(percent / 100))
    print(f'alpha={percent}: {ratio:.2f} times the width of the right one')
    assert 0.7 < ratio < 1.3

top = np.stack([1 - probabilities, probabilities], axis=1)
np.random.seed(0)
narrow = calibration.get_top_calibration_error_uncertainties(top, labels, alpha=50)
np.random.seed(0)
wide = calibration.get_top_calibration_error_uncertainties(top, labels, alpha=0.5)
print(f'top label: {wide[2] - wide[0]:.4f} wide for alpha=.5, {narrow[2] - narrow[0]:.4f} for alpha=50')
assert wide[2] - wide[0] > 2 * (narrow[2] - narrow[0])
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: an interval of 50 % is as wide as one of 99 %.'
