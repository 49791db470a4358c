#!/usr/bin/env bash
# fhirpathpy 2.2.4 (FHIRPath, the query language for FHIR data): `=` between two lists looks at the first element of
# each alone. Lists of one length that begin alike are equal.
#   - `(1|2) = (1|3)` is true, and `(1|2) != (1|3)` is false. `(1|2) ~ (1|3)` is false.
#   - Two patients, Anna Maria and Anna Marta: their given names are equal. Of 1000 pairs of patients with two given
#     names, drawn from five, 194 are equal, as many as share the first. 48 have the same two.
#   - Two reports list two diagnoses each, E11.9 and I10 in one, E11.9 and C50.9 in the other: the lists of codes are
#     equal, so a rule that they must agree is kept.
# The reason: after the lengths are compared, only the elements with index 0 are.
# The specification says that lists are equal if they have one length and all elements are equal in their order.
# Nothing is raised. It hurts whoever compares records by FHIRPath, for duplicates or for invariants of a profile:
# different patients are the same, and broken rules are kept. Remedy: compare texts, `a.join('|') = b.join('|')`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install fhirpathpy==2.2.4 antlr4-python3-runtime==4.13.2 \
    python-dateutil==2.9.0.post0 six==1.17.0
"$folder/env/bin/python" - <<'PYTHON'
import random
from importlib.metadata import version

from fhirpathpy import compile
from fhirpathpy.models import models

print('fhirpathpy', version('fhirpathpy'))


def ask(resource, expression):
    return compile(expression, models['r4'])(resource)


for expression, seen in (
    ('(1|2) = (1|3)', True), ('(1|2) != (1|3)', False), ('(1|2) ~ (1|3)', False), ("('a'|'b') = ('a'|'c')", True),
    ('(1|2) = (1|2)', True), ('(1|2) = (3|2)', False), ('(1|2) = (1|2|3)', False),
):
    print(expression, ask({}, expression))
    assert ask({}, expression) == [seen], 'equality of lists has changed'

NAMES = ('Anna', 'Maria', 'Marta', 'Ute', 'Eva')
draw = random.Random(0)
same_names = compile('entry[0].resource.name.given = entry[1].resource.name.given', models['r4'])
same_texts = compile("entry[0].resource.name.given.join('|') = entry[1].resource.name.given.join('|')", models['r4'])


def pair(first, second):
    return {'resourceType': 'Bundle', 'type': 'collection', 'entry': [
        {'resource': {'resourceType': 'Patient', 'name': [{'given': list(names)}]}} for names in (first, second)
    ]}


assert same_names(pair(('Anna', 'Maria'), ('Anna', 'Marta'))) == [True]
found = first = both = texts = 0
for _ in range(1000):
    names = [draw.sample(NAMES, 2) for _ in range(2)]
    found += same_names(pair(*names)) == [True]
    texts += same_texts(pair(*names)) == [True]
    first += names[0][0] == names[1][0]
    both += names[0] == names[1]
print(f'1000 pairs: {found} equal, {both} have the same names, {first} the same first one, by texts {texts}')
assert (found, both) == (194, 48) and found == first and texts == both

reports = {'resourceType': 'Bundle', 'type': 'collection', 'entry': [{'resource': {
    'resourceType': 'DiagnosticReport', 'status': 'final', 'code': {'text': 'report'},
    'conclusionCode': [{'coding': [{'system': 'http://hl7.org/fhir/sid/icd-10', 'code': code}]} for code in codes],
}} for codes in (('E11.9', 'I10'), ('E11.9', 'C50.9'))]}
codes = 'entry[{}].resource.conclusionCode.coding.code'
found = ask(reports, f'{codes.format(0)} = {codes.format(1)}')
print(ask(reports, codes.format(0)), ask(reports, codes.format(1)), 'equal:', found)
assert found == [True] and ask(reports, codes.format(0)) != ask(reports, codes.format(1))
PYTHON
echo 'As stated: lists that begin alike are equal.'
