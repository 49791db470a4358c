#!/usr/bin/env bash
# datasets 5.2.0: `class_encode_column('label')`, which `train_test_split(stratify_by_column='label')` asks for, gives classes
# other numbers than they had, and each part of a DatasetDict its own.
#   - Integers are written as text and sorted as text: of 0 to 12, class 10 becomes 2, 2 becomes 5, 12 becomes 4. With up to ten
#     classes all stays as it was. Of -1, 0, 1, 2 every class moves by one.
#   - Called on a DatasetDict, every part is encoded by the labels that happen to be in it: with a, b, c in train and b, c, d in
#     test, `b` is 1 in one and 0 in the other. Both hold the numbers 0, 1, 2, and nothing is said.
# Relation sets have more than ten classes (ChemProt numbers CPR:0 to CPR:10), and rare ones are missing
# from small test parts. Whoever has an id2label, a trained model or predictions by the old numbers gets a wrong score without an
# error. cast_column('label', ClassLabel(names=[...])), with the names of all parts in the order of the numbers, keeps them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install datasets==5.2.0 pyarrow==26.0.1
export HF_HOME="$folder/cache" HF_HUB_OFFLINE=1
"$folder/env/bin/python" - <<'PYTHON'
import datasets

datasets.disable_progress_bars()


def column(values):
    return datasets.Dataset.from_dict({'label': values})


# It is asked for: an integer column cannot be stratified.
try:
    column([0, 1] * 8).train_test_split(test_size=0.5, stratify_by_column='label')
except ValueError as error:
    print('stratified, as it is:', error)
    assert 'ClassLabel' in str(error)
else:
    raise AssertionError('an integer column can be stratified now')

for count in (10, 13):
    given = list(range(count))
    encoded = column(given).class_encode_column('label')
    print(given, '->', encoded['label'][:], encoded.features['label'].names)
    expected = [sorted(map(str, given)).index(str(number)) for number in given]
    assert encoded['label'][:] == expected, 'numbers are not sorted as text any more'
    assert (expected == given) is (count == 10)
assert expected[10] == 2 and expected[2] == 5 and expected[12] == 4
print([-1, 0, 1, 2], '->', column([-1, 0, 1, 2]).class_encode_column('label')['label'][:])
assert column([-1, 0, 1, 2]).class_encode_column('label')['label'][:] == [0, 1, 2, 3]

# What is split then holds the new numbers.
split = column(list(range(13)) * 4).class_encode_column('label').train_test_split(
    test_size=0.25, stratify_by_column='label', seed=0
)
assert split['test'].features['label'].int2str(2) == '10'

parts = datasets.DatasetDict(train=column(['a', 'b', 'c']), test=column(['b', 'c', 'd']))
encoded = parts.class_encode_column('label')
for name, part in encoded.items():
    print(name, part.features['label'].names, part['label'][:])
assert encoded['train'].features['label'].str2int('b') == 1
assert encoded['test'].features['label'].str2int('b') == 0, 'parts share their classes now'
assert encoded['train']['label'][:] == encoded['test']['label'][:] == [0, 1, 2]

# The remedy.
names = datasets.ClassLabel(names=[str(number) for number in range(13)])
assert column(list(range(13))).cast_column('label', names)['label'][:] == list(range(13))
PYTHON
echo 'As stated: classes are numbered as text sorts them, and in each part by itself.'
