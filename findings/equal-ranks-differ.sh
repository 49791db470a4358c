#!/usr/bin/env bash
# MLstatkit 0.1.91: `Delong_test(labels, scores_a, scores_b)` gives p = 0 for two models that rank all texts alike.
#   - A model and the same model with its probabilities calibrated by a temperature have one AUC, .887 below, z is 0,
#     and p is 0. A model against itself is the same, and so are two models that both have an AUC of 1.
#   - With one pair of neighbours ranked the other way round p is .48. When this last difference goes, p is 0.
#   - The variance of the difference is then 0, and a bootstrap is used instead. Its p is twice the smaller of the
#     shares of differences <= 0 and > 0. All of them are 0, so the second share is 0, however many samples are drawn.
# One would expect 1, as the page calls the number a two-sided p-value for a difference of two AUCs and says of the
# bootstrap that it is a fallback for such a case. Nothing is raised, and `p < .05` in a program writes a star beside a
# difference of .000. It is what one gets when a calibrated model is compared with the model as it was, or on a small
# test set on which both are perfect. Permutation_test of the same package gives 1. Remedy: look whether the two AUCs
# are equal, or at info['method'], before the p-value.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install MLstatkit==0.1.91 scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
from importlib.metadata import version

import numpy as np
from MLstatkit import Delong_test, Permutation_test
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

print('MLstatkit', version('MLstatkit'))
draw = np.random.default_rng(0)
labels = np.repeat([0, 1], 60)
logits = 2 * labels + 1.2 * draw.standard_normal(120)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


model = sigmoid(logits)
calibrated = sigmoid(logits / 1.7)
assert np.array_equal(rankdata(model), rankdata(calibrated))
perfect = labels + 0.5 * draw.random(120), labels + 0.5 * draw.random(120)

for name, pair in (('calibrated', (model, calibrated)), ('itself', (model, model)), ('both perfect', perfect)):
    z, p, _, _, *areas, info = Delong_test(labels, *pair, random_state=0, n_boot=500)
    assert np.allclose(areas, [roc_auc_score(labels, scores) for scores in pair], rtol=0, atol=1e-12)
    print(f'{name}: AUC {areas[0]:.3f} and {areas[1]:.3f}, z {z}, p {p}, by {info["method"]}')
    assert areas[0] == areas[1] and z == 0 and info['method'] == 'bootstrap'
    assert p == 0, 'models that rank alike are alike now'

swapped = Permutation_test(labels, model, calibrated, metric_str='roc_auc', n_bootstraps=200)
print('calibrated, by Permutation_test of the same package: p', swapped[2])
assert swapped[2] == 1

# One pair of neighbours, one of each class, is ranked the other way round.
order = np.argsort(model)
at = next(i for i in range(119) if labels[order[i]] != labels[order[i + 1]])
other = model.copy()
other[order[[at, at + 1]]] = other[order[[at + 1, at]]]
_, p = Delong_test(labels, model, other, return_ci=False, return_auc=False)
print(f'one pair of texts ranked otherwise: p {p:.3f}')
assert 0.4 < p < 0.6
PYTHON
"$folder/env/bin/python" "$folder/try.py" 2> "$folder/progress" || { cat "$folder/progress"; exit 1; }
echo 'As stated: where nothing differs, p is 0.'
