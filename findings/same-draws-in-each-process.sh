#!/usr/bin/env bash
# pycalib 0.1.0.dev6 (PyCalib, for calibrating classifiers) on Linux with Python 3.13 or older: `pECE(labels,
# probabilities, samples=10000)`, the p-value of a model's calibration, draws the same labels in each process, one per
# core by default, and in each call.
#   - Of 400 draws in 1 process 400 are different ones. In 2, 8 and 16 processes some 140 to 350 are, by which process
#     is quick enough to take the next share.
#   - Calls in a row give the same p-value to the last digit in 1 process, whatever was drawn before. So calling it
#     again says nothing of how exact it is, and two models are compared by the same chance.
# The reason: the labels are drawn from numpy's global generator in the processes of a pool. Each begins with a copy of
# the state that the generator had in the parent, and the parent's never moves on.
# One would expect `samples` independent draws. The function has no docstring, and nothing is raised. Fewer draws than
# asked for make the p-value. Remedy: processes=1, and numpy.random.rand() between calls.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pycalib==0.1.0.dev6 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==3.1.1 \
    statsmodels==0.15.0 matplotlib==3.11.2
cd "$folder"
cat > try.py <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from pycalib.metrics import classwise_ECE, pECE

NOTES = Path('notes')


def noted(labels, scores):
    """An error of calibration; each value is written down, as it is computed in another process."""
    value = float(classwise_ECE(labels, scores))
    with NOTES.open('a') as file:
        file.write(f'{value!r}\n')
    return value


if __name__ == '__main__':
    print('pycalib', version('pycalib'), 'Python', sys.version.split()[0])
    draw = np.random.default_rng(0)
    scores = draw.dirichlet([1, 1, 1], 100)
    labels = np.eye(3)[(draw.random((100, 1)) < scores.cumsum(1)).argmax(1)]
    for processes in (1, 2, 8, 16):
        NOTES.unlink(missing_ok=True)
        value = pECE(labels, scores, samples=400, ece_function=noted, processes=processes)
        drawn = NOTES.read_text().split()[:-1]
        different = len(set(drawn))
        print(f'{processes} processes: p {value:.3f}, {different} different ones in {len(drawn)} draws')
        assert len(drawn) == 400
        assert different > 390 if processes == 1 else different < 390, 'processes draw for themselves now'

    again = [pECE(labels, scores, samples=160, ece_function=classwise_ECE, processes=1) for _ in range(3)]
    print('three calls in a row:', again)
    assert len(set(again)) == 1, 'a second call draws anew now'
PYTHON
env/bin/python try.py
echo 'As stated: each process draws what the others draw.'
