#!/usr/bin/env bash
# psmatching 0.1.dev21 (propensity score matching): `evaluate()`, which is to say whether cases and controls are well
# matched, tests the patients before matching. The file of matched data holds all patients, and nobody's number.
#   - 200 cases of whom 64 % are sick and 62 % old, 2,000 controls of whom 31 % are sick and 40 % old. Each case gets a
#     control, and by these controls 64 % are sick and 62 % old, to the patient. `evaluate` prints FAILED twice, "At
#     least one variable failed to match!", and gives False.
#   - One control for each case, or five, or a narrow caliper: the answer is the same, that of all 2,200 patients.
#   - `study_matched_ps.csv`, "the matched data", has 2,200 rows where 400 were matched, without OPTUM_LAB_ID, so that
#     nobody can find the matched ones in it. Whoever estimates an effect from it does so without any matching.
# The reason: both functions get `self.df`, and not `self.matched_data`. The docstring says "Conducts chi-square tests to
# verify statistically that the cases/controls are well-matched". Nothing is raised. `matches` and `matched_data` are
# right. Remedy: the tests and the file by hand, of `matched_data`. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scipy==1.17.1 statsmodels==0.15.0
"$folder/env/bin/pip" --quiet install --no-deps psmatching==0.1.dev21
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import contextlib
import io
import re
from importlib.metadata import version

import numpy as np
import pandas as pd
from psmatching.match import PSMatch
from scipy.stats import chi2_contingency

print('psmatching', version('psmatching'))
draw = np.random.default_rng(0)
case = np.repeat([1, 0], [200, 2000])
chance = {'sick': (0.3, 0.7), 'old': (0.4, 0.6)}
patients = pd.DataFrame({'OPTUM_LAB_ID': range(1000, 3200), 'CASE': case})
for name, by_arm in chance.items():
    patients[name] = (draw.random(2200) < np.array(by_arm)[case]).astype(int)
patients.to_csv('study.csv', index=False)


def p_values(table):
    return [float(chi2_contingency(pd.crosstab(table['CASE'], table[name]))[1]) for name in chance]


def shares(table):
    return table.groupby('CASE')[list(chance)].mean().round(3).to_numpy().tolist()


for controls, caliper in (('1', None), ('5', None), ('1', 0.01)):
    np.random.seed(0)
    study = PSMatch('study.csv', 'CASE ~ sick + old', controls)
    words = io.StringIO()
    with contextlib.redirect_stdout(words):
        study.prepare_data()
        study.match(caliper=caliper)
        good = study.evaluate()
    said = re.findall('FAILED|PASSED', words.getvalue())
    written = pd.read_csv('study_matched_ps.csv')
    after, before = p_values(study.matched_data), p_values(patients)
    print(f'{controls} controls, caliper {caliper}: {said}, {good}. Sick and old, of controls and cases:'
          f' {shares(study.matched_data)}, p of matched {after}, of all {before}')
    print(f'   {len(study.matched_data)} matched, {len(written)} written with {list(written)}')
    assert (said, good) == (['FAILED', 'FAILED'], False), 'another group of patients is tested now'
    assert len(written) == 2200 and 'OPTUM_LAB_ID' not in written
    assert len(study.matched_data) == 200 * (1 + int(controls)) and max(before) < 1e-6
    if controls == '1':
        assert shares(study.matched_data) == [[0.635, 0.625]] * 2 and min(after) > 0.99
assert shares(patients) == [[0.308, 0.398], [0.635, 0.625]]
PYTHON
echo 'As stated: what is well matched fails, and the file is of all patients.'
