#!/usr/bin/env bash
# elixhauser-ahrq 2026.1.3: without indicators of "present on admission", which are optional, 18 of the 38 conditions
# are never found. Heart failure, kidney failure, liver disease and paralysis are among them.
#   - The first example of the README is a patient with heart failure, diabetes, hypertension, kidney disease and
#     obesity. The README prints 7 points and all five conditions, which is a moderate risk. The code gives -7, a low
#     risk, without heart and kidney. The first code is the main diagnosis and does not count. Behind another main
#     diagnosis it is still -7, and with an indicator Y for each code it is 10, with all five.
#   - Pneumonia in a patient with heart failure, dialysis, cirrhosis, coagulopathy, malnutrition and paralysis has 54
#     points for mortality with indicators. Without them it has 0, and no condition at all.
#   - 1,125 of the 4,567 codes of the table never count without indicators.
#   - With indicators, a code that is exempt from them is lost, too. Hospitals leave the field of such codes empty.
#     Paralysis after a stroke (I69.351) has 9 points where the field holds Y, and 0 where it is empty or E.
# The reason: the program asks for Y, W or 1, and takes None and an empty field for "arose in hospital".
# The parameter has a default of None and no word on it, and the README never gives it. map_single_code leaves the
# condition as it is if no indicator is given, and by the comments in the source exempt codes count. AHRQ counts them
# always. Nothing is raised. It hurts risk adjustment by claims: outpatient data and most research data have no
# indicators, and the sickest patients get the scores of healthy ones. Remedy: pass 'Y' for each code without an
# indicator, and for each exempt code.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install elixhauser-ahrq==2026.1.3 openpyxl==3.1.5 numpy==2.4.6 pandas==3.1.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

from elixhauser_ahrq import ElixhauserMapper, ElixhauserScorer

print('elixhauser-ahrq', version('elixhauser-ahrq'))
mapper, scorer = ElixhauserMapper(), ElixhauserScorer(index_type='mortality')


def result(codes, indicators=None):
    flags = mapper.map_patient_diagnoses(codes, indicators)
    return scorer.calculate_score(flags), {name for name, flag in flags.items() if flag}


# By the table of AHRQ, which the package brings: which conditions has a code, whatever the indicator is?
table = mapper.loader.dx_mapping.set_index('ICD-10-CM Diagnosis')
names = [name for name in table.columns if name not in ('ICD-10-CM Code Description', '# Comorbidities')]
conditions = {code: {name for name in names if row[name] == 1} for code, row in table.iterrows()}

README = ['I509', 'E119', 'I10', 'N183', 'E6601']
score, found = result(README)
print(f'README: score {score}, found {sorted(found)}, documented 7 and five conditions')
assert (score, found) == (-7, {'DIAB_UNCX', 'HTN_UNCX', 'OBESE'}), 'conditions are found without indicators now'
right = set().union(*(conditions[code] for code in README))
score, found = result(['J189', *README], ['Y'] * 6)
print(f'the same behind pneumonia, with Y: score {score}, found {sorted(found)}')
assert found == right == {'DIAB_UNCX', 'HF', 'HTN_UNCX', 'OBESE', 'RENLFL_MOD'} and score == 10 == 14 + 3 - 7

ILL = ['J189', 'I5022', 'N186', 'K7460', 'D689', 'E43', 'G8191']
right = set().union(*(conditions[code] for code in ILL[1:]))
for indicators, points in ((None, 0), (['Y'] * len(ILL), sum(scorer.weights[name] for name in right))):
    score, found = result(ILL, indicators)
    print(f'very ill, indicators {indicators}: score {score}, found {sorted(found)}')
    assert score == points and found == (right if indicators else set())
print(f'by the table: {sorted(right)}')

ever = {None: set(), 'Y': set()}
for indicator, seen in ever.items():
    nothing = 0
    for code in conditions:
        found = result(['J189', code], indicator and ['Y', indicator])[1]
        seen |= found
        nothing += not found
    print(f'indicator {indicator}: {len(seen)} conditions are ever found, {nothing} codes find none')
    assert (len(seen), nothing) == ((38, 0) if indicator else (20, 1125))
print('never found without:', sorted(ever['Y'] - ever[None]))

for indicator in ('Y', '1', 'W', 'E', '', None):
    score, found = result(['J189', 'I69351'], ['Y', indicator])
    print(f'paralysis after a stroke, indicator {indicator!r}: score {score}, found {sorted(found)}')
    assert (score, found) == ((9, {'CBVD', 'PARALYSIS'}) if indicator in ('Y', '1', 'W') else (0, set()))
PYTHON
echo 'As stated: without indicators half of the conditions are never found.'
