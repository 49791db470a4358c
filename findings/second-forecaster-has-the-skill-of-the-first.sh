#!/usr/bin/env bash
# sefef 3.0.0 (SeFEF, forecasts of epileptic seizures): a `Scorer` that is used twice mixes the scores of two forecasters,
# and a second seizure within one forecast is missed by whoever foresaw it.
#   - A good forecaster has a Brier skill score of .90. A second one, that draws its forecasts by lot, gets .90 from the
#     same scorer with ['BSS', 'BS'], and -4.6 from a new one. With ['BS', 'reliability', 'resolution'] its Brier score
#     is .027, where .316 is right.
#   - Each hour that has a seizure has two. An alarm at all times finds half of the seizures, says "Sen", and so does one
#     in each of the right hours. The area under sensitivity and time in warning is .25 for the first, where .5 is right.
#   - The Brier score of the good forecaster becomes .051, though its forecasts and the hours with a seizure are the same
#     as before, with .005.
# The reasons: `compute_metrics` looks for reliability, resolution and the Brier score in what an earlier call left, and
# overwrites only what it has been asked for and has come to. And hits are hours, while the rest of the seizures is
# counted as missed, and so is their share among forecasts, `y_avg`. Nothing is raised. Remedy: a new `Scorer` for each
# forecaster, and one seizure for each period. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scikit-learn==1.9.1 plotly==5.24.1 \
    matplotlib==3.11.2
"$folder/env/bin/pip" --quiet install --no-deps sefef==3.0.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from sefef.scoring import Scorer

print('sefef', version('sefef'))
HOUR = 3600
draw = np.random.default_rng(0)
starts = np.arange(1000) * HOUR
with_seizure = np.zeros(1000, dtype=bool)
with_seizure[draw.choice(1000, 60, replace=False)] = True
onsets = starts[with_seizure] + 600
good = np.where(with_seizure, 0.8, 0.05) + draw.uniform(-0.04, 0.04, 1000)
by_lot = draw.random(1000)


def scores(scorer, forecasts):
    found = scorer.compute_metrics(forecasts, starts, draw_diagram=False)
    return {name: round(float(value), 3) for name, value in found.items()}


def brier(forecasts):
    return round(float(np.mean((forecasts - with_seizure) ** 2)), 3)


for names, seen, right in (
    (['BSS', 'BS'], {'BSS': 0.904, 'BS': 0.316}, {'BSS': -4.602, 'BS': 0.316}),
    (['BS', 'reliability', 'resolution'], {'BS': 0.027}, {'BS': 0.316}),
    (['BS', 'BSS'], {'BS': 0.316, 'BSS': -4.602}, {'BS': 0.316, 'BSS': -4.602}),
):
    used, new = Scorer(names, onsets, HOUR), Scorer(names, onsets, HOUR)
    first, second, fresh = scores(used, good), scores(used, by_lot), scores(new, by_lot)
    print(f'good {first}, by lot after it {second}, by lot alone {fresh}')
    assert first['BS'] == brier(good) == 0.005 and fresh['BS'] == brier(by_lot)
    assert {name: second[name] for name in seen} == seen, 'scores are those of the forecasts now'
    assert {name: fresh[name] for name in right} == right

names = ['Sen', 'TiW', 'AUC_TiW', 'BS']
twice = np.sort(np.concatenate([onsets, onsets + 1200]))
for name, forecasts, seizures, seen in (
    ('always', np.full(1000, 0.9), onsets, (1, 1, 0.5)), ('always', np.full(1000, 0.9), twice, (0.5, 1, 0.25)),
    ('good', good, onsets, (1, 0.06, 0.97)), ('good', good, twice, (0.5, 0.06, 0.485)),
):
    found = scores(Scorer(names, seizures, HOUR), forecasts)
    print(f'{name}, {len(seizures)} seizures in 60 hours: {found}, Brier score of the hours {brier(forecasts)}')
    assert (found['Sen'], found['TiW'], found['AUC_TiW']) == seen, 'seizures are found in another way now'
    assert name == 'always' or found['BS'] == (0.005 if len(seizures) == 60 else 0.051)
PYTHON
echo 'As stated: scores are mixed, and second seizures are missed.'
