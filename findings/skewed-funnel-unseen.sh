#!/usr/bin/env bash
# PythonMeta 1.26: with subgroups, `Eggers_test`, the test for publication bias, takes the pooled result of each
# subgroup for one more study, the most precise of all. Bias that the studies show is lost.
#   - The sample of the README has ten studies in two subgroups. Its test gives p = .52 and an intercept of -.44. The
#     same ten studies without the two lines of subgroups give p = .019 and -4.89, which is right.
#   - Ten studies in two subgroups, each shifted by two of its standard errors, so the small ones most: bias is found in
#     2 of 100 reviews, and without subgroups in 33 of 100. Twelve studies in four subgroups: 17 and 39 of 100.
#   - Without bias it is 0 of 300 in place of 5 %.
#   - Fig.funnel writes the same intercept and p-value on its plot.
# The reason: `meta` puts the rows of subgroups among the rows of studies, and the test takes all rows after the first.
# A pooled row repeats its studies, and it has less of the small studies' bias. With its small standard error it
# has the largest leverage, so it draws the intercept to 0.
# The README gives the result of `meta` to the test, and its sample has subgroups. It does not say that they change the
# test. Nothing is raised. A review with subgroups reports that there is no sign of publication bias. Remedy: give the
# test `meta(studies, nosubgrp=True)`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install PythonMeta==1.26 numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0 matplotlib==3.11.2
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import PythonMeta
from scipy import stats

print('PythonMeta', version('PythonMeta'))


def tests(lines, datatype, effect):
    """Intercept and p of the test, with subgroups and without them, and by hand; rows of the result with subgroups."""
    data = PythonMeta.Data()
    data.datatype = datatype
    studies = data.getdata(lines)
    analysis = PythonMeta.Meta()
    analysis.datatype, analysis.subgroup = datatype, data.subgroup
    analysis.models, analysis.algorithm, analysis.effect = 'Fixed', 'IV', effect
    rows = analysis.meta(studies)
    alone = analysis.meta(studies, nosubgrp=True)
    found, single = analysis.Eggers_test(rows), analysis.Eggers_test(alone)
    values = []
    for study in studies:
        if datatype == 'CATE':
            a, n, c, m = study[:4]
            b, d = n - a, m - c
            values.append((np.log(a * d / (b * c)), np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)))
        else:
            mean, sd, n, other_mean, other_sd, m = study[:6]
            values.append((mean - other_mean, np.sqrt(sd**2 / n + other_sd**2 / m)))
    effects, errors = np.array(values).T
    line = stats.linregress(1 / errors, effects / errors)
    p = 2 * stats.t.sf(abs(line.intercept / line.intercept_stderr), len(studies) - 2)
    pair = [(float(np.squeeze(test[0])), float(np.squeeze(test[2]))) for test in (found, single)]
    return *pair, (line.intercept, p), rows


# The sample of the README.
SAMPLE = """Fang 2015,15,40,24,37
Gong 2012,10,40,18,35
Liu 2015,30,50,40,50
Long 2012,19,40,26,40
Wang 2003,7,86,15,86
<subgroup>name=short term
Chen 2008,20,60,28,60
Guo 2014,31,51,41,51
Li 2015,29,61,31,60
Yang 2006,21,40,31,40
Zhao 2012,27,40,30,40
<subgroup>name=medium term""".splitlines()
found, alone, right, rows = tests(SAMPLE, 'CATE', 'OR')
for name, (intercept, p) in (('with subgroups', found), ('without', alone), ('by hand', right)):
    print(f'sample of the README, {name}: intercept {intercept:.2f}, p {p:.3f}')
assert np.allclose(alone, right) and np.allclose(right, (-4.893, 0.019), atol=0.001)
assert np.allclose(found, (-0.444, 0.524), atol=0.001), 'rows of subgroups are left out now'
print('rows that the test takes:', [row[0] for row in rows[1:]])
effects, errors = np.log([row[1] for row in rows[1:]]), np.array([row[6] for row in rows[1:]])
assert len(rows) == 13 and np.isclose(stats.linregress(1 / errors, effects / errors).intercept, found[0])
pooled = [row[6] for row in rows if row[0].startswith('<')]
single = [row[6] for row in rows[1:] if not row[0].startswith('<')]
print(f'standard errors of subgroups {np.round(pooled, 2)}, smallest of a study {min(single):.2f}')
assert max(pooled) < min(single)

# How often bias is found.
draw = np.random.default_rng(0)
TIMES = 300
for bias, groups, size, seen, without in ((0, 2, 5, 0.0, 0.05), (2, 2, 5, 0.02, 0.33), (2, 4, 3, 0.17, 0.39)):
    signs = np.zeros(3)
    for _ in range(TIMES):
        lines = []
        for group in range(groups):
            for study in range(size):
                n = int(draw.integers(15, 200))
                error = np.sqrt(2 / n)
                lines.append(f'Study {group} {study},{10 + draw.normal(bias * error, error):.4f},1,{n},10,1,{n}')
            lines.append(f'<subgroup>name=group {group}')
        signs += [p < 0.05 for _, p in tests(lines, 'CONT', 'MD')[:3]]
    signs /= TIMES
    print(f'{groups} subgroups of {size}, each study shifted by {bias} standard errors, share of p below .05:')
    print(f'    with subgroups {signs[0]:.3f}, without {signs[1]:.3f}, by hand {signs[2]:.3f}')
    assert abs(signs[0] - seen) < 0.06 and abs(signs[1] - without) < 0.08 and abs(signs[1] - signs[2]) < 0.01
PYTHON
echo 'As stated: with subgroups the test for publication bias does not see what the studies show.'
