#!/usr/bin/env bash
# scoringrules 0.10.0: the weighted interval score takes the median itself in place of its distance from the outcome,
# unless numba is installed. So a perfect forecast of large counts scores badly, and a biased one may win.
#   - 100 cases are forecast, 90 to 110 with a probability of .8, and 100 come: 34.67. It should be 1.33. If 105 come it
#     is 34.67 as well, and should be 3. The same forecast around 0 has 1.33, if 0 comes.
#   - Counts around 200, with a standard deviation of 8: a forecast that is right on average scores 43.1, and one that
#     is 4 too low scores 42.7, and so is the better one. They should have 4.4 and 4.9.
#   - The median counts with its sign: for values around -200 the scores are below zero.
# The documentation has w0 times |y - m|, as Bracher and others (2021) have, and says that the score is near the CRPS.
# Arrays of numpy and JAX are scored so. The function for numba, which is an extra, has the distance, so that results of
# two machines differ. Nothing is raised. Remedy: numba, or the score by hand. Seen on 2026-12-01; version 0.11.0, for
# Python from 3.12, has the same lines (core/interval/_score.py).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install scoringrules==0.10.0 numpy==2.4.6 scipy==1.17.1
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import numpy as np
import scoringrules

print('scoringrules', version('scoringrules'))
LEVELS = np.array([0.2, 0.5])
# Distances of the bounds from the middle, for a normal distribution with a standard deviation of 8.
WIDTHS = 8 * np.array([1.2815516, 0.6744898])


def by_hand(outcomes, medians, lower, upper, alphas):
    """The weighted interval score of Bracher and others, with the usual weights."""
    total = 0.5 * np.abs(outcomes - medians)
    for place, alpha in enumerate(alphas):
        low, high = lower[..., place], upper[..., place]
        total = total + alpha / 2 * (high - low) + np.maximum(low - outcomes, 0) + np.maximum(outcomes - high, 0)
    return total / (len(alphas) + 0.5)


def both(*forecast):
    """The score by the package, and by hand."""
    return np.asarray(scoringrules.weighted_interval_score(*forecast), float), by_hand(*forecast)


one = np.array([0.2])
for outcome, median, seen, right in ((100., 100., 34.667, 1.333), (105., 100., 34.667, 3), (0., 0., 1.333, 1.333)):
    found, hand = both(np.array(outcome), np.array(median), np.array([median - 10]), np.array([median + 10]), one)
    print(f'{outcome} comes, {median} is forecast: {found}, by hand {hand}')
    assert np.isclose(found, seen, atol=1e-3), 'the median does not count as it did'
    assert np.isclose(hand, right, atol=1e-3)

draw = np.random.default_rng(0)
outcomes = 200 + 8 * draw.standard_normal(2000)
means = {}
for bias in (0, -4):
    middle = np.full(2000, 200. + bias)
    means[bias] = [each.mean() for each in
                   both(outcomes, middle, middle[:, None] - WIDTHS, middle[:, None] + WIDTHS, LEVELS)]
    print(f'bias of {bias}: {means[bias][0]:.2f}, by hand {means[bias][1]:.2f}')
assert means[-4][0] < means[0][0], 'the biased forecast does not win now'
assert means[0][1] < means[-4][1]
assert np.allclose([means[0], means[-4]], [[43.15, 4.43], [42.71, 4.93]], atol=0.01)

middle = np.full(2000, -200.)
below, hand = both(outcomes - 400, middle, middle[:, None] - WIDTHS, middle[:, None] + WIDTHS, LEVELS)
print(f'around -200: {below.mean():.2f}, by hand {hand.mean():.2f}')
assert (below < 0).mean() > 0.99 and np.isclose(hand.mean(), means[0][1])
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: a perfect forecast scores its size.'
