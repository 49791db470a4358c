#!/usr/bin/env bash
# mlxtend 0.25.0: `evaluate.proportion_difference(accuracy_1, accuracy_2, n)` gives a p-value that depends on which
# model is named first, and is half of what the page of the function speaks of.
#   - Accuracies of .84 and .92 on 100 texts: p is .040. Of .92 and .84: p is .960. For a test of "no difference" it is
#     .079 in both orders.
#   - p is the area below z, the p-value of the hypothesis that the first model is worse. With the better model first it
#     is never below .5: .99 against .80 on 10,000 texts is p = 1.
#   - z has the right size and sign.
# The user guide states "the null hypothesis ... that the proportions are the same" and a two-tailed test, lets one
# reject where "z is greater than 1.96", and then calls the example, z = -1.754 and p = .040, a statistically
# significant difference. No argument asks for a side, and mcnemar, cochrans_q and the t-tests of the same module give
# the same p in both orders. Nothing is raised. A new encoder is usually named first. Remedy: 2 * min(p, 1 - p) is the
# two-sided value; better is `mcnemar` of the same module, as both models read the same texts.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install mlxtend==0.25.0 scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import numpy as np
from mlxtend.evaluate import mcnemar, mcnemar_table, proportion_difference
from scipy.stats import norm

print('mlxtend', version('mlxtend'))


def by_hand(first, second, texts):
    """z and the two-sided p-value of two accuracies."""
    z = (first - second) / np.sqrt(first * (1 - first) / texts + second * (1 - second) / texts)
    return z, 2 * norm.sf(abs(z))


cases = (0.84, 0.92, 100), (0.92, 0.84, 100), (0.8, 0.99, 10_000), (0.99, 0.8, 10_000), (0.9, 0.9, 500)
for first, second, texts in cases:
    z, p = proportion_difference(first, second, n_1=texts)
    right = by_hand(first, second, texts)
    print(f'{first} and {second} on {texts}: z {z:.3f}, p {p:.3f}; two-sided p {right[1]:.3f}')
    assert np.isclose(z, right[0])
    assert np.isclose(p, right[1] / 2 if z <= 0 else 1 - right[1] / 2), 'p has two sides now'
    assert np.isclose(2 * min(p, 1 - p), right[1])

assert proportion_difference(0.99, 0.8, n_1=10_000)[1] > 0.999
z, p = proportion_difference(0.84, 0.92, n_1=100)
assert abs(z) < 1.96 and p < 0.05 < by_hand(0.84, 0.92, 100)[1]

# Two models that differ, on the same texts: how often either order says so.
draw = np.random.default_rng(0)
labels = np.zeros(300, int)
found = {'worse first': 0, 'better first': 0, 'mcnemar': 0}
for _ in range(200):
    worse, better = (draw.random(300) < 0.2).astype(int), (draw.random(300) < 0.1).astype(int)
    accuracies = np.mean(worse == labels), np.mean(better == labels)
    found['worse first'] += proportion_difference(*accuracies, n_1=300)[1] < 0.05
    found['better first'] += proportion_difference(*accuracies[::-1], n_1=300)[1] < 0.05
    both = [mcnemar(mcnemar_table(labels, *pair))[1] for pair in ((worse, better), (better, worse))]
    assert both[0] == both[1]
    found['mcnemar'] += both[0] < 0.05
print('accuracy .8 and .9 on 300 texts, p < .05 in 200 draws:', {name: int(count) for name, count in found.items()})
assert found['worse first'] > 180 and found['better first'] == 0 and found['mcnemar'] > 160
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: with the better model first no difference is ever found.'
