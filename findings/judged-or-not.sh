#!/usr/bin/env bash
# trectools 0.0.50: `removeUnjudged=True` does nothing in `TrecEval.get_reciprocal_rank` and `TrecEval.get_rprec`.
#   - Four topics with incomplete judgements. With removeUnjudged=True the mean reciprocal rank is 0.354 and R-precision
#     is 0, which is what they are without it. Without the documents that nobody judged they are 0.875 and 0.75. It is
#     so with trec_eval=True, the default, and with False.
#   - `get_precision`, `get_recall`, `get_ndcg` and `get_rbp` of the same object do obey the setting. P@1 rises from 0
#     to 0.75 by it. So one table mixes scores with and without unjudged documents.
#   - The reason: both methods build a run without the unjudged documents, and then sort and cut the whole run that the
#     object holds.
# By the docstrings the setting removes unjudged documents before the metric is computed. Nothing is raised, and the
# scores look like scores. It hurts whoever compares a new retriever with older ones on judgements that were pooled from
# the older ones, as those of TREC-COVID: the new one finds papers that nobody judged, the setting is there for that
# case, and it is the new one that loses. Remedy: remove rows without a judgement from `run.run_data` before TrecEval
# gets the run, or use pytrec_eval with `judged_docs_only_flag=True`. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install trectools==0.0.50 pandas==3.0.6 numpy==1.26.4 pytrec_eval-terrier==0.5.11
cat > "$folder/try.py" <<'PYTHON'
import warnings
from importlib.metadata import version

import pandas as pd
import pytrec_eval

warnings.simplefilter('ignore')
from trectools import TrecEval, TrecQrel, TrecRun  # noqa: E402

print('trectools', version('trectools'))
JUDGEMENTS = {
    'one': {'a': 1, 'b': 0},
    'two': {'c': 1, 'd': 0},
    'three': {'e': 1, 'f': 0},
    'four': {'g': 1, 'h': 0},
}
# Documents by rank. Those named new_* were judged by nobody.
RANKINGS = {
    'one': ('new_1', 'a', 'b'),
    'two': ('new_2', 'new_3', 'c'),
    'three': ('new_4', 'new_5', 'new_6', 'e', 'f'),
    'four': ('h', 'new_7', 'g'),
}
SCORES = {topic: {name: 9.0 - rank for rank, name in enumerate(names)} for topic, names in RANKINGS.items()}


def run_of(scores):
    """A run of the package."""
    rows = [(topic, 'Q0', name, rank, score, 'retriever')
            for topic, names in scores.items() for rank, (name, score) in enumerate(names.items(), 1)]
    run = TrecRun()
    run.load_run_from_dataframe(pd.DataFrame(rows, columns=['query', 'q0', 'docid', 'rank', 'score', 'system']))
    return run


judgements = TrecQrel()
judgements.qrels_data = pd.DataFrame(
    [(topic, '0', name, grade) for topic, names in JUDGEMENTS.items() for name, grade in names.items()],
    columns=['query', 'q0', 'docid', 'rel'])


def mean(metric, judged_only):
    """The mean of a metric by trec_eval's own code."""
    evaluator = pytrec_eval.RelevanceEvaluator(JUDGEMENTS, {metric}, judged_docs_only_flag=judged_only)
    topics = evaluator.evaluate(SCORES).values()
    return sum(next(iter(topic.values())) for topic in topics) / len(topics)


def ranked_by_hand(judged_only):
    """The mean of 1 / rank of the first relevant document, counted by hand."""
    total = 0.0
    for topic, names in RANKINGS.items():
        left = [name for name in names if name in JUDGEMENTS[topic] or not judged_only]
        total += 1 / (1 + next(rank for rank, name in enumerate(left) if JUDGEMENTS[topic].get(name, 0) > 0))
    return total / len(RANKINGS)


evaluation = TrecEval(run_of(SCORES), judgements)
judged = TrecEval(run_of({topic: {name: score for name, score in names.items() if name in JUDGEMENTS[topic]}
                          for topic, names in SCORES.items()}), judgements)
EXPECTED = {
    'recip_rank': (evaluation.get_reciprocal_rank, judged.get_reciprocal_rank, 0.3542, 0.875),
    'Rprec': (evaluation.get_rprec, judged.get_rprec, 0.0, 0.75),
}
for metric, (function, of_judged, whole, right) in EXPECTED.items():
    for like_trec_eval in (True, False):
        without = function(trec_eval=like_trec_eval)
        with_it = function(trec_eval=like_trec_eval, removeUnjudged=True)
        print(f'{metric}, trec_eval={like_trec_eval}: {without:.4f}, with removeUnjudged {with_it:.4f},'
              f' by trec_eval {mean(metric, False):.4f} and {mean(metric, True):.4f}')
        assert round(without, 4) == round(mean(metric, False), 4) == whole
        assert with_it == without, 'the setting does something now'
        assert round(mean(metric, True), 4) == right
        # The remedy.
        assert round(of_judged(trec_eval=like_trec_eval), 4) == right
assert round(ranked_by_hand(False), 4) == 0.3542 and round(ranked_by_hand(True), 4) == 0.875

# The other methods obey it.
precision = [evaluation.get_precision(depth=1, removeUnjudged=remove) for remove in (False, True)]
gain = [evaluation.get_ndcg(depth=10, removeUnjudged=remove) for remove in (False, True)]
print(f'P@1 {precision[0]:.4f} and {precision[1]:.4f}, NDCG@10 {gain[0]:.4f} and {gain[1]:.4f}')
assert precision == [0.0, 0.75] and gain[1] > gain[0]
assert [evaluation.get_recall(depth=1, removeUnjudged=remove) for remove in (False, True)] == [0.0, 0.75]
assert evaluation.get_rbp(removeUnjudged=True)[0] > evaluation.get_rbp()[0]
assert round(precision[1], 4) == round(mean('P_1', True), 4)
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: two of the metrics keep the documents that nobody judged.'
