#!/usr/bin/env bash
# irrCAC 0.4.4: the p-value of Brennan and Prediger's coefficient, `CAC(ratings).bp()`, is half of what it should be.
# Those of Gwet, Fleiss, Krippendorff and Conger, of the same ratings, are right.
#   - Two annotators, 20 texts, three grades, quadratic weights: coefficient .51, 95 % interval from -.0003 to 1, p =
#     .025. An interval that holds 0 and a p-value below .05 cannot both be right; by coefficient and standard error p
#     is .0501.
#   - For the other four coefficients p is 2 * (1 - cdf(t)), for this one 1 - cdf(t). `irrCAC.table.CAC(...).bp()`, for
#     the same two annotators as a table, doubles it too, and so does the R package of the same name, of which this is a
#     port.
#   - Coefficient, interval, z and standard error are right.
# Nothing says that this one is one-sided, and one would expect the results of one object to have one meaning. Nothing
# is raised, and of five coefficients that are nearly alike this one looks twice as certain. Remedy: take 2 * p, or p by
# `z` and n - 1 degrees of freedom.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install irrCAC==0.4.4 pandas==2.3.3 scipy==1.12.0 numpy==1.26.4
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from irrCAC import raw, table
from scipy import stats

print('irrCAC', version('irrCAC'))
draw = np.random.default_rng(1)
first = draw.integers(1, 4, 20)
second = np.where(draw.random(20) < 0.5, first, draw.integers(1, 4, 20))
ratings = pd.DataFrame({'first': first, 'second': second})
pairs = pd.crosstab(first, second)
assert pairs.shape == (3, 3)


def by_hand(found, factor):
    """The p-value that coefficient and standard error give, on so many sides."""
    return factor * stats.t.sf(abs(float(found['coefficient_value']) / float(found['se'])), len(ratings) - 1)


for weights in ('identity', 'linear', 'quadratic', 'ordinal'):
    annotators = raw.CAC(ratings, weights=weights)
    for name in ('gwet', 'fleiss', 'krippendorff', 'conger', 'bp'):
        found = getattr(annotators, name)()['est']
        p, right = float(found['p_value']), by_hand(found, 2)
        low = float(found['confidence_interval'][0])
        value = float(found['coefficient_value'])
        print(f'{weights:9s} {name:12s} {value:.3f}, from {low:.4f}, p {p:.6f}, right {right:.6f}')
        expected = by_hand(found, 1) if name == 'bp' else right
        assert np.isclose(p, expected, rtol=1e-2), f'p of {name} has other sides now'
    of_table = table.CAC(pairs, weights=weights).bp()['est']
    assert np.isclose(float(of_table['p_value']), by_hand(of_table, 2), rtol=0.2)
    assert float(of_table['p_value']) > 1.4 * float(annotators.bp()['est']['p_value'])

found = raw.CAC(ratings, weights='quadratic').bp()['est']
assert found['confidence_interval'][0] < 0 and 0.02 < found['p_value'] < 0.03 and by_hand(found, 2) > 0.05
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: one of five p-values is one-sided.'
