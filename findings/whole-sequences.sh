#!/usr/bin/env bash
# sklearn-crfsuite 0.5.0: `metrics.sequence_accuracy_score`, and the scorer `scorers.sequence_accuracy` made of it, count tokens
# where all sequences that are compared have one length, and the result may be far above 1.
#   - Documented: a match is a sequence that is equal as a whole. Five sentences of four words, one word wrong in each, get 3.0
#     instead of 0: fifteen right words by five sentences. With one sentence of another length among them it is 0.
#   - A part of a cross-validation with a single sequence has one length always. Leave-one-out, or one document left out, gives
#     the number of right words of it: the mean is that of long documents, and grid search takes the settings that are best at
#     words. With windows of 128 pieces all parts are counted so.
#   - numpy makes a table of lists of one length and an array of lists otherwise, and the two are compared differently.
#   - CRF.predict gives such a table too, where its documentation says an array of lists: an element of it is no list then.
# Nothing is raised. A value between 0 and 1 does not show it: two of six words right in three sentences are .67. Comparing
# lists in Python is right: sum(a == list(b) for a, b in zip(gold, predicted)) / len(gold).
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install sklearn-crfsuite==0.5.0 python-crfsuite==0.9.12 scikit-learn==1.9.1 numpy==2.4.6
cd "$folder"
cat > try.py <<'PYTHON'
import numpy as np
import sklearn_crfsuite
from sklearn.model_selection import LeaveOneOut, cross_val_score
from sklearn_crfsuite.metrics import sequence_accuracy_score
from sklearn_crfsuite.scorers import sequence_accuracy


def right(gold, predicted):
    return sum(list(one) == list(other) for one, other in zip(gold, predicted)) / len(gold)


def compare(what, gold, predicted, expected):
    found = float(sequence_accuracy_score(gold, predicted))
    print(f'{what}: {found:.3f}, by comparing lists {right(gold, predicted):.3f}')
    assert abs(found - expected) < 1e-9, 'it is another now'
    return found


gold = [['B', 'I', 'O', 'O'], ['B', 'O', 'O', 'O'], ['O', 'O', 'B', 'I'], ['O', 'O', 'O', 'B'], ['O', 'O', 'O', 'O']]
predicted = [['B', 'O', 'O', 'O'], ['O', 'O', 'O', 'O'], ['O', 'O', 'B', 'O'], ['O', 'O', 'O', 'O'], ['O', 'O', 'B', 'O']]
assert right(gold, predicted) == 0
compare('one word of four wrong in each of five', gold, predicted, 3)
compare('all right', gold, gold, 4)
compare('a sixth with three words, and right', [*gold, ['O', 'B', 'O']], [*predicted, ['O', 'B', 'O']], 1 / 6)
gold, predicted = [['B', 'O'], ['O', 'B'], ['B', 'I']], [['B', 'B'], ['O', 'O'], ['O', 'O']]
compare('two of six words right', gold, predicted, 2 / 3)

# Sentences of many lengths, one left out at a time: each part has one length.
sentences = ['a b c', 'b a c c', 'c a b b a', 'a c', 'b c a a c b', 'c b']
rows = [[{'word': word} for word in sentence.split()] for sentence in sentences * 2]
tags = [[{'a': 'B', 'b': 'I', 'c': 'O'}[word] for word in sentence.split()] for sentence in sentences * 2]
assert len({len(row) for row in rows}) > 1
model = sklearn_crfsuite.CRF(max_iterations=50)
parts = cross_val_score(model, rows, tags, cv=LeaveOneOut(), scoring=sequence_accuracy)
print('left out one by one:', *(float(part) for part in parts), 'mean', round(float(parts.mean()), 2))
assert parts.tolist() == [len(row) for row in rows]

model.fit(rows, tags)
even = model.predict([row for row in rows if len(row) == 2])
uneven = model.predict(rows)
print('predicted:', even.shape, type(even[0]).__name__, 'and', uneven.shape, type(uneven[0]).__name__)
assert even.shape == (4, 2) and isinstance(even[0], np.ndarray) and isinstance(uneven[0], list)
PYTHON
env/bin/python try.py
echo 'As stated: where all sequences have one length their tokens are counted.'
