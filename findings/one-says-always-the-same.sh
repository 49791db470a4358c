#!/usr/bin/env bash
# pyagree 0.0.4 (agreement of two raters): `ia_c`, the extension of Information Agreement to tables with zeros, is
# turned around if one rater uses a single category. Two raters who have nothing in common agree completely.
#   - Rater A calls 50, 20, 20 and 10 of 100 patients grades 1 to 4, rater B calls all of them grade 1: `ia_c` is 1,
#     as of perfect agreement. 0 is right, and `cohen_kappa` is 0.
#   - Both call all patients grade 1 of four: `ia_c` is .25, .75 is right. With three grades it is .33 and .67.
#   - So the more grades rater A uses, the better the agreement with B: .25, .5, .75 and 1 for one to four grades,
#     where the documentation's formula has .75, .5, .25 and 0.
#   - With the zeros replaced by a small number, as the documentation defines it, the values go towards those.
# The documentation has 1 - m / k with m the number of rows that are not null. `count_nonnull_rows` and
# `count_nonnull_cols` count the null ones. Nothing is raised, and with two raters who both use one of two grades it
# is .5 either way. Remedy: 1 less the value if a rater uses one category alone.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pyagree==0.0.4
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from math import log2

import numpy as np
from pyagree import cohen_kappa, ia_c

print('pyagree', version('pyagree'))


def by_formula(table):
    """The documentation's value for a table in which one rater uses a single category."""
    rows, columns = (table.sum(axis=1) > 0).sum(), (table.sum(axis=0) > 0).sum()
    assert 1 in (rows, columns)
    return float(1 - max(rows, columns) / len(table))


def with_small_numbers(table, small):
    """Mutual information divided by the smaller entropy, where zeros are replaced by a small number."""
    shares = np.where(table == 0, small, table)
    shares = shares / shares.sum()
    first, second = shares.sum(axis=1), shares.sum(axis=0)
    entropies = [-sum(share * log2(share) for share in part) for part in (first, second)]
    information = sum(
        shares[i, j] * log2(shares[i, j] / (first[i] * second[j])) for i in range(len(table)) for j in range(len(table))
    )
    return information / min(entropies)


seen = []
for counts, found_right in (
    ((100, 0, 0, 0), (0.25, 0.75)), ((50, 50, 0, 0), (0.5, 0.5)), ((50, 30, 20, 0), (0.75, 0.25)),
    ((50, 20, 20, 10), (1, 0)), ((100, 0, 0), (1 / 3, 2 / 3)), ((50, 30, 20), (1, 0)), ((70, 30), (1, 0)),
    ((100, 0), (0.5, 0.5)),
):
    table = np.zeros((len(counts), len(counts)))
    table[:, 0] = counts
    for name, turned in (('B', table), ('A', table.T)):
        found, right = ia_c(turned), by_formula(turned)
        near = [with_small_numbers(turned, 10.0**-digits) for digits in (3, 6, 9)]
        print(f'{counts}, rater {name} says 1 always: {found:.3f}, by the formula {right:.3f}, with small numbers',
              ' '.join(f'{value:.3f}' for value in near))
        assert np.isclose(found, found_right[0]), 'rows that are not null are counted now'
        assert np.isclose(right, found_right[1])
        assert abs(near[2] - right) <= abs(near[1] - right) + 1e-3 < abs(near[0] - right) + 2e-3
        if right == 0:
            assert near[2] < 0.02
    if np.count_nonzero(table) > 1:
        assert abs(cohen_kappa(table)) < 1e-12

table = np.array([[5, 1, 0], [0, 3, 1], [1, 0, 2]])
found, right = ia_c(table), with_small_numbers(table, 1e-12)
print(f'with several categories {found:.4f}, by hand {right:.4f}')
assert np.isclose(found, right)
PYTHON
echo 'As stated: a rater who always says the same agrees the more, the more the other one differs.'
