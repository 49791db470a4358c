#!/usr/bin/env bash
# CLES 0.1.3 (common language effect size): `CLES_2paired(before, after)` counts too few pairs. The result depends on
# which measurement comes first, and it has an effect where there is none.
#   - Ten patients, all of them better after: 90, and with the two exchanged 100. It should be 100 both times.
#   - Five better and five worse: 55, where 50 means no effect.
#   - Six better and four worse: 54, and with the two exchanged 64. It should be 60 both times.
#   - Seven of ten better is 63, and six of ten worse is 64, so the smaller effect looks larger.
#   - Of 2000 samples of ten pairs without an effect, each half better: 55 for all. With three better of six it is 58.3.
# One would expect the share of pairs that changed in the more frequent direction, with ties as a half, between 50 and
# 100. `CLES_1samp(after - before)` of the same package gives that.
# The reason: the differences are compared with a list of zeros that has one entry less than there are pairs, and the
# count is divided as if it had all. So the share of better pairs is multiplied by 1 - 1 / n.
# Nothing is raised. The docstring says 50 to 100 and that the samples are paired. It hurts small studies with measures
# before and after most. Remedy: CLES_1samp of the differences.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install CLES==0.1.3 numpy==2.4.6 'setuptools<81'
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from CLES import CLES_1samp, CLES_2paired

print('CLES', version('CLES'))


def pairs(better, worse):
    """Blood pressures before and after, with so many patients who got better (lower before) or worse."""
    draw = np.random.default_rng(better * 100 + worse)
    before = draw.normal(120, 10, better + worse)
    change = np.abs(draw.normal(8, 3, better + worse)) + 0.5
    return before, before + np.where(np.arange(better + worse) < better, change, -change)


def by_hand(before, after):
    share = np.mean((after > before) + 0.5 * (after == before))
    return 100 * max(share, 1 - share)


for better, worse, found, exchanged, right in (
    (10, 0, 90, 100, 100), (5, 5, 55, 55, 50), (6, 4, 54, 64, 60), (4, 6, 64, 54, 60), (7, 3, 63, 73, 70),
    (3, 3, 58.3, 58.3, 50),
):
    before, after = pairs(better, worse)
    first, second = CLES_2paired(before, after), CLES_2paired(after, before)
    print(f'{better} better, {worse} worse: {first:.1f}, exchanged {second:.1f}, by hand {by_hand(before, after):.1f}')
    assert np.allclose([first, second], [found, exchanged], atol=0.05), 'all pairs are counted now'
    assert np.isclose(by_hand(before, after), right) and np.isclose(by_hand(after, before), right)
    assert np.isclose(CLES_1samp(after - before), right)

# Samples without an effect: half of the pairs better, half worse, with other numbers each time.
draw = np.random.default_rng(0)
values = []
for _ in range(2000):
    change = np.abs(draw.normal(0, 1, 10)) * draw.permutation(np.repeat([1, -1], 5))
    before = draw.normal(120, 10, 10)
    values.append((CLES_2paired(before, before + change), CLES_1samp(change)))
values = np.array(values)
print('2000 samples without an effect: from', values[:, 0].min(), 'to', values[:, 0].max(), '- by one sample',
      values[:, 1].min(), 'to', values[:, 1].max())
assert np.allclose(values[:, 0], 55) and np.allclose(values[:, 1], 50)
PYTHON
echo 'As stated: one pair is not counted, so no change is an effect.'
