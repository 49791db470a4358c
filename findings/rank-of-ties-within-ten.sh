#!/usr/bin/env bash
# ir-measures 0.4.3 (with pytrec-eval-terrier 0.5.11): where documents have equal scores, RR@k ranks them the other way
# round than all other measures do. The reciprocal rank within ten is higher, or lower, than the one without a limit.
#   - Three documents of one score, a, b and c, of which a is relevant. RR is .333, and RR@10 is 1. RR@1 is 1, and so
#     the first document is relevant; P@1 and Success@1 are 0, and so it is not. If c is relevant, all are reversed.
#   - 2,000 queries with one relevant document and 20 in all, with a score of 0 to 4 each, as by counting words. RR and
#     RR@20 should be equal. For 9 queries in 10 they are not. Where relevant documents come first by name, as old ones
#     with low numbers do, RR is .121 and RR@20 is .258.
# RR is computed by trec_eval, which puts equal scores into descending order of names. RR@k is computed by a function
# after MS MARCO's, for which the package sorts by ascending names. Judged@k is sorted as RR@k is. AP@k, P@k, nDCG@k and
# Success@k go with RR. The documentation says of RR that "an optional cutoff can be provided to limit the depth
# explored", and of ties nothing. Scores are often equal: of counts, of few bits, and of reranking in bfloat16.
# Remedy: make scores differ before, for example by ranks. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps ir-measures==0.4.3 pytrec-eval-terrier==0.5.11 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import ir_measures
import numpy as np
from ir_measures import AP, RR, Judged, P, Success, nDCG

print('ir-measures', version('ir-measures'))
run = {'q1': {'a': 1.0, 'b': 1.0, 'c': 1.0}}
for good, last in (('a', True), ('c', False)):
    found = ir_measures.calc_aggregate([RR, RR @ 10, RR @ 1, P @ 1, Success @ 1, Judged @ 1, AP @ 1, nDCG @ 1],
                                       {'q1': {good: 1}}, run)
    print(f'{good} is relevant:', {str(measure): round(value, 3) for measure, value in found.items()})
    limited, others = (1.0, 0.0) if last else (0.0, 1.0)
    assert round(found[RR], 3) == (0.333 if last else 1)
    assert round(found[RR @ 10], 3) == (1 if last else 0.333), 'ties are ranked in one way now'
    assert found[RR @ 1] == found[Judged @ 1] == limited
    assert found[P @ 1] == found[Success @ 1] == found[AP @ 1] == found[nDCG @ 1] == others

draw = np.random.default_rng(0)
names = [f'd{number:02}' for number in range(20)]
for first in (False, True):
    qrels, run = {}, {}
    for query in range(2000):
        good = int(draw.integers(5 if first else 20))
        qrels[f'q{query}'] = {names[good]: 1}
        run[f'q{query}'] = dict(zip(names, draw.integers(5, size=20).astype(float).tolist(), strict=True))
    whole, limited = ({each.query_id: each.value for each in ir_measures.iter_calc([measure], qrels, run)}
                      for measure in (RR, RR @ 20))
    unequal = np.mean([abs(whole[query] - limited[query]) > 1e-6 for query in qrels])
    means = [round(float(np.mean(list(each.values()))), 3) for each in (whole, limited)]
    print(f'relevant ones come first: {first}; RR and RR@20 {means}, unequal {unequal:.2f}')
    if first:
        assert means == [0.121, 0.258]
    else:
        assert 0.85 < unequal < 0.92
    # The remedy.
    ranks = {query: {name: -place for place, name in enumerate(sorted(scores, key=lambda name: (-scores[name], name)))}
             for query, scores in run.items()}
    apart = ir_measures.calc_aggregate([RR, RR @ 20], qrels, ranks)
    assert abs(apart[RR] - apart[RR @ 20]) < 1e-6
PYTHON
echo 'As stated: the reciprocal rank within ten ranks ties the other way round.'
