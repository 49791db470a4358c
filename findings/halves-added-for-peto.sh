#!/usr/bin/env bash
# PythonMeta 1.26: with `algorithm='Peto'`, a half is added to all four cells of a trial that has no event in one arm.
# Peto's odds ratio needs no such halves. It is made for rare events, and there they move the result far.
#   - Six small trials with 1 event among 600 treated patients and 8 among 600 others: the odds ratio is .37 with an
#     interval of .13 to 1.04, and Peto's formula gives .21 with an interval of .06 to .78.
#   - One trial with 0 events among 100 and 4 among 100: .20 (.03 to 1.15), and by the formula .13 (.02 to .95).
#   - Arms of unequal size: six trials with 10 events among 1220 treated patients and 1 among 305 others have an odds
#     ratio of .90 in PythonMeta and of 1.98 by the formula, so that the sign of the effect changes.
#   - 400 reviews of ten trials with 100 patients in each arm, one event per 100 controls and a true odds ratio of .4:
#     PythonMeta gives .55 on average and finds the effect in 118 reviews. The formula gives .43 and finds it in 181.
# One would expect the sum of observed minus expected events divided by the sum of hypergeometric variances, as in the
# algorithms of Review Manager that the README refers to. Neither of the two is undefined where one arm has no event.
# Trials without an empty cell are right. Nothing is raised, and nothing in the README says that the counts are changed.
# A review of a rare side effect, for which Peto's method is the advised one, publishes too weak an effect.
# Remedy: compute the two sums, which takes five lines.
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

print('PythonMeta', version('PythonMeta'))


def package(trials):
    """Odds ratio and interval of PythonMeta for trials of (events, patients, control events, controls)."""
    data, analysis = PythonMeta.Data(), PythonMeta.Meta()
    data.datatype = analysis.datatype = 'CATE'
    analysis.models, analysis.algorithm, analysis.effect = 'Fixed', 'Peto', 'OR'
    studies = data.getdata([f'Trial {number}a,{",".join(map(str, trial))}' for number, trial in enumerate(trials)])
    assert len(studies) == len(trials)
    total = analysis.meta(studies)[0]
    return total[1], total[3], total[4]


def formula(trials):
    """The same by Peto's formula: observed minus expected events, and their hypergeometric variance."""
    events, treated, control_events, controls = np.array(trials, float).T
    everyone, cases = treated + controls, events + control_events
    difference = (events - treated * cases / everyone).sum()
    variance = (treated * controls * cases * (everyone - cases) / everyone**2 / (everyone - 1)).sum()
    return tuple(np.exp(difference / variance + side * 1.96 / variance**0.5) for side in (0, -1, 1))


def shown(numbers):
    return '{:.2f} ({:.2f} to {:.2f})'.format(*numbers)


reviews = {
    'no empty cell': [(3, 100, 7, 100), (2, 80, 4, 80), (1, 150, 3, 150)],
    'six small trials': [
        (0, 100, 1, 100), (0, 80, 2, 80), (0, 150, 1, 150), (0, 60, 1, 60), (0, 120, 2, 120), (1, 90, 1, 90)
    ],
    'one trial': [(0, 100, 4, 100)],
    'unequal arms': [
        (1, 200, 0, 50), (2, 160, 0, 40), (3, 300, 1, 75), (1, 120, 0, 30), (2, 240, 0, 60), (1, 200, 0, 50)
    ],
}
for name, trials in reviews.items():
    found, right = package(trials), formula(trials)
    print(f'{name}: PythonMeta {shown(found)}, formula {shown(right)}, sums', *np.sum(trials, 0))
    if name == 'no empty cell':
        assert np.allclose(found, right)
    else:
        assert max(found[0] / right[0], right[0] / found[0]) > 1.4, 'the halves are gone'
        halves = [tuple(np.add(trial, (0.5, 1, 0.5, 1)) if 0 in trial else trial) for trial in trials]
        assert np.allclose(found, formula(halves))
assert package(reviews['unequal arms'])[0] < 1 < formula(reviews['unequal arms'])[0]

draw = np.random.default_rng(0)
usual = 0.01
odds = 0.4 * usual / (1 - usual)
ratios, significant = {package: [], formula: []}, {package: 0, formula: 0}
for _ in range(400):
    trials = []
    while len(trials) < 10:
        events, control_events = int(draw.binomial(100, odds / (1 + odds))), int(draw.binomial(100, usual))
        if events + control_events:
            trials.append((events, 100, control_events, 100))
    for way in ratios:
        ratio, low, high = way(trials)
        ratios[way].append(np.log(ratio))
        significant[way] += not low <= 1 <= high
for way in ratios:
    average = np.exp(np.mean(ratios[way]))
    print(f'{way.__name__}: {average:.2f} on average for a true .4, found in {significant[way]} of 400 reviews')
assert np.exp(np.mean(ratios[package])) > 0.52 and np.exp(np.mean(ratios[formula])) < 0.45
assert significant[package] < 0.75 * significant[formula]
PYTHON
echo "As stated: a half is added to the cells of trials without an event in one arm, which Peto's method does not need."
