#!/usr/bin/env bash
# labunits 0.2.1 (laboratory values, traditional units and SI): `to_si_unit(1.0, 'Creatinine')` converts as if the value
# were of urine. A name that several tests have means the last of them, whatever the unit of the value is.
#   - 1 mg/dL of creatinine in serum is 88.4 umol/L. By the name it is 8.84, by the code 2160-0 it is 88.4. A creatinine
#     of 884 umol/L, kidney failure, is 100 mg/dL by the name and 10 by the code.
#   - 2 mg/dL of magnesium are 0.82 mmol/L. By the name it is 1, since the name means the test in mEq/L.
#   - Four of the 133 tests have a name that means another test, with another unit: creatinine in serum, magnesium in
#     mg/dL, methemoglobin in g/dL and norepinephrine in plasma.
#   - 300 pg/mL of norepinephrine in plasma are 1773 nmol/L by its code. By its molar mass of 169.18 they are 1.77: the
#     factor is one for pmol/L. Epinephrine has pmol/L and is right.
# The docstring takes "LOINC code (preferred), abbreviation, or full name", and an unknown name raises. The reason: of
# equal names the later one in the table replaces the earlier one. Nothing is raised. Remedy: use LOINC codes alone,
# compare `traditional_unit(code)` with the unit of the value, and divide norepinephrine in plasma by 1000.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install labunits==0.2.1
"$folder/env/bin/python" - <<'PYTHON'
from collections import defaultdict
from importlib.metadata import version
from math import isclose

import labunits.converters as labunits

print('labunits', version('labunits'))
tests = defaultdict(list)
for test in labunits.analytes():
    tests[test.name].append(test)
wrong = []
for name, several in tests.items():
    for test in several:
        meant = labunits.traditional_unit(name), labunits.conversion_factor(name)
        if meant != (test.traditional_unit, test.conversion_factor):
            wrong.append(name)
            print(f'{name} in {test.specimen[0]}: {test.traditional_unit}, factor {test.conversion_factor}; '
                  f'by the name {meant[0]}, factor {meant[1]}')
print(len(labunits.analytes()), 'tests,', len(wrong), 'are meant by no name')
assert wrong == ['Creatinine', 'Magnesium', 'Methemoglobin', 'Norepinephrine'], 'other tests are meant now'
assert len(labunits.analytes()) == 133

# By molar masses in g/mol: umol/L of 1 mg/dL are 10000 divided by the mass, mmol/L are a thousandth of that.
for name, code, value, seen, right in (
    ('Creatinine', '2160-0', 1, 8.84, 10000 / 113.12),
    ('Magnesium', '19123-9', 2, 1, 2 * 10 / 24.305),
):
    named, coded = labunits.to_si_unit(value, name), labunits.to_si_unit(value, code)
    print(f'{value} mg/dL of {name}: {named:.3g} by the name, {coded:.3g} {labunits.si_unit(code)} by the code, '
          f'by the molar mass {right:.3g}')
    assert labunits.traditional_unit(code) == 'mg/dL' and isclose(named, seen)
    assert isclose(coded, right, rel_tol=1e-3)
assert isclose(labunits.to_traditional_unit(884, 'Creatinine'), 100)
assert isclose(labunits.to_traditional_unit(884, '2160-0'), 10)

for name, code, mass, unit, factor in (
    ('norepinephrine', '2666-6', 169.18, 'nmol/L', 1), ('epinephrine', '1465-4', 183.20, 'pmol/L', 1000),
):
    found, right = labunits.to_si_unit(300, code), 300 / mass * factor
    print(f'300 pg/mL of {name}: {found:.0f} {labunits.si_unit(code)}, by the molar mass {right:.4g}')
    assert labunits.traditional_unit(code) == 'pg/mL' and labunits.si_unit(code) == unit
    assert isclose(found, right * (1000 if name == 'norepinephrine' else 1), rel_tol=2e-3)
try:
    labunits.to_si_unit(1, 'creatin')
except ValueError as error:
    print(error)
else:
    raise AssertionError('unknown names pass')
PYTHON
echo 'As stated: a name means the last test that has it.'
