#!/usr/bin/env bash
# fhirpathpy 2.2.4 (FHIRPath, the query language for FHIR data): grams and milligrams are converted to whole numbers, so
# 500 mg equal 1 g. Pounds and kilograms are rounded up.
#   - `500 'mg' = 1 'g'` is true, and `500 'mg' = 0.5 'g'` is false. The other way round, `0.5 'g' = 500 'mg'` is true.
#   - Seven prescriptions of 250 to 1700 mg are searched for a dose of 1 g. Four come: 500, 850, 1000 and 1400 mg.
#   - A dose of 250 mg by `toQuantity('g')` is 0 g, and 1700 mg are 2 g. A dose of 0.0001 g (levothyroxine) is 0 mg.
#   - A child of 7 pounds has 4 kg, where 3.18 is right, and 70 kg are 155 pounds, where 154.3 is right.
#   - A value of 0 equals nothing: an observation of 0 mg is not `0 'mg'`.
# The reason: for these units the result is rounded to an integer in the conversion itself, on the way to `=` too.
# The specification asks for a conversion, and speaks of rounding only for `~`. Nothing is raised. It hurts whoever
# checks doses or weights by FHIRPath: a rule for one dose holds for others, and half a tablet weighs nothing.
# Remedy: compare in one unit, by `value` and `code`, and convert elsewhere.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install fhirpathpy==2.2.4 antlr4-python3-runtime==4.13.2 \
    python-dateutil==2.9.0.post0 six==1.17.0
"$folder/env/bin/python" - <<'PYTHON'
from decimal import Decimal
from importlib.metadata import version

from fhirpathpy import evaluate
from fhirpathpy.models import models

print('fhirpathpy', version('fhirpathpy'))
GRAMS = {'mg': Decimal('0.001'), 'g': Decimal(1)}
KILOGRAMS = {'kg': Decimal(1), '[lb_av]': Decimal('0.45359237')}


def ask(resource, expression):
    return evaluate(resource, expression, None, models['r4'])


def quantity(value, unit):
    return {'value': value, 'unit': unit, 'code': unit, 'system': 'http://unitsofmeasure.org'}


def observation(value, unit):
    return {'resourceType': 'Observation', 'valueQuantity': quantity(value, unit)}


def converted(value, unit, other):
    (found,) = ask(observation(value, unit), f"Observation.value.toQuantity('{other}')")
    return found.value


def by_hand(value, unit, other):
    sizes = GRAMS if unit in GRAMS else KILOGRAMS
    return Decimal(str(value)) * sizes[unit] / sizes[other]


half = Decimal('0.5')
for left, right, seen, true in (
    ((500, 'mg'), (1, 'g'), True, False), ((500, 'mg'), (half, 'g'), False, True),
    ((half, 'g'), (500, 'mg'), True, True), ((1400, 'mg'), (1, 'g'), True, False),
    ((400, 'mg'), (0, 'g'), True, False), ((1000, 'mg'), (1, 'g'), True, True),
):
    (found,) = ask({}, f"{left[0]} '{left[1]}' = {right[0]} '{right[1]}'")
    by_grams = left[0] * GRAMS[left[1]] == right[0] * GRAMS[right[1]]
    print(f'{left[0]} {left[1]} = {right[0]} {right[1]}: {found}, by hand {by_grams}')
    assert found is seen and by_grams is true, 'equality of units has changed'

DOSES = (250, 400, 500, 850, 1000, 1400, 1700)
bundle = {'resourceType': 'Bundle', 'type': 'collection', 'entry': [{'resource': {
    'resourceType': 'MedicationRequest',
    'dosageInstruction': [{'doseAndRate': [{'doseQuantity': quantity(dose, 'mg')}]}],
}} for dose in DOSES]}
dose = 'dosageInstruction.doseAndRate.dose'
found = ask(bundle, f"Bundle.entry.resource.where({dose} = 1 'g').{dose}.value")
print('doses of 1 g among', DOSES, 'mg:', found)
assert found == [500, 850, 1000, 1400], 'doses are found rightly now'
assert [dose for dose in DOSES if dose * GRAMS['mg'] == 1] == [1000]

for value, unit, other, seen in (
    (250, 'mg', 'g', 0), (500, 'mg', 'g', 1), (1700, 'mg', 'g', 2), (0.0001, 'g', 'mg', 0), (2, 'g', 'mg', 2000),
    (7, '[lb_av]', 'kg', 4), (150, '[lb_av]', 'kg', 69), (70, 'kg', '[lb_av]', 155),
):
    found, hand = converted(value, unit, other), by_hand(value, unit, other)
    print(f'{value} {unit} to {other}: {found}, by hand {hand:.5g}')
    assert found == seen, 'conversion has changed'
    assert (hand == seen) is (value == 2)
assert by_hand(250, 'mg', 'g') == Decimal('0.25') and by_hand(0.0001, 'g', 'mg') == Decimal('0.1')
assert round(by_hand(7, '[lb_av]', 'kg'), 2) == Decimal('3.18')
assert round(by_hand(70, 'kg', '[lb_av]'), 1) == Decimal('154.3')

assert ask(observation(0, 'mg'), "Observation.value = 0 'mg'") == [False]
assert ask(observation(1, 'mg'), "Observation.value = 1 'mg'") == [True]
PYTHON
echo 'As stated: grams and milligrams are compared and converted as whole numbers.'
