#!/usr/bin/env bash
# diametrics 0.4.3, glycosignal 0.2.0 and cgmpy 0.6.0 (continuous glucose monitoring): each has a Glycemia Risk Index
# of its own. The published one is 3 times the percentage below 54 mg/dL, 2.4 times that from 54 to below 70, 1.6
# times that above 250 and 0.8 times that above 180 and up to 250, at most 100.
#   - 10 % of readings at 50 mg/dL make 30 points. diametrics has 5, glycosignal 54. 10 % at 300 make 16, and there
#     they have 5 and 24. For diametrics lows and highs weigh the same, and readings of 50 throughout have 50, not
#     100.
#   - Readings of 180 throughout make 0, all are in range. glycosignal and cgmpy have 80. For readings of 70
#     throughout they have 100 and 240, and cgmpy then calls 0 % of them in range, where its own `tir` has 100 %.
#   - cgmpy has no upper limit: readings of 50 throughout make 300.
#   - A patient with whole numbers from 48 to 252, at whom 40.0 is right, has 7.4, 45.6 and 41.1.
# The reasons: weights of 50, 20, 20 and 50 divided by 100; the readings below 54 count as below 70, too, and those
# above 250 as above 180; and ranges that include both of their ends. diametrics names the index and its weights stand
# in the code alone. glycosignal writes 2.4 for all time below 70, and cites the paper that has it for 54 to 70. cgmpy
# writes down the ranges, not what a reading at an end counts as. Nothing is raised. iglu-python 0.4.3 has the
# published index.
# Seen on 2026-11-30, in the newest versions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==1.26.4 pandas==2.3.3 scipy==1.17.1 scikit-learn==1.9.1 matplotlib==3.11.2 \
    seaborn==0.13.2 openpyxl==3.1.5 tqdm==4.70.1 tzlocal==5.4.5
"$folder/env/bin/pip" --quiet install --no-deps diametrics==0.4.3 glycosignal==0.2.0 cgmpy==0.6.0 iglu-python==0.4.3
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from cgmpy.metrics.time_in_range import tir
from cgmpy.metrics.variability.risk import gri as cgmpy_index
from diametrics.metrics import glycemic_risk_index
from glycosignal.metrics import gri as glycosignal_index
from iglu_python import gri as iglu_index

print(*(f'{name} {version(name)}' for name in ('diametrics', 'glycosignal', 'cgmpy', 'iglu-python')))


def by_hand(glucose):
    very_low, low = glucose < 54, (glucose >= 54) & (glucose < 70)
    very_high, high = glucose > 250, (glucose > 180) & (glucose <= 250)
    points = 3 * very_low.mean() + 2.4 * low.mean() + 1.6 * very_high.mean() + 0.8 * high.mean()
    return min(100 * float(points), 100.0)


def scores(glucose):
    times = pd.date_range('2026-01-01', periods=len(glucose), freq='5min')
    table = pd.DataFrame({'time': times, 'glc': glucose, 'Timestamp': times, 'Glucose': glucose})
    found = glycemic_risk_index(table[['time', 'glc']], 'mg')['gri'].iloc[0], glycosignal_index(table)
    return *map(float, found), cgmpy_index(table['glc'])['GRI'], float(iglu_index(table['glc']))


draw = np.random.default_rng(0)
hours = np.arange(4032) / 12
waves = 150 + 60 * np.sin(2 * np.pi * hours / 24) + 40 * np.sin(2 * np.pi * hours / 6)
patient = np.round(waves + draw.normal(0, 3, 4032))


def share(value):
    return np.repeat([value, 120.0], [400, 3600])


for name, glucose, seen, right in (
    ('10 % at 50', share(50), (5, 54, 30), 30), ('10 % at 60', share(60), (2, 24, 24), 24),
    ('10 % at 300', share(300), (5, 24, 16), 16), ('10 % at 200', share(200), (2, 8, 8), 8),
    ('all at 180', np.full(4000, 180.0), (0, 80, 80), 0), ('all at 70', np.full(4000, 70.0), (0, 100, 240), 0),
    ('all at 50', np.full(4000, 50.0), (50, 100, 300), 100), ('a patient', patient, (7.42, 45.61, 41.12), 39.97),
):
    *found, iglu = scores(glucose)
    print(f'{name}: diametrics {found[0]:.2f}, glycosignal {found[1]:.2f}, cgmpy {found[2]:.2f};'
          f' iglu-python {iglu:.2f}, by hand {by_hand(glucose):.2f}')
    assert np.allclose(found, seen, atol=0.006), 'other weights or ranges now'
    assert np.isclose(iglu, by_hand(glucose)) and np.isclose(iglu, right, atol=0.006)
edge = pd.Series(np.full(4000, 70.0))
print('all at 70, in range:', cgmpy_index(edge)['derived_metrics']['TIR'], 'and', float(tir(edge)))
assert cgmpy_index(edge)['derived_metrics']['TIR'] == 0 and tir(edge) == 100
print('the patient has', patient.min(), 'to', patient.max())
assert (patient.min(), patient.max()) == (48, 252)
PYTHON
echo 'As stated: three packages have three indexes.'
