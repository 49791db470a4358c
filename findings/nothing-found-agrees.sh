#!/usr/bin/env bash
# kalphacv 1.5.2 (Krippendorff's alpha for boxes and outlines in images): if a class has the number 0, to find nothing
# is the same as to find that class. Two readers who agree on nothing get an alpha of 1.
#   - 10 images, two readers, one class of lesions. Each marks two boxes, and no box of one touches a box of the other:
#     alpha is 1.0. With 1 as the number of the class it is -0.75.
#   - One reader marks four lesions in each image and the other marks one of them: alpha is 1.0. With 1 it is -0.4.
#   - Two objects of each of two classes, and the second reader misses one class. If that class has the number 0, alpha
#     is 1.0. If the other has it, alpha is -0.17. By the definition, and with other numbers, it is 0.3 both times.
# The reason: a place where a reader has no box is filled with 0, and so are boxes of class 0. If nothing else is in the
# image, that is one class only, and alpha is set to 1.
# By the README, the field of the class takes a number or a name. It does not say that 0 has another meaning, and many
# programs count classes from 0. Nothing is raised. It hurts whoever reports how well radiologists or pathologists
# agree, or sorts out images by `iaa_threshold`: with one class each image has an alpha of 1, whatever was drawn.
# Remedy: add 1 to every category_id, or give names.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install kalphacv==1.5.2 krippendorff==0.9.0 numpy==2.4.6 pillow
"$folder/env/bin/python" - "$folder" <<'PYTHON'
import json
import sys
import warnings
from collections import Counter
from importlib.metadata import version
from itertools import permutations
from pathlib import Path

from kalphacv import calculate_iaa_from_annotations

warnings.simplefilter('error')
print('kalphacv', version('kalphacv'))
IMAGES = 10


def measured(first, second, names):
    """The same boxes in each image: pairs of a place and a class. The classes get numbers or names."""
    images = [{'id': n, 'file_name': f'{n}.png', 'width': 1000, 'height': 100, 'rater_list': ['anna', 'ben']}
              for n in range(1, IMAGES + 1)]
    boxes = [{'image_id': image['id'], 'rater': reader, 'category_id': names[label], 'bbox': [100 * place, 10, 50, 50]}
             for image in images for reader, own in (('anna', first), ('ben', second)) for place, label in own]
    path = Path(sys.argv[1]) / 'boxes.json'
    path.write_text(json.dumps({'images': images, 'annotations': boxes}))
    return calculate_iaa_from_annotations('bbox', str(path), 'rater_list', 'rater', silent=True)[0.5]


def by_hand(first, second):
    """Nominal alpha from its definition, nothing being a value of its own."""
    first, second = dict(first), dict(second)
    units = [(first.get(place), second.get(place)) for place in sorted(first.keys() | second.keys())]
    seen = sum(one != other for one, other in units) / len(units)
    values = [value for unit in units for value in unit]
    counts = Counter(values)
    total = len(values)
    expected = sum(counts[one] * counts[other] for one, other in permutations(counts, 2)) / (total * (total - 1))
    return 1 - seen / expected


CASES = {
    'boxes apart': ([(0, 'a'), (1, 'a')], [(2, 'a'), (3, 'a')], 1, -0.75),
    'one of four': ([(0, 'a'), (1, 'a'), (2, 'a'), (3, 'a')], [(0, 'a')], 1, -0.4),
    'class a missed': ([(0, 'a'), (1, 'a'), (2, 'b'), (3, 'b')], [(2, 'b'), (3, 'b')], 1, 0.3),
    'class b missed': ([(0, 'a'), (1, 'a'), (2, 'b'), (3, 'b')], [(0, 'a'), (1, 'a')], -0.1667, 0.3),
}
print('case             from 0   from 1    names  by hand')
for case, (first, second, seen, expected) in CASES.items():
    found = [measured(first, second, names) for names in ({'a': 0, 'b': 1}, {'a': 1, 'b': 2}, {'a': 'a', 'b': 'b'})]
    hand = by_hand(first, second)
    print(f'{case:15}', *(f'{value:8.3f}' for value in (*found, hand)))
    assert abs(found[0] - seen) < 0.001, 'nothing and the first class are told apart now'
    assert abs(hand - expected) < 0.001
    assert abs(found[1] - hand) < 0.001 and abs(found[2] - hand) < 0.001
PYTHON
echo 'As stated: nothing found agrees with the class of number 0.'
