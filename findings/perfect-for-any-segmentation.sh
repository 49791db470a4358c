#!/usr/bin/env bash
# segeval 2.0.11 (for text segmentation): `pk` and `window_diff` in the format "position" give 0, which is perfect, to
# every segmentation, if the labels are words or elements of a numpy array.
#   - 100 sentences in 10 sections. A hypothesis without any boundary has Pk .47 and WindowDiff .47. Both come out as 0.
#     So do those of a hypothesis that cuts after every second sentence: Pk is .53 and WindowDiff is 1.
#   - It is so for tuples made of an array of integers, and for names of sections that are read from a file.
#   - Python integers are right up to 256. From segment 257 on, every sentence may count as a segment of its own. A
#     document of 400 short segments that was written to a file and read has a WindowDiff of .36 to itself.
#   - boundary_similarity is right for the same input: 0 and .18.
# The reason: the two functions ask whether neighbouring labels are the same object, where they should ask whether the
# labels are equal. Python keeps one object for each integer up to 256. Two equal words that were read, or two
# equal elements of an array, are two objects. If both sides differ everywhere, then no window disagrees.
# The documentation calls this format a tuple of labels of segments. Nothing is raised, and 0 is a possible
# result. It hurts whoever measures how well a model finds the sections of notes or papers: each model is perfect.
# Remedy: give the lengths of segments, which is the default format.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install segeval==2.0.11 numpy==2.4.6
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import json
from importlib.metadata import version

import numpy as np
import segeval

print('segeval', version('segeval'))
POSITION = segeval.BoundaryFormat.position


def by_hand(hypothesis, reference):
    """Pk and WindowDiff by their definitions, with a window of half the mean length of a segment."""
    cuts = [sides[:-1] != sides[1:] for sides in (np.asarray(hypothesis), np.asarray(reference))]
    size = max(2, round(len(reference) / (1 + cuts[1].sum()) / 2))
    windows = range(len(reference) - size)
    found, true = (np.array([cut[i:i + size].sum() for i in windows]) for cut in cuts)
    return ((found > 0) != (true > 0)).mean(), (found != true).mean()


def words(labels):
    """Names of sections, as read from a file."""
    return tuple(' '.join(f'section-{label}' for label in labels).split())


reference = np.repeat(np.arange(10), 10)
WAYS = {'tuple of an array': tuple, 'words': words, 'Python integers': lambda labels: tuple(labels.tolist())}
SEEN = {
    'no boundary': (np.zeros(100, int), 0.474, 0.474, 0),
    'every second sentence': (np.repeat(np.arange(50), 2), 0.526, 1, 0.184),
    'the reference itself': (reference, 0, 0, 1),
}
print(f'{"hypothesis":22} {"labels":17} {"Pk":>6} {"WD":>6}   by hand')
for name, (hypothesis, pk, wd, similarity) in SEEN.items():
    right = by_hand(hypothesis, reference)
    assert np.allclose(right, (pk, wd), atol=0.001)
    masses = [segeval.convert_positions_to_masses(way.tolist()) for way in (hypothesis, reference)]
    assert np.allclose((float(segeval.pk(*masses)), float(segeval.window_diff(*masses))), right)
    for labels, way in WAYS.items():
        pair = way(hypothesis), way(reference)
        found = [float(measure(*pair, boundary_format=POSITION)) for measure in (segeval.pk, segeval.window_diff)]
        print(f'{name:22} {labels:17} {found[0]:6.3f} {found[1]:6.3f}   {right[0]:.3f} {right[1]:.3f}')
        assert np.allclose(found, right if labels == 'Python integers' else 0), 'labels are compared otherwise now'
        assert np.isclose(float(segeval.boundary_similarity(*pair, boundary_format=POSITION)), similarity, atol=0.001)

# Many segments, each of 4 sentences.
masses = [4] * 400
made = segeval.convert_masses_to_positions(masses)
read = tuple(json.loads(json.dumps(made)))
assert made == read and by_hand(read, made) == (0, 0)
pk, wd = (float(measure(read, made, boundary_format=POSITION)) for measure in (segeval.pk, segeval.window_diff))
print(f'a document of 400 segments and its copy: Pk {pk:.3f}, WindowDiff {wd:.3f}')
assert np.isclose(pk, 0.180, atol=0.001) and np.isclose(wd, 0.360, atol=0.001)
few = tuple(json.loads(json.dumps(made[:1024])))
assert segeval.window_diff(few, made[:1024], boundary_format=POSITION) == 0
PYTHON
echo 'As stated: any segmentation is perfect, and a copy of a long one is not.'
