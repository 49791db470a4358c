#!/usr/bin/env bash
# small-text 1.4.1 (active learning for text): `CategoryVectorInconsistencyAndRanking`, its strategy for several labels
# per text, ranks texts in no order. Which texts it asks for depends on the order of the pool.
#   - 300 texts for which the classifier predicts the same labels, so only the ranking decides. Of the 30 that are least
#     certain, the strategy takes about 3, as a blind draw does.
#   - The same pool in another order gives 30 other texts. About 3 are in both.
#   - The mean margin of what it chooses is .66, as in the whole pool. The 30 least certain have .32.
# The reason: for the rank of a text, the code takes what argsort gives, and that is the index of the text at a rank. It
# is a rank only if the pool is sorted. The margin of a label is wrong as well. By the paper it is the difference
# between the probabilities of yes and of no. The code subtracts the sum over all labels, so what is left is the
# probability of the other labels.
# The documentation says that the strategy selects by inconsistency of predicted labels and by rankings of each
# label's scores, and cites the paper. Nothing is raised, and other texts are chosen each round, as they should be.
# It hurts whoever has codes or findings labelled in rounds, or compares strategies: half of the method is a
# lottery. Remedy: scipy.stats.rankdata(abs(2 * proba[:, label] - 1)) for each label.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install small-text==1.4.1 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_matrix
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from small_text import (
    CategoryVectorInconsistencyAndRanking, PoolBasedActiveLearner, SklearnClassifierFactory, SklearnDataset,
)

print('small-text', version('small-text'))
LABELLED, POOL, ASKED, LABELS = 60, 300, 30, 3
draw = np.random.default_rng(0)
vectors = draw.normal(size=(40_000, 8))
labels = (vectors @ draw.normal(size=(8, LABELS)) + draw.normal(size=(40_000, LABELS)) > 0).astype(int)

# A pool for which the classifier predicts the first label alone.
first = OneVsRestClassifier(LogisticRegression()).fit(vectors[:LABELLED], labels[:LABELLED])
proba = first.predict_proba(vectors[LABELLED:])
pool = LABELLED + np.flatnonzero(((proba > 0.5) == [True, False, False]).all(axis=1))[:POOL]
assert len(pool) == POOL
margin = np.abs(2 * proba[pool - LABELLED] - 1)
ranks = sum(rankdata(margin[:, label]) for label in range(LABELS))
right = set(pool[np.argsort(ranks)[:ASKED]].tolist())


def chosen(pool):
    """What the strategy asks for, if the pool is in this order."""
    rows = np.concatenate([np.arange(LABELLED), pool])
    dataset = SklearnDataset(vectors[rows], csr_matrix(labels[rows]), target_labels=np.arange(LABELS))
    factory = SklearnClassifierFactory(LogisticRegression(), LABELS, kwargs={'multi_label': True})
    learner = PoolBasedActiveLearner(factory, CategoryVectorInconsistencyAndRanking(pbar=None), dataset)
    learner.initialize_data(np.arange(LABELLED), csr_matrix(labels[:LABELLED]))
    asked = set(rows[learner.query(num_samples=ASKED)].tolist())
    # The classifier is the one above, so all predicted vectors of labels are equal.
    assert np.allclose(learner.classifier.predict_proba(dataset)[LABELLED:], proba[pool - LABELLED])
    assert len(asked) == ASKED and asked <= set(pool.tolist())
    return asked


def mean_margin(texts):
    return margin[np.isin(pool, list(texts))].mean()


start = chosen(pool)
orders = [chosen(draw.permutation(pool)) for _ in range(50)]
hits = np.mean([len(texts & right) for texts in orders])
both = np.mean([len(texts & start) for texts in orders])
margins = np.mean([mean_margin(texts) for texts in orders])
print(f'of the {ASKED} least certain texts: {hits:.1f} chosen, by a blind draw {ASKED**2 / POOL:.1f}')
print(f'chosen again after the pool was shuffled: {both:.1f} of {ASKED}')
print(f'mean margin: chosen {margins:.2f}, pool {mean_margin(pool):.2f}, least certain {mean_margin(right):.2f}')
assert hits < 5 and both < 5, 'texts are ranked otherwise now'
assert abs(margins - 0.66) < 0.03 and abs(mean_margin(right) - 0.32) < 0.01

# By ranks, the order of the pool does not matter.
order = draw.permutation(POOL)
ranks = sum(rankdata(margin[order][:, label]) for label in range(LABELS))
assert set(pool[order][np.argsort(ranks)[:ASKED]].tolist()) == right
PYTHON
echo 'As stated: the least certain texts are chosen by chance.'
