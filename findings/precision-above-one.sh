#!/usr/bin/env bash
# ranx 0.3.21: rank-biased precision (`rbp.p`) counts a document as often as its grade says, so it is above 1 where
# relevance is graded, and a worse system may win.
#   - Documents of grades 3, 2 and 1 in the first three places: rbp.80 is 1.048, and rbp.50 is 2.125. They should be
#     .488 and .875, as every found document is relevant.
#   - One document of grade 3 in the first place, and others that are not relevant: .6. Three documents of grade 1:
#     .488. The first should be .2. So the system that finds one of three is better than the one that finds all.
#   - A limit on grades does not help: `rbp.80-l2`, with grades from 2 relevant, is .92, and should be .36.
#   - Judgements of 0 and 2, as some collections have, double the result.
# The formula in the documentation has r, which is "either 0 or 1", and in issue 58 the author says that all metrics but
# DCG and nDCG take relevance as binary. For Moffat and Zobel 2008 it is a reader's precision, between 0 and 1. Grades
# are taken as they are in the judgements. For precision, MAP and MRR they make no difference. Nothing is raised.
# Remedy: judgements of 0 and 1. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install ranx==0.3.21 numpy==2.4.6 numba==0.68.1
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import numpy as np
from ranx import Qrels, Run, evaluate

print('ranx', version('ranx'))


def measured(grades, measures):
    """Measures of one ranking, by the grades of its documents in order."""
    names = [f'd{place}' for place in range(len(grades))]
    run = Run({'q1': {name: float(-place) for place, name in enumerate(names)}})
    return {name: float(value) for name, value in
            evaluate(Qrels({'q1': dict(zip(names, grades, strict=True))}), run, measures).items()}


def by_hand(grades, p, least=1):
    """Rank-biased precision: the share of relevant documents among those that a reader sees."""
    return (1 - p) * sum(p ** place for place, grade in enumerate(grades) if grade >= least)


found = measured([3, 2, 1], ['rbp.80', 'rbp.50', 'rbp.80-l2', 'precision'])
right = [by_hand([3, 2, 1], 0.8), by_hand([3, 2, 1], 0.5), by_hand([3, 2, 1], 0.8, 2)]
print('grades 3, 2, 1:', found, 'should be', right)
assert np.allclose(right, (0.488, 0.875, 0.36)) and np.isclose(found['precision'], 1)
assert np.isclose(found['rbp.80'], 1.048) and np.isclose(found['rbp.50'], 2.125), 'grades do not count now'
assert np.isclose(found['rbp.80-l2'], 0.92)

one, three = (measured(grades, ['rbp.80', 'precision', 'map', 'mrr']) for grades in ([3, 0, 0], [1, 1, 1]))
print('one of grade 3:', one, 'three of grade 1:', three)
assert np.isclose(one['rbp.80'], 0.6) and np.isclose(three['rbp.80'], by_hand([1, 1, 1], 0.8))
assert by_hand([3, 0, 0], 0.8) < by_hand([1, 1, 1], 0.8) and one['precision'] < three['precision']

twos, ones = (measured(grades, ['rbp.80', 'precision', 'map', 'mrr']) for grades in ([0, 2, 0, 2], [0, 1, 0, 1]))
print('judgements of 0 and 2:', twos, 'of 0 and 1:', ones)
assert np.isclose(twos['rbp.80'], 2 * by_hand([0, 2, 0, 2], 0.8))
# The remedy, and the other measures, which take no notice of grades.
assert np.isclose(ones['rbp.80'], by_hand([0, 1, 0, 1], 0.8))
assert all(np.isclose(twos[name], ones[name]) for name in ('precision', 'map', 'mrr'))
PYTHON
# Not compiled, which takes seconds in place of a minute. Compiled, the numbers are the same.
NUMBA_DISABLE_JIT=1 "$folder/env/bin/python" -W ignore "$folder/try.py"
echo 'As stated: a precision is above one.'
