#!/usr/bin/env bash
# edsnlp 0.23.0 (French clinical text): `eds.quantities` divides what stands on both sides of a slash. A blood pressure
# of 120/80 mmHg is 1.5 mmHg, and 800/160 mg of co-trimoxazole are 5 mg.
#   - 150/90 mmHg, which is high, is 1.67 mmHg, and 90/45 mmHg, which is low, is 2 mmHg. 54 usual pressures lie between
#     1 and 3. 12,5/8 mmHg is 8 mmHg.
#   - Drugs of two substances: 500/62,5 mg of amoxicillin with clavulanic acid are 8 mg, and 49/51 mg are 0.96 mg.
#   - `38°5`, the French way to write a temperature of 38.5 degrees, is an angle of 38 degrees and 5 minutes, 38.083.
#     `39°C` is right.
#   - `250 G/L`, the usual unit for blood platelets, 250 * 10^9 in a litre, is 250 grams per litre, a mass, and equal to
#     25000 mg/dl. `2 mM` of lactate, millimoles in a litre, are 2 millimetres.
#   - `1/2 mg` is right, and so are 12,5 g/dl, 3 mmol/l, 1m75 and 3 kg 200.
# By the docstring mmHg is among the units, and nothing is said of fractions or of slashes between numbers. The reason:
# numbers with slashes are fractions, and units are looked for in small letters.
# Nothing is raised, and the text of the entity (`120/80 mmHg`) looks right. Whoever takes `_.value` into a table has
# pressures, doses and temperatures that no one ever had. Remedy: read pressures and drugs of two substances with a
# pattern of their own, by the text of the entity, and look at the range of each quantity.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install edsnlp==0.23.0 spacy==3.8.18 pydantic==2.14.4
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version
from math import isclose

import edsnlp
import edsnlp.pipes as eds

print('edsnlp', version('edsnlp'))


def pipeline(quantities):
    nlp = edsnlp.blank('eds')
    nlp.add_pipe(eds.sentences())
    nlp.add_pipe(eds.normalizer())
    nlp.add_pipe(eds.quantities(quantities=quantities, use_tables=False))
    return nlp


nlp = pipeline('all')


def read(text):
    """The text, number and unit of the one quantity in a text."""
    (span,) = nlp(text).spans['quantities']
    return span.text, span._.value.value, span._.value.unit


for text, part, seen, unit, right in (
    ('PA 120/80 mmHg', '120/80 mmHg', 120 / 80, 'mmHg', (120, 80)),
    ('PA 150/90 mmHg', '150/90 mmHg', 150 / 90, 'mmHg', (150, 90)),
    ('PA 90/45 mmHg', '90/45 mmHg', 2, 'mmHg', (90, 45)),
    ('TA 12,5/8 mmHg', '8 mmHg', 8, 'mmHg', (12.5, 8)),
    ('Cotrimoxazole 800/160 mg', '800/160 mg', 5, 'mg', (800, 160)),
    ('Amoxicilline acide clavulanique 500/62,5 mg', '500/62,5 mg', 8, 'mg', (500, 62.5)),
    ('Sacubitril valsartan 49/51 mg', '49/51 mg', 49 / 51, 'mg', (49, 51)),
    ('Température 38°5', '38°5', 38 + 5 / 60, 'degree', 'celsius'),
    ('Plaquettes à 250 G/L.', '250 G/L', 250, 'g_per_l', '10^9 per litre'),
    ('Lactates 2 mM', '2 mM', 2, 'mm', 'mmol_per_l'),
):
    found = read(text)
    print(f'{text}: {found[1]:.4g} {found[2]}, should be {right}')
    assert found[0] == part and isclose(found[1], seen) and found[2] == unit, 'this is read otherwise now'

for text, number, unit in (
    ('1/2 mg', 0.5, 'mg'), ('Température à 39°C', 39, 'celsius'), ('Hémoglobine 12,5 g/dl.', 12.5, 'g_per_dl'),
    ('Kaliémie 3 mmol/l', 3, 'mmol_per_l'), ('mesure 1m75', 1.75, 'm'), ('poids de 3 kg 200', 3.2, 'kg'),
):
    found = read(text)
    print(f'{text}: {found[1]:.4g} {found[2]}')
    assert isclose(found[1], number) and found[2] == unit

(span,) = nlp('Plaquettes à 250 G/L.').spans['quantities']
assert isclose(span._.value.mg_per_dl, 25000)
(span,) = pipeline({'pressure': {'unit': 'mmHg'}})('PA 120/80 mmHg').spans['pressure']
print('as a quantity of its own:', span.text, span._.pressure, 'or', span._.pressure.Pa, 'Pa')
assert isclose(span._.pressure.mmHg, 1.5)

patients = [(systolic, diastolic) for systolic in range(90, 201, 10) for diastolic in range(50, 111, 10)]
patients = [pair for pair in patients if 25 <= pair[0] - pair[1] <= 100]
found = [read(f'PA {systolic}/{diastolic} mmHg')[1] for systolic, diastolic in patients]
print(f'{len(patients)} pressures: {min(found):.2f} to {max(found):.2f} mmHg')
assert all(1 < value <= 3 for value in found)
PYTHON
echo 'As stated: a blood pressure is a fraction.'
