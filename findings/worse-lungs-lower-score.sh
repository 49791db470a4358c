#!/usr/bin/env bash
# clifpy 2.1.0: by `compute_sofa` a patient with very bad lungs gets 0 of 4 points for them, if no ventilator is in use.
# A patient who is less ill gets 2.
#   - Oxygen by high flow, by mask or by nasal cannula: a ratio of oxygen pressure to inspired oxygen (P/F) of 350 gives
#     1 point, of 250 it gives 2, and of 150 and of 80 it gives 0. By the definition of SOFA it is 1, 2, 2 and 2. On a
#     ventilator the points are 1, 2, 3 and 4, as they should be.
#   - Of patients on high flow with all ratios from 60 to 399, 29 % have 2 points or more, as many as Sepsis-3 asks for.
#     By the definition it is 71 %. All who are missed are more ill than all who are found.
#   - Without a blood gas, and with a saturation of 88 % on 90 % oxygen, it is 0 as well. The estimated ratio is 61 and
#     stands in the table, as p_f_imputed, and no score is made of it.
#   - The rate of an infusion that is recorded as 0 counts as an infusion. Norepinephrine 0 gives 3 points for the
#     circulation and dopamine 0 gives 2, with a pressure of 85.
# The reason: ratios below 200 have a rule for ventilated patients only. For others nothing matches, the score is null,
# and null is filled with 0. For infusions, a dose of 0 is "not above .1".
# The documentation says that missing values give 0, and here none is missing. It says that the ratio is made of the
# saturation where the gas is missing, and that higher scores are worse. Nothing is raised. It hurts studies of sepsis
# and of intensive care: labels, case mix and risk adjustment are wrong for the patients on high flow, who are many.
# Remedy: take p_f, p_f_imputed and device from the table and count points by hand, and drop infusion rates of 0.
# `compute_sofa_polars` has the same rules in its source.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install clifpy==2.1.0 duckdb==2.0.1 numpy==2.4.6 pandas==2.3.3 polars==1.36.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from clifpy.utils.sofa import compute_sofa

print('clifpy', version('clifpy'))
HEALTHY = {
    'creatinine': 0.9, 'platelet_count': 250.0, 'bilirubin_total': 0.5, 'map': 85.0, 'gcs_total': 15.0, 'spo2': 97.0,
    'norepinephrine_mcg_kg_min': np.nan, 'epinephrine_mcg_kg_min': np.nan, 'dopamine_mcg_kg_min': np.nan,
    'dobutamine_mcg_kg_min': np.nan, 'device_category': 'Room Air', 'fio2_set': 0.21, 'po2_arterial': 90.0,
}


def scores(patients):
    """One row for each patient, all organs but those named are healthy."""
    rows = [{'hospitalization_id': f'{number:04}', 'event_time': pd.Timestamp('2026-01-01'), **HEALTHY, **patient}
            for number, patient in enumerate(patients)]
    return compute_sofa(pd.DataFrame(rows), id_name='hospitalization_id').sort_values('hospitalization_id')


def lungs(ratio, ventilated):
    """Points for the lungs by the definition of SOFA of 1996."""
    if ventilated and ratio < 200:
        return 4 if ratio < 100 else 3
    return 2 if ratio < 300 else 1 if ratio < 400 else 0


DEVICES = ('High Flow NC', 'Face Mask', 'Nasal Cannula', 'IMV')
RATIOS = (350, 250, 150, 80)
patients = [{'device_category': device, 'fio2_set': 0.6, 'po2_arterial': 0.6 * ratio}
            for device in DEVICES for ratio in RATIOS]
table = scores(patients)
found = table['sofa_resp'].to_numpy().reshape(len(DEVICES), len(RATIOS)).astype(int).tolist()
assert np.allclose(table['p_f'], RATIOS * len(DEVICES)) and (table['sofa_total'] == table['sofa_resp']).all()
print(f'points for P/F of {RATIOS}')
for device, points in zip(DEVICES, found):
    right = [lungs(ratio, device == 'IMV') for ratio in RATIOS]
    print(f'{device:14} found {points}, right {right}')
    assert points == ([1, 2, 3, 4] if device == 'IMV' else [1, 2, 0, 0]), 'low ratios have points now'
    assert right == ([1, 2, 3, 4] if device == 'IMV' else [1, 2, 2, 2])

ratios = np.arange(60, 400)
found = scores([{'device_category': 'High Flow NC', 'fio2_set': 0.6, 'po2_arterial': 0.6 * (ratio + 0.5)}
                for ratio in ratios])['sofa_total'].to_numpy() >= 2
right = np.array([lungs(ratio + 0.5, False) >= 2 for ratio in ratios])
print(f'2 points or more on high flow: found {found.mean():.0%}, right {right.mean():.0%}')
assert round(found.mean(), 2) == 0.29 and round(right.mean(), 2) == 0.71
assert ratios[right & ~found].max() < ratios[found].min()

gas = scores([{'device_category': 'High Flow NC', 'fio2_set': 0.9, 'po2_arterial': np.nan, 'spo2': 88.0}]).iloc[0]
print(f'no gas: P/F by saturation {gas["p_f_imputed"]:.0f}, points {gas["sofa_resp"]:.0f}, '
      f'right {lungs(gas["p_f_imputed"], False)}')
assert 60 < gas['p_f_imputed'] < 62 and gas['sofa_resp'] == 0

for drug, seen in (('norepinephrine', 3), ('epinephrine', 3), ('dopamine', 2), ('dobutamine', 0)):
    points = int(scores([{f'{drug}_mcg_kg_min': 0.0}])['sofa_cv_97'].iloc[0])
    print(f'{drug} at a rate of 0, mean pressure 85: {points} points, right 0')
    assert points == seen, drug
PYTHON
echo 'As stated: the worse the lungs are, the lower the score.'
