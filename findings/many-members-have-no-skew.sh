#!/usr/bin/env bash
# scoringrules 0.10.0: the error-spread score divides the skewness of an ensemble by the number of its members, and the
# CRPS of a hypergeometric forecast leaves out the outcomes above the number of failures.
#   - An ensemble of 5 members (1, 2, 3, 10, 4), and 2 comes: 37.2, and 12.25 with the skewness. If each member is there
#     a hundred times, the score is 36.1, and should be 1.46.
#   - 10000 members of a standard exponential distribution, and 2 comes: .0003. The score of the distribution is 4.
#   - 10 draws from 20 successes and 5 failures, of which 7 are successes: .00004, as if the forecast were nearly sure.
#     It is .59. 10 draws from 5 successes and 20 failures are scored rightly.
# Christensen, Moroz and Palmer (2015), whom the documentation cites, have the skewness of the forecast in the score, as
# R's ess_moments has. For n members its estimate has n / ((n - 1)(n - 2)) before the sum, and the package
# 1 / ((n - 1)(n - 2)). For the other score the documentation has the same sum, up to "n", which is the number of
# failures. Nothing is raised. Seen on 2026-12-01; version 0.11.0, for Python from 3.12, has the same lines.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install scoringrules==0.10.0 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import scoringrules
from scipy import stats

print('scoringrules', version('scoringrules'))


def error_spread(outcome, members):
    """The score of Christensen and others, with unbiased estimates."""
    error, variance = members.mean() - outcome, members.var(ddof=1)
    return (variance - error ** 2 - error * variance ** 0.5 * stats.skew(members, bias=False)) ** 2


few = np.array([1., 2., 3., 10., 4.])
many = np.random.default_rng(0).exponential(size=10000)
for name, members, seen, right in (('5 members', few, 37.21, 12.25), ('500', np.repeat(few, 100), 36.067, 1.461),
                                   ('10000', many, 0.000337, 3.9)):
    found, hand = float(scoringrules.error_spread_score(2., members)), error_spread(2., members)
    print(f'{name}: {found:.4f}, by hand {hand:.4f}')
    assert np.isclose(found, seen, rtol=0.01, atol=1e-5), 'the skewness counts now'
    assert np.isclose(hand, right, rtol=0.15)


def crps(outcome, distribution):
    """E|X - y| - E|X - X'| / 2, over all that can come."""
    values = np.arange(distribution.support()[0], distribution.support()[1] + 1)
    masses = distribution.pmf(values)
    return masses @ np.abs(values - outcome) - masses @ np.abs(values[:, None] - values) @ masses / 2


for successes, failures, draws, outcome, seen in ((20, 5, 10, 7, 0.000045), (20, 5, 10, 10, 0.000112),
                                                  (5, 20, 10, 2, None)):
    found = float(scoringrules.crps_hypergeometric(outcome, successes, failures, draws))
    hand = crps(outcome, stats.hypergeom(successes + failures, successes, draws))
    print(f'{outcome} of {draws}, from {successes} and {failures}: {found:.6f}, by hand {hand:.6f}')
    assert np.isclose(hand, found) if seen is None else np.isclose(found, seen, rtol=0.01) and hand > 0.5
PYTHON
echo 'As stated: many members have no skew.'
