#!/usr/bin/env bash
# zepid 0.9.1 (zEpid, epidemiology): `screening_cost_analyzer` calls a screening test cost efficient where treating
# everyone is cheaper, and says nothing where the test is the cheapest of all.
#   - By its docstring the lowest cost per head is the best choice of three: treat nobody, treat everyone, treat those
#     whom the test finds.
#   - A missed case costs 10 times a false alarm, prevalence 15 %, sensitivity .95, specificity .9: 1.50, .85 and .16
#     per head. The test is the cheapest by far, and no verdict is printed.
#   - A missed case costs 20 times as much, and the sensitivity is .5: 3.00, .85 and 1.585 per head. The test costs
#     nearly twice as much as treating everyone, and "Screening program is cost efficient" is printed. Below it stands
#     "Treating everyone as test-positive is least costly".
#   - Of 5,000 tests drawn at random, 2,500 are the cheapest choice, and "cost efficient" is printed for none of them.
#     It is printed for 2,300, and each of them costs more than treating everyone.
# The reason: the words are printed if the costs of nobody, test and everyone fall in this order.
# Nothing is raised, and the function returns nothing but prints. The costs themselves are right. Remedy: compare the
# three costs per head.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install zepid==0.9.1 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 pandas==2.3.3 \
    statsmodels==0.15.0 matplotlib==3.11.2 tabulate==0.10.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import contextlib
import io
import re
from importlib.metadata import version

import numpy as np
from zepid.calc import screening_cost_analyzer

print('zepid', version('zepid'))
PRAISE = 'cost efficient'


def verdict(missed, prevalence, sensitivity, specificity):
    """Costs per head of nobody, everyone and the test, as printed, and the sentences below them."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        screening_cost_analyzer(missed, 1, prevalence, sensitivity, specificity, decimal=6)
    costs = [float(number) for number in re.findall(r'Per Capita relative cost:\s*(\S+)', out.getvalue())]
    sick, healthy = prevalence, 1 - prevalence
    right = [sick * missed, healthy, sick * (1 - sensitivity) * missed + healthy * (1 - specificity)]
    assert np.allclose(costs, right, atol=1e-5), 'the costs are others'
    sentences = [line for line in out.getvalue().splitlines() if re.search('costly$|efficient$|negative$', line)]
    return costs, [line for line in sentences if not line.startswith('Treat everyone')]


costs, said = verdict(10, 0.15, 0.95, 0.9)
print('a good test:', costs, said)
assert np.allclose(costs, [1.5, 0.85, 0.16]) and said == [], 'the cheapest test has a verdict now'
costs, said = verdict(20, 0.15, 0.5, 0.9)
print('a poor test:', costs, said)
assert np.allclose(costs, [3, 0.85, 1.585]) and any(PRAISE in line for line in said) and len(said) == 2

draw = np.random.default_rng(0)
cheapest = praised = cheapest_praised = dearer_praised = silent = 0
for _ in range(5000):
    costs, said = verdict(draw.uniform(1, 20), draw.uniform(0.05, 0.5), *draw.uniform(0.5, 1, 2))
    best, praise = costs[2] < min(costs[:2]), any(PRAISE in line for line in said)
    cheapest += best
    praised += praise
    cheapest_praised += best and praise
    dearer_praised += praise and costs[2] > costs[1]
    silent += best and not said
print(f'{cheapest} tests are the cheapest choice, of these {cheapest_praised} "{PRAISE}" and {silent} without a word')
print(f'{praised} tests are "{PRAISE}", of these {dearer_praised} cost more than treating everyone')
assert cheapest > 1000 and cheapest_praised == 0 and silent == cheapest
assert praised > 100 and dearer_praised == praised
PYTHON
echo 'As stated: the cheapest test has no verdict, and a dear one is called cost efficient.'
