#!/usr/bin/env bash
# torcheval 0.0.7 (torch 2.13.0): `multiclass_binned_auroc(scores, labels, num_classes=k)` and `MulticlassBinnedAUROC`
# compute one area for each text, over its k scores, and not one for each class, over all texts.
#   - 4000 reports of four departments (70, 20, 7 and 3 %). A model that has learned nothing but these shares, and gives
#     them with some noise to every report, gets 0.86. Its area is 0.51 by `multiclass_auroc` and by scikit-learn.
#   - A model that puts the right reports first in each class, without one error, gets 0.14, if its scores are shifted
#     from class to class. Its area is 1.
#   - So the first of these models is chosen, and the second is thrown away.
#   - average=None gives 4000 numbers for 4 classes.
# The reason: the scores have texts in rows and classes in columns, and the sum that counts hits runs over the columns.
# What is left is whether the right class has the first place within its own row: 1 for the first place of four, 2/3 for
# the second. That is not an area under a ROC curve, and class frequencies alone can make it high.
# The documentation says that the area is computed for each class and then averaged. Its example with average=None
# prints five numbers for three classes, and the example of the class has as many texts as classes. Nothing is raised,
# and the result lies between 0 and 1. The binary function is right. Who has too many texts for exact areas, or counts
# in bins on several machines, publishes the wrong number. Remedy: `binary_binned_auroc` for each class, or
# `multiclass_auroc`.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install torcheval==0.0.7 torch==2.13.0 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
"$folder/env/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import numpy as np
import torch
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

# torch tells that torch.jit is old. Any other warning stops the script.
warnings.simplefilter('ignore', DeprecationWarning)
from torcheval.metrics import MulticlassBinnedAUROC
from torcheval.metrics.functional import binary_binned_auroc, multiclass_auroc, multiclass_binned_auroc

warnings.simplefilter('error', UserWarning)
print('torcheval', version('torcheval'), 'torch', torch.__version__)
CLASSES, TEXTS, BINS = 4, 4000, 1000
draw = np.random.default_rng(0)
shares = np.array([0.7, 0.2, 0.07, 0.03])
labels = draw.choice(CLASSES, size=TEXTS, p=shares)
noise = draw.normal(size=(TEXTS, CLASSES)) / 10
hits = np.zeros((TEXTS, CLASSES))
hits[np.arange(TEXTS), labels] = 1
models = {
    'shares alone': softmax(np.log(shares) + noise, axis=1),
    'no error': softmax(hits + noise + [0, 2, 4, 6], axis=1),
}


def area(scores, hit):
    """Share of pairs of a hit and a miss that are in the right order, by ranks."""
    ranks = rankdata(scores)
    positive = hit.sum()
    return (ranks[hit].sum() - positive * (positive + 1) / 2) / (positive * (~hit).sum())


seen = {'shares alone': (0.859, 0.511), 'no error': (0.141, 1.0)}
print('model           binned  by rows  exact  by hand  each class in bins')
for name, probabilities in models.items():
    probabilities = probabilities.astype(np.float32)
    scores, target = torch.tensor(probabilities), torch.tensor(labels)
    binned = float(multiclass_binned_auroc(scores, target, num_classes=CLASSES, threshold=BINS)[0])
    metric = MulticlassBinnedAUROC(num_classes=CLASSES, threshold=BINS)
    for start in range(0, TEXTS, 500):
        metric.update(scores[start:start + 500], target[start:start + 500])
    assert np.isclose(float(metric.compute()[0]), binned)
    exact = float(multiclass_auroc(scores, target, num_classes=CLASSES))
    right = np.mean([area(probabilities[:, one], labels == one) for one in range(CLASSES)])
    learned = np.mean([roc_auc_score(labels == one, probabilities[:, one]) for one in range(CLASSES)])
    # Wrong classes that the right one beats, within a row. A pair within one bin counts as a half.
    places = np.floor(probabilities * (BINS - 1))
    own = places[np.arange(TEXTS), labels][:, None]
    beaten = ((places < own).sum(1) + ((places == own).sum(1) - 1) / 2) / (CLASSES - 1)
    single = np.mean([
        float(binary_binned_auroc(scores[:, one], (target == one).long(), threshold=BINS)[0].squeeze())
        for one in range(CLASSES)
    ])
    print(f'{name:14} {binned:7.3f} {beaten.mean():8.3f} {exact:6.3f} {right:8.3f} {single:19.3f}')
    assert np.isclose(binned, seen[name][0], atol=0.002), 'the binned area is another one now'
    assert np.isclose(beaten.mean(), binned, atol=0.005)
    assert np.isclose(right, seen[name][1], atol=0.002) and np.isclose(right, learned) and np.isclose(right, exact)
    assert np.isclose(single, right, atol=0.01), 'the remedy does not hold'
    each = multiclass_binned_auroc(scores, target, num_classes=CLASSES, threshold=BINS, average=None)[0]
    assert each.shape == (TEXTS,), 'there is one number for each class now'
PYTHON
echo 'As stated: the areas in bins are those of texts, not of classes.'
