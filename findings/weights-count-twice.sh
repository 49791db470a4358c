#!/usr/bin/env bash
# causalinference 0.1.3.post1: `est_via_weighting`, the effect of a treatment by inverse probabilities, weights each
# patient by the square of the weight. What confounds the treatment is not taken away, but turned around.
#   - 1,530 patients in three stages of a disease, of whom 50, 80 and 94 % are treated. Without treatment the outcome is
#     0, 0 and 30, and treatment lowers it by 10 in each stage. The estimate is -8.3, and -10 is right. Matching by the
#     same package gives -10, and so do the means of treated and untreated, weighted by the very propensities. Without
#     any weights it is -11.7, which is as wrong.
#   - If treatment does nothing, the estimate is 1.7, and its interval of 95 % goes from .7 to 2.7.
#   - 200 studies of 1,000 patients with an outcome that rises steeply with a risk, and an effect of 1: estimates have a
#     mean of 1.15, and 82 % of the intervals of 95 % hold the 1. Weighted once they have 1.02.
# The reason: rows of the regression are multiplied by the weight, where least squares asks for its root. It is hidden
# where the outcome is a straight line in each covariate. But then no weights are needed. The docstring says
# "doubly-robust", which is to be right if the propensity alone is right, as it is in these cases. Nothing is raised.
# Remedy: the regression by hand with the roots of the weights, or matching.
# Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 scipy==1.17.1 causalinference==0.1.3.post1
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from causalinference import CausalModel

print('causalinference', version('causalinference'))


def regression(outcome, treated, covariates, weights):
    """The effect of treatment by least squares with these weights."""
    roots = np.sqrt(weights)
    columns = np.column_stack([np.ones(len(outcome)), treated, covariates])
    return float(np.linalg.lstsq(roots[:, None] * columns, roots * outcome, rcond=None)[0][1])


def fitted(outcome, treated, covariate):
    """The model, and the weights that its own propensities make."""
    model = CausalModel(outcome, treated, covariate[:, None])
    model.est_propensity()
    model.est_via_weighting()
    propensity = model.propensity['fitted']
    return model, np.where(treated == 1, 1 / propensity, 1 / (1 - propensity))


def weighted_means(outcome, treated, weights):
    first, second = (np.average(outcome[treated == arm], weights=weights[treated == arm]) for arm in (1, 0))
    return float(first - second)


stages = np.repeat([0.0, 1.0, 2.0], 510)
treated = np.concatenate([np.arange(510) < count for count in (255, 408, 480)]).astype(int)
for effect, seen in ((-10, -8.33), (0, 1.67)):
    outcome = 30.0 * (stages == 2) + effect * treated
    model, weights = fitted(outcome, treated, stages)
    model.est_via_matching()
    estimates = model.estimates
    found, error = estimates['weighting']['ate'], estimates['weighting']['ate_se']
    matched, means = estimates['matching']['ate'], weighted_means(outcome, treated, weights)
    once, twice, never = (regression(outcome, treated, stages, weights**power) for power in (1, 2, 0))
    print(f'effect {effect}: by weighting {found:.2f} ({found - 1.96 * error:.2f} to {found + 1.96 * error:.2f}),'
          f' by matching {matched:.2f}, weighted means {means:.2f}, weighted once {once:.2f}, twice {twice:.2f},'
          f' never {never:.2f}')
    propensities = [1 / weights[(stages == stage) & (treated == 1)].mean() for stage in range(3)]
    assert np.allclose(propensities, [1 / 2, 4 / 5, 16 / 17], atol=1e-4)
    assert np.isclose(found, seen, atol=0.01) and np.isclose(found, twice), 'weights count once now'
    assert abs(found + never - 2 * effect) < 0.05
    assert max(abs(value - effect) for value in (matched, means, once)) < 0.01

draw = np.random.default_rng(0)
rows = []
for _ in range(200):
    risk = draw.normal(size=1000)
    treated = (draw.random(1000) < 1 / (1 + np.exp(-risk))).astype(int)
    outcome = np.exp(risk) + treated + draw.normal(size=1000)
    model, weights = fitted(outcome, treated, risk)
    result = model.estimates['weighting']
    once, twice = (regression(outcome, treated, risk, power) for power in (weights, weights**2))
    assert np.isclose(result['ate'], twice)
    rows.append((result['ate'], abs(result['ate'] - 1) < 1.96 * result['ate_se'], once))
found, held, once = np.mean(rows, axis=0)
print(f'200 studies: mean {found:.3f}, held by {100 * held:.1f} % of intervals, weighted once {once:.3f}')
assert np.allclose([found, held, once], [1.149, 0.815, 1.018], atol=0.006)
PYTHON
echo 'As stated: weights count twice.'
