#!/usr/bin/env bash
# medcalc-bench 1.7.0 (the medical calculators of MedCalc-Bench, by which language models are judged): by APACHE II a
# patient who is awake is worse off than one in deep coma. By SOFA and SIRS healthy people are ill.
#   - APACHE II adds the Glasgow Coma Scale itself: 15 points for a healthy person of 30, and 3 for the same person in
#     coma, where 0 and 12 are right. What the function says of itself is "use 15 - [GCS Score]".
#   - What is too low gets no points. A pulse of 30, 4 breaths a minute, a pH of 7.0, a sodium of 105, a potassium of
#     2.0, a haematocrit of 15 % and a blood pressure of 50/30 are 0 points each, where 4 are right. Ages of 45 and 75
#     get 0 points, where 2 and 6 are right.
#   - White cells, 7,000 per cubic millimetre, get 4 points, since the limits are those of thousands.
#   - SOFA gives 2 points for circulation to whoever has a normal blood pressure without any drug for it, and 1 to one
#     whose mean pressure is 60. Noradrenaline at .5 µg per kg and minute gets 2, dopamine at 20 gets 3. 4 are right.
#   - SIRS gives a healthy person 2 of 4, which is the limit for suspecting sepsis: any pulse gets a point, and white
#     cells are counted by the cubic metre and compared with limits for the cubic millimetre.
# The reasons: branches for low values, and for 45 and 75 years, are missing; a dose of 0 is "less than or equal to 5";
# and SIRS adds 1 in both branches. The texts that come with each number list the right rules. Nothing is raised.
# Remedy: other calculators. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps medcalc-bench==1.7.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

from medcalc.apache_ii import apache_ii_explanation
from medcalc.sirs_criteria import sirs_criteria_explanation
from medcalc.sofa import compute_sofa_explanation

print('medcalc-bench', version('medcalc-bench'))


def apache(**changes):
    """Points of a healthy person of 30 with these changes. White cells are in thousands, which is read rightly."""
    person = {
        'age': (30, 'years'), 'sodium': (140, 'mmol/L'), 'potassium': (4.2, 'mmol/L'), 'creatinine': (1.0, 'mg/dL'),
        'pH': 7.4, 'heart_rate': (80, 'beats per minute'), 'respiratory_rate': (16, 'breaths per minute'), 'gcs': 15,
        'hemocratit': (42, '%'), 'wbc': (7, 'mm^3'), 'fio2': (21, '%'), 'partial_pressure_oxygen': (95, 'mm Hg'),
        'temperature': (37.0, 'degrees celsius'), 'sys_bp': (120, 'mm Hg'), 'dia_bp': (80, 'mm Hg'),
    }
    result = apache_ii_explanation({**person, **changes})
    assert '(use 15 - [GCS Score])' in result['Explanation']
    return result['Answer']


print('APACHE II, healthy and in coma:', apache(), apache(gcs=3), 'should be 0 and 12')
assert (apache(), apache(gcs=3)) == (15, 3), 'coma counts in another way now'
for name, changes, seen, right in (
    ('pulse 30', {'heart_rate': (30, 'beats per minute')}, 0, 4),
    ('4 breaths', {'respiratory_rate': (4, 'breaths per minute')}, 0, 4),
    ('pH 7.0', {'pH': 7.0}, 0, 4), ('sodium 105', {'sodium': (105, 'mmol/L')}, 0, 4),
    ('potassium 2.0', {'potassium': (2.0, 'mmol/L')}, 0, 4), ('haematocrit 15', {'hemocratit': (15, '%')}, 0, 4),
    ('blood pressure 50/30', {'sys_bp': (50, 'mm Hg'), 'dia_bp': (30, 'mm Hg')}, 0, 4),
    ('45 years', {'age': (45, 'years')}, 0, 2), ('75 years', {'age': (75, 'years')}, 0, 6),
    ('white cells 7,000', {'wbc': (7000, 'mm^3')}, 4, 0),
    ('pulse 190', {'heart_rate': (190, 'beats per minute')}, 4, 4), ('76 years', {'age': (76, 'years')}, 6, 6),
    ('sodium 185', {'sodium': (185, 'mmol/L')}, 4, 4), ('29 degrees', {'temperature': (29, 'degrees celsius')}, 4, 4),
):
    found = apache(**changes) - apache()
    print(f'APACHE II, {name}: {found} points, should be {right}')
    assert found == seen, 'points are given in another way now'

person = {
    'partial_pressure_oxygen': (95, 'mm Hg'), 'fio2': (0.21, ''), 'platelet_count': (250000, 'µL'), 'gcs': 15,
    'bilirubin': (0.8, 'mg/dL'), 'creatinine': (0.9, 'mg/dL'), 'sys_bp': (120, 'mm Hg'), 'dia_bp': (80, 'mm Hg'),
}
for name, changes, seen, right in (
    ('healthy', {}, 2, 0), ('mean pressure 60', {'sys_bp': (80, 'mm Hg'), 'dia_bp': (50, 'mm Hg')}, 1, 1),
    ('noradrenaline .5', {'norepinephrine': (0.5, 'µg/kg/min')}, 2, 4),
    ('dopamine 20', {'dopamine': (20, 'µg/kg/min')}, 3, 4), ('dopamine 4', {'dopamine': (4, 'µg/kg/min')}, 2, 2),
):
    found = compute_sofa_explanation({**person, **changes})['Answer']
    print(f'SOFA, {name}: {found} points, should be {right}')
    assert found == seen, 'SOFA is another now'

for unit in ('mm^3', 'µL'):
    found = sirs_criteria_explanation({
        'temperature': (37.0, 'degrees celsius'), 'heart_rate': (70, 'beats per minute'), 'wbc': (7000, unit),
        'respiratory_rate': (14, 'breaths per minute'),
    })['Answer']
    print(f'SIRS, healthy, white cells 7,000 per {unit}: {found}, should be 0')
    assert found == 2
PYTHON
echo 'As stated: awake is worse than coma, and the healthy are ill.'
