#!/usr/bin/env bash
# crowd-kit 1.4.2: `BradleyTerry(n_iter=100).fit_predict(comparisons)` always stops at its second round, long before
# the scores are those of the model. So items are ranked by whom they met.
#   - Three summaries. A wins 80 of 100 against B, and B wins 80 of 100 against C. The scores should stand as 16 : 4 : 1.
#     The class gives .64, .28 and .09, so A beats B in 70 %, and not in the 80 % that it has just been told.
#   - Five summaries. A wins 60 of 100 against B, and C wins 55 of 100 against B, so A is the best. C wins 90 of 100
#     against D as well, and D 90 of 100 against E. The class puts C first, with .36, and A only second, with .26.
#   - Ten summaries, each compared with the two that are next in quality: over 100 draws the ranks have a correlation
#     (Kendall's tau) of .45 with the truth. By maximum likelihood it is .91. The best one is found 72 times, not 88.
#   - With all pairs compared the order suffers little. But in the first draw the best has .22 where .40 is right.
# The reason: the scores of the last round are kept as the same array that the next round writes into. So the change
# is measured as zero, and zero is below `tol`. `loss_history_` is empty, and n_iter=2 gives the same numbers.
# One would expect the maximum of the likelihood, which the docstring has as a formula, after at most n_iter rounds.
# Nothing is raised. Whoever ranks models, texts or findings by such comparisons chooses by chance of the pairing.
# Remedy: `BradleyTerry(n_iter=5000, tol=0)`. It goes on, since zero is not below zero.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==3.1.1 scipy==1.17.1 scikit-learn==1.9.1 attrs==26.1.0 \
    nltk==3.10.4 tqdm==4.70.1
"$folder/env/bin/pip" --quiet install --no-deps crowd-kit==1.4.2
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from crowdkit.aggregation import BradleyTerry
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import kendalltau

print('crowd-kit', version('crowd-kit'), 'pandas', pd.__version__)


def compare(counts):
    """A row for each comparison, from the wins of both sides of each pair."""
    return pd.DataFrame(
        [(a, b, winner) for (a, b), wins in counts.items() for winner, times in zip((a, b), wins) for _ in range(times)],
        columns=['left', 'right', 'label'],
    )


def likeliest(data):
    """The scores of maximum likelihood, by a general optimiser."""
    names = sorted({*data.left, *data.right})
    place = {name: number for number, name in enumerate(names)}
    winner = data.label.map(place).to_numpy()
    loser = data.left.where(data.label == data.right, data.right).map(place).to_numpy()
    table = np.zeros((len(names), len(names)))
    np.add.at(table, (winner, loser), 1)

    def loss(strength):
        return (table * np.logaddexp(0, strength[None, :] - strength[:, None])).sum() + 1e-7 * (strength**2).sum()

    found = np.exp(minimize(loss, np.zeros(len(names)), method='BFGS', options={'gtol': 1e-7}).x)
    return pd.Series(found / found.sum(), index=names)


def three_ways(data):
    model = BradleyTerry(n_iter=100).fit(data)
    assert not model.loss_history_ and model.scores_.equals(BradleyTerry(n_iter=2).fit_predict(data)), 'it goes on now'
    remedy, right = BradleyTerry(n_iter=5000, tol=0).fit_predict(data), likeliest(data)
    assert np.allclose(remedy, right, atol=2e-3)
    return pd.DataFrame({'n_iter=100': model.scores_, 'tol=0': remedy, 'likelihood': right})


table = three_ways(compare({('A', 'B'): (80, 20), ('B', 'C'): (80, 20)}))
print(table.round(3))
found = table['n_iter=100']
print(f'A beats B in {found["A"] / (found["A"] + found["B"]):.2f}, by counting in .80')
assert np.allclose(table['likelihood'], [16 / 21, 4 / 21, 1 / 21], atol=1e-3)
assert np.allclose(found, [0.636, 0.278, 0.086], atol=0.001) and 0.69 < found['A'] / (found['A'] + found['B']) < 0.7

table = three_ways(compare({('A', 'B'): (60, 40), ('B', 'C'): (45, 55), ('C', 'D'): (90, 10), ('D', 'E'): (90, 10)}))
print(table.round(3))
assert table['likelihood'].idxmax() == table['tol=0'].idxmax() == 'A' and table['n_iter=100'].idxmax() == 'C'
assert np.allclose(table.loc[['A', 'C'], 'n_iter=100'], [0.256, 0.359], atol=0.001)

NAMES = list('ABCDEFGHIJ')
for design in ('neighbours', 'all pairs'):
    rows = []
    for seed in range(100):
        draw = np.random.default_rng(seed)
        truth = np.sort(draw.normal(0, 1.5, 10))[::-1]
        counts = {}
        for first in range(10):
            for second in range(first + 1, 10 if design == 'all pairs' else min(first + 3, 10)):
                wins = draw.binomial(30, expit(truth[first] - truth[second]))
                counts[NAMES[first], NAMES[second]] = (wins, 30 - wins)
        data = compare(counts)
        short, right = BradleyTerry(n_iter=100).fit_predict(data), BradleyTerry(n_iter=5000, tol=0).fit_predict(data)
        if not seed:
            print(f'{design}, first draw: highest score {short.max():.2f}, right {right.max():.2f}')
            assert np.allclose(right, likeliest(data), atol=2e-3)
            first_draw = short.max(), right.max()
        pairs = [(kendalltau(scores, truth)[0], scores.idxmax() == 'A') for scores in (short, right)]
        rows.append(np.ravel(pairs))
    tau, best, right_tau, right_best = np.mean(rows, 0)
    print(f'{design}: tau {tau:.2f}, best found in {best:.2f}; converged: tau {right_tau:.2f}, best in {right_best:.2f}')
    if design == 'neighbours':
        assert np.isclose(tau, 0.45, atol=0.01) and np.isclose(right_tau, 0.91, atol=0.01)
        assert np.isclose(best, 0.72, atol=0.02) and np.isclose(right_best, 0.88, atol=0.02)
    else:
        assert right_tau - tau < 0.05 and first_draw[0] < 0.8 * first_draw[1]
PYTHON
echo 'As stated: the scores are those of the second round.'
