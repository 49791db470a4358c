#!/usr/bin/env bash
# episia 0.1.3: `mantel_haenszel_or(tables)` pools risk ratios and risk differences of tables that are read sideways, so
# both are wrong, and the interval of its odds ratio has the wrong width.
#   - One stratum: 40 of 60 exposed and 10 of 40 others fall ill. `Table2x2(40, 10, 20, 30)` has a risk ratio of 2.67 and
#     a risk difference of .42. Pooled alone it has 2.00 and 10.0. A difference of two risks cannot be above 1.
#   - Two strata with a risk ratio of 2.0 in each: `common_rr` is 1.40. By Mantel and Haenszel it is 2.00.
#   - Two strata with 2.0 and 1.8: 1.27, with an interval of .98 to 1.65, "not significant". It is 1.88, 1.44 to 2.44.
#   - A rare disease, 12 cases in 3000 exposed and 6 in 3000 others: the odds ratio of 2.01 gets an interval of 1.00 to
#     4.02, "significant". By Robins, Breslow and Greenland it is .75 to 5.36.
#   - Without any effect, two strata with risks of .6 and 1.2 %: the interval of the odds ratio leaves 1 out in 18 % of
#     2000 studies, where 5 % are allowed. By Robins, Breslow and Greenland it does so in 6 %.
# The reason: a Table2x2 has exposed and unexposed in its columns, but the sums are taken along its rows, which are the
# cases and the others. The risk difference is not divided by the weights. The variance of the odds ratio has two of the
# three parts of the formula, put together otherwise.
# One would expect the common risk ratio, as the README lists "Pooled OR/RR", and as OpenEpi has it, which the README says
# results agree with. The pooled odds ratio itself is right, since it is the same either way. Nothing is raised.
# Adjusted risks in a report are those of the wrong question. Remedy: the formulas by hand, as in this script.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==3.1.1 scipy==1.17.1
"$folder/env/bin/pip" --quiet install --no-deps episia==0.1.3
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from episia.stats.contingency import Table2x2
from episia.stats.stratified import mantel_haenszel_or
from scipy.stats import norm

print('episia', version('episia'))


def limits(estimate, variance):
    half = norm.isf(0.025) * np.sqrt(variance)
    return estimate * np.exp(-half), estimate * np.exp(half)


def by_hand(cells):
    """Odds ratio, risk ratio and risk difference by Mantel and Haenszel, of (ill, ill, well, well) by exposure."""
    a, b, c, d = np.transpose(cells).astype(float)
    exposed, others, size = a + c, b + d, a + b + c + d
    r, s, p, q = a * d / size, b * c / size, (a + d) / size, (b + c) / size
    odds = r.sum() / s.sum()
    parts = (p * r).sum() / r.sum() ** 2, (p * s + q * r).sum() / (r.sum() * s.sum()), (q * s).sum() / s.sum() ** 2
    top, bottom = a * others / size, b * exposed / size
    risk = top.sum() / bottom.sum()
    variance = ((a + b) * exposed * others / size**2 - a * b / size).sum() / (top.sum() * bottom.sum())
    difference = (top - bottom).sum() / (exposed * others / size).sum()
    return odds, limits(odds, sum(parts) / 2), risk, limits(risk, variance), difference


def pooled(cells):
    found = mantel_haenszel_or([Table2x2(*map(int, row)) for row in cells])
    return found.common_or, found.or_ci, found.common_rr, found.rr_ci, found.common_rd


def show(text, values):
    odds, odds_limits, risk, risk_limits, difference = values
    print('{:8} odds ratio {:.2f} ({:.2f} to {:.2f}), risk ratio {:.2f} ({:.2f} to {:.2f}), difference {:.3f}'.format(
        text, odds, *odds_limits, risk, *risk_limits, difference))


results = []
for cells in (
    [(40, 10, 20, 30)],
    [(20, 40, 180, 760), (120, 30, 180, 120)],
    [(30, 60, 70, 340), (180, 25, 220, 75)],
    [(4, 2, 1996, 1998), (8, 4, 992, 996)],
):
    found, right = pooled(cells), by_hand(cells)
    print('strata with a risk ratio of', *(round(Table2x2(*row).risk_ratio().estimate, 2) for row in cells))
    show('episia', found)
    show('by hand', right)
    assert np.isclose(found[0], right[0])
    results.append((found, right))

# With a single stratum the formulas are those of the table itself.
alone = Table2x2(40, 10, 20, 30)
found, right = results[0]
assert np.isclose(right[2], alone.risk_ratio().estimate) and np.isclose(right[4], alone.risk_difference()['estimate'])
assert np.allclose(right[1], [alone.odds_ratio().ci_lower, alone.odds_ratio().ci_upper])
assert np.allclose(right[3], [alone.risk_ratio().ci_lower, alone.risk_ratio().ci_upper])
assert np.isclose(found[2], 2.0) and np.isclose(found[4], 10.0), 'the tables are read as they are now'
assert np.isclose(right[2], 8 / 3) and np.isclose(right[4], 0.4167, atol=0.0001)
found, right = results[1]
assert np.isclose(found[2], 1.395, atol=0.001) and np.isclose(right[2], 2.0) and found[4] > 1
found, right = results[2]
assert np.allclose([found[2], *found[3]], [1.272, 0.983, 1.647], atol=0.001)
assert np.allclose([right[2], *right[3]], [1.875, 1.441, 2.439], atol=0.001)
found, right = results[3]
assert np.allclose(found[1], [1.00, 4.02], atol=0.02) and found[1][0] > 1
assert np.allclose(right[1], [0.75, 5.36], atol=0.02)

draw = np.random.default_rng(0)
out = np.zeros(2)
for _ in range(2000):
    ill = draw.binomial([[2000, 2000], [1000, 1000]], [[0.006, 0.006], [0.012, 0.012]])
    cells = np.hstack([ill, [[2000, 2000], [1000, 1000]] - ill])
    out += [not low <= 1 <= high for low, high in (pooled(cells)[1], by_hand(cells)[1])]
print('no effect: the interval of the odds ratio leaves 1 out in {:.3f}, by hand in {:.3f}'.format(*out / 2000))
assert out[0] / 2000 > 0.15 and out[1] / 2000 < 0.07
PYTHON
echo 'As stated: pooled risks are those of tables read sideways.'
