#!/usr/bin/env bash
# psmpy 0.3.16: after matching each patient with several controls, `matched_ids` lists the controls of other patients.
#   - Three treated patients of 40, 60 and 80 years, six controls of 41, 61, 81, 42, 62 and 82. The table of
#     `kdtree_matched_12n(how_many=2)` gives 41 and 61 to the first, 81 and 42 to the second, 62 and 82 to the third.
#   - With 200 patients and two controls each, 2 of 400 pairs are the ones that were matched. Ages in the listed pairs
#     differ by 8.5 years on average, and in the pairs that were matched by 0.03 years.
#   - With three controls it is 4 of 600 pairs. With one it is right, so a small test passes.
# The reason: controls are found in rounds, one for each patient in a round, and kept in one list. The list is then cut
# into rows of patients as if all controls of a patient stood side by side.
# By the README the table gives each patient the numbers of the matched ones. The docstring says the same. `df_matched`
# and effect sizes are right, as they only ask who was chosen at all. Nothing is raised. It hurts whoever goes on from
# the pairs: a conditional logistic regression, a paired test, an index date that controls take over, or charts that are
# read side by side. Remedy: `table.iloc[:, 1:].to_numpy().reshape(how_many, -1).T` has the right controls in each row.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install psmpy==0.3.16 numpy==2.4.6 pandas==2.3.3 scikit-learn==1.9.1 scipy==1.17.1
MPLBACKEND=agg MPLCONFIGDIR="$folder" "$folder/env/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from psmpy import PsmPy

warnings.simplefilter('error')
print('psmpy', version('psmpy'))


def table_of(patients, how_many):
    """As in the README. The score comes second."""
    psm = PsmPy(patients.copy(), treatment='drug', indx='patient', exclude=[])
    psm.logistic_ps(balance=False)
    psm.kdtree_matched_12n(matcher='propensity_logit', how_many=how_many)
    return psm.matched_ids.set_index('patient'), psm.predicted_data.set_index('patient')['propensity_logit'], psm


def by_hand(treated, score, free, how_many):
    """In each round, each patient in turn gets the nearest control who is free."""
    pairs = {patient: [] for patient in treated}
    free = set(free)
    for _ in range(how_many):
        for patient in treated:
            nearest = min(sorted(free), key=lambda other: abs(score[other] - score[patient]))
            pairs[patient].append(nearest)
            free.remove(nearest)
    return pairs


# On paper. The number of a patient is the age.
ages = [40, 60, 80, 41, 61, 81, 42, 62, 82]
small = pd.DataFrame({'patient': ages, 'age': ages, 'drug': [1] * 3 + [0] * 6})
table, score, _ = table_of(small, 2)
print(table)
listed = {int(patient): row.tolist() for patient, row in zip(table.index, table.to_numpy())}
assert listed == {40: [41, 61], 60: [81, 42], 80: [62, 82]}, 'the table has other pairs now'
assert by_hand([40, 60, 80], score, ages[3:], 2) == {40: [41, 42], 60: [61, 62], 80: [81, 82]}

# A cohort.
draw = np.random.default_rng(0)
treated, others = 200, 2000
cohort = pd.DataFrame({
    'patient': np.arange(treated + others),
    'age': np.r_[draw.normal(66, 8, treated), draw.normal(60, 10, others)],
    'drug': [1] * treated + [0] * others,
})
age = cohort.set_index('patient')['age']
print('controls  pairs  right  listed, years  matched, years')
for how_many in (1, 2, 3):
    table, score, psm = table_of(cohort, how_many)
    right = by_hand(table.index, score, range(treated, treated + others), how_many)
    listed = table.to_numpy()
    matched = np.array([right[patient] for patient in table.index])
    assert set(listed.ravel()) == set(matched.ravel()), 'others are chosen'
    assert set(psm.df_matched['patient']) == set(table.index) | set(matched.ravel())
    agree = sum(len(set(found) & set(own)) for found, own in zip(listed, matched))
    apart = [np.abs(age[pairs.ravel()].to_numpy() - np.repeat(age[table.index].to_numpy(), how_many)).mean()
             for pairs in (listed, matched)]
    print(f'{how_many:8} {listed.size:6} {agree:6} {apart[0]:14.2f} {apart[1]:15.2f}')
    again = listed.reshape(how_many, -1).T
    assert (again == matched).all(), 'the remedy does not hold'
    if how_many == 1:
        assert agree == treated and apart[0] == apart[1]
    else:
        assert agree == 2 * how_many - 2 and apart[0] > 8 and apart[1] < 1, 'the pairs are kept now'
PYTHON
echo 'As stated: patients are listed with the controls of others.'
