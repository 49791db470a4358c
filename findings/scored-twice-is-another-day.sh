#!/usr/bin/env bash
# scoringrules 0.10.0: `crps_exponentialM` and `logs_exponential2` subtract the location from the array of outcomes that
# they are given, so each later score and table has other outcomes.
#   - Stays in hospital of 1, 2 and 3 days, and a forecast from half a day on: the first call is right, and leaves .5,
#     1.5 and 2.5. The second has other scores: .63 instead of .55 on average.
#   - Two forecasts of these stays, with scales of 1.25 and 1.5 days, have .547 and .523. Scored in this order they have
#     .547 and .527, and in the other order .501 and .523. So the one that is scored last may win.
#   - Ten calls in a loop: the stays are -4, -3 and -2 days, and the logarithmic score is infinite.
# The documentation says nothing of it. It is so for arrays of floats; a list is copied, integers are refused,
# and arrays of JAX stay as they are. Nothing is raised. Remedy: pass a copy. Seen on 2026-12-01; version 0.11.0, for
# Python from 3.12, has the same lines.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install scoringrules==0.10.0 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import scoringrules

print('scoringrules', version('scoringrules'))
STAYS = [1., 2., 3.]


def by_hand(scale):
    """The CRPS of an exponential distribution that begins at half a day, by its formula."""
    past = np.array(STAYS) - 0.5
    return np.abs(past) - 2 * scale * (1 - np.exp(-past / scale)) + scale / 2


stays = np.array(STAYS)
first = scoringrules.crps_exponentialM(stays, location=0.5, scale=2.)
left = stays.copy()
second = scoringrules.crps_exponentialM(stays, location=0.5, scale=2.)
print('first', first, 'left', left, 'second', second, 'by hand', by_hand(2.))
assert np.allclose(first, by_hand(2.))
assert np.allclose(left, np.array(STAYS) - 0.5), 'the outcomes stay now'
assert not np.allclose(second, first)
print('on average', first.mean(), second.mean())
assert np.allclose([first.mean(), second.mean()], [0.55, 0.633], atol=0.001)

# Which of two forecasts is better depends on the order in which they are scored.
scores = {}
for order in ((1.25, 1.5), (1.5, 1.25)):
    stays = np.array(STAYS)
    scores[order] = {scale: scoringrules.crps_exponentialM(stays, location=0.5, scale=scale).mean() for scale in order}
    print('scored in the order', order, {scale: round(float(score), 3) for scale, score in scores[order].items()})
print('by hand', by_hand(1.25).mean(), by_hand(1.5).mean())
winners = [min(each, key=each.get) for each in scores.values()]
assert winners[0] != winners[1], winners

stays = np.array(STAYS)
for _ in range(10):
    logarithmic = scoringrules.logs_exponential2(stays, location=0.5, scale=2.)
print('after ten calls', stays, logarithmic)
assert np.allclose(stays, np.array(STAYS) - 5) and np.isinf(logarithmic).all()

# A copy is the remedy.
kept = np.array(STAYS)
assert np.allclose(scoringrules.crps_exponentialM(kept.copy(), location=0.5, scale=2.), by_hand(2.))
assert kept.tolist() == STAYS
PYTHON
echo 'As stated: scored twice is another day.'
