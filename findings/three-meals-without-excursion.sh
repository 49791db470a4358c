#!/usr/bin/env bash
# glycosignal 0.2.0 (continuous glucose monitoring): `mage` finds no excursion unless glucose turns at a single
# reading, and too small ones if readings are noisy. `adrr`, the average daily risk range, is that of the worst day.
#   - Three meals a day, each from 100 up to 220 mg/dL and back, with 100 in between: MAGE is 0. 120 is right.
#   - The same with an error of 5 mg/dL in each reading: 82, where no amplitude is below 100.
#   - 14 calm days have a daily risk range of 16. With 15 minutes at 45 mg/dL in one night it is 44, a high risk,
#     where the average of the days is 18, a low one.
#   - A reading of exactly 70 or 180 is in range and out of it: with meals up to 180 and no higher, in, above and below
#     range add up to 119.8 %.
# The reasons: a turning point has to be above or below both of its neighbours, so that none of two equal readings is
# one, and small turns by noise split the large ones; risks are not taken day by day; and both comparisons include the
# end. The docstring of mage speaks of local turning points, 0.0 "if fewer than two valid excursions", and cites the
# first paper. That of adrr has "Average Daily" in its title, and the sum of the two highest risks below it. Nothing
# is raised. iglu-python 0.4.3 has 120 and 18.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scipy==1.17.1 matplotlib==3.11.2 openpyxl==3.1.5 \
    tqdm==4.70.1 tzlocal==5.4.5
"$folder/env/bin/pip" --quiet install --no-deps glycosignal==0.2.0 iglu-python==0.4.3
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import iglu_python
import numpy as np
import pandas as pd
from glycosignal import metrics

print('glycosignal', version('glycosignal'), 'iglu-python', version('iglu-python'))
DAYS, READINGS = 14, 288
times = pd.date_range('2026-01-01', periods=DAYS * READINGS, freq='5min')
minutes = np.arange(DAYS * READINGS) * 5 % 1440


def meals(height):
    glucose = np.full(len(times), 100.0)
    for start in (7 * 60, 12 * 60, 18 * 60):
        within = (minutes >= start) & (minutes <= start + 180)
        glucose[within] += height * np.sin(np.pi * (minutes[within] - start) / 180)
    return glucose


def table(glucose):
    return pd.DataFrame({'Timestamp': times, 'Glucose': glucose})


def iglu(function, glucose):
    return float(function(pd.DataFrame({'id': 'patient', 'time': times, 'gl': glucose})).iloc[0, 1])


def risk_by_hand(glucose):
    risk = 1.509 * (np.log(glucose.reshape(DAYS, READINGS)) ** 1.084 - 5.381)
    daily = 10 * np.minimum(risk, 0).min(axis=1) ** 2 + 10 * np.maximum(risk, 0).max(axis=1) ** 2
    return float(daily.mean())


draw = np.random.default_rng(0)
calm = meals(120)
noisy = calm + draw.normal(0, 5, len(calm))
for name, glucose, seen in (
    ('exact', calm, 0), ('whole numbers', np.round(calm), 0), ('error of 5', np.round(noisy), 81.5),
):
    found, other = metrics.mage(table(glucose)), iglu(iglu_python.mage, glucose)
    heights = np.median(glucose.reshape(DAYS, READINGS).max(axis=1)) - np.median(glucose)
    print(f'{name}: MAGE {found:.1f}, iglu-python {other:.1f}, standard deviation {glucose.std():.1f},'
          f' highest reading of a day above the median {heights:.1f}')
    assert np.isclose(found, seen, atol=0.05), 'turning points are found in another way now'
    assert 119 < other < 138 and heights > 100 > 2 * glucose.std()

night = calm.copy()
night[5 * READINGS + 30:5 * READINGS + 33] = 45
for name, glucose, seen, right in (('calm days', calm, 16.28, 16.28), ('one night at 45', night, 44.46, 18.29)):
    found, other = metrics.adrr(table(glucose)), iglu(iglu_python.adrr, glucose)
    print(f'{name}: daily risk range {found:.2f}, iglu-python {other:.2f}, by hand {risk_by_hand(glucose):.2f}')
    assert np.isclose(found, seen, atol=0.01), 'risks are taken day by day now'
    assert np.isclose(other, right, atol=0.01) and np.isclose(risk_by_hand(glucose), right, atol=0.02)

flat = np.where(calm > 180, 180.0, calm)
parts = [
    part(table(flat)) for part in
    (metrics.time_in_range_percent, metrics.time_above_range_percent, metrics.time_below_range_percent)
]
print('in, above and below range:', [round(part, 1) for part in parts], 'in all', round(sum(parts), 1))
assert parts[0] == 100 and np.isclose(sum(parts), 119.8, atol=0.06)
PYTHON
echo 'As stated: meals have no excursion, and the daily risk is that of the worst day.'
