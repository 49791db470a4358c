#!/usr/bin/env bash
# grain 0.2.18: `grain.experimental.ConcatThenSplitIterDataset` packs tokens twice where elements have two features of
# different length, such as inputs and targets.
#   - An element of 20 inputs and 6 targets, packed to 8 and 8: the inputs come once, in three rows. The first row has
#     all 6 targets, and the third has all 6 again.
#   - 40 articles of 100 to 3,000 tokens, with summaries of a tenth of that, are packed to 512 and 128. With the
#     62,481 tokens of the articles come 7,096 copies, and with the 6,070 of the summaries 4,219. None is missing.
#   - It happens where what is left of an element that was cut is cut again. Of a feature that now fits into the row
#     whole, the length is taken for the place where it ends, so what lies between the two comes once more.
#   - Copies have segment ids, and positions counted from 0, like any other token. Such targets weigh twice or more in
#     the loss, beside inputs that they do not belong to.
# With one feature, or with features of equal length (tokens and their labels), each token comes once. By the
# documentation the elements are put one behind the other and cut, and what is left of a cut waits for the next row.
# Nothing is raised, and the rows look as they should. Remedy: cut
# the elements to the packed lengths before; then none is cut a second time. Seen on 2026-11-29, in the newest
# version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install grain==0.2.18 numpy==2.4.6
cat > "$folder/try.py" <<'PYTHON'
import itertools
from collections import Counter
from importlib.metadata import version

import grain
import numpy as np

print('grain', version('grain'))


def packed(elements, lengths):
    parent = grain.MapDataset.source(elements).to_iter_dataset()
    rows = grain.experimental.ConcatThenSplitIterDataset(parent, length_struct=lengths)
    return list(itertools.islice(iter(rows), 1000))


def counted(elements, lengths):
    """Per feature: tokens of the elements, copies among the packed tokens, and tokens that are missing there."""
    rows, found = packed(elements, lengths), {}
    for name in lengths:
        before = Counter(int(token) for element in elements for token in element[name])
        after = Counter(
            int(token) for row in rows for token, segment in zip(row[name], row[f'{name}_segment_ids']) if segment
        )
        assert max(before.values()) == 1
        found[name] = before.total(), (after - before).total(), (before - after).total()
    return found


one = [{'inputs': np.arange(100, 120), 'targets': np.arange(900, 906)}]
rows = packed(one, {'inputs': 8, 'targets': 8})
for row in rows:
    print(row['inputs'], row['targets'], row['targets_segment_ids'], row['targets_positions'])
assert counted(one, {'inputs': 8, 'targets': 8}) == {'inputs': (20, 0, 0), 'targets': (6, 6, 0)}, 'targets come once'


def articles(share, spread):
    random, used, elements = np.random.default_rng(0), 0, []
    for _ in range(40):
        length = int(random.integers(100, 3000))
        short = max(1, int(length * share * random.uniform(1 - spread, 1 + spread)))
        elements.append({'inputs': used + np.arange(length), 'targets': used + np.arange(short)})
        used += length
    return elements


summaries, labels = articles(0.1, 0.3), articles(1, 0)
found = counted(summaries, {'inputs': 512, 'targets': 128})
print('articles and summaries: tokens, copies, missing:', found)
assert found['inputs'][1] > 5000 and found['targets'][1] > 0.5 * found['targets'][0]
assert found['inputs'][2] == found['targets'][2] == 0

found = counted(labels, {'inputs': 512, 'targets': 512})
print('tokens and labels of equal length:', found)
assert all(numbers[1:] == (0, 0) for numbers in found.values())

found = counted([{'inputs': element['inputs']} for element in summaries], {'inputs': 512})
print('the articles alone:', found)
assert found['inputs'][1:] == (0, 0)

cut = [{'inputs': element['inputs'][:512], 'targets': element['targets'][:128]} for element in summaries]
found = counted(cut, {'inputs': 512, 'targets': 128})
print('cut to 512 and 128 before:', found)
assert all(numbers[1:] == (0, 0) for numbers in found.values())
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: what is cut twice is packed twice.'
