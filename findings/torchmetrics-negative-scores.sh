#!/usr/bin/env bash
# torchmetrics 1.9.0: RetrievalMAP, RetrievalMRR, RetrievalRecall and RetrievalPrecision take a relevant document for
# irrelevant where its score is not above zero, however high it is ranked. RetrievalNormalizedDCG and RetrievalHitRate look
# at the order alone.
#   - Scores -1, -2, -3 with the relevant document second: MRR, MAP and recall are 0. With 10 added to each score the order
#     is the same and they are .5, .5 and 1. The same numbers as hit rate: 1 in both cases.
#   - The document stays in the list and takes its place, it only ceases to be relevant: recall over all documents, which is
#     1 by definition, is the share of relevant documents with a positive score.
#   - Scores below zero are the rule for what one ranks by: logits of a cross-encoder, negative distances, log-likelihoods;
#     cosines of an encoder are partly so. With logits drawn at random, half of them negative, MAP is .22 instead of .36
#     below.
#   - One relevant document of a query with a positive score is enough for a plausible number, and the numbers of two models
#     cannot be compared: the same ranking moved by a constant is another score.
# The documentation of the classes asks for "a float tensor", and a metric of a ranking depends on the order alone.
# Probabilities are mentioned for the functions only, and the examples are all between 0 and 1. A document of score 0 was
# meant as "not retrieved", but no page says so. Nothing is raised. The remedy is to give `scores.sigmoid()`, or anything
# else that keeps the order and is positive (not so large that it rounds to 1 or 0 and makes ties). Seen on 2026-11-29, in
# the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install torchmetrics==1.9.0 torch==2.13.0 numpy
"$folder/env/bin/python" - <<'PYTHON'
import torch
import torchmetrics
from torchmetrics import retrieval

print('torchmetrics', torchmetrics.__version__)
by_sign = (retrieval.RetrievalMAP, retrieval.RetrievalMRR, retrieval.RetrievalRecall, retrieval.RetrievalPrecision)
by_order = (retrieval.RetrievalNormalizedDCG, retrieval.RetrievalHitRate)

scores = torch.tensor([-1.0, -2.0, -3.0])
relevant = torch.tensor([False, True, False])
query = torch.zeros(3, dtype=torch.long)
for metric in by_sign + by_order:
    found = float(metric()(scores, relevant, indexes=query))
    moved = float(metric()(scores + 10, relevant, indexes=query))
    print(f'{metric.__name__:24s} scores {scores.tolist()}: {found:.3f}, the same + 10: {moved:.3f}')
    assert moved > 0
    if metric in by_sign:
        assert found == 0.0, 'a relevant document counts whatever its score is now'
    else:
        assert found == moved
assert float(retrieval.RetrievalMRR()(scores + 10, relevant, indexes=query)) == 0.5

# Six queries and logits on both sides of zero.
draw = torch.Generator().manual_seed(0)
query = torch.randint(0, 6, (60,), generator=draw)
logits = torch.randn(60, generator=draw)
relevant = torch.rand(60, generator=draw) < 0.3


def ranks(scores, which):
    """For each relevant document of a query its place in the order of the scores, the best first."""
    order = scores[query == which].argsort(descending=True)
    return (relevant[query == which][order].nonzero().flatten() + 1).tolist()


def mean(numbers):
    return sum(numbers) / len(numbers)


places = [ranks(logits, which) for which in range(6)]
assert all(places)
right = {
    retrieval.RetrievalMAP: mean([mean([(hit + 1) / place for hit, place in enumerate(row)]) for row in places]),
    retrieval.RetrievalMRR: mean([1 / row[0] for row in places]),
    retrieval.RetrievalRecall: 1.0,
}
for metric, expected in right.items():
    found = float(metric()(logits, relevant, indexes=query))
    positive = float(metric()(logits.sigmoid(), relevant, indexes=query))
    print(f'{metric.__name__:24s} by logits {found:.3f}, by their sigmoid {positive:.3f}, by the order alone {expected:.3f}')
    assert abs(positive - expected) < 1e-6
    assert found < 0.8 * expected, 'logits give what their order says now'
share = mean([float((logits[(query == which) & relevant] > 0).float().mean()) for which in range(6)])
print(f'relevant documents with a positive score, the mean over queries: {share:.3f}')
assert abs(float(retrieval.RetrievalRecall()(logits, relevant, indexes=query)) - share) < 1e-6
PYTHON
echo 'As stated: what has no positive score is not relevant.'
