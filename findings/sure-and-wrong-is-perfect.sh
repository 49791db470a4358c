#!/usr/bin/env bash
# sigmaeval 0.1.0: the CRPS from quantiles does not count what lies outside of these quantiles, so that a forecast that
# is far off costs as little as one that is just off, and one that is sure of a wrong value is perfect.
#   - Quantiles (.1 to .9) of 90, 95, 100, 105 and 110, and 111 comes: 8.425. If 1000 comes it is 8.425 too. By twice
#     the mean pinball loss, another approximation, it is 6.8 and 895.8.
#   - All quantiles are 5, and 1000 comes: 0. It should be 995.
#   - 2000 trials, 99 quantiles: a forecast with a tenth of the right spread scores .16, the right one .56. They should
#     have .75 and .56. So the more a forecast is sure of, the better it is.
#   - The components of the Brier score leave out predictions of exactly 1. A classifier that is always sure and right
#     has reliability 0, resolution .125 and uncertainty .25, so that its Brier score would be .125. It is 0. With
#     .999999 in place of 1 the resolution is .25.
# The README has the integral from minus to plus infinity, 0 for a perfect forecast, and "Brier score = reliability -
# resolution + uncertainty". The sum in the code begins at the first quantile and ends at the last one. Nothing is
# raised. Remedy: pinball losses. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps sigmaeval==0.1.0 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from statistics import NormalDist

import numpy as np
from sigmaeval.sigmaeval import brier_score_components, brier_score_multiclass, crps_gaussian, crps_quantile

print('sigmaeval', version('sigmaeval'))
LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])


def both(quantiles, outcomes):
    """The CRPS by the package, and twice the mean pinball loss."""
    quantiles, outcomes = np.array(quantiles, float), np.array(outcomes, float)
    past = outcomes - quantiles
    losses = np.maximum(LEVELS[:, None] * past, (LEVELS[:, None] - 1) * past)
    return float(crps_quantile(quantiles, LEVELS, outcomes, normalization=False)), float(2 * losses.mean())


forecast = [[90], [95], [100], [105], [110]]
for quantiles, outcome, seen, right in ((forecast, 100, 1.925, 1.8), (forecast, 111, 8.425, 6.8),
                                        (forecast, 1000, 8.425, 895.8), ([[5]] * 5, 1000, 0, 995)):
    found, hand = both(quantiles, [outcome])
    print(f'{[each[0] for each in quantiles]} is forecast, {outcome} comes: {found:.8f}, by pinball losses {hand:.2f}')
    assert np.isclose(found, seen, atol=1e-6), 'all outcomes count now'
    assert np.isclose(hand, right)

draw = np.random.default_rng(0)
levels = np.linspace(0.01, 0.99, 99)
middle = draw.standard_normal(2000)
outcomes = middle + draw.standard_normal(2000)
scores = np.array([NormalDist().inv_cdf(level) for level in levels])
for spread, seen, right in ((1, 0.561, 0.564), (0.1, 0.161, 0.751)):
    found = float(crps_quantile(middle + spread * scores[:, None], levels, outcomes, normalization=False))
    formula = float(crps_gaussian(outcomes, middle, np.full(2000, spread)))
    print(f'spread of {spread}: {found:.3f}, by the formula for a normal distribution {formula:.3f}')
    assert np.allclose([found, formula], [seen, right], atol=0.001)

labels = np.array([0, 1] * 50)
for sure, resolution in ((1.0, 0.125), (0.999999, 0.25)):
    predictions = np.where(np.eye(2)[labels] == 1, sure, 1 - sure)
    components, brier = brier_score_components(labels, predictions), brier_score_multiclass(labels, predictions)
    print(f'right, with {sure}:', [round(float(each), 6) for each in components], 'Brier score', round(float(brier), 6))
    assert np.allclose(components, [0, resolution, 0.25]) and np.isclose(brier, 0)
PYTHON
echo 'As stated: sure and wrong is perfect.'
