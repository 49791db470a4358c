#!/usr/bin/env bash
# hiclass 5.0.8: hierarchical precision, recall and F1 compare bare names. They know neither the parent of a class nor
# its level, and of integers they find none again that hiclass itself has predicted.
#   - A text of [neoplasm, unspecified] that is put into [infection, unspecified] is wrong on both levels, and
#     precision, recall and F1 are 0.5. `other`, `unspecified`, `acute` and `left` stand under many parents in medical
#     hierarchies.
#   - With numbers for the classes of each level, [1, 0] for [0, 1] has F1 1.0: all is wrong, and the score is
#     perfect.
#   - A classifier that is fitted on integers predicts strings. Its predictions are all right, `precision` and
#     `recall` are 0.0 without a word, and `f1` is 0.0 with a warning that says it is ill-defined.
#   - Two models of 400 texts each: one has the right chapter always and the right class never, one has the wrong
#     chapter always and the right name of a class. By the definition F1 is 0.5 and 0. hiclass gives 0.5 for both.
# Each row is made a set of its labels, levels and all, and the sets are compared. Inside, hiclass writes the parents
# before each name, so its classifiers do keep two nodes of one name apart; before predictions are returned the
# parents are cut off, and the metrics do not put them back.
# The documentation defines the metrics by sets of classes with all their ancestors, and refers to a survey of
# hierarchical classification; a class under another parent is another class there. Nothing is raised by the first two
# cases, and a score of .5 or .9 looks like any other. Remedy: give both sides as strings with the parents in each
# label, as `paths` below does.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install hiclass==5.0.8 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
from hiclass import LocalClassifierPerLevel, LocalClassifierPerNode, LocalClassifierPerParentNode, metrics
from sklearn.tree import DecisionTreeClassifier

print('hiclass', version('hiclass'))


def by_hand(truth, predicted):
    """Hierarchical precision, recall and F1 over nodes, each known by the way that leads to it."""
    def nodes(rows):
        return [{tuple(map(str, row[:depth])) for depth in range(1, len(row) + 1)} for row in rows]

    pairs = list(zip(nodes(truth), nodes(predicted)))
    common = sum(len(left & right) for left, right in pairs)
    precision = common / sum(len(right) for _, right in pairs)
    recall = common / sum(len(left) for left, _ in pairs)
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


def found(truth, predicted):
    """The three of hiclass."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return tuple(float(function(truth, predicted)) for function in (metrics.precision, metrics.recall, metrics.f1))


def paths(rows):
    """The remedy: labels that have their parents before them."""
    return [['/'.join(map(str, row[:depth])) for depth in range(1, len(row) + 1)] for row in rows]


truth, predicted = [['neoplasm', 'unspecified']], [['infection', 'unspecified']]
print('a name under two parents:', found(truth, predicted), 'by hand', by_hand(truth, predicted))
assert found(truth, predicted) == (0.5, 0.5, 0.5), 'parents count now'
assert by_hand(truth, predicted) == found(paths(truth), paths(predicted)) == (0, 0, 0)
assert found(truth, [['neoplasm', 'malignant']]) == by_hand(truth, [['neoplasm', 'malignant']]) == (0.5, 0.5, 0.5)

truth, predicted = [[0, 1], [1, 0]], [[1, 0], [0, 1]]
print('numbers for each level:', found(truth, predicted), 'by hand', by_hand(truth, predicted))
assert found(truth, predicted) == (1, 1, 1), 'levels count now'
assert by_hand(truth, predicted) == found(paths(truth), paths(predicted)) == (0, 0, 0)

# The classifiers keep nodes of one name apart, and predict strings.
points = np.repeat(np.eye(4), 10, axis=0)
names = np.repeat([[a, b] for a in ('neoplasm', 'infection') for b in ('acute', 'unspecified')], 10, axis=0)
numbers = np.repeat([[a, b] for a in (0, 1) for b in (0, 1)], 10, axis=0)
for kind in (LocalClassifierPerNode, LocalClassifierPerParentNode, LocalClassifierPerLevel):
    model = kind(DecisionTreeClassifier(random_state=0)).fit(points, names)
    assert sum(str(node).endswith('unspecified') for node in model.hierarchy_) == 2
    assert found(names, model.predict(points)) == (1, 1, 1)
    predicted = kind(DecisionTreeClassifier(random_state=0)).fit(points, numbers).predict(points)
    print(f'{kind.__name__}, fitted on integers and right always: {found(numbers, predicted)}')
    assert (predicted.astype(int) == numbers).all() and by_hand(numbers, predicted) == (1, 1, 1)
    assert found(numbers, predicted) == (0, 0, 0), 'integers are found again now'
    assert found(numbers.astype(str), predicted) == (1, 1, 1)
with warnings.catch_warnings():
    warnings.simplefilter('error')
    assert metrics.precision(numbers, predicted) == metrics.recall(numbers, predicted) == 0

# Two models.
CHAPTERS, KINDS = ('neoplasm', 'infection', 'injury'), ('acute', 'chronic', 'unspecified')
draw = np.random.default_rng(0)
truth = [[CHAPTERS[a], KINDS[b]] for a, b in draw.integers(0, 3, (400, 2))]


def other(names, name):
    """The next of the names."""
    return names[(names.index(name) + 1) % 3]


MODELS = {
    'right chapter, wrong class': ([[a, other(KINDS, b)] for a, b in truth], 0.5),
    'wrong chapter': ([[other(CHAPTERS, a), b] for a, b in truth], 0.0),
}
for name, (predicted, right) in MODELS.items():
    print(f'{name}: F1 {found(truth, predicted)[2]}, by hand {by_hand(truth, predicted)[2]}')
    assert found(truth, predicted)[2] == 0.5 and by_hand(truth, predicted)[2] == right
    assert found(paths(truth), paths(predicted))[2] == right
PYTHON
echo 'As stated: a wrong class counts as right wherever the name is the same.'
