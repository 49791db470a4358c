#!/usr/bin/env bash
# spiro-zscore 0.4.0 (z-scores of spirometry by the equations of GLI): `zscore(frame, 'FEV1', merge=True)` gives each
# visit the z-scores of all visits of the patient, if the index of the frame is the patient.
#   - A boy with an FEV1 of 1.9, 2.6 and 3.4 litres at 12, 13 and 14 years has z-scores of -1.99, -.73 and .29. The
#     merged table has nine rows for him, and in one of them the 3.4 litres have the -1.99.
#   - 100 children with three visits, who get better from one to the next: 300 rows become 900. The mean z-score of the
#     first, second and third visits is -1.39, -.68 and -.01, computed on rows with numbers of their own. In the merged
#     table it is -.69 for each of the three, so a treatment effect is gone.
#   - Two clinics put together by pandas.concat, each with rows 0 to 99: 200 rows become 400, half of them a stranger's.
# The reason: the results are merged with the frame by its index, and each pair of equal labels makes a row.
# One would expect a row for each row, since the docstring speaks of a copy of the frame with three more columns. It
# excludes an index of several levels, which raises, and says nothing about labels that come twice.
# Nothing is raised. Without merge=True the rows are right, but to merge them by the index, as the docstring proposes,
# does the same. Remedy: call `frame.reset_index()` before.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install spiro-zscore==0.4.0 pandas==3.1.1 numpy==2.4.6 'setuptools<81'
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from spiro_zscore import zscore

print('spiro-zscore', version('spiro-zscore'), 'pandas', pd.__version__)
boy = pd.DataFrame(
    {'sex': 1, 'age': [12.0, 13, 14], 'height': [150, 157, 164], 'ethnicity': 1, 'FEV1': [1.9, 2.6, 3.4]},
    index=pd.Index([7, 7, 7], name='patient'),
)
right = zscore(boy.reset_index(), 'FEV1')['Z-FEV1'].to_numpy()
merged = zscore(boy, 'FEV1', merge=True)
print('one boy, z-scores of his visits:', right.round(2))
print(merged[['age', 'FEV1', 'Z-FEV1']].round(2))
assert np.allclose(right, [-1.99, -0.73, 0.29], atol=0.01)
assert len(merged) == 9, 'the table has one row for each visit'
assert np.allclose(np.sort(merged[merged.FEV1 == 3.4]['Z-FEV1']), right)
assert np.allclose(zscore(boy.reset_index(), 'FEV1', merge=True)['Z-FEV1'], right)

draw = np.random.default_rng(0)
visits = pd.DataFrame({
    'patient': np.repeat(np.arange(100), 3), 'visit': np.tile([1, 2, 3], 100), 'sex': np.repeat([1, 2], 150),
    'age': np.repeat(draw.uniform(8, 14, 100), 3) + np.tile([0, 0.5, 1], 100), 'ethnicity': 1,
})
visits['height'] = 125 + 6 * (visits.age - 8) + np.repeat(draw.normal(0, 5, 100), 3)
visits['FEV1'] = 100.0
middle = 100 / zscore(visits, 'FEV1', outputs=['PP'])['PP-FEV1'].to_numpy() * 100
visits['FEV1'] = middle * (np.tile([0.84, 0.92, 1.01], 100) + draw.normal(0, 0.1, 300))
right = zscore(visits, 'FEV1', merge=True).groupby('visit')['Z-FEV1'].mean()
merged = zscore(visits.set_index('patient'), 'FEV1', merge=True)
found = merged.groupby('visit')['Z-FEV1'].mean()
print(f'300 visits of 100 children, {len(merged)} rows. Mean z-score of each visit:', found.round(2).to_list())
print('The same with a number for each row:', right.round(2).to_list())
assert len(merged) == 900 and np.ptp(found) < 1e-9 and np.ptp(right) > 1

clinics = pd.concat([visits[visits.visit == number].reset_index(drop=True) for number in (1, 3)])
print('two clinics of 100:', len(zscore(clinics, 'FEV1', merge=True)), 'rows')
assert len(clinics) == 200 and len(zscore(clinics, 'FEV1', merge=True)) == 400
PYTHON
echo 'As stated: visits get the z-scores of other visits where the index repeats.'
