#!/usr/bin/env bash
# comprisk 0.8.0 (competing risks): the concordance by Uno depends on which number a cause has, and weights patients for
# censoring where nobody is censored.
#   - 1,000 patients, followed until death, 317 of them dead of the cause of interest. With number 1 for that cause the
#     concordance is .67, with number 2 it is .72. By hand it is .73 either way.
#   - Without censoring each weight should be 1. `compute_uno_weights(time, event, gmin='none')` gives weights up to
#     64,570, and with the default up to 100. Each cause of death but number 1 is taken for censoring.
#   - With 178 patients censored it is .70 or .72, and .73 is right. So a new table of codes changes what a paper
#     reports.
#   - `concordance_index_ci`, which takes the cause itself, does the same by default: .72 (.68 to .75) or .72 (.70 to
#     .75), another interval for the same data.
#   - `concordance_index_cr`, which cites Wolbers, gives .739. That is Harrell's index with other deaths censored. By
#     Wolbers' definition, who died of something else stays comparable, and it is .729.
# The reason: the curve of censoring looks for `event == 1`, and counts everything else as censored. No argument says
# which cause is meant. score_cr of the same package has a curve of its own, which is right.
# By the docstring 0 denotes censoring, and the weights come from the Kaplan-Meier estimator of censoring. Nothing is
# raised. Remedy: weights from a Kaplan-Meier curve of `event == 0`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install comprisk==0.8.0 numba==0.65.1 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 \
    pandas==3.1.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from comprisk import compute_uno_weights, concordance_index_ci, concordance_index_cr, concordance_index_uno_cr

print('comprisk', version('comprisk'))
draw = np.random.default_rng(0)
risk = draw.normal(size=1000)
of_interest, other = draw.exponential(10 * np.exp(-risk)), draw.exponential(4, 1000)


def followed(end):
    """Times and events: 0 is censored, 1 the cause of interest, 2 another cause."""
    death = np.minimum(of_interest, other)
    event = np.where(death > end, 0, np.where(of_interest <= other, 1, 2))
    return np.minimum(death, end), event


def right_weights(time, event):
    """One over the square of the Kaplan-Meier curve of censoring, just before each time."""
    weights, curve = np.empty(len(time)), 1.0
    for at_risk, place in zip(range(len(time), 0, -1), np.argsort(time)):
        weights[place] = 1 / curve**2 if curve else 0
        curve *= 1 - (event[place] == 0) / at_risk
    return weights


def share(comparable):
    return ((risk[:, None] > risk) & comparable).sum() / comparable.sum()


def uno(time, event, cause, weights):
    return float(concordance_index_uno_cr(event, time, risk, cause=cause, weights=weights))


def all_of(name, end):
    time, event = followed(end)
    renumbered = np.array([0, 2, 1])[event]
    print(f'{name}: censored, of interest, other: {np.bincount(event, minlength=3)}')
    found, heaviest = [], []
    for codes, cause in ((event, 1), (renumbered, 2)):
        weights = compute_uno_weights(time, codes, gmin='none')
        found.append(uno(time, codes, cause, weights))
        heaviest.append((float(weights.max()), float(compute_uno_weights(time, codes).max())))
        interval = concordance_index_ci(codes, time, risk, cause=cause)
        print(f'    cause {cause}: Uno {found[-1]:.3f}, heaviest {heaviest[-1][0]:.0f} or {heaviest[-1][1]:.0f},'
              f' interval {interval.estimate:.3f} ({interval.ci_low:.3f} to {interval.ci_high:.3f})')
        found.append((interval.ci_low, interval.ci_high))
    weights = right_weights(time, event)
    right = [uno(time, codes, cause, weights) for codes, cause in ((event, 1), (renumbered, 2))]
    print(f'    with right weights {right[0]:.3f}, heaviest {weights.max():.1f}')
    assert np.isclose(*right)
    return time, event, found, heaviest, right[0], weights


time, event, found, heaviest, right, weights = all_of('nobody censored', np.inf)
assert heaviest[0][0] > 60_000 and heaviest[0][1] > 90 and heaviest[1][0] > 15, 'weights are 1 without censoring now'
assert (weights == 1).all() and np.allclose([found[0], found[2]], [0.674, 0.725], atol=1e-3)
assert found[3][0] - found[1][0] > 0.015
later, first = time > time[:, None], (event == 1)[:, None]
harrell, wolbers = share(later & first), share((later | (event == 2)) & first)
plain = concordance_index_cr(event, time, risk, cause=1)
print(f'    concordance_index_cr {plain:.3f}, Harrell by hand {harrell:.3f}, Wolbers by hand {wolbers:.3f}')
assert np.isclose(plain, harrell) and np.isclose(right, wolbers) and harrell - wolbers > 0.009

_, _, found, _, right, _ = all_of('some censored', draw.uniform(0, 15, 1000))
assert np.allclose([found[0], found[2]], [0.701, 0.724], atol=1e-3) and abs(right - 0.73) < 0.02
PYTHON
echo 'As stated: the concordance depends on the number of the cause.'
