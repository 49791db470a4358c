#!/usr/bin/env bash
# py-agata 0.0.8 (AGATA, analysis of glucose data): days on which no sensor was worn count as days without any excursion
# of glucose, and lost readings as glucose of 0. The docstrings say "ignoring nan values".
#   - Glucose swings between 90 and 210 mg/dl four times a day. Of four such days `mage_index`, the mean amplitude of
#     excursions, is 108, and `ef_index`, excursions above 75 mg/dl a day, 7. If three more days without a sensor follow
#     them, or lie between, they are 62 and 4. So the better patient is who wears the sensor less.
#   - With a tenth of the readings lost here and there, `ef_index` is 5, and `auc_glucose`, the area under the curve, is a
#     tenth smaller. The mean does not change.
#   - `sdw_index`, `modd` and `adrr`, which are means over days, too, do not count such days.
# The reasons: a day's mean that is NaN is set to 0, or divided by all days; highest points beside a gap are not found;
# and the area is the sum of the readings that are there, times five minutes. Nothing is raised.
# Remedy: cut out days without data, and fill short gaps. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scipy==1.17.1
"$folder/env/bin/pip" --quiet install --no-deps py-agata==0.0.8
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from py_agata import risk, variability

print('py-agata', version('py-agata'))


def profile(days, without=(), lost=0.0):
    """Glucose every five minutes, without a sensor on these days, and with a share of readings lost by chance."""
    times = pd.date_range('2024-01-01', periods=288 * days, freq='5min')
    hours = np.arange(len(times)) / 12
    glucose = 150 + 60 * np.sin(2 * np.pi * hours / 6) + 0.5 * np.sin(3.1 * hours)
    for day in without:
        glucose[288 * day:288 * (day + 1)] = np.nan
    glucose[np.random.default_rng(0).random(len(times)) < lost] = np.nan
    return pd.DataFrame({'t': times, 'glucose': glucose})


SCORES = (variability.mage_index, variability.ef_index, variability.auc_glucose, variability.mean_glucose,
          variability.sdw_index, variability.modd, risk.adrr)


def scores(name, data):
    found = {function.__name__: round(float(function(data)), 1) for function in SCORES}
    print(f'{name}: {found}')
    return found


worn = scores('four days', profile(4))
after = scores('and three without a sensor', profile(7, (4, 5, 6)))
between = scores('three without a sensor between', profile(7, (2, 4, 6)))
lost = scores('a tenth lost', profile(4, lost=0.1))
assert (worn['mage_index'], worn['ef_index']) == (107.7, 7)
assert (after['mage_index'], after['ef_index']) == (61.5, 4), 'days without a sensor do not count now'
assert (between['mage_index'], between['ef_index']) == (61.3, 4)
assert lost['ef_index'] == 5 and abs(lost['auc_glucose'] / worn['auc_glucose'] - 0.906) < 0.001
for name in ('mean_glucose', 'sdw_index', 'modd', 'adrr'):
    assert abs(after[name] - worn[name]) < 0.11 and abs(lost[name] - worn[name]) < 0.5
assert abs(after['mage_index'] - worn['mage_index'] * 4 / 7) < 0.1
for function in (variability.mage_index, variability.ef_index, variability.auc_glucose):
    assert 'ignoring nan values' in ' '.join(function.__doc__.split())
PYTHON
echo 'As stated: days without a sensor are days without excursions.'
