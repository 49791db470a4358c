#!/usr/bin/env bash
# sentence-transformers 6.2.0: `ReciprocalRankFusionEvaluator` counts relevant documents that were not retrieved as
# retrieved, right behind the last one of the list. The shorter a list, the higher its scores.
#   - Of 10 relevant documents a retriever gives one and nothing else: MAP and NDCG@10 are 1, as if it had given all
#     ten. By definition they are .1 and .22. With 9 wrong documents behind the one MAP is .44, with 49 it is .20.
#   - The fused list is longer than the two that it is made of, so it gets less for what is missing. In 50 queries
#     below it holds nearly twice as many relevant documents, and its MAP is lower (.47) than those of both retrievers
#     (.57 and .55). By definition it is .12 where they have .08 and .07. The question that the evaluator is for is
#     answered the wrong way round.
#   - A query for which nothing relevant was retrieved gets 0. With one relevant document in the last place it gets
#     the others, too.
#   - `base_map` and `base_ndcg@10` of CrossEncoderRerankingEvaluator, with which reranking is compared, are the same.
# The documentation says that it combines the lists by the formula of RRF, and gives MRR, NDCG and MAP. MAP divides by
# all relevant documents, and one that was not retrieved adds nothing. It calls the lists "all documents (including
# positives)", but they are "from different retrievers", and its example has NanoNFCorpus, medical texts with some 33
# relevant for a query, and prints these MAPs side by side. Nothing is raised. Where each list holds all relevant
# documents the numbers are right; MRR always is, and NDCG@10 with ten documents or more to a list. Remedy:
# `write_predictions=True`, and scores of what it writes by another program, such as trec_eval. Seen on 2026-11-29, in
# the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install sentence-transformers==6.2.0 torch==2.13.0 transformers==5.23.0 numpy==2.4.6
cd "$folder"
cat > "$folder/try.py" <<'PYTHON'
import json
import math
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
from sentence_transformers.cross_encoder.evaluation import CrossEncoderRerankingEvaluator
from sentence_transformers.sparse_encoder.evaluation import ReciprocalRankFusionEvaluator

print('sentence-transformers', version('sentence-transformers'))


def evaluated(dense, sparse, relevant):
    lists = [
        [{'query_id': n, 'query': 'q', 'positive': good, 'documents': found} for n, (found, good) in enumerate(pairs)]
        for pairs in (zip(dense, relevant), zip(sparse, relevant))
    ]
    evaluator = ReciprocalRankFusionEvaluator(*lists, write_csv=False, write_predictions=True)
    scores = evaluator(output_path='.')
    with open(evaluator.predictions_file) as lines:
        fused = [json.loads(line)['documents'] for line in lines]
    return {name: round(float(score), 3) for name, score in scores.items()}, fused


def by_definition(lists, relevant):
    """Mean average precision and NDCG@10, and how many relevant documents the lists hold."""
    precisions, gains, held = [], [], 0
    for found, good in zip(lists, relevant):
        places = [place for place, document in enumerate(found, 1) if document in good]
        held += len(places)
        precisions.append(sum(hit / place for hit, place in enumerate(places, 1)) / len(good))
        best = sum(1 / math.log2(place + 1) for place in range(1, min(len(good), 10) + 1))
        gains.append(sum(1 / math.log2(place + 1) for place in places if place <= 10) / best)
    return round(float(np.mean(precisions)), 3), round(float(np.mean(gains)), 3), held


good = [f'good {n}' for n in range(10)]
expected = {1: (1.0, 1.0), 2: (0.848, 0.861), 10: (0.443, 0.22), 50: (0.196, 0.22)}
for length in expected:
    found = good[:1] + [f'wrong {n}' for n in range(length - 1)]
    scores, _ = evaluated([found], [found], [good])
    map_, ndcg, _ = by_definition([found], [good])
    print(f'one of 10 relevant documents in a list of {length}: MAP', scores['map'], 'NDCG@10', scores['ndcg@10'])
    assert (scores['map'], scores['ndcg@10']) == expected[length], 'missing documents get nothing now'
    assert (map_, ndcg) == (0.1, 0.22)

random = np.random.default_rng(0)
relevant = [[f'{query} good {n}' for n in range(20)] for query in range(50)]


def search(good):
    """The ten best of 20 relevant documents and 200 others, by noisy scores."""
    scores = {name: random.normal(0.7) for name in good} | {f'wrong {n}': random.normal() for n in range(200)}
    return sorted(scores, key=scores.get, reverse=True)[:10]


dense, sparse = ([search(good) for good in relevant] for _ in range(2))
scores, fused = evaluated(dense, sparse, relevant)
right = {name: by_definition(lists, relevant) for name, lists in (('dense_', dense), ('sparse_', sparse), ('', fused))}
for name, (map_, ndcg, held) in right.items():
    print(f'{name or "fused_":8s}', 'MAP', scores[f'{name}map'], 'NDCG@10', scores[f'{name}ndcg@10'], end=', ')
    print(f'by definition {map_} and {ndcg}, with {held} relevant documents in {50 * 20}')
    assert scores[f'{name}ndcg@10'] == ndcg
assert right[''][0] > 1.5 * max(right['dense_'][0], right['sparse_'][0])
assert scores['map'] < 0.9 * min(scores['dense_map'], scores['sparse_map']), 'the fused list has the best MAP now'


class Level:
    """A reranker that gives each document the same score."""

    model_card_data = SimpleNamespace(set_evaluation_metrics=lambda *_: None)

    def predict(self, pairs, **_):
        return np.zeros(len(pairs))


short = [{'query': 'q', 'positive': good, 'documents': good[:1]}]
base = CrossEncoderRerankingEvaluator(short, write_csv=False)(Level())
print('base scores for reranking, one of 10 in a list of 1:', base['base_map'], base['base_ndcg@10'])
assert base['base_map'] == base['base_ndcg@10'] == 1
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: what is missing counts as found.'
