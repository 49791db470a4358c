#!/usr/bin/env bash
# diametrics 0.4.3 (continuous glucose monitoring): `auc(df)` gives all patients of a table the same area under the
# curve, that of the whole table.
#   - Three patients with 90, 250 and 140 mg/dL at all times: each has an area of 160.05. 90, 250 and 140 are right,
#     as `all_standard_metrics` of the same table has it.
#   - The area of a patient changes with who else is in the table: the one of 90 has 170 together with that of 250.
#   - Of 40 patients with means of 105 to 195 all have one area, and the correlation with the mean is not defined.
#     Computed patient by patient, it is 1.00.
# The reason: of a function within a function that gets the rows of one patient, the formula takes the rows of the
# outer one, and so the step from the last reading of a patient to the first one of the next, too. The other functions
# with an `ID` column, `average_glc` for one, keep patients apart. The docstring says nothing on patients. The
# returned table has one row for each `ID`. Nothing is raised. Remedy: call it for each patient, or take
# `all_standard_metrics`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==1.26.4 pandas==2.3.3 scipy==1.17.1 scikit-learn==1.9.1
"$folder/env/bin/pip" --quiet install --no-deps diametrics==0.4.3
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from diametrics import metrics

print('diametrics', version('diametrics'))
times = pd.date_range('2026-01-01', periods=288, freq='5min')


def table(patients):
    return pd.concat([pd.DataFrame({'ID': name, 'time': times, 'glc': values}) for name, values in patients.items()])


def areas(rows):
    return metrics.auc(rows).set_index('ID')['auc'].to_dict()


def by_hand(values):
    """The mean of the trapezoids."""
    values = np.asarray(values, dtype=float)
    return float((values[1:] + values[:-1]).mean() / 2)


three = table({'A': 90.0, 'B': 250.0, 'C': 140.0})
found = areas(three)
means = metrics.average_glc(three).set_index('ID')['avg_glc'].to_dict()
complete = metrics.all_standard_metrics(three, units='mg').set_index('ID')['auc'].to_dict()
print('areas', found, 'means', means, 'by all_standard_metrics', complete)
assert means == complete == {'A': 90, 'B': 250, 'C': 140}
assert set(found) == set(means) and len(set(found.values())) == 1, 'patients are kept apart now'
assert np.isclose(found['A'], 160.052, atol=1e-3) and np.isclose(found['A'], by_hand(three['glc']))

two = areas(table({'A': 90.0, 'B': 250.0}))
alone = areas(table({'A': 90.0}))
print('of two patients', two, 'alone', alone)
assert np.isclose(two['A'], 170.0, atol=0.005) and two['A'] == two['B'] and alone == {'A': 90}

draw = np.random.default_rng(0)
hours = np.arange(288) / 12
many = {
    f'patient {number:02}': level + 40 * np.sin(hours) + draw.normal(0, 5, 288)
    for number, level in enumerate(np.linspace(105, 195, 40))
}
together = np.array(list(areas(table(many)).values()))
apart = np.array([areas(table({name: values}))[name] for name, values in many.items()])
right = np.array([by_hand(values) for values in many.values()])
levels = np.array([values.mean() for values in many.values()])
print(f'40 patients: together {together.min():.2f} to {together.max():.2f}, one by one {apart.min():.2f} to'
      f' {apart.max():.2f}, correlation with the mean {np.corrcoef(apart, levels)[0, 1]:.4f}')
assert np.ptp(together) == 0 and np.allclose(apart, right) and np.ptp(apart) > 80
assert np.corrcoef(apart, levels)[0, 1] > 0.999
PYTHON
echo 'As stated: all patients have the area of the whole table.'
