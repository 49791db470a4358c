#!/usr/bin/env bash
# dcurves 1.1.7 (decision curve analysis): of a marker that `models_to_prob` turns into risks, `dca` treats the patients
# first who are least at risk. It is so for any outcome with a time, and for an outcome of True and False.
#   - The package's own 750 patients, a marker, cancer within a year (hazard ratio 1.9). By `dca` 99 % of the patients
#     are positive at thresholds of .10 and .15 and 98 % at .30; by the model's risks it is 51 %, 27 % and 8 %.
#   - Net benefit at .10, .15, .20, .30: .0471, -.0086, -.0707, -.2256. Right: .0637, .0461, .0258, .0075. Treating
#     everybody: .0525, -.0032, -.0659, -.2182. So a marker that is better than both at all four seems to be worse than
#     treating everybody, and from .15 on worse than treating nobody.
#   - At .90 the 370 positive patients are those 370 with the lowest markers.
#   - The package's other 750 patients, no time, cancer as True or False, threshold .15: -.0131, right is .0467. With 0
#     and 1 in place of False and True it is right.
# The reason: with a time, the survival of Cox's model is taken for the risk. Without one, a column of True and False
# goes into a formula of statsmodels, which makes two columns of it and models the first, False. Both data sets of the
# package, and any outcome that a comparison makes, have True and False.
# By the docstring of `dca` these columns become risk scores from 0 to 1, and the R package of the same name takes the
# survival from one. Nothing is raised, all is between 0 and 1, and the figure looks like that of a poor marker, so that
# one gives up a good one. Columns that hold risks already are right with either outcome, and that is what the README
# shows. Remedy: fit the model oneself, put the risk into a column, and leave models_to_prob out.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install dcurves==1.1.7 lifelines==0.30.3 statsmodels==0.15.0 pandas==2.2.3 numpy==2.1.3 \
    scikit-learn==1.9.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from pathlib import Path

import dcurves
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from statsmodels.duration.hazard_regression import PHReg

print('dcurves', version('dcurves'))
YEAR = 1.0
THRESHOLDS = 0.10, 0.15, 0.20, 0.30
SEEN = 0.0471, -0.0086, -0.0707, -0.2256
RIGHT = 0.0637, 0.0461, 0.0258, 0.0075
patients = pd.read_csv(Path(dcurves.data) / 'df_surv.csv')
time, event, marker = (patients[name].to_numpy() for name in ('ttcancer', 'cancer', 'marker'))
years = dict(time=YEAR, time_to_outcome_col='ttcancer')


def curve(data, **more):
    """The rows of the marker in a decision curve."""
    found = dcurves.dca(data=data, outcome='cancer', modelnames=['marker'], **more)
    return found[found['model'] == 'marker']


# By another library and by hand: Cox's coefficient, Breslow's hazard, and the risk within a year.
coefficient = PHReg(time, marker[:, None], status=event, ties='efron').fit().params[0]
weights = np.exp(coefficient * marker)
hazard = sum(1 / weights[time >= moment].sum() for moment in time[event & (time <= YEAR)])
risk = 1 - np.exp(-hazard * weights)
print(f'hazard ratio of the marker {np.exp(coefficient):.2f}, mean risk {risk.mean():.3f}')
assert coefficient > 0 and np.corrcoef(risk, marker)[0, 1] > 0


def rate(chosen):
    """What part of these patients has cancer within a year, by Kaplan and Meier's estimate."""
    moments = np.unique(time[chosen & event & (time <= YEAR)])
    return 1 - np.prod([1 - (chosen & event & (time == m)).sum() / (chosen & (time >= m)).sum() for m in moments])


def net_benefit(positive, threshold):
    """True positives less weighted false ones, by the definition for survival."""
    share, ill = positive.mean(), rate(positive)
    return ill * share - (1 - ill) * share * threshold / (1 - threshold)


everybody = np.ones(len(patients), bool)
bare = patients[['ttcancer', 'cancer', 'marker']]
found = curve(bare, models_to_prob=['marker'], thresholds=THRESHOLDS, **years)
by_remedy = curve(bare.assign(marker=risk), thresholds=THRESHOLDS, **years)
rows = zip(THRESHOLDS, found['net_benefit'], found['test_pos_rate'], by_remedy['net_benefit'], SEEN, RIGHT)
for threshold, benefit, share, remedy, seen, right in rows:
    by_hand, treat_all = net_benefit(risk >= threshold, threshold), net_benefit(everybody, threshold)
    print(f'threshold {threshold:.2f}: {share:.3f} positive, net benefit {benefit:.4f}; right: '
          f'{np.mean(risk >= threshold):.3f}, {by_hand:.4f}; treating everybody {treat_all:.4f}')
    assert round(benefit, 4) == seen, 'the marker is turned into something else now'
    assert round(by_hand, 4) == round(remedy, 4) == right
    assert benefit < treat_all and by_hand > max(treat_all, 0)
    # The survival in place of the risk gives what was found.
    assert np.isclose(net_benefit(1 - risk >= threshold, threshold), benefit)

# Who is positive at 0.90.
found = curve(bare, models_to_prob=['marker'], thresholds=[0.9], **years).iloc[0]
positive = round(found['test_pos_rate'] * len(patients))
lowest = np.isin(np.arange(len(patients)), np.argsort(marker)[:positive])
ill = found['tp_rate'] / found['test_pos_rate']
print(f'at 0.90: {positive} positive, {ill:.4f} of them with cancer; of the {positive} with the lowest markers '
      f'{rate(lowest):.4f}, of all {rate(everybody):.4f}')
assert positive == 370 and np.isclose(ill, rate(lowest))

# Without a time.
truths = pd.read_csv(Path(dcurves.data) / 'df_binary.csv')[['cancer', 'marker']]
numbers = truths.assign(cancer=truths['cancer'].astype(int))
assert truths['cancer'].dtype == bool
model = LogisticRegression(C=np.inf).fit(truths[['marker']], truths['cancer'])
risk, ill = model.predict_proba(truths[['marker']])[:, 1], truths['cancer'].to_numpy()
right = (ill & (risk >= 0.15)).mean() - (~ill & (risk >= 0.15)).mean() * 0.15 / 0.85
found = [
    float(curve(data, thresholds=[0.15], **more)['net_benefit'].iloc[0])
    for data, more in (
        (truths, {'models_to_prob': ['marker']}),
        (numbers, {'models_to_prob': ['marker']}),
        (truths.assign(marker=risk), {}),
    )
]
print('without a time: True and False, 0 and 1, risks in a column:', [round(f, 4) for f in found], f'right {right:.4f}')
assert [round(f, 4) for f in found] == [-0.0131, 0.0467, 0.0467], 'outcomes of True and False are read otherwise now'
assert round(right, 4) == 0.0467
PYTHON
echo 'As stated: those least at risk are treated first.'
