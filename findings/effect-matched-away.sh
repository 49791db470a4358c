#!/usr/bin/env bash
# psmpy 0.3.16: `PsmPy(data, treatment, indx, target='days')` puts the outcome into the propensity score and matches on
# it. So the effect of the treatment shrinks.
#   - 3000 patients, and a drug that shortens the stay by 5 days. Older and sicker patients get it. After matching as in
#     the README the drug seems to shorten the stay by 1.5 days. With the outcome in `exclude` it is 5 days.
#   - A drug that lowers the risk of death by 18 points: after matching nothing is left of it. With the outcome in
#     `exclude` it is 20 points, and matching by hand gives the same.
#   - With a column that is called `outcome`, which is what `target` stands for by default, it is the same.
#   - The table of effect sizes lists the outcome among the covariates, and balance "improves" there.
# The reason: the name is stored and never read. Only columns in `exclude` are left out.
# The docstring says of `target` that it is ignored in regression and matching. The README does not name it; it says
# that all columns are used that `exclude` does not hold. Nothing is raised, the two groups are of equal size, and their
# scores are alike. It hurts whoever compares treatments in records of patients: a drug that helps, or harms, looks as
# if it did nothing. Remedy: give the outcome in `exclude`, and add it to the matched patients afterwards, by their
# number.
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
from sklearn.linear_model import LogisticRegression

warnings.simplefilter('error')
print('psmpy', version('psmpy'))


def cohort(seed, binary):
    """Patients, a drug for the older and sicker ones, and an outcome. The effect on the treated comes second."""
    draw = np.random.default_rng(seed)
    age, severity = draw.normal(size=(2, 3000))
    drug = (draw.random(3000) < 1 / (1 + np.exp(2.6 - 0.4 * age - 0.6 * severity))).astype(int)
    if binary:
        noise = draw.logistic(size=3000)
        without, within = (noise + shift + 0.5 * age + severity > 0 for shift in (-1, -2))
    else:
        without = 20 + 2 * age + 4 * severity + draw.normal(0, 2, size=3000)
        within = without - 5
    outcome = np.where(drug, within, without).astype(float)
    effect = (within.astype(float) - without)[drug == 1].mean()
    columns = {'patient': np.arange(3000), 'age': 60 + 12 * age, 'severity': severity, 'drug': drug}
    return pd.DataFrame(columns | {'outcome': outcome}), effect


def difference(patients, groups):
    """Outcome of the treated minus that of the others, among matched patients."""
    outcome = patients.set_index('patient')['outcome'][groups['patient']].to_numpy()
    drug = groups['drug'].to_numpy() == 1
    assert 2 * drug.sum() == len(drug)
    return outcome[drug].mean() - outcome[~drug].mean()


def matched(patients, **settings):
    """As in the README."""
    psm = PsmPy(patients.copy(), treatment='drug', indx='patient', **settings)
    psm.logistic_ps(balance=True)
    psm.kdtree_matched(matcher='propensity_logit', replacement=False, caliper=None, drop_unmatched=True)
    return psm


def by_hand(patients):
    """A score of age and severity, and the nearest patient who is free."""
    causes = patients[['age', 'severity']]
    score = LogisticRegression(C=1e6).fit(causes, patients['drug']).decision_function(causes)
    free = list(np.flatnonzero(patients['drug'] == 0))
    chosen = []
    for treated in np.flatnonzero(patients['drug'] == 1):
        other = min(free, key=lambda place: abs(score[place] - score[treated]))
        free.remove(other)
        chosen += [treated, other]
    return patients.loc[chosen]


for binary, name, seen, expected in ((False, 'days', -1.5, -5), (True, 'died', -0.01, -0.2)):
    rows = []
    for seed in range(3):
        patients, effect = cohort(seed, binary)
        renamed = patients.rename(columns={'outcome': name})
        target = matched(renamed, target=name)
        excluded = matched(renamed, exclude=[name])
        default = matched(patients)
        assert target.xvars == ['age', 'severity', name], 'the target is left out of the score now'
        assert excluded.xvars == ['age', 'severity']
        assert default.xvars == ['age', 'severity', 'outcome']
        groups = (target, excluded, default)
        rows.append([effect, *(difference(patients, one.df_matched) for one in groups),
                     difference(patients, by_hand(patients))])
    truth, target, excluded, default, hand = np.mean(rows, axis=0)
    print(f'{name}: true effect {truth:.2f}; target={name!r} {target:.2f}; a column named outcome {default:.2f}; '
          f'exclude=[{name!r}] {excluded:.2f}; matched by hand {hand:.2f}')
    print('    of each cohort:', np.round(rows, 2).tolist())
    tolerance = abs(expected) / 10
    assert abs(target - seen) < tolerance and np.isclose(target, default), 'the outcome counts for less now'
    assert abs(excluded - expected) < tolerance and abs(hand - expected) < tolerance
    assert abs(excluded - truth) < 2 * tolerance
PYTHON
echo 'As stated: the outcome is matched away.'
