#!/usr/bin/env bash
# hiclass 5.0.8: its calibration errors call a model that is always right the worst and one that is always wrong the
# best, and a model that is always certain has no error.
#   - Probabilities for 9 classes and 20,000 texts. A model that gives 1 to the right class has a static and an adaptive
#     calibration error of .889, which is 8 of 9. A model that gives 1 to a wrong class each time has a
#     static error of 0. By the definition it is the other way round: 0 and .222.
#   - Classes that are drawn from the probabilities themselves fit them. The static error of those is .379 for .003.
#     The same probabilities with the square root taken, which fit worse, get .378 for .042, so they look better.
#   - The expected calibration error leaves out each text whose probability is 1. A decision tree that says 1 for every
#     text and is right for 70 % of them has an error of 0, where .30 is right. The model that is always wrong has an
#     error of 0 for 1. Random forests and saturated networks give ones as well, and those texts are missing.
# Two things cause it. For the bins of a class the functions count how often the model's first choice was right,
# whatever it was, and not how often the text had that class; so a class that gets probability 0 for good reason is
# held to be wrong by 1. And `np.digitize` puts 1.0 behind the last bin, which nothing reads; numpy.histogram, which
# makes the edges, counts 1.0 in the last bin.
# The documentation offers the three by their names in the literature, and in that literature each is 0 where
# probabilities come true. Nothing is raised. Who chooses a method of calibration by these numbers chooses a bad one.
# multiclass_brier_score and log_loss come out right. Remedy: the few lines below, on predict_proba and classes_.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install hiclass==5.0.8 scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from hiclass import LocalClassifierPerParentNode, metrics
from sklearn.tree import DecisionTreeClassifier

print('hiclass', version('hiclass'))
draw = np.random.default_rng(0)
PATHS = np.array([
    [place, f'{place} {kind}'] for place in ('heart', 'lung', 'skin') for kind in ('infection', 'injury', 'tumour')
])


def sample(size):
    """Points around nine centres, and the path of the centre."""
    centre = draw.integers(0, 9, size)
    return np.eye(9)[centre] + 0.4 * draw.normal(size=(size, 9)), PATHS[centre]


def gap(probabilities, came_true, bins=10):
    """The mean distance between a probability and how often it comes true, in bins of equal width."""
    places = np.minimum((probabilities * bins).astype(int), bins - 1)
    parts = [places == place for place in np.unique(places)]
    return sum(abs(probabilities[part].mean() - came_true[part].mean()) * part.mean() for part in parts)


def expected(probabilities, names, truth):
    """The expected calibration error by its definition."""
    return gap(probabilities.max(axis=1), names[probabilities.argmax(axis=1)] == truth)


def static(probabilities, names, truth):
    """The static calibration error by its definition."""
    return np.mean([gap(probabilities[:, place], truth == name) for place, name in enumerate(names)])


points, paths = sample(900)
tests, truth = sample(900)
model = LocalClassifierPerParentNode(DecisionTreeClassifier(random_state=0), return_all_probabilities=True)
model.fit(points, paths)
probabilities, predicted = model.predict_proba(tests)[1], model.predict(tests)
names = model.classes_[1]
assert len(names) == 9 and (probabilities.max(axis=1) == 1).all()
share = (predicted[:, 1] == truth[:, 1]).mean()
found = metrics.expected_calibration_error(model, truth, probabilities, predicted, level=1)
right = expected(probabilities, names, truth[:, 1])
print(f'a tree that is always certain and right for {share:.3f}: expected error {found:.3f}, right {right:.3f}')
assert 0.65 < share < 0.75 and np.isclose(right, 1 - share)
assert found == 0, 'probabilities of 1 are counted now'


def both(probabilities, truth):
    """What hiclass gives (expected, static, adaptive), and what is right of the first two."""
    chosen = names[probabilities.argmax(axis=1)]
    whole = [np.array([[name.split()[0], name] for name in some]) for some in (truth, chosen)]
    functions = (
        metrics.expected_calibration_error, metrics.static_calibration_error, metrics.adaptive_calibration_error,
    )
    found = [float(function(model, whole[0], probabilities, whole[1], level=1)) for function in functions]
    kept = probabilities.astype(np.float32)
    return found, [float(expected(kept, names, truth)), float(static(kept, names, truth))]


given = draw.dirichlet(np.full(9, 0.3), 20_000)
chosen = np.array([draw.choice(9, p=row) for row in given])
flat = np.sqrt(given) / np.sqrt(given).sum(axis=1, keepdims=True)
MODELS = {
    'always right': (np.eye(9)[chosen], (0, 0.889, 0.889), (0, 0)),
    'always wrong': (np.eye(9)[(chosen + 1) % 9], (0, 0, 0.111), (1, 0.222)),
    'as drawn': (given, (0.009, 0.379, 0.378), (0.009, 0.003)),
    'too flat': (flat, (0.172, 0.378, 0.378), (0.172, 0.042)),
}
for name, (probabilities, seen, should) in MODELS.items():
    found, right = both(probabilities, names[chosen])
    print(f'{name}: expected, static and adaptive {np.round(found, 4)}, right {np.round(right, 4)} (expected, static)')
    assert np.allclose(found, seen, atol=0.002), 'calibration errors are counted otherwise now'
    assert np.allclose(right, should, atol=0.002)
assert both(flat, names[chosen])[0][1] < both(given, names[chosen])[0][1]

# Two errors that do come out right.
whole = np.array([[name.split()[0], name] for name in names[chosen]])
assert metrics.multiclass_brier_score(model, whole, np.eye(9)[chosen], level=1) == 0
assert metrics.log_loss(model, whole, np.eye(9)[chosen], level=1) < 1e-6
PYTHON
echo 'As stated: the model that is always right has the largest static error of four, and the one always wrong none.'
