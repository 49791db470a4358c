#!/usr/bin/env bash
# pyaki 1.0.13 (acute kidney injury by the criteria of KDIGO): the baseline that it calculates where no creatinine from
# before is known, by Cockcroft and Gault, is far too high. So kidney injuries are overlooked.
#   - A man of 60 years, 175 cm and 80 kg: the baseline is 1.92 mg/dl. By the formula it is 1.15, or 1.18 with the 70
#     that the package has in the place of 72. His ideal weight is taken as 148 kg, and it is 70.5 kg.
#   - A woman of 70 years, 160 cm and 60 kg: 1.21 for .64. Her ideal weight is taken as 130 kg, for 52.4.
#   - Her creatinine rises to 1.4, 2.0 and 2.6 mg/dl: stages 0, 1 and 2. By KDIGO it is 2, 3 and 3.
#   - 1000 patients with 1.6 to 2.4 times the creatinine of the right formula: 1000 have an injury by KDIGO,
#     and the package finds none of them.
# One would expect the ideal weight by Devine, 50 or 45.5 kg and 2.3 kg for each inch above 60, since the docstring
# speaks of the formula of Cockcroft and Gault with the adjusted body weight.
# The reason: a pair of brackets is missing, so the 60 inches are taken from the kilograms.
# Nothing is raised. The other baselines are right. Remedy: CreatinineBaselineMethod.CONSTANT with a column of values by
# the formula.
# Seen on 2026-11-30, in the newest version. It asks for Python 3.12, and this part of it runs with 3.11 as well.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pandas==2.3.3 numpy==2.4.6
"$folder/env/bin/pip" --quiet install --no-deps --ignore-requires-python pyaki==1.0.13
"$folder/env/bin/python" -W ignore - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
import pandas as pd
from pyaki.kdigo import Analyser
from pyaki.probes import CreatinineBaselineMethod, Dataset, DatasetType, RelativeCreatinineProbe

print('pyaki', version('pyaki'), 'pandas', pd.__version__)
CALCULATED, CONSTANT = CreatinineBaselineMethod.CALCULATED, CreatinineBaselineMethod.CONSTANT


def by_hand(patient, factor=72):
    """Creatinine for a clearance of 72 ml/min by Cockcroft and Gault, with the adjusted weight; the ideal weight."""
    ideal = (50 if patient['gender'] == 'M' else 45.5) + 2.3 * (patient['height'] / 2.54 - 60)
    adjusted = ideal + 0.4 * (patient['weight'] - ideal)
    return (140 - patient['age']) * adjusted * (1 if patient['gender'] == 'M' else 0.85) / (factor * 72), ideal


def baseline(patient):
    frame = pd.DataFrame({'creat': [1.0]}, index=[pd.Timestamp(2026, 1, 1)])
    return RelativeCreatinineProbe(method=CALCULATED).creatinine_baseline(frame, pd.Series(patient)).iloc[0]


def stages(patients, levels, method):
    """The stage of each patient with one creatinine each."""
    creatinine = pd.DataFrame({'stay_id': range(len(patients)), 'charttime': pd.Timestamp(2026, 1, 1), 'creat': levels})
    table = pd.DataFrame(patients).assign(stay_id=range(len(patients)))
    table['baseline_constant'] = [by_hand(patient)[0] for patient in patients]
    data = [Dataset(DatasetType.CREATININE, creatinine), Dataset(DatasetType.DEMOGRAPHICS, table)]
    return Analyser(data, probes=[RelativeCreatinineProbe(method=method)]).process_stays()['stage'].to_numpy()


def by_kdigo(level, baseline):
    return next((stage for stage, ratio in ((3, 3), (2, 2), (1, 1.5)) if level / baseline >= ratio), 0)


man = {'gender': 'M', 'age': 60, 'height': 175.0, 'weight': 80.0}
woman = {'gender': 'F', 'age': 70, 'height': 160.0, 'weight': 60.0}
for patient, seen, right, with_70, ideal in ((man, 1.922, 1.146, 1.179, 70.5), (woman, 1.207, 0.636, 0.654, 52.4)):
    found = baseline(patient)
    print(patient, f'pyaki {found:.3f}, by hand {by_hand(patient)[0]:.3f}, with 70 {by_hand(patient, 70)[0]:.3f}, '
          f'ideal weight {by_hand(patient)[1]:.1f}')
    assert np.isclose(found, seen, atol=0.002), 'the brackets are there now'
    assert np.isclose(by_hand(patient)[0], right, atol=0.002) and np.isclose(by_hand(patient)[1], ideal, atol=0.05)
    assert np.isclose(by_hand(patient, 70)[0], with_70, atol=0.002)

levels = [1.4, 2.0, 2.6]
found, right = stages([woman] * 3, levels, CALCULATED), [by_kdigo(level, by_hand(woman)[0]) for level in levels]
print('creatinine of', levels, '- pyaki', found, '- by hand', right)
assert list(found) == [0, 1, 2] and right == [2, 3, 3]
assert list(stages([woman] * 3, levels, CONSTANT)) == right

draw = np.random.default_rng(0)
patients = [{'gender': draw.choice(['M', 'F']), 'age': int(draw.integers(40, 85)), 'height': draw.normal(170, 8),
             'weight': draw.normal(78, 12)} for _ in range(1000)]
levels = [by_hand(patient)[0] * draw.uniform(1.6, 2.4) for patient in patients]
found = stages(patients, levels, CALCULATED)
print('1000 patients with an injury: pyaki finds', (found > 0).sum(), '- with the baselines by hand',
      (stages(patients, levels, CONSTANT) > 0).sum())
assert (found > 0).sum() == 0
assert (stages(patients, levels, CONSTANT) > 0).all()
PYTHON
echo 'As stated: the calculated baseline is far too high, and injuries are overlooked.'
