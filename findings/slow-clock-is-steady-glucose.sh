#!/usr/bin/env bash
# cgmpy 0.6.0 (continuous glucose monitoring): `MODD`, the mean of daily differences, is 0 unless readings of two days
# have the same time to the second. `Lability_index` compares neighbouring rows where it says hours, and mixes the
# rows of an hour.
#   - Two weeks with a reading every 300 seconds: MODD is 23.9 mg/dL. With one every 301, 299 or 303 seconds, as by a
#     clock that is a little slow or fast, it is 0.0, as of a patient whose days are all alike. 23.9 is right there,
#     too.
#   - With whole minutes and with times that are off by up to 29 seconds, 3 % of the pairs are left, and no number
#     says so.
#   - The lability index of a week is 207517 by hourly readings. By readings every 5 minutes of the same curve it is
#     two and a half times that, and by every 15 minutes it is above, too. Squared differences over an hour make
#     208174.
#   - Readings of 5 minutes in the order of time would have 19529: rows are sorted by the hour alone, in no fixed
#     order within it, so that differences between any two readings of an hour are taken.
#   - The second week of a year and the second week of the next one are one week, with about twice the index.
# The docstring has "Hours between measurements" for the interval and nothing on equal times. Nothing is raised.
# Remedy: bring readings to a grid of time before MODD, and to one reading an hour before the index.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 matplotlib==3.11.2 seaborn==0.13.2 openpyxl==3.1.5
"$folder/env/bin/pip" --quiet install --no-deps cgmpy==0.6.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from cgmpy import GlucoseAnalysis

print('cgmpy', version('cgmpy'))
START, DAY = pd.Timestamp('2026-01-05'), 86400


def curve(seconds):
    """Waves of six hours, and one of two days and a half."""
    hours = np.asarray(seconds) / 3600
    return np.round(150 + 50 * np.sin(2 * np.pi * hours / 6) + 20 * np.sin(2 * np.pi * hours / 60))


def readings(seconds):
    times = START + pd.to_timedelta(np.asarray(seconds), unit='s')
    return GlucoseAnalysis(pd.DataFrame({'time': times, 'glucose': curve(seconds)}))


for step in (300, 301, 299, 303):
    seconds = np.arange(0, 14 * DAY, step)
    found = readings(seconds).MODD()['value']
    right = float(np.abs(curve(seconds + DAY) - curve(seconds))[seconds < 13 * DAY].mean())
    print(f'a reading every {step} seconds: MODD {found:.2f}, by the curve {right:.2f}')
    assert np.isclose(found, 23.86 if step == 300 else 0, atol=0.005), 'times are compared in another way now'
    assert np.isclose(right, 23.86, atol=0.1)

draw = np.random.default_rng(0)
late = np.arange(0, 14 * DAY, 300) + draw.integers(0, 30, 14 * 288)
pairs = len(set(late.tolist()) & {second + DAY for second in late.tolist()})
print(f'with times off by up to 29 seconds: {pairs} of {13 * 288} pairs, MODD {readings(late).MODD()}')
assert 0.02 < pairs / (13 * 288) < 0.05 and set(readings(late).MODD()) == {'value', 'std', 'days'}

week = np.arange(0, 7 * DAY, 300)
found = {minutes: readings(week[::minutes // 5]).Lability_index()['mean_li'] for minutes in (5, 15, 60)}
glucose = curve(week)
hourly = float((np.diff(glucose[::12]) ** 2).sum())
all_hours = float(((glucose[12:] - glucose[:-12]) ** 2).sum() / 12)
ordered = float((np.diff(glucose) ** 2).sum())
print(f'lability index by readings every 5, 15 and 60 minutes: {found}')
print(f'differences over an hour {hourly:.0f} and, from every reading, {all_hours:.0f}; over 5 minutes {ordered:.0f}')
assert found[60] == hourly == 207517 and round(all_hours) == 208174 and ordered == 19529
assert found[5] > 2 * hourly and found[15] > 1.05 * hourly, 'hours are counted now'

apart = readings(np.concatenate([week, week + 371 * DAY])).Lability_index()
close = readings(np.concatenate([week, week + 7 * DAY])).Lability_index()
print(f'two weeks in a row: {close["n_weeks"]}, 53 weeks apart: {apart["n_weeks"]}, {apart["mean_li"]:.0f}')
assert close['n_weeks'] == 2 and apart['n_weeks'] == 1 and apart['mean_li'] > 1.5 * close['mean_li']
PYTHON
echo 'As stated: a slow clock makes steady glucose, and rows are taken for hours.'
