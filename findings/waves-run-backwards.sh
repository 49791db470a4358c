#!/usr/bin/env bash
# episuite 0.3.0 (epidemiology, beds of intensive care): `ICUAdmissions` puts admissions to the wrong days unless days
# ascend. `ICUSimulation.simulate` repeats the same rounds in each process.
#   - Admissions of seven days, 1, 2, 4, 8, 16, 32 and 64, with the newest day first: the first day has 64 and the
#     last one has 1. The wave that grows runs backwards, and with stays of three days the last day needs 7 beds in
#     place of 112.
#   - In any other order the numbers are mixed, too. Their sum stays right.
#   - 40 rounds in 4 processes are some 12 different ones. A second call gives rounds of the first one again. 40
#     rounds by `simulation_round` in one process are 40 different ones.
# The reasons: the series is sorted and then gets the dates of the unsorted one; and each process starts from a copy
# of one state of numpy's random numbers (with processes by fork, the way of Linux up to Python 3.13). The docstring
# says "The series is sorted by the index in ascending manner". That of simulate has rounds "to incorporate the
# uncertainty". Nothing is raised; `sanity_check`, which has to be called, complains of a gap. Remedy: sort first, and
# call `simulation_round` in a loop.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==1.26.4 pandas==2.3.3 scipy==1.13.1 matplotlib==3.10.8 seaborn==0.13.2 \
    tqdm==4.70.1 arviz==0.20.0
"$folder/env/bin/pip" --quiet install --no-deps episuite==0.3.0
cat >"$folder/beds.py" <<'PYTHON'
import multiprocessing
from importlib.metadata import version

import numpy as np
import pandas as pd
from episuite.distributions import EmpiricalBootstrap
from episuite.icu import ICUAdmissions, ICUSimulation

STAYS = [3, 5, 7, 10, 20]


def beds(series):
    """Beds by day, with stays of three days."""
    return ICUSimulation(ICUAdmissions(series), EmpiricalBootstrap([3])).simulation_round()


def different(rounds):
    return {tuple(column) for column in rounds.to_numpy().T}


def main():
    print('episuite', version('episuite'))
    multiprocessing.set_start_method('fork')
    wave = pd.Series([1, 2, 4, 8, 16, 32, 64], index=pd.date_range('2026-01-01', periods=7))
    newest_first, mixed = wave[::-1], wave.sample(frac=1, random_state=0)
    for name, series in (('oldest first', wave), ('newest first', newest_first), ('mixed', mixed)):
        admissions = ICUAdmissions(series).get_admissions_series()
        found = {day.day: int(count) for day, count in admissions.items()}
        last_day = int(beds(series).get(wave.index[-1], 0))
        by_hand = int(series.sort_index().iloc[-3:].sum())
        print(f'{name}: admissions {dict(sorted(found.items()))}, beds of the seventh day {last_day},'
              f' by hand {by_hand}')
        right = {day.day: int(count) for day, count in series.items()}
        assert sum(found.values()) == 127 and (found == right) == (name == 'oldest first'), 'days are kept now'
        if name == 'newest first':
            assert [found[day] for day in range(1, 8)] == [64, 32, 16, 8, 4, 2, 1] and last_day == 7 and by_hand == 112
    try:
        ICUAdmissions(newest_first).sanity_check()
    except ValueError as error:
        print('sanity_check:', error)

    np.random.seed(0)
    simulation = ICUSimulation(ICUAdmissions(wave), EmpiricalBootstrap(STAYS))
    first, second = (
        different(simulation.simulate(40, show_progress=False, max_workers=4).get_simulation_results())
        for _ in range(2)
    )
    one_process = different(pd.concat([simulation.simulation_round() for _ in range(40)], axis=1).fillna(0))
    print(f'40 rounds in 4 processes: {len(first)} different, a second time {len(second)}, of both'
          f' {len(first & second)}; in one process {len(one_process)}')
    assert max(len(first), len(second)) < 30, 'processes draw their own numbers now'
    assert first <= second or second <= first
    assert len(one_process) == 40


main()
PYTHON
"$folder/env/bin/python" -W ignore "$folder/beds.py"
echo 'As stated: admissions run backwards, and processes repeat the same rounds.'
