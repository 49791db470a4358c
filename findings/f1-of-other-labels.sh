#!/usr/bin/env bash
# octis 1.14.0 (OCTIS, for training and judging topic models): F1Score, PrecisionScore, RecallScore and AccuracyScore
# give the result of an earlier call, for other labels or for other topics.
#   - The metrics train a classifier that reads labels of documents off their topics. A first `F1Score(dataset)` has
#     labels that the topics determine: 0.91. A second one, made of another dataset, has two labels drawn at random:
#     0.91 again. Alone the second gives 0.49.
#   - The same holds for a control: the topics of the documents are given to other documents, and F1 stays 0.91. It
#     should be 0.10.
#   - `same_svm=False`, which is the default too, does not change it. No code reads that setting.
#   - The module keeps the last predictions in global variables. Their key is average, use_log, scale, kernel and a hash
#     of `str(model_output)`. Labels are not part of it. And numpy prints three rows and three columns at each end of an
#     array of more than 1000 numbers, so all that lies between them is not part of it either.
# The README lists them as measures of a topic model's features for classification, and the constructor takes the
# dataset whose labels are meant. Nothing is raised. Whoever compares two labellings of one corpus by one model, say
# organ and kind of study, or checks a score against shuffled labels, publishes one number twice. Remedy: set
# `stored_model_output_hash` of octis.evaluation_metrics.classification_metrics to None before each call. Seen on
# 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install gensim==4.3.3 numpy==1.26.4 scipy==1.12.0 scikit-learn==1.1.3 pandas==2.2.3 \
  requests==2.32.3
"$folder/env/bin/pip" --quiet install --no-deps octis==1.14.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from octis.dataset.dataset import Dataset
from octis.evaluation_metrics import classification_metrics as metrics
from sklearn.metrics import f1_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

print('octis', version('octis'))
TOPICS, DOCUMENTS, TRAIN = 10, 500, 300
draw = np.random.default_rng(0)
theta = draw.dirichlet(np.full(TOPICS, 0.3), DOCUMENTS).T
by_topic = [f'organ {topic}' for topic in theta.argmax(0)]
by_chance = [f'study {kind}' for kind in draw.integers(0, 2, DOCUMENTS)]


def output(matrix):
    """What a model of octis gives: topics by documents, of the training set and of the test set."""
    return {'topic-document-matrix': matrix[:, :TRAIN], 'test-topic-document-matrix': matrix[:, TRAIN:]}


def dataset(labels):
    return Dataset(corpus=[['word']] * DOCUMENTS, labels=labels)


def by_hand(matrix, labels):
    """F1 without octis, by the classifier that octis documents."""
    scaler = StandardScaler().fit(matrix.T[:TRAIN])
    classifier = LinearSVC().fit(scaler.transform(matrix.T[:TRAIN]), labels[:TRAIN])
    return f1_score(labels[TRAIN:], classifier.predict(scaler.transform(matrix.T[TRAIN:])), average='micro')


def fresh(matrix, labels):
    """F1 of octis, with nothing kept from before."""
    metrics.stored_model_output_hash = None
    return metrics.F1Score(dataset(labels)).score(output(matrix))


# The topics of the documents in the middle are given to others.
mixed = theta.copy()
for first, last in ((0, TRAIN), (TRAIN, DOCUMENTS)):
    middle = np.arange(first + 3, last - 3)
    mixed[:, middle] = theta[:, draw.permutation(middle)]
assert (mixed != theta).any(0).sum() > 450

first = fresh(theta, by_topic)
second = metrics.F1Score(dataset(by_chance)).score(output(theta))
told = metrics.F1Score(dataset(by_chance), same_svm=False).score(output(theta))
others = [name(dataset(by_chance)).score(output(theta)) for name in (metrics.PrecisionScore, metrics.AccuracyScore)]
control = metrics.F1Score(dataset(by_topic)).score(output(mixed))
right = {name: (fresh(matrix, labels), by_hand(matrix, labels)) for name, matrix, labels in (
    ('by topic', theta, by_topic), ('by chance', theta, by_chance), ('topics of others', mixed, by_topic))}
print(f'labels by topic {first:.2f}, then labels by chance {second:.2f}, with same_svm=False {told:.2f}')
print(f'precision and accuracy of labels by chance {others}, topics of other documents {control:.2f}')
print('alone, and without octis:', {name: [round(f1, 2) for f1 in both] for name, both in right.items()})
assert round(first, 2) == 0.91
assert first == second == told == control == others[0] == others[1], 'each labelling has its own result now'
for found, expected in right.values():
    assert abs(found - expected) < 0.02
assert right['by topic'][1] > 0.85 and right['by chance'][1] < 0.6 and right['topics of others'][1] < 0.2
PYTHON
echo 'As stated: labels by chance get the F1 of labels by topic.'
