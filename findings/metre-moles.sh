#!/usr/bin/env bash
# quantulum3 0.10.0: `5.4 mmol/L` is read as 5.4 "metre mole per litre", and `140/90 mmHg` as 1.56 millimetres of
# mercury.
#   - Moles have no prefixes in its list of units, so the letter before `mol` becomes another unit: m the metre, n the
#     newton, µ the microsecond, p the penny. The same befalls `20 mCi` (metre curie), `5 mSv` (millisecond volt, a
#     magnetic flux) and `50 kDa` (kelvin atomic mass unit). Values of a laboratory, which are mostly in such units, get
#     the number of a mole and not of its thousandth, and a unit of another dimension.
#   - The unit is left out where it is not known: `5 ng/ml` and `5 pg/ml` are the number 5 without a unit, while `5
#     µg/ml` and `5 mg/ml` come out right.
#   - Two numbers with a stroke between them are a fraction, which is right for `1/2 tablet`, and not for a blood
#     pressure: both numbers are lost, and 1.56 has the right unit and entity (pressure).
#   - Nothing is marked as doubtful. A unit of this kind has the entity `unknown`, which the right `mole per litre` and
#     `milligram per kilogram` have too, so it cannot be told by that.
# The README says "extraction of quantities, measurements and their units from unstructured text" and names no field
# that it is not for; milligrams, micrograms, millilitres and millimetres are right. No error comes, and
# inline_parse_and_expand writes "five point four metre moles per litre" into the text. Remedy:
# `add_custom_unit(name='millimole', surfaces=['millimole'], entity='amount of substance', symbols=['mmol'])` for each
# that is met, and blood pressures read by a pattern of their own before. Seen on 2026-11-29, in the newest version,
# without its classifier, which is for units that have two meanings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install quantulum3==0.10.0 pint==0.25.3
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import pint
from quantulum3 import parser
from quantulum3.load import add_custom_unit

print('quantulum3', version('quantulum3'))
units = pint.UnitRegistry()


def read(text):
    """The number, the unit and the entity of the only quantity in a text."""
    (quantity,) = parser.parse(text)
    return quantity.value, quantity.unit.name, quantity.unit.entity.name


READ = (
    ('Glucose was 5.4 mmol/L.', 5.4, 'metre mole per litre'),
    ('5 nmol/L', 5.0, 'newton mole per litre'),
    ('5 µmol/L', 5.0, 'microsecond mole per litre'),
    ('150 pmol/L', 150.0, 'penny mole per litre'),
    ('20 mCi', 20.0, 'metre curie'),
    ('5 mSv', 5.0, 'millisecond volt'),
    ('50 kDa', 50.0, 'kelvin atomic mass unit'),
    ('5 ng/ml', 5.0, 'dimensionless'),
    ('5 pg/ml', 5.0, 'dimensionless'),
)
for text, value, unit in READ:
    found = read(text)
    print(f'{text:24s} {found}')
    assert found[:2] == (value, unit), 'it is read in another way now'
# By another library: the thousandth, and a metre in it is another dimension.
glucose = units('5.4 mmol/L')
print('by pint:', glucose.to('mol/L'), glucose.dimensionality)
assert abs(glucose.to('mol/L').magnitude - 0.0054) < 1e-12
assert glucose.dimensionality == units('1 mol/L').dimensionality != units('1 m * mol/L').dimensionality

for text, value, unit in (
    ('2 mol/L', 2.0, 'mole per litre'),
    ('2.5 mg/kg', 2.5, 'milligram per kilogram'),
    ('5 µg/ml', 5.0, 'microgram per cubic centimetre'),
):
    assert read(text) == (value, unit, 'unknown')
assert read('Glucose was 5.4 mmol/L.')[2] == 'unknown'

found = read('Blood pressure was 140/90 mmHg.')
print('140/90 mmHg:', found)
assert round(found[0], 4) == 1.5556 and found[1:] == ('millimeter of mercury', 'pressure')
assert read('1/2 tablet')[0] == 0.5

print(parser.inline_parse_and_expand('Glucose was 5.4 mmol/L.'))
assert 'five point four metre moles per litre' in parser.inline_parse_and_expand('Glucose was 5.4 mmol/L.')

add_custom_unit(name='millimole', surfaces=['millimole'], entity='amount of substance', symbols=['mmol'])
found = read('Glucose was 5.4 mmol/L.')
print('with millimole added:', found)
assert found[:2] == (5.4, 'millimole per litre')
PYTHON
echo 'As stated: a millimole is a metre mole.'
