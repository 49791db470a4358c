#!/usr/bin/env bash
# timeseriesflattener 2.5.2: with `step_size`, which is there to save memory, a window that does not touch the time of
# prediction is cut short, or empty. The values in it are counted as missing.
#   - A patient is measured each day. The window from 365 to 180 days before a prediction has 186 values. Without
#     step_size all are found, with a step of 30 days 6 of them, and with a step of 7 days between 6 and 12, by where in
#     its step the prediction lies.
#   - From 90 to 60 days before, 31 values are right, and none is found. Mean, maximum and the like are the fallback.
#   - The same holds for outcomes. From 180 to 365 days ahead it is 35 of 186. Of 2,000 patients 22.5 % have a relapse
#     in that time, and 2.9 % are said to have one.
#   - A window up to the prediction, such as the last 30 days, is right.
# The reason: for each step, values are kept that lie as far from the step as the window is long. How far the window
# itself lies from the prediction is left out.
# By the docstring smaller steps need less memory and more time, and the values of features are not spoken of. Nothing
# is raised: an empty window looks like a patient without measurements. It hurts who flattens health records of a whole
# hospital, where steps are needed: features of earlier periods, and outcomes after a gap, are wrong or vanish. Remedy:
# leave step_size out, and give the predictions in parts of some thousands.
# Seen on 2026-11-30, in the newest version, with polars 1.36.1. With polars 2.1.0 step_size raises an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install timeseriesflattener==2.5.2 polars==1.36.1 numpy==2.4.6 pandas==3.1.1 attrs==26.1.0
"$folder/env/bin/python" - <<'PYTHON'
import contextlib
import datetime as dt
import io
from importlib.metadata import version

import numpy as np
import polars as pl
from timeseriesflattener import CountAggregator, Flattener, OutcomeSpec, PredictionTimeFrame, PredictorSpec, ValueFrame

print('timeseriesflattener', version('timeseriesflattener'), 'polars', version('polars'))
START = dt.datetime(2025, 1, 1)


def frame(ids, days, name):
    return pl.DataFrame({'id': ids, name: [START + dt.timedelta(days=int(day)) for day in days]})


def counts(predictions, values, window, step, ahead=False):
    """How many values of a patient lie in the window, for each prediction."""
    window = tuple(dt.timedelta(days=day) for day in window)
    parts = {
        'value_frame': ValueFrame(init_df=values, entity_id_col_name='id', value_timestamp_col_name='time'),
        'aggregators': [CountAggregator()], 'fallback': 0,
    }
    spec = OutcomeSpec(lookahead_distances=[window], **parts) if ahead else PredictorSpec(
        lookbehind_distances=[window], **parts)
    with contextlib.redirect_stdout(io.StringIO()):
        table = Flattener(
            predictiontime_frame=PredictionTimeFrame(init_df=predictions, entity_id_col_name='id',
                                                     timestamp_col_name='date'),
        ).aggregate_timeseries(specs=[spec], step_size=step and dt.timedelta(days=step)).df.sort('id', 'date')
    assert len(table) == len(predictions)
    return table[table.columns[-1]].to_list()


# One patient with a value a day, four predictions.
when = (0, 30, 60, 90)
predictions = frame([1] * len(when), when, 'date')
days = range(-500, 600)
values = frame([1] * len(days), days, 'time').with_columns(pl.lit(1.0).alias('creatinine'))
for window, ahead, seen in (
    ((0, 30), False, {30: [31] * 4, 7: [31] * 4}),
    ((60, 90), False, {30: [0] * 4, 7: [0] * 4}),
    ((180, 365), False, {30: [6] * 4, 7: [6, 8, 10, 12]}),
    ((180, 365), True, {30: [35] * 4}),
):
    sign = 1 if ahead else -1
    right = [sum(window[0] <= sign * (day - at) <= window[1] for day in days) for at in when]
    assert counts(predictions, values, window, None, ahead) == right
    for step, expected in seen.items():
        found = counts(predictions, values, window, step, ahead)
        print(f'{window} days {"ahead" if ahead else "before"}, step {step}: found {found}, right {right}')
        assert found == expected, 'other values are kept now'

# 2,000 patients, one prediction each, and for some a relapse within two years.
draw = np.random.default_rng(0)
patients = 2000
at = draw.integers(0, 360, patients)
relapse = np.where(draw.random(patients) < 0.86, at + draw.integers(1, 731, patients), 10_000)
relapses = frame(range(patients), relapse, 'time').with_columns(pl.lit(1.0).alias('relapse'))
right = (relapse - at >= 180) & (relapse - at <= 365)
for step, low, high in ((None, 0.2, 0.24), (30, 0.0, 0.05)):
    found = np.array(counts(frame(range(patients), at, 'date'), relapses, (180, 365), step, ahead=True)) > 0
    print(f'relapse after 180 to 365 days, step {step}: {found.mean():.1%}, right {right.mean():.1%}')
    assert low <= found.mean() <= high and not (found & ~right).any()
    assert step or (found == right).all()
PYTHON
echo 'As stated: with steps, an older window loses its values.'
