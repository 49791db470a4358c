#!/usr/bin/env bash
# mapie 1.6.0 (conformal prediction and calibration): `expected_calibration_error(..., split_strategy='array split')`
# depends on the order of the rows, and any model whose mean risk is right has an error near 0.
#   - 4,000 patients. A model that goes too near to 0 and 1 has an error of .009 in the order in which patients came,
#     and .010 at most in twenty other orders. By bins of equal size it is .102, and so it is by 'array split' once the
#     rows are sorted by risk.
#   - One that is held too near to one half has .007, and .091 sorted. The right risks have .008, and .013 sorted.
#   - So by this number all three are fine, and the one that is held back is the best. Of 10 bins, one holds 3968 of the
#     4,000 patients.
# The reason: rows are cut into ten parts as they come, and the highest score of each part becomes the edge of a bin.
# Unless rows are sorted by score, each part has a high score, and all edges lie near 1.
# The docstring speaks of "the way of splitting the predictions into different bins", and has no word on the order of
# rows. Nothing is raised. 'uniform', the default, and 'quantile' do not depend on the order. Remedy: 'quantile'.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install mapie==1.6.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from mapie.metrics.calibration import expected_calibration_error

print('mapie', version('mapie'))
draw = np.random.default_rng(0)
risks = draw.random(4000)
labels = (draw.random(4000) < risks).astype(int)


def by_hand(labels, scores, bins=10):
    """The error with bins of equal size."""
    parts = np.array_split(np.argsort(scores), bins)
    return sum(abs(labels[part].mean() - scores[part].mean()) * len(part) for part in parts) / len(labels)


def error(rows, scores, strategy):
    return float(expected_calibration_error(labels[rows], scores[rows], num_bins=10, split_strategy=strategy))


MODELS = {
    'too near to 0 and 1': (2, 0.0087, 0.1016), 'too near to one half': (0.5, 0.0069, 0.0913),
    'right risks': (1, 0.0079, 0.0127),
}
for name, (power, seen, seen_sorted) in MODELS.items():
    scores = risks**power / (risks**power + (1 - risks) ** power)
    order = np.argsort(scores)
    found = {strategy: error(np.arange(4000), scores, strategy) for strategy in ('array split', 'uniform', 'quantile')}
    ordered = {strategy: error(order, scores, strategy) for strategy in found}
    shuffled = [error(draw.permutation(4000), scores, 'array split') for _ in range(20)]
    right = by_hand(labels, scores)
    print(f'{name}: array split {found["array split"]:.4f}, 20 other orders up to {max(shuffled):.4f}, sorted'
          f' {ordered["array split"]:.4f}; uniform {found["uniform"]:.4f}, bins of equal size by hand {right:.4f}')
    assert np.isclose(found['array split'], seen, atol=2e-4), 'rows are sorted by score now'
    assert np.isclose(ordered['array split'], seen_sorted, atol=2e-4) and max(shuffled) < 0.012
    assert np.isclose(right, seen_sorted, atol=1e-3)
    assert all(np.isclose(found[strategy], ordered[strategy]) for strategy in ('uniform', 'quantile'))
    edges = np.sort([part.max() for part in np.array_split(scores, 10)][:-1])
    largest = np.bincount(np.digitize(scores, edges, right=True)).max()
    print(f'    lowest edge {edges[0]:.3f}, {largest} of 4000 patients in one bin')
    assert edges[0] > 0.9 and largest == 3968
PYTHON
echo 'As stated: the error depends on the order of the rows.'
