#!/usr/bin/env bash
# probmetrics 1.3.0 (metrics and calibration of probabilities): the metric `kuiper` depends on the order of the rows as
# soon as two patients have the same risk. With three or more classes it is computed from the numbers of the classes.
#   - 1,000 patients, of whom 40 % are ill, and a model that gives .4 to each, which is calibrated. In the order in
#     which they came `kuiper` is .02. With the healthy first, as in many tables, it is .20, for the same rows.
#   - A tree with leaves of .2 and .6, which is calibrated exactly, has .08 and .10 in two orders.
#   - Five classes, and labels drawn from the very probabilities: 1.78, where the greatest possible value is 1. With the
#     classes numbered in other orders it is 1.82 or 1.80.
#   - KolmogorovSmirnovCalibrationMetric does the same.
# The reason: rows are sorted by risk, and those of one risk follow each other in whatever order the sort leaves them,
# so that healthy ones pull the curve down before ill ones pull it up. For more than two classes the label, a number
# from 0 to 4, is compared with the probability of class 1.
# `Metrics.get_available_names` lists kuiper among the metrics of classification. The list of changes calls it binary,
# and nothing refuses more classes or speaks of equal risks. Nothing is raised. By the method's paper equal risks are to
# be drawn apart at random. Remedy: take the curve only where the risk changes.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 \
    numba==0.65.1 pandas==3.1.1
"$folder/env/bin/pip" --quiet install --no-deps probmetrics==1.3.0 pytorch-minimize==0.1.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import torch
from probmetrics.metrics import KolmogorovSmirnovCalibrationMetric, KuiperCalibrationMetric

print('probmetrics', version('probmetrics'))
draw = np.random.default_rng(0)
labels = draw.permutation(np.arange(1000) < 400).astype(int)


def kuiper(labels, table, metric=KuiperCalibrationMetric):
    return float(metric().compute_from_labels_probs(torch.tensor(labels), torch.tensor(table)))


def without_ties(labels, risks):
    """The range of the curve of labels less risks, taken where the risk changes."""
    steps = [(labels - risks)[risks == risk].sum() for risk in np.unique(risks)]
    curve = np.append(0, np.cumsum(steps)) / len(labels)
    return float(curve.max() - curve.min())


def orders(name, risks):
    """As the rows came, with the healthy first, and without ties."""
    table = np.stack([1 - risks, risks], 1)
    healthy_first = np.argsort(labels, kind='stable')
    found = [kuiper(labels[rows], table[rows]) for rows in (np.arange(1000), healthy_first)]
    other = kuiper(labels[healthy_first], table[healthy_first], KolmogorovSmirnovCalibrationMetric)
    right = without_ties(labels, risks)
    print(f'{name}: {found[0]:.3f}, healthy first {found[1]:.3f} (Kolmogorov {other:.3f}), without ties {right:.3f}')
    return found, other, right


one, other, right = orders('.4 for each', np.full(1000, 0.4))
assert one[1] > 0.15 and one[0] < 0.05, 'ties are seen now'
assert other > 0.15 and right < 1e-9

leaf = np.empty(1000)
for label, share in ((1, 0.75), (0, 1 / 3)):
    rows = np.flatnonzero(labels == label)
    leaf[rows] = np.where(np.arange(len(rows)) < share * len(rows), 0.6, 0.2)
assert all(np.isclose(labels[leaf == risk].mean(), risk) for risk in (0.2, 0.6))
tree, _, right = orders('a tree, .2 and .6', leaf)
assert max(tree) > 0.05 and right < 1e-9

table = draw.dirichlet(np.ones(5), 5000)
classes = (draw.random((5000, 1)) < table.cumsum(1)).argmax(1)
found = [kuiper(classes, table), kuiper(4 - classes, table[:, ::-1].copy())]
exchanged = np.array([3, 4, 0, 1, 2])
found.append(kuiper(exchanged[classes], table[:, np.argsort(exchanged)]))
print('five classes, calibrated:', np.round(found, 3))
assert min(found) > 1.5 and max(found) - min(found) > 0.005
PYTHON
echo 'As stated: the metric depends on the order of the rows.'
