#!/usr/bin/env bash
# ir-measures 0.4.3: `Compat`, the compatibility of a ranking with the judgements, falls when all scores are lowered by
# the same amount. Scores below zero, as log-probabilities and logits of rerankers are, make it far too low.
#   - Ten documents of one grade, and a ranking of five of them and of no other: Compat is .849 with scores of 5 to 1.
#     With 10 taken away from each score it is .151. The order of the documents is the same, and AP, nDCG and RR are.
#   - Of two rerankers the worse one wins if its scores are probabilities and the other's are logarithms: three of ten
#     at the top (and then others) beats five of ten.
#   - Scores of which some are above zero and some are below: .85, .69, .42, .15 with 5, 3, 1 and 0 of five above.
# Compatibility is the overlap (RBO) with an ideal ranking, by Clarke, Vtyurina and Smucker 2021: if several are ideal,
# as documents have the same grade, the one counts that is most like the ranking. So documents that were found go first.
# The package gives documents that were not found a score of 0, and puts them before found ones with less than that.
# The documentation says nothing of this, a run's scores are for ordering only, and nothing is raised. Remedy: add a
# constant, or give ranks as scores. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps ir-measures==0.4.3 pytrec-eval-terrier==0.5.11 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from itertools import permutations
from math import log

import ir_measures
from ir_measures import AP, RR, Compat, nDCG

print('ir-measures', version('ir-measures'))
qrels = {'q1': {f'good{number}': 1 for number in range(10)}}
good = [f'good{number}' for number in range(9, 4, -1)]


def compat(names, scores):
    """The compatibility of a ranking with the package, and three other measures of it."""
    run = {'q1': dict(zip(names, scores, strict=True))}
    found = ir_measures.calc_aggregate([Compat, AP, RR, nDCG], qrels, run)
    return found[Compat], (found[AP], found[RR], found[nDCG])


def overlap(ranking, ideal, p=0.95):
    """Rank-biased overlap of two lists, to the end of the longer one."""
    return sum(p ** depth * len({*ranking[:depth + 1]} & {*ideal[:depth + 1]}) / (depth + 1)
               for depth in range(max(len(ranking), len(ideal))))


def by_hand(ranking):
    """Compatibility, with the ideal ranking that is most like the ranking."""
    found = [name for name in ranking if name in qrels['q1']]
    ideal = found + sorted(qrels['q1'].keys() - set(found))
    return overlap(ranking, ideal) / overlap(ideal, ideal)


right = by_hand(good)
# No order of the documents, all of which have one grade, is more like the ranking. Here with 2 of 5 that were found.
few, all_good = ['a', 'b'], 'abcde'
best = max(overlap(few, order) for order in permutations(all_good))
assert abs(best - overlap(few, tuple(all_good))) < 1e-12

high, others = compat(good, [5, 4, 3, 2, 1])
low, others_low = compat(good, [-5, -6, -7, -8, -9])
print(f'by hand {right:.3f}, scores above zero {high:.3f}, ten less {low:.3f}; AP, RR, nDCG {others} and {others_low}')
assert others == others_low
assert abs(high - right) < 1e-9
assert round(high, 3) == 0.849 and round(low, 3) == 0.151, 'scores below zero count as they should now'

worse = compat([*good[:3], 'bad1', 'bad2'], [0.9, 0.8, 0.7, 0.6, 0.5])[0]
better = compat(good, [log(chance) for chance in (0.9, 0.8, 0.7, 0.6, 0.5)])[0]
print(f'three of ten, by probabilities: {worse:.3f}, five of ten, by their logarithms: {better:.3f}')
assert worse > 2 * better and by_hand([*good[:3], 'bad1', 'bad2']) < by_hand(good)

steps = [round(compat(good, [above + 0.5 - place for place in range(1, 6)])[0], 2) for above in (5, 3, 1, 0)]
print('with 5, 3, 1 and 0 of five scores above zero:', steps)
assert steps == [0.85, 0.69, 0.42, 0.15]
# The remedy.
assert abs(compat(good, [-place + 100 for place in range(5)])[0] - right) < 1e-9
PYTHON
echo 'As stated: scores below zero lower the compatibility.'
