#!/usr/bin/env bash
# timeseriesflattener 2.5.2: the aggregators `latest`, `earliest`, `slope` and `unique_count` look at measurements
# outside of the window, and at those of the future too. The latest value is known only if no other one follows.
#   - A patient's creatinine is 1.1, 1.2 and 1.3 on days 22, 12 and 2 before the prediction. There is one value of the
#     year before and one of the month after. In the window of 30 days the mean is 1.2 and the count 3, as they should
#     be. The latest and the earliest are missing, where 1.3 and 1.1 are right. The slope is .0006 a day, where .01 is
#     right. There are 4 unique values, where 3 are right.
#   - Without the two values outside of the window all of it comes out right.
#   - 4,000 patients have values that are noise, and 15 % of patients die soon after the prediction. Those who live are
#     measured again. By the latest value all who live are missing and all who die are not, so a model that looks at
#     nothing else finds all deaths: its AUC is 1. By the mean it is .5, as it should be.
# The reason: rows outside of the window stay in the table. Their values are made null, and their times are left.
# `latest` takes the row of the largest time of all, whose value is null, and the fallback replaces it. `slope` divides
# by the spread of all times of the patient. `unique_count` counts null as one more value.
# By the docstrings all of them are about the look window, and for unique_count about values that are not null. Nothing
# is raised. It hurts whoever builds predictors from health records: the features of training tell what comes later,
# and where the model is used, at the end of the records, they are not missing any more. Remedy: cut the table of values
# by hand, or take mean, min, max and count, which are right.
# Seen on 2026-11-30, in the newest version, with polars 2.1.0 and 1.36.1 alike.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat > "$folder/try.py" <<'PYTHON'
import contextlib
import datetime as dt
import io
from importlib.metadata import version

import numpy as np
import polars as pl
from timeseriesflattener import Flattener, PredictionTimeFrame, PredictorSpec, ValueFrame
from timeseriesflattener.aggregators import (
    CountAggregator, EarliestAggregator, LatestAggregator, MeanAggregator, SlopeAggregator, UniqueCountAggregator,
)

print('timeseriesflattener', version('timeseriesflattener'), 'polars', version('polars'))
NAMES = ('latest', 'earliest', 'slope', 'unique_count', 'mean', 'count')
START = dt.datetime(2025, 1, 1)


def flatten(predictions, values):
    """One column for each aggregator, for the 30 days before a prediction; -1 is for missing."""
    aggregators = [
        LatestAggregator('time'), EarliestAggregator('time'), SlopeAggregator('time'), UniqueCountAggregator(),
        MeanAggregator(), CountAggregator(),
    ]
    spec = PredictorSpec(
        value_frame=ValueFrame(init_df=values, entity_id_col_name='id', value_timestamp_col_name='time'),
        lookbehind_distances=[dt.timedelta(days=30)], aggregators=aggregators, fallback=-1.0,
    )
    frame = PredictionTimeFrame(init_df=predictions, entity_id_col_name='id', timestamp_col_name='date')
    with contextlib.redirect_stdout(io.StringIO()):
        table = Flattener(predictiontime_frame=frame).aggregate_timeseries(specs=[spec]).df
    table = table.sort('id')
    columns = table.columns[-len(aggregators):]
    for column, aggregator in zip(columns, aggregators):
        assert f'_{aggregator.name}_' in column, (column, aggregator.name)
    return dict(zip(NAMES, (table[column].to_numpy().astype(float) for column in columns)))


# One patient.
prediction = pl.DataFrame({'id': [1], 'date': [START]})
days = np.array([-390, -22, -12, -2, 30])
creatinine = np.array([1.0, 1.1, 1.2, 1.3, 9.0])
values = pl.DataFrame({'id': [1] * 5, 'time': [START + dt.timedelta(days=int(day)) for day in days],
                       'creatinine': creatinine})
window = (-30 <= days) & (days <= 0)
right = {
    'latest': 1.3, 'earliest': 1.1, 'slope': np.polyfit(days[window], creatinine[window], 1)[0], 'unique_count': 3,
    'mean': 1.2, 'count': 3,
}
seen = {'latest': -1, 'earliest': -1, 'slope': 0.00056, 'unique_count': 4, 'mean': 1.2, 'count': 3}
found, alone = flatten(prediction, values), flatten(prediction, values.filter(pl.Series(window)))
print(f'{"":14}{"found":>10}{"cut by hand":>13}{"right":>10}')
for name in NAMES:
    print(f'{name:14}{found[name][0]:10.5f}{alone[name][0]:13.5f}{right[name]:10.5f}')
    assert np.isclose(found[name][0], seen[name], atol=5e-5), 'the window is looked at now'
    assert np.isclose(alone[name][0], right[name])

# 4,000 patients. Values are noise. Who lives is measured again.
draw = np.random.default_rng(0)
patients = 4000
died = draw.random(patients) < 0.15
rows = [(patient, day) for patient in range(patients) for day in (-25, -15, -5, *(() if died[patient] else (20,)))]
values = pl.DataFrame({
    'id': [patient for patient, _ in rows], 'time': [START + dt.timedelta(days=day) for _, day in rows],
    'creatinine': draw.normal(1, 0.2, len(rows)).clip(0.1),
})
found = flatten(pl.DataFrame({'id': range(patients), 'date': [START] * patients}), values)


def auc(score):
    """Probability that a patient who died has the higher score, ties by half."""
    higher = (score[died][:, None] > score[~died]).mean()
    return higher + (score[died][:, None] == score[~died]).mean() / 2


for name, low, high in (('latest', 0.9999, 1), ('mean', 0.47, 0.53)):
    missing = (found[name] == -1)
    print(f'{name}: missing for {missing[~died].mean():.0%} who live and {missing[died].mean():.0%} who die, '
          f'AUC for death {auc(found[name]):.3f}')
    assert low <= auc(found[name]) <= high, name
PYTHON
for polars in 2.1.0 1.36.1; do
  python3 -m venv --clear "$folder/env"
  "$folder/env/bin/pip" --quiet install timeseriesflattener==2.5.2 polars==$polars numpy==2.4.6 pandas==3.1.1 \
    attrs==26.1.0
  "$folder/env/bin/python" "$folder/try.py"
done
echo 'As stated: the latest value is known only where none follows.'
