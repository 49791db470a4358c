#!/usr/bin/env bash
# ucumvert 0.3.2 (pint 0.25.3): some units of UCUM, the code for units in laboratory and FHIR data, become another unit.
# `from_ucum` and `ucum_preprocessor` do not agree either.
#   - `[Cal]`, the Calorie of nutrition labels, is a kilocalorie. It becomes a calorie: 2000 [Cal] are 2 kcal.
#   - `[LPF]`, a low power field, is 100 times `[HPF]` by UCUM's table. Both become 1. So 300/[LPF] of casts or cells
#     are 300/[HPF], where 3/[HPF] is right.
#   - `mg%` and `g%` are mg/dL and g/dL. They become a mass: 90 mg% of glucose are 0.9 mg.
#   - `mR`, a milliroentgen, becomes a thousandth of the gas constant, and so does R with any other prefix. `R` alone is
#     right.
#   - `[cft_i]` and `[cyd_i]`, cubic foot and cubic yard, become a hundredth of a foot and of a yard. `[rd_br]` is 0.42
#     metres long, where it has 5.03. An arc minute `'` and an arc second `''` become minute and second of time.
#   - With the preprocessor, prefixes of the international unit are units: `u[IU]/mL`, which insulin and TSH have, is
#     atomic mass units per millilitre, `m[IU]/mL` is metres per millilitre, and `k[IU]/L` is Boltzmann constants per
#     litre. from_ucum once did the same, which was reported and mended there.
# The reasons: Cal, LPF, rd_br and the two arc units have a wrong line in the definitions of the package. pint drops the
# brackets and then finds a prefix and a unit of its own in `cft`. A percent sign is a hundredth to pint. The list that
# keeps `R` from being the gas constant is looked at only where no prefix stands before it.
# The README says that all units of UCUM 2.2 are there. It also asks for a look at the definitions, without naming one.
# The table of UCUM is within the package. Nothing is raised. A conversion to the expected unit fails for those of
# another dimension, but not for [Cal], [LPF] and [rd_br], and to_base_units fails for none. Sums of energy intake and
# counts in urine come out wrong. Remedy: take kcal for [Cal] and g/dL for g%, divide counts by 100 for [LPF], use
# from_ucum, and compare the units of the data once with the table of UCUM.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install ucumvert==0.3.2 pint==0.25.3 lark==1.3.1
"$folder/env/bin/python" - <<'PYTHON'
import math
import re
from importlib.metadata import version
from importlib.resources import files
from xml.etree import ElementTree

from ucumvert import PintUcumRegistry, ucum_preprocessor

print('ucumvert', version('ucumvert'), 'pint', version('pint'))
registry = PintUcumRegistry()
read = registry.from_ucum

# What UCUM says, from the table in the package: (unit, value) for each code.
tree = ElementTree.fromstring(files('ucumvert').joinpath('vendor/ucum-essence.xml').read_text(encoding='utf-8'))
space = re.match('{.*}', tree.tag)[0]
says = {}
for unit in tree.iter(f'{space}unit'):
    value = unit.find(f'{space}value')
    says[unit.get('Code')] = value.get('Unit'), value.get('value')

# By the table, by hand, and what is found, each in pint's own units.
CASES = (
    ('[Cal]', ('kcal_th', '1'), '4184 joule', '4.184 joule'),
    ('[LPF]', ('1', '100'), '100 dimensionless', '1 dimensionless'),
    ('[HPF]', ('1', '1'), '1 dimensionless', '1 dimensionless'),
    ('g%', ('g/dl', '1'), '10 kilogram / meter ** 3', '0.01 gram'),
    ('R', ('C/kg', '2.58e-4'), '2.58e-4 coulomb / kilogram', '2.58e-4 coulomb / kilogram'),
    ('[cft_i]', ('[ft_i]3', '1'), '0.028316846592 meter ** 3', '0.003048 meter'),
    ('[cyd_i]', ('[yd_i]3', '1'), '0.764554857984 meter ** 3', '0.009144 meter'),
    ('[rd_br]', ('[ft_br]', '16.5'), '5.02921 meter', '0.419101 meter'),
    ("'", ('deg/60', '1'), f'{math.pi / 180 / 60} radian', '60 second'),
    ("''", ("'/60", '1'), f'{math.pi / 180 / 3600} radian', '1 second'),
    ('[ft_i]', ('[in_i]', '12'), '0.3048 meter', '0.3048 meter'),
)


def equal(found, expected):
    """Whether two quantities are equal, dimension and number."""
    found, expected = found.to_base_units(), registry.parse_expression(expected).to_base_units()
    same_kind = dict(found.dimensionality) == dict(expected.dimensionality)
    return same_kind and math.isclose(found.magnitude, expected.magnitude, rel_tol=1e-4)


for code, table, right, seen in CASES:
    found = read(code)
    print(f'{code}: UCUM says {table[1]} {table[0]}, {right}; found {found}, {seen}')
    assert says[code] == table
    assert equal(found, seen), 'the unit is read otherwise now'
    assert equal(found, right) == (right == seen)

print('2000 [Cal]:', (2000 * read('[Cal]')).to('kilocalorie'), 'and by kcal', (2000 * read('kcal')).to('kilocalorie'))
assert math.isclose((2000 * read('[Cal]')).to('kilocalorie').magnitude, 2)
fields = 300 * read('/[LPF]')
print('300/[LPF]:', fields.to('1 / high_power_field'))
assert math.isclose(fields.to('1 / high_power_field').magnitude, 300)
print('90 mg%:', (90 * read('mg%')).to('milligram'), 'and by mg/dL', 90 * read('mg/dL'))
assert math.isclose((90 * read('mg%')).to('milligram').magnitude, 0.9)
for prefix, factor in (('m', 1e-3), ('u', 1e-6), ('k', 1e3)):
    found = read(f'{prefix}R')
    print(f'{prefix}R: {found}, should be {factor * 2.58e-4:.3g} C/kg')
    assert equal(found, f'{factor} molar_gas_constant') and not equal(found, f'{factor * 2.58e-4} coulomb / kilogram')

by_strings = PintUcumRegistry()
by_strings.preprocessors.append(ucum_preprocessor)
UNITS = (
    ('u[IU]/mL', 'international_unit * unified_atomic_mass_unit / milliliter', 'microinternational_unit'),
    ('m[IU]/mL', 'international_unit * meter / milliliter', 'milliinternational_unit'),
    ('k[IU]/L', 'boltzmann_constant * international_unit / liter', 'kilointernational_unit'),
    ('[IU]/L', 'international_unit / liter', 'international_unit'),
    ('mmol/L', 'millimole / liter', 'millimole'),
)
for code, seen, right in UNITS:
    found = str(by_strings(code).units)
    print(f'{code}: {found} by the preprocessor, {read(code).units} by from_ucum')
    assert found == seen, 'prefixes are read otherwise now'
    assert right in str(read(code).units)
PYTHON
echo 'As stated: a Calorie is a calorie, and a low power field is a high power field.'
