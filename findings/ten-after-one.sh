#!/usr/bin/env bash
# iaa-kit 0.1.2: `weighted_kappa` of whole numbers puts 10 between 1 and 2, so two raters on a scale of 0 to 10 get a
# wrong kappa, and `ac2` is not Gwet's AC2.
#   - 300 patients' pain from 0 to 10, given by two raters who differ by at most 2: with quadratic weights kappa is .95,
#     and the package says .67. With linear weights it is .82, and the package says .63. The command `iaa-kit analyze`
#     says the same.
#   - Without the pairs that have a 10 it is right (.94 and .79).
#   - `ac2` is the weighted kappa, to the last digit. Where 90 of 100 pairs are (1, 1) and the others are (1, 2) or (2,
#     1), it is -.05 and Gwet's AC2 for two categories, which is AC1, is .89, as the package's own `ac1` says.
# One would expect numbers in the order of numbers, and AC2 where the README says Gwet's AC2. Nothing is raised. Pain and
# fatigue are rated from 0 to 10, and whoever is rated 10 by one and 9 by the other counts as a large disagreement.
# Remedy: scikit-learn's `cohen_kappa_score(first, second, weights=...)`, and irrCAC for AC2.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install iaa-kit==0.1.2 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata
import json
import pathlib
import sys

import numpy as np
from iaa_kit import ac1, ac2, weighted_kappa
from iaa_kit.cli import main

print('iaa-kit', importlib.metadata.version('iaa-kit'))


def right(first, second, power):
    """Weighted kappa: one less the ratio of distances in pairs to distances between all of both raters."""
    first, second = np.array(first), np.array(second)
    pairs = (np.abs(first - second) ** power).mean()
    return 1 - pairs / (np.abs(first[:, None] - second) ** power).mean()


draw = np.random.default_rng(0)
first = draw.integers(0, 11, 300)
second = np.clip(first + draw.choice([-2, -1, 0, 1, 2], 300, p=[0.1, 0.2, 0.4, 0.2, 0.1]), 0, 10)
first, second = first.tolist(), second.tolist()
found = {}
for weights, power in (('quadratic', 2), ('linear', 1)):
    found[weights] = weighted_kappa(first, second, weights), right(first, second, power)
    print(f'0 to 10, {weights}: {found[weights][0]:.3f}, right {found[weights][1]:.3f}')
    short = [list(column) for column in zip(*(pair for pair in zip(first, second) if max(pair) < 10))]
    assert np.isclose(weighted_kappa(*short, weights), right(*short, power))
    print(f'  those without 10: {weighted_kappa(*short, weights):.3f}, right {right(*short, power):.3f}')
path = pathlib.Path(sys.argv[1])
(path / 'in.json').write_text(json.dumps([list(pair) for pair in zip(first, second)]))
assert main(['analyze', '--input', str(path / 'in.json'), '--scale', 'ordinal', '--out', str(path / 'out.json')]) == 0
command = json.loads((path / 'out.json').read_text())['metrics']['weighted_kappa_quadratic']['value']
print(f'by the command: {command:.3f}')
assert abs(command - found['quadratic'][0]) < 1e-6

a, b = [1] * 95 + [2] * 5, [1] * 90 + [2] * 5 + [1] * 5
share = (a + b).count(1) / 200
chance = 2 * share * (1 - share)
gwet = (0.9 - chance) / (1 - chance)
print(f'ac2 {ac2(a, b):.3f}, weighted kappa {weighted_kappa(a, b):.3f}, ac1 {ac1(a, b):.3f}, by hand {gwet:.3f}')
assert ac2(a, b) == weighted_kappa(a, b) and np.isclose(ac1(a, b), gwet) and gwet > 0.88 and ac2(a, b) < 0
assert np.allclose(found['quadratic'], (0.67, 0.95), atol=0.006), '10 comes after 9 now'
assert np.allclose(found['linear'], (0.63, 0.82), atol=0.006)
PYTHON
"$folder/env/bin/python" "$folder/try.py" "$folder"
echo 'As stated: 10 lies between 1 and 2.'
