#!/usr/bin/env bash
# statkit 1.1.0: `sensitivity(y, score, threshold)` calls patients who lie at the threshold positive, and
# `specificity(y, score, threshold)` calls the same patients negative, so the pair is too good.
#   - 2000 patients with a whole-numbered warning score of 0 to 12, positive from 6: sensitivity is .60 and specificity
#     .77. statkit reports .60 and .88, a pair that no cut of this score has. Youden's J would be .49 where .38 is
#     right.
#   - From 5 on it is .77 and .77 where .77 and .60 is right, and J is .55 instead of .37.
#   - `false_negative_rate` counts in the way of specificity: with a sensitivity of .60 at 6 comes a rate of missed
#     patients of .61, where both should add up to 1.
#   - A classifier that gives all patients a risk of .5 has a sensitivity of 1 and a specificity of 1.
# One would expect one rule for both: the documentation has one and the same sentence for the argument `threshold` of
# each. Scores, risks of small trees and of neighbours have many patients at one value, and `youden_j_threshold` of the
# same package returns a value that some patients have. Nothing is raised, and each number is right for a cut of its
# own.
# Remedy: give it `(score >= threshold).astype(int)`, as `binary_classification_report` does for itself.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install statkit==1.1.0 numpy==2.4.6 scikit-learn==1.9.1 matplotlib
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata

import numpy as np
from sklearn.metrics import confusion_matrix
from statkit.metrics import binary_classification_report, false_negative_rate, sensitivity, specificity
from statkit.metrics import youden_j_threshold

print('statkit', importlib.metadata.version('statkit'))
draw = np.random.default_rng(0)
ill = (draw.random(2000) < 0.3).astype(int)
score = np.clip(np.round(draw.normal(4 + 2 * ill, 2)), 0, 12)


def by_hand(positive):
    """Sensitivity and specificity of a rule that calls these patients positive."""
    (tn, fp), (fn, tp) = confusion_matrix(ill, positive)
    return tp / (tp + fn), tn / (tn + fp)


for threshold, told_wrong, right in ((6, 0.88, (0.60, 0.77)), (5, 0.77, (0.77, 0.60))):
    told = sensitivity(ill, score, threshold), specificity(ill, score, threshold)
    missed = false_negative_rate(ill, score, threshold)
    same, above = by_hand(score >= threshold), by_hand(score > threshold)
    remedy = sensitivity(ill, (score >= threshold).astype(int)), specificity(ill, (score >= threshold).astype(int))
    print(f'at {threshold}: told {told[0]:.3f} and {told[1]:.3f}, missed {missed:.3f}, J {sum(told) - 1:.3f}; '
          f'from {threshold} on {same[0]:.3f} and {same[1]:.3f}, J {sum(same) - 1:.3f}; '
          f'above {threshold} {above[0]:.3f} and {above[1]:.3f}')
    assert np.allclose(told, (same[0], above[1])), 'both have one rule now'
    assert np.allclose(same, right, atol=0.006) and abs(told[1] - told_wrong) < 0.006
    assert np.allclose(remedy, same) and np.isclose(missed, 1 - above[0])
    assert not any(np.allclose(told, by_hand(score >= cut)) for cut in range(14))
assert abs(sensitivity(ill, score, 6) + false_negative_rate(ill, score, 6) - 1.21) < 0.01
assert youden_j_threshold(ill, score) in score
report = binary_classification_report(ill, score, threshold=6, n_iterations=10)['point']
assert np.allclose(report[['Sensitivity', 'Specificity']].astype(float), by_hand(score >= 6))
same = np.full(2000, 0.5)
print('all patients at .5:', sensitivity(ill, same), specificity(ill, same))
assert sensitivity(ill, same) == specificity(ill, same) == 1
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: patients at the threshold are positive for sensitivity and negative for specificity.'
