#!/usr/bin/env bash
# grain 0.2.18: a shuffled dataset of 2^16 + 1 elements never gives the last one, and a small one takes long for each.
#   - `MapDataset.range(65_537).seed(0).shuffle()` gives 65,536 different elements: one comes twice, 65,536 never. So it is
#     with 2^18 + 1 (262,145) and 2^20 + 1 elements; with one more or one less nothing is lost. The element is left out of
#     every epoch, since each epoch has another seed and the same cipher: its number needs 17 bits, and the cipher takes
#     ceil(log2(last number)), which is 16. Nothing is raised and the length is right.
#   - Below 2^16 elements the cipher still works on 16 bits and is repeated until its result is a number of the dataset.
#     So an element of a dataset of 300 takes 8 times as long as one of 100,000 (109 and 14 microseconds), and one of 10 takes
#     180 times as long (2.5 ms).
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install grain==0.2.18 numpy==2.4.6
cd "$folder"
cat > try.py <<'PYTHON'
import time

import grain


def lost(count):
    """Elements that two epochs of a shuffled dataset never give."""
    shuffled = grain.MapDataset.range(count).seed(0).shuffle().repeat(2)
    return sorted(set(range(count)) - {shuffled[number] for number in range(2 * count)})


def microseconds(count):
    shuffled = grain.MapDataset.range(count).seed(0).shuffle()
    began = time.perf_counter()
    for number in range(1000):
        shuffled[number % count]
    return (time.perf_counter() - began) * 1e3


for count, expected in ((65_536, []), (65_537, [65_536]), (65_538, []), (262_145, [262_144])):
    found = lost(count)
    print(f'{count:,} elements, two epochs: never given: {found}')
    assert found == expected, f'expected {expected}'
microseconds(100_000)
large, some, few = (microseconds(count) for count in (100_000, 300, 10))
print(f'microseconds an element of 100,000: {large:.0f}; of 300: {some:.0f}; of 10: {few:.0f}')
assert some > 3 * large, 'a small dataset is no longer slower'
assert few > 30 * large, 'a tiny dataset is no longer slower'
PYTHON
"$folder/env/bin/python" try.py
echo 'as described'
