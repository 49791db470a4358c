#!/usr/bin/env bash
# permute 0.2: `core.spearman_corr(x, y)` gives a number that has little to do with Spearman's correlation, and a
# p-value to it.
#   - Gold scores of 100 pairs of sentences and scores of a model that follow them closely: Spearman's correlation is
#     .92 by scipy, and p is 3e-42. By permute it is .04, and p is .32.
#   - The same 100 pairs in another order of rows have another correlation: from -.17 to .19 in 20 shuffles. x and -x,
#     which is -1, gives -.42 for 20 numbers.
#   - Ranks are taken to be what numpy's argsort gives. But that says which row is the smallest, which the next, and so
#     on; the rank of a row is argsort of argsort. What is computed is how far the two orders name the same rows at the
#     same places.
#   - Where y rises whenever x does both orders are the same, and so the value 1 comes out right; it does, too, for rows
#     that are sorted by x but for an exchange of two. These are the tests that one writes.
#   - Equal scores, as in a gold standard of whole numbers, get different ranks.
# The documentation says "Simulate permutation p-value for Spearman correlation coefficient". Nothing is raised. BIOSSES
# and other sets of similar sentences are scored by this number. The authors agreed in 2021 that it is wrong, in their
# tracker, and no version has come out since. Remedy: `core.corr(rankdata(x), rankdata(y))` with scipy's rankdata gives
# Spearman's correlation and the p-value of its permutations.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install permute==0.2 scipy==1.17.1 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import numpy as np
from permute.core import corr, spearman_corr
from scipy.stats import rankdata, spearmanr

print('permute', version('permute'))
draw = np.random.default_rng(0)
gold = 4 * draw.random(100)
model = gold / 4 + 0.5 * draw.random(100)


def shown(name, x, y, **options):
    found, p, _ = spearman_corr(x, y, reps=200, seed=0, **options)
    right = spearmanr(x, y)
    print(f'{name}: {found:.3f}, p {p:.3f}; scipy {right.statistic:.3f}, p {right.pvalue:.1g}')
    return found, p, right.statistic


found, p, right = shown('gold and model', gold, model)
assert right > 0.85 and abs(found) < 0.2 and p > 0.3, 'it is the correlation of ranks now'

shuffled = []
for _ in range(20):
    rows = draw.permutation(100)
    assert np.isclose(spearmanr(gold[rows], model[rows]).statistic, right)
    shuffled.append(spearman_corr(gold[rows], model[rows], reps=1)[0])
print(f'20 orders of the same rows: {min(shuffled):.3f} to {max(shuffled):.3f}')
assert max(shuffled) - min(shuffled) > 0.2 and max(shuffled) < 0.5

assert shown('x and x cubed', model, model**3)[0] > 0.999
few = draw.permutation(20)
found, _, right = shown('x and -x', few, -few)
assert np.isclose(right, -1) and found > -0.9
exchanged = np.arange(20)
exchanged[[0, 19]] = exchanged[[19, 0]]
found, _, right = shown('sorted rows, two of them exchanged', np.arange(20), exchanged)
assert np.isclose(found, right)

# What is computed, and what should be.
orders = np.corrcoef(np.argsort(gold), np.argsort(model))[0, 1]
assert np.isclose(orders, spearman_corr(gold, model, reps=1)[0])
ranks = np.corrcoef(np.argsort(np.argsort(gold)), np.argsort(np.argsort(model)))[0, 1]
assert np.isclose(ranks, spearmanr(gold, model).statistic)

whole = np.round(gold)
remedy, p, _ = corr(rankdata(whole), rankdata(model), reps=200, seed=0)
print(f'corr of ranks, gold in whole numbers: {remedy:.3f}, p {p:.3f}; scipy {spearmanr(whole, model).statistic:.3f}')
assert np.isclose(remedy, spearmanr(whole, model).statistic) and p < 0.01
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: what is correlated is not ranks.'
