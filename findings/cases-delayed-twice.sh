#!/usr/bin/env bash
# episia 0.1.3: `nowcasting(reported_cases, delay_distribution)` does the opposite of what it says: it delays the reported
# cases once more, so the estimate is further from the truth than the reports are.
#   - New infections grow by 10 % a day, and reports come after 0 to 6 days, 3 on average. Today there are 1000, and 759
#     are reported. The function estimates 575.
#   - A wave with its peak on day 40: reports have it on day 43, and the estimate on day 46.
#   - A steady 100 cases a day: the estimate for the first day is 5, and it is 100 from the seventh day on.
#   - Over the wave the estimate differs from the truth by twice as much as the reports, which it is to mend.
# The reason: reports are the truth, spread over later days by the delays. To undo it one must divide by that, or solve
# for it. The function calls this a simple deconvolution, and spreads the reports over later days again.
# The docstring says "estimate true incidence accounting for reporting delays". Nothing is raised. In a growing outbreak
# the number that is to warn is too low. Remedy: solve the equations, as in this script, or a package for nowcasting.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==3.1.1 scipy==1.17.1
"$folder/env/bin/pip" --quiet install --no-deps episia==0.1.3
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from episia.stats.time_series import nowcasting
from scipy.linalg import toeplitz

print('episia', version('episia'))
DELAYS = np.array([0.05, 0.10, 0.20, 0.30, 0.20, 0.10, 0.05])
assert np.isclose(DELAYS.sum(), 1) and np.isclose(DELAYS @ np.arange(7), 3)


def report(truth):
    """Each day's infections, reported on that day and the six days after it."""
    reported = np.zeros(len(truth) + 6)
    for day, count in enumerate(truth):
        reported[day:day + 7] += count * DELAYS
    return reported[:len(truth)]


def solve(reported):
    """The infections that give these reports, by least squares with a little smoothing."""
    size = len(reported)
    spread = toeplitz(np.r_[DELAYS, np.zeros(size - 7)], np.zeros(size))
    rough = 1e-4 * np.diff(np.eye(size), 2, axis=0)
    return np.linalg.lstsq(np.vstack([spread, rough]), np.r_[reported, np.zeros(size - 2)], rcond=None)[0]


truth = 1000 * 1.1 ** np.arange(-60.0, 1)
reported = report(truth)
found, right = nowcasting(reported, DELAYS), solve(reported)
print(f'today: truth {truth[-1]:.0f}, reported {reported[-1]:.0f}, episia {found[-1]:.0f}, solved {right[-1]:.0f}')
assert np.allclose(found, report(reported)), 'it does something else now'
assert np.allclose([reported[-1], found[-1]], [758.5, 575.3], atol=0.1) and abs(right[-1] / 1000 - 1) < 0.02

days = np.arange(90.0)
truth = 1000 * np.exp(-((days - 40) / 10) ** 2 / 2)
reported = report(truth)
found, right = nowcasting(reported, DELAYS), solve(reported)
peaks = [int(np.argmax(series)) for series in (truth, reported, found, right)]
errors = [np.abs(series - truth).sum() / truth.sum() for series in (reported, found, right)]
print('peak of truth, reports, episia, solved:', *peaks)
print('sum of errors, of all cases: reports {:.2f}, episia {:.2f}, solved {:.3f}'.format(*errors))
steady = nowcasting(np.full(14, 100.0), DELAYS)
print('steady 100:', *steady.round())
assert peaks == [40, 43, 46, 40] and errors[1] > 1.9 * errors[0] and errors[2] < 0.01
assert np.allclose(steady[:7], [5, 15, 35, 65, 85, 95, 100])
PYTHON
echo 'As stated: the delay is added a second time.'
