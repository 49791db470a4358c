#!/usr/bin/env bash
# segeval 2.0.11 (for text segmentation): from `boundary_confusion_matrix(hypothesis, reference)` come one number as
# both precision and recall, or, if one asks for boundaries with `classification=1`, each of the two as the other.
#   - 12 sentences, one boundary in the reference, five in the hypothesis, among them the right one. Precision is .2 and
#     recall 1. With classification=1 they come out as 1 and .2. Without it both are .2, and as macro averages
#     they are .5 and .1.
#   - The other way round, one of five boundaries is found and none is wrong. Precision is 1 and recall .2. They come
#     out as .2 and 1.
#   - F with beta=2, which is to weigh recall, is .24 for the first and should be .56. F with beta=1 is right.
#   - With n_t=5, near misses have the more credit the farther they are off. Ten boundaries that are off by 4, with ten
#     that are nowhere near, have F .62. If the ten are off by 1, it is .29.
# The reason: what the hypothesis has and the reference has not is put down as missing, and what it lacks as found. Then
# "no boundary" counts as a class of its own, so each error is one of precision for one class and one of recall
# for the other. For near misses, the credit is the weight that boundary_similarity takes off.
# The docstring of the matrix says predicted first, actual second, and a substitution is entered so. The documentation
# names precision and recall of this matrix for models, and its example has one number for both without a remark.
# Nothing is raised. It hurts whoever tunes a model that splits notes: one that cuts everywhere looks precise.
# Remedy: give the reference first and ask for classification=1, with n_t=2.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install segeval==2.0.11 numpy==2.4.6
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import segeval

print('segeval', version('segeval'))
MACRO = segeval.Average.macro


def by_hand(hypothesis, reference, beta=1):
    """Precision, recall and F of the places of boundaries."""
    found, true = (set(np.cumsum(masses)[:-1].tolist()) for masses in (hypothesis, reference))
    precision, recall = len(found & true) / len(found), len(found & true) / len(true)
    return precision, recall, (1 + beta**2) * precision * recall / (beta**2 * precision + recall)


one, five = (6, 6), (2, 2, 2, 2, 2, 2)
print(f'{"":22} precision  recall')
for name, hypothesis, reference in (('five found, one true', five, one), ('one found, five true', one, five)):
    precision, recall, f1 = by_hand(hypothesis, reference)
    assert (precision, recall) == ((0.2, 1) if hypothesis == five else (1, 0.2))
    matrix = segeval.boundary_confusion_matrix(hypothesis, reference)
    print(name)
    print(f'{"    by hand":22} {precision:9.2f} {recall:7.2f}')
    for way, options in (('classification=1', {'classification': 1}), ('default', {}), ('macro', {'version': MACRO})):
        scores = [float(measure(matrix, **options)) for measure in (segeval.precision, segeval.recall)]
        print(f'    {way:18} {scores[0]:9.2f} {scores[1]:7.2f}')
        expected = {'classification=1': (recall, precision), 'macro': (recall / 2, precision / 2)}
        assert np.allclose(scores, expected.get(way, (0.2, 0.2))), 'the matrix is read otherwise now'
    assert np.isclose(float(segeval.fmeasure(matrix, classification=1)), f1)
    swapped = segeval.boundary_confusion_matrix(reference, hypothesis)
    assert float(segeval.precision(swapped, classification=1)) == precision
    assert float(segeval.recall(swapped, classification=1)) == recall

matrix = segeval.boundary_confusion_matrix(five, one)
weighted = float(segeval.fmeasure(matrix, classification=1, beta=2))
right = by_hand(five, one, beta=2)[2]
print(f'F with beta=2: {weighted:.3f}, by hand {right:.3f}')
assert np.isclose(weighted, 0.238, atol=0.001) and np.isclose(right, 0.556, atol=0.001)

# Two types of boundaries: a substitution is entered as predicted, actual.
none = frozenset()
pair = [none, frozenset({2}), none], [none, frozenset({1}), none]
matrix = segeval.boundary_confusion_matrix(*pair, boundary_format=segeval.BoundaryFormat.sets)
assert matrix[2][1] == 1 and matrix[1][2] == 0

# Ten boundaries that are off by some sentences, and ten that are wrong. The farther off, the lower it should be.
print('off by   F      boundary_similarity')
reference = (20,) * 11
seen = {1: (0.286, 0.4), 2: (0.444, 0.3), 3: (0.545, 0.2), 4: (0.615, 0.1)}
for off, (f, similarity) in seen.items():
    hypothesis = (10, 10 + off) + (10, 10) * 9 + (20 - off,)
    assert sum(hypothesis) == 220 and len(hypothesis) == 21
    found = float(segeval.fmeasure(segeval.boundary_confusion_matrix(hypothesis, reference, n_t=5)))
    other = float(segeval.boundary_similarity(hypothesis, reference, n_t=5))
    print(f'{off:6} {found:6.3f} {other:12.3f}')
    assert np.isclose(found, f, atol=0.001) and np.isclose(other, similarity, atol=0.001)
PYTHON
echo 'As stated: precision and recall are one number, or each is the other.'
