#!/usr/bin/env bash
# confidence-intervals 0.0.3: with `conditions`, `evaluate_with_conf_int` draws the same places from every patient. The
# interval depends on the order of the rows, and it may be twice as wide as the method makes it.
#   - 50 patients, 6 notes each, in order; a model is right in 98 % of first notes and in 50 % of sixth ones. The
#     interval of its accuracy, .750, goes from .607 to .887. With the same rows in random order it goes from .680 to
#     .827, and by the same two steps with one unbroken generator from .67 to .83 in any order. Accuracies of 20,000
#     other data sets of this kind lie within .083.
#   - 50 patients, three negative and then three positive notes each: the interval of F1, .863, goes from .630 to .930,
#     with one unbroken generator from .79 to .92.
#   - `get_bootstrap_indices(300, conditions, random_state=0)` draws 33 patients, and for each of them the fifth, the
#     sixth, the first and three times the fourth note. With any other seed they all have the same notes, too.
# The reason: each bootstrap sample has one integer for a seed, and it is given anew for the patients and for the notes
# of each patient. So equal numbers come out for all patients who have as many notes, and the places that are drawn too
# often are so in all patients at once.
# By the docstring conditions are drawn first, and then samples of each. What is drawn from one should have nothing to
# do with what is drawn from another. Sentences of an abstract, visits of a patient and rows that are sorted by label
# have an order that bears on the score. Nothing is raised, and a difference that is certain looks as if it were not.
# Remedy: shuffle the rows first, or draw the indices oneself. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install confidence-intervals==0.0.3 numpy==2.1.3 scikit-learn==1.9.1 scipy==1.15.3
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from confidence_intervals import evaluate_with_conf_int, get_bootstrap_indices
from sklearn.metrics import accuracy_score, f1_score

print('confidence-intervals', version('confidence-intervals'))
PATIENTS, NOTES, SAMPLES = 50, 6, 250
draw = np.random.default_rng(1)
patients = np.repeat(np.arange(PATIENTS), NOTES)
shuffled = draw.permutation(len(patients))

# Which notes are drawn.
for seed in range(20):
    drawn = get_bootstrap_indices(len(patients), patients, random_state=seed)
    notes = {}
    for row in drawn:
        notes.setdefault(row // NOTES, []).append(int(row % NOTES))
    # A patient who was drawn twice has each note twice.
    kinds = {tuple(row[:: len(row) // NOTES]) for row in notes.values()}
    assert len(kinds) == 1, 'each patient has notes of its own now'
    if seed == 0:
        assert len(notes) == 33 and kinds == {(4, 5, 0, 3, 3, 3)}
    if seed < 3:
        print(f'seed {seed}: {len(notes)} patients, all with the notes', *kinds)


def own(samples, metric, labels):
    """The interval of the same two steps, with one generator that goes on."""
    draws, found = np.random.default_rng(2), []
    rows = [np.flatnonzero(patients == patient) for patient in range(PATIENTS)]
    for _ in range(1000):
        chosen, times = np.unique(draws.integers(0, PATIENTS, PATIENTS), return_counts=True)
        index = np.concatenate([np.repeat(draws.choice(rows[c], NOTES), t) for c, t in zip(chosen, times)])
        found.append(metric(labels[index], samples[index]))
    return np.percentile(found, (2.5, 97.5))


def share_right(labels, samples):
    """Accuracy."""
    return np.mean(labels == samples)


def show(name, metric, samples, labels):
    """The interval in order, in a random order, and by hand."""
    arguments = dict(num_bootstraps=SAMPLES)
    value, in_order = evaluate_with_conf_int(samples, metric, labels, patients, **arguments)
    _, in_random = evaluate_with_conf_int(
        samples[shuffled], metric, labels[shuffled], patients[shuffled], **arguments
    )
    by_hand = own(samples, metric, labels)
    for what, (low, high) in ('in order', in_order), ('in random order', in_random), ('by hand', by_hand):
        print(f'{name} {value:.3f}, {what}: from {low:.3f} to {high:.3f}, width {high - low:.3f}')
    return np.array((in_order, in_random, by_hand))


chances = np.array([0.98, 0.95, 0.85, 0.75, 0.6, 0.5])
labels = draw.integers(0, 2, len(patients))
samples = np.where((draw.random((PATIENTS, NOTES)) < chances).ravel(), labels, 1 - labels)
in_order, in_random, by_hand = show('accuracy', share_right, samples, labels)
assert np.allclose(in_order, (0.607, 0.887), atol=0.002), 'the interval of the accuracy is another now'
assert np.allclose(in_random, (0.680, 0.827), atol=0.002) and np.allclose(by_hand, (0.67, 0.83), atol=0.01)
assert share_right(labels, samples) == accuracy_score(labels, samples)
# By simulation: how far accuracies of new data of this kind lie apart.
others = (draw.random((20_000, PATIENTS, NOTES)) < chances).mean((1, 2))
low, high = np.percentile(others, (2.5, 97.5))
print(f'accuracies of 20,000 other data sets of this kind: width {high - low:.3f}')
assert round(high - low, 2) == 0.08

labels = np.tile([0, 0, 0, 1, 1, 1], PATIENTS)
samples = np.where(draw.random(len(labels)) < 0.85, labels, 1 - labels)


def f1(labels, samples):
    """F1 of the positive class, as in scikit-learn."""
    return 2 * np.sum(labels * samples) / (labels.sum() + samples.sum())


assert np.isclose(f1(labels, samples), f1_score(labels, samples))
in_order, _, by_hand = show('F1', f1, samples, labels)
assert np.allclose(in_order, (0.630, 0.930), atol=0.002), 'the interval of F1 is another now'
assert np.allclose(by_hand, (0.79, 0.92), atol=0.01)
PYTHON
echo 'As stated: the same places are drawn from every patient.'
