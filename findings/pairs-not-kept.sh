#!/usr/bin/env bash
# deepsig 1.2.8 (deep-significance): `bootstrap_test(scores_a, scores_b)`, its "paired bootstrap test", draws the scores of
# A and those of B each by themselves. So no pair is kept, and it is a test of two unrelated samples.
#   - 100 documents that differ much in how hard they are (scores of 70 and a deviation of 15), and a system A that is better
#     than B by .6 on the same documents, with a deviation of 1.5: the p-value is .39. By a paired bootstrap, by a paired
#     t-test and by the package's own permutation_test it is .001 or less.
#   - The scores of B can be put into any order, so that each document of A meets another one of B, and the result stays
#     at about .4: pairs have no part in it.
#   - It is wrong in the other direction, too. Where A is good at what B is bad at, so that the scores of a pair are
#     opposed, it takes one of two equal systems for better at 5 % in one of eight trials.
# One would expect one draw of document numbers that is used for both, which is what "paired" means in the documentation
# and the README, and why both lists must have one length. Nothing is raised. With scores of unrelated runs, as in the
# README's example, it is right, and results for documents look like careful ones: a real gain is called chance.
# Remedy: `permutation_test` of the same package, or scipy's `permutation_test(permutation_type='samples')`.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install deepsig==1.2.8 numpy scipy pandas
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata

import numpy
import scipy.stats
from deepsig import bootstrap_test, permutation_test

print('deepsig', importlib.metadata.version('deepsig'))


def paired(a, b, draws=1000):
    """The same test with one draw of rows for both."""
    rows = numpy.random.default_rng(1).integers(0, len(a), (draws, len(a)))
    return ((a[rows] - b[rows]).mean(1) >= 2 * (a - b).mean()).mean()


draw = numpy.random.default_rng(0)
hard = draw.normal(70, 15, 100)
a = hard + 0.5 + draw.normal(0, 1, 100)
b = hard + draw.normal(0, 1, 100)
print(f'A is better by {(a - b).mean():.2f} and the difference has a deviation of {(a - b).std():.2f}')
found = bootstrap_test(a, b, seed=1)
right = {
    'permutation_test of deepsig': permutation_test(a, b, seed=1),
    'paired bootstrap': paired(a, b),
    'paired t-test': scipy.stats.ttest_rel(a, b, alternative='greater').pvalue,
}
unpaired = scipy.stats.ttest_ind(a, b, alternative='greater').pvalue
print(f'bootstrap_test of deepsig: {found:.3f}, t-test of unrelated samples: {unpaired:.3f}')
for name, value in right.items():
    print(f'{name}: {value:.5f}')
    assert value < 0.002
assert found > 0.3, 'pairs are kept now'
assert abs(found - unpaired) < 0.05

moved = bootstrap_test(a, draw.permutation(b), seed=1)
print(f'bootstrap_test with the documents of B in another order: {moved:.3f}')
assert abs(found - moved) < 0.05

trials, wrong, wrong_paired = 300, 0, 0
for trial in range(trials):
    kind = draw.normal(0, 1, 30)
    a = 70 + kind + draw.normal(0, 0.1, 30)
    b = 70 - kind + draw.normal(0, 0.1, 30)
    wrong += bootstrap_test(a, b, num_samples=200, seed=trial) <= 0.05
    wrong_paired += paired(a, b) <= 0.05
print(f'equal systems, opposed scores: different at 5 % in {wrong} of {trials} trials, by pairs in {wrong_paired}')
assert wrong > 0.09 * trials > 1.2 * wrong_paired
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: the scores of one document are not drawn together.'
