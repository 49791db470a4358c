#!/usr/bin/env bash
# trectools 0.0.50 with pandas 3.0.6: R-precision counts documents that are relevant to other topics. It may be above 1.
#   - Four topics, four papers each, which is what four related questions find. `TrecEval.get_rprec()` gives 2.0. By
#     trec_eval's own code, and by hand, it is 0.75.
#   - A run that finds for each topic only papers of other topics should have 0, and has 1.0. The run that finds the
#     right ones has 1.0 as well. `evaluate_all`, with and without per_query, has the same `Rprec`.
#   - The reason: the method cuts each topic's ranking in `groupby('query').apply`. In pandas 3 the column by which rows
#     were grouped is not part of what comes back, and the index with the topics is dropped. So rankings and judgements
#     are joined by document alone, and each pair of a ranked paper and a topic that it is relevant to is a hit for that
#     topic. With pandas 2.3.3 the same program gives 0.75, 0 and 1.0.
#   - As long as no paper is relevant to two topics or is ranked for a second topic, all is right, as in a small test.
#     P@k, MAP, NDCG and the reciprocal rank are right.
# The docstring promises precision among as many documents as are relevant for a topic, and trectools asks for pandas
# 0.15 or newer, so an installation of today gets pandas 3. Nothing is raised, and a score below 1 looks like any other.
# It hurts whoever evaluates retrieval of papers or trials, where one is relevant to several topics. Remedy: install
# pandas below 3, or take R-precision from pytrec_eval. Seen on 2026-11-30, in the newest version.
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

print('trectools', version('trectools'), 'pandas', pd.__version__)
# Two of four papers are relevant to each topic, and each paper is to two topics.
RELATED = {'one': ('a', 'b'), 'two': ('b', 'c'), 'three': ('c', 'd'), 'four': ('d', 'a')}
PAIRS = {'one': ('a', 'b'), 'two': ('c', 'd')}
CASES = {
    'related questions': (RELATED, {'one': 'abcd', 'two': 'bacd', 'three': 'dcab', 'four': 'cabd'}, 2.0, 0.75),
    'papers of other topics': (PAIRS, {'one': 'cd', 'two': 'ab'}, 1.0, 0.0),
    'papers of these topics': (PAIRS, {'one': 'ab', 'two': 'cd'}, 1.0, 1.0),
}


def by_hand(relevant, rankings):
    """The mean share of relevant papers among the first R, where R papers are relevant."""
    shares = [len(set(ranking[:len(relevant[topic])]) & set(relevant[topic])) / len(relevant[topic])
              for topic, ranking in rankings.items()]
    return sum(shares) / len(shares)


for name, (relevant, rankings, seen, right) in CASES.items():
    judged = {topic: {paper: int(paper in relevant[topic]) for paper in 'abcd'} for topic in relevant}
    scores = {topic: {paper: 9.0 - rank for rank, paper in enumerate(ranking)} for topic, ranking in rankings.items()}
    run, judgements = TrecRun(), TrecQrel()
    run.load_run_from_dataframe(pd.DataFrame(
        [(topic, 'Q0', paper, rank, scores[topic][paper], 'retriever')
         for topic, ranking in rankings.items() for rank, paper in enumerate(ranking, 1)],
        columns=['query', 'q0', 'docid', 'rank', 'score', 'system']))
    judgements.qrels_data = pd.DataFrame(
        [(topic, '0', paper, grade) for topic, papers in judged.items() for paper, grade in papers.items()],
        columns=['query', 'q0', 'docid', 'rel'])
    evaluation = TrecEval(run, judgements)
    found, all_found = evaluation.get_rprec(), evaluation.evaluate_all().get_result('Rprec')
    topics = pytrec_eval.RelevanceEvaluator(judged, {'Rprec', 'map'}).evaluate(scores).values()
    other = sum(topic['Rprec'] for topic in topics) / len(topics)
    print(f'{name}: {found}, by trec_eval {other}, by hand {by_hand(relevant, rankings)}')
    assert other == by_hand(relevant, rankings) == right
    assert found == all_found == seen, 'documents are joined by topic now'
    # Other metrics of the same object are right.
    assert abs(evaluation.get_map() - sum(topic['map'] for topic in topics) / len(topics)) < 1e-9
    assert evaluation.get_precision(depth=2) == right
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: papers that are relevant to other topics count.'
