#!/usr/bin/env bash
# ir-measures 0.4.3 (with pytrec-eval-terrier 0.5.11): nDCG beside nDCG with `gains` is computed with the gains of the
# other one, in some processes and not in others.
#   - Four documents of grades 3, 1, 2 and 0, ranked 0, 1, 3, 2. nDCG@5 is .628. With 2 and 3 made gains of 3 and 7,
#     `nDCG(gains={2: 3, 3: 7})@5`, as the measure is often defined, it is .577.
#   - `calc_aggregate([nDCG@5, nDCG(gains={2: 3, 3: 7})@5], qrels, run)` gives .628 and .577 in some processes, and .577
#     and 0 in others, also if they differ in PYTHONHASHSEED alone. The list is made a set.
#   - Of nDCG@5 and `nDCG(gains={2: 3, 3: 7})` without a cutoff the first one is wrong, again in some processes.
#   - The provider by itself, `ir_measures.pytrec_eval.calc_aggregate`, keeps the order. There the measure with gains is
#     right if it comes last, and wrong if it comes first.
# A measure without gains is added to whatever call of trec_eval is there already, "Doesn't matter where this goes", and
# that may be the one with other grades. Its result has the same name there, so one of both gets lost, which is counted
# as 0. Nothing is raised. The README computes several measures in one call, and lists them side by side.
# Remedy: one call for each set of gains. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps ir-measures==0.4.3 pytrec-eval-terrier==0.5.11 numpy==2.4.6
cat > "$folder/both.py" <<'PYTHON'
import ir_measures
from ir_measures import nDCG

qrels = {'q1': {'a': 3, 'b': 1, 'c': 2, 'd': 0}}
run = {'q1': {'d': 4.0, 'b': 3.0, 'a': 2.0, 'c': 1.0}}
other = nDCG(gains={2: 3, 3: 7})
for measures in ([nDCG @ 5, other @ 5], [nDCG @ 5, other]):
    found = ir_measures.calc_aggregate(measures, qrels, run)
    print(*(f'{found[measure]:.3f}' for measure in measures))
PYTHON
cat > "$folder/try.py" <<'PYTHON'
import os
import subprocess
import sys
from collections import Counter
from importlib.metadata import version
from math import log2
from pathlib import Path

import ir_measures
from ir_measures import nDCG

print('ir-measures', version('ir-measures'))
qrels = {'q1': {'a': 3, 'b': 1, 'c': 2, 'd': 0}}
run = {'q1': {'d': 4.0, 'b': 3.0, 'a': 2.0, 'c': 1.0}}
other = nDCG(gains={2: 3, 3: 7})


def by_hand(gains):
    """nDCG of the ranking d, b, a, c."""
    grades = [gains.get(qrels['q1'][name], qrels['q1'][name]) for name in 'dbac']
    gain, best = (sum(grade / log2(place + 2) for place, grade in enumerate(order))
                  for order in (grades, sorted(grades, reverse=True)))
    return round(gain / best, 3)


plain, changed = by_hand({}), by_hand({2: 3, 3: 7})
print(f'by hand: {plain}, with gains {changed}')
assert (plain, changed) == (0.628, 0.577)
for measure, right in ((nDCG @ 5, plain), (other @ 5, changed), (other, changed)):
    # The remedy.
    assert round(ir_measures.calc_aggregate([measure], qrels, run)[measure], 3) == right

seen = [Counter(), Counter()]
for seed in range(16):
    done = subprocess.run([sys.executable, str(Path(__file__).with_name('both.py'))], check=True, capture_output=True,
                          text=True, env={**os.environ, 'PYTHONHASHSEED': str(seed)})
    lines = done.stdout.splitlines()
    for counter, line in zip(seen, lines, strict=True):
        counter[line] += 1
for name, counter in zip(('nDCG@5 and gains@5', 'nDCG@5 and gains'), seen, strict=True):
    print(f'{name}, in 16 processes:', dict(counter))
assert set(seen[0]) == {'0.628 0.577', '0.577 0.000'}, 'the same in all processes now'
assert set(seen[1]) == {'0.628 0.577', '0.577 0.577'}

for measures, first, second in (([nDCG @ 5, other @ 5], 0.628, 0.577), ([other @ 5, nDCG @ 5], 0.577, 0.0)):
    found = ir_measures.pytrec_eval.calc_aggregate(measures, qrels, run)
    print(f'pytrec_eval, {measures}:', found)
    assert round(found[nDCG @ 5], 3) == first and round(found[other @ 5], 3) == second
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: nDCG is computed with the gains of another measure.'
