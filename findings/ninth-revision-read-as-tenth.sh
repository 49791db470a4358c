#!/usr/bin/env bash
# pycomorb 1.20261001.1: with icd_version='icd9_10', for data of both revisions of the ICD, only the label `ICD-9` means
# the ninth. Every other label, such as 9, 'icd9' and 'ICD-9-CM', makes the codes be looked up in the tenth revision.
#   - Six patients of equal age have heart failure, diabetes with complications or a metastasis, each once by a code of
#     ICD-9-CM and once by one of ICD-10. With the labels 'ICD-9' and 'ICD-10' the two have equal Charlson scores: 1, 2
#     and 6. With the numbers 9 and 10 as labels, those of the ninth revision have 0.
#   - It is so for 'icd9' and 'icd10', which are the package's own names for the revisions, for 'ICD9', and for
#     'ICD-9-CM', as the README calls it. The score of Elixhauser and the combined score do it as well.
#   - 996 patients, half of them with codes of the ninth revision: the mean score is 1.5 in place of 3.
#   - A row without a label belongs to neither revision. A patient with no other row is missing from the result.
# The documentation says that `icd_version_col` has the labels, and not which labels there are. The value of
# `icd_version` itself is checked, and an unknown one raises. The labels are not checked, and nothing is raised.
# A cohort that goes from one revision to the other seems to have been healthy before, and whoever adjusts for
# comorbidity adjusts for the calendar. Remedy: write the labels as 'ICD-9' and 'ICD-10' before.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pycomorb==1.20261001.1 polars==2.1.0 pandas==3.1.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import polars as pl
from pycomorb import comorbidity

print('pycomorb', version('pycomorb'), 'polars', pl.__version__)
names = {'charlson': 'Charlson Comorbidity Index', 'elixhauser': 'Elixhauser Comorbidity Index', 'combined': None}
# Heart failure, diabetes with a complication of the kidneys, and a metastasis in the liver, in both revisions.
diagnoses = pl.DataFrame({
    'id': [1, 2, 3, 4, 5, 6], 'age': [40] * 6, 'revision': [9, 9, 9, 10, 10, 10],
    'code': ['4280', '25040', '1977', 'I500', 'E112', 'C787'],
})


def scores(frame, labels, kind='charlson'):
    """The scores by patient, where the labels are those of the ninth and of the tenth revision."""
    frame = frame.with_columns(pl.Series('revision', [labels[number == 10] for number in frame['revision']]))
    table = comorbidity(kind, df=frame, icd_version='icd9_10', icd_version_col='revision')
    column = next(name for name in table.columns if name in ('Combined Comorbidity Score', names[kind]))
    return table.sort('id')[column].to_list()


for kind in names:
    print(kind)
    right = scores(diagnoses, ('ICD-9', 'ICD-10'), kind)
    print('  ICD-9, ICD-10:', right)
    assert right[:3] == right[3:] and sum(right) > 0
    if kind == 'charlson':
        assert right == [1, 2, 6] * 2
    for labels in ((9, 10), ('9', '10'), ('icd9', 'icd10'), ('ICD9', 'ICD10'), ('ICD-9-CM', 'ICD-10-CM')):
        found = scores(diagnoses, labels, kind)
        print(f'  {labels[0]!r}, {labels[1]!r}:', found)
        assert found == [0] * 3 + right[3:], 'this label is known now, or it raises'

many = pl.concat([diagnoses.with_columns(pl.col('id') + 6 * number) for number in range(166)])
means = [sum(values) / len(values) for values in (scores(many, labels) for labels in (('ICD-9', 'ICD-10'), (9, 10)))]
print(f'{len(many)} patients, half of them of the ninth revision: mean {means[0]:.2f} by ICD-9, {means[1]:.2f} by 9')
assert means == [3, 1.5]

found = scores(diagnoses, ('ICD-9', None))
print('tenth revision without a label, patients in the result:', len(found), 'of', len(diagnoses))
assert len(found) == 3
try:
    comorbidity('charlson', df=diagnoses, icd_version='9_10', icd_version_col='revision')
except (AssertionError, ValueError) as error:
    print('icd_version itself is checked:', str(error)[:50])
else:
    raise SystemExit('an unknown version passes')
PYTHON
echo 'As stated: the ninth revision is read as the tenth unless its label is ICD-9.'
