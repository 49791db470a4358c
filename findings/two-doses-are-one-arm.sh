#!/usr/bin/env bash
# cem 1.1.0 (coarsened exact matching): `coarsen(data, treatment)` puts the treatment into bins like any covariate, so
# arms become one. Its second measure of imbalance, `L2`, is the first one.
#   - 300 patients get a dose of 0, 1 or 10. In what `coarsen` gives back they have (-0.01, 3.333] or (6.667, 10.0]: the
#     first two doses are one arm. `match` then keeps 21 patients in whose strata not all doses were given, 13 of them
#     in strata without 0, and `L1` compares one pair of arms, where there are three.
#   - The same patients with the doses called a, b and c keep three arms, and other bins of age and weight.
#   - Two arms, 0 and 1, stay two. But the number of bins is another one than without the treatment among the columns,
#     since a single bin for all arms has no imbalance and is left out of the median: 7 bins, and not 3.
#   - L2 of two groups with the shares .5, .5, 0 and .25, .25, .5 in three strata is .5, as L1 is. The root of the sum
#     of squares is .61, and half of it .31. So `coarsen(..., measure='l2')` does what it does without.
# The reasons: every numeric column is cut unless columns are named; and the root is taken of each square alone, which
# is the absolute difference. The docstring of `coarsen` says "binning numeric columns", its page of use "coarsen
# predictor variables", with a treatment of 0 and 1. Nothing is raised. Remedy: `columns=` with the covariates alone.
# Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3
"$folder/env/bin/pip" --quiet install --no-deps cem==1.1.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from cem.coarsen import coarsen
from cem.imbalance import L1, L2
from cem.match import match

print('cem', version('cem'))
draw = np.random.default_rng(0)
patients = pd.DataFrame({'age': draw.normal(60, 10, 300), 'weight': draw.normal(75, 12, 300)})
doses = pd.Series(draw.choice([0, 1, 10], 300))


def strata(table):
    return table.groupby(['age', 'weight'], observed=True).ngroup()


coarse = coarsen(patients.assign(dose=doses), 'dose')
arms = {str(arm): doses[coarse['dose'] == arm].value_counts().to_dict() for arm in coarse['dose'].unique()}
print('arms and their doses:', arms)
assert list(map(sorted, arms.values())) == [[10], [0, 1]], 'doses stay what they are now'


def kept_and_lonely(table):
    """How many patients are kept, in strata without one of the doses, and in strata without a dose of 0."""
    kept = match(table, 'dose') > 0
    by_stratum = doses.groupby(strata(table))
    incomplete, untreated = by_stratum.transform('nunique') < 3, by_stratum.transform('min') > 0
    return [int(part.sum()) for part in (kept, kept & incomplete, kept & untreated)]


found = kept_and_lonely(coarse)
imbalance = L1(coarse, 'dose')['imbalance'].dropna()
print('kept, without one of the doses, without 0:', found, 'imbalance:', imbalance.tolist())
assert found == [283, 21, 13] and len(imbalance) == 1

named = coarsen(patients.assign(dose=doses), 'dose', columns=['age', 'weight'])
letters = coarsen(patients.assign(dose=doses.map({0: 'a', 1: 'b', 10: 'c'})), 'dose')
for name, table in (('covariates named', named), ('letters', letters)):
    found = kept_and_lonely(table)
    print(f'{name}: {table["dose"].nunique()} arms, {table["age"].nunique()} bins of age, kept and so on {found},'
          f' {len(L1(table, "dose"))} imbalances')
    assert table['dose'].nunique() == 3 and found[1:] == [0, 0] and L1(table, 'dose')['imbalance'].notna().all()

two = patients.assign(dose=(doses > 0).astype(int))
bins = [table['age'].nunique() for table in (coarsen(two, 'dose'), coarsen(two, 'dose', columns=['age', 'weight']))]
print('two arms: bins', bins)
assert bins == [7, 3]

small = pd.DataFrame({'stratum': list('aabb') + list('abcc'), 'arm': [0] * 4 + [1] * 4})
gaps = np.array([0.5, 0.5, 0]) - np.array([0.25, 0.25, 0.5])
print('L1', L1(small, 'arm'), 'L2', L2(small, 'arm'), 'root of the sum of squares', np.linalg.norm(gaps).round(3))
assert L1(small, 'arm') == L2(small, 'arm') == 0.5 and np.isclose(np.linalg.norm(gaps), 0.612, atol=0.001)
for bins in range(2, 11):
    table = patients.apply(pd.cut, bins=bins).assign(dose=two['dose'])
    assert np.isclose(L1(table, 'dose'), L2(table, 'dose'))
assert coarsen(two, 'dose', measure='l2').equals(coarsen(two, 'dose', measure='l1'))
PYTHON
echo 'As stated: doses become one arm, and the second measure is the first.'
