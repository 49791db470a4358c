#!/usr/bin/env bash
# deepsig 1.2.8 (deep-significance): `bonferroni_correction(p_values)` gives corrected p-values to the wrong comparisons, as
# soon as there are three or more and they do not come in an order that happens to be its own inverse.
#   - Of .03, .5 and .001 it makes .5, .003 and .06. The comparison that found nothing, .5, is now the one that is
#     significant at .01, and the one with .001 is not significant at all. Right are .06, .5 and .003.
#   - p-values are sorted, corrected, and put back by the numbers of the sort, where its inverse is needed. With two values,
#     or with values that are sorted already, both are the same. Of the 6 orders of three values 4 come out right, of the 120
#     of five 26, and of the 720 of six 76.
#   - A corrected value may be smaller than its p-value, .003 for .5, which no correction can give.
#   - In each order the set of numbers is right, and so is the count of significant results. Only the names beside them are
#     wrong.
# One would expect the correction at place i to belong to the p-value at place i, as all other packages do it, and the code
# says that it keeps the order. Nothing is raised. It is what one calls when a new encoder is compared with a baseline on
# several data sets, and the table then has its stars at other data sets. `aso` and `multi_aso` divide their level by the
# number of comparisons and are not concerned. Remedy: multiply p-values by their number, or statsmodels' `multipletests`.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install deepsig==1.2.8 numpy scipy pandas
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata
import itertools

import numpy
from deepsig import bonferroni_correction

print('deepsig', importlib.metadata.version('deepsig'))
found = bonferroni_correction([0.03, 0.5, 0.001])
print('p-values .03, .5, .001 are corrected to', found.round(4).tolist(), 'and right are [0.06, 0.5, 0.003]')
assert numpy.allclose(found, [0.5, 0.003, 0.06]), 'each comparison has its own correction now'
assert found[1] < 0.5, 'a correction makes no p-value smaller now'

values = [0.001, 0.004, 0.011, 0.02, 0.2, 0.6]
for number in range(2, 7):
    chosen = values[:number]
    # what the package itself gives each value where they come sorted
    right = dict(zip(chosen, bonferroni_correction(chosen)))
    orders = list(itertools.permutations(chosen))
    kept = own_inverse = 0
    for order in orders:
        given = bonferroni_correction(list(order))
        kept += numpy.allclose(given, [right[value] for value in order])
        assert numpy.allclose(sorted(given), sorted(right.values())), 'the set of numbers differs'
        ranks = numpy.argsort(order)
        own_inverse += (ranks[ranks] == numpy.arange(number)).all()
    print(f'{number} comparisons: {kept} of {len(orders)} orders come out right')
    assert kept == own_inverse
    assert (kept == len(orders)) == (number == 2), 'orders are kept now'
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: with three comparisons or more, corrected p-values go to other comparisons.'
