#!/usr/bin/env bash
# nervaluate 1.2.1: by `ent_type` a mention of the right type counts as spurious, if a mention of another type stands
# before it within the same gold mention. Behind it, it counts as correct. Totals and tables by type do not agree.
#   - Gold: a disease of four words. Predicted: a chemical for the first word, and a disease for the other three. Totals
#     have no correct one, one incorrect and one spurious: recall 0. The table of the type has the disease as correct.
#   - The chemical for the last word, and the disease for the first three: one correct, recall 1.
#   - 200 diseases of four words, each with a chemical at one end: the recall of totals is the share of those in which
#     the chemical comes last. By types the recall of diseases is 1, wherever the chemical is.
# For each prediction in turn the package takes a gold mention of the right type, or else any other that overlaps, and
# this one is gone for the predictions that follow. The docstring has a prediction correct that overlaps a gold mention
# and has its label, and the README asks for "some overlap". The mentions are in the form of the README, one tag for
# each word, none within another. Nothing is raised. Remedy: add up the tables by type. Seen on 2026-12-01, in the
# newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps nervaluate==1.2.1
"$folder/env/bin/python" - <<'PYTHON'
import random
from importlib.metadata import version

from nervaluate.evaluator import Evaluator

print('nervaluate', version('nervaluate'))
GOLD = ['B-Disease', 'I-Disease', 'I-Disease', 'I-Disease']
FIRST = ['B-Chemical', 'B-Disease', 'I-Disease', 'I-Disease']
LAST = ['B-Disease', 'I-Disease', 'I-Disease', 'B-Chemical']


def measured(gold, predicted):
    """Counts of correct, incorrect, missed and spurious mentions by ent_type, in all and of diseases."""
    found = Evaluator(gold, predicted, tags=['Disease', 'Chemical'], loader='list').evaluate()
    return [(each.correct, each.incorrect, each.missed, each.spurious, each.recall) for each in
            (found['overall']['ent_type'], found['entities']['Disease']['ent_type'])]


def by_hand(gold, predicted):
    """The share of gold mentions that overlap a mention of their type, for one gold mention in each sentence."""
    hits = [any(tag.endswith('-Disease') and truth != 'O' for truth, tag in zip(*pair, strict=True))
            for pair in zip(gold, predicted, strict=True)]
    return sum(hits) / len(hits)


for name, tags, total in (('first', FIRST, (0, 1, 0, 1, 0)), ('last', LAST, (1, 0, 0, 1, 1))):
    whole, diseases = measured([GOLD], [tags])
    print(f'the chemical comes {name}: in all {whole}, diseases {diseases}')
    assert whole == total, 'the order does not count now'
    assert diseases == (1, 0, 0, 0, 1)
    assert by_hand([GOLD], [tags]) == 1

draw = random.Random(0)
for share in (0.2, 0.8):
    predicted = [LAST if draw.random() < share else FIRST for _ in range(200)]
    whole, diseases = measured([GOLD] * 200, predicted)
    last = sum(tags is LAST for tags in predicted) / 200
    print(f'200 sentences, the chemical comes last in {last}: recall {whole[4]}, of diseases {diseases[4]}')
    assert abs(whole[4] - last) < 1e-9
    assert diseases[4] == by_hand([GOLD] * 200, predicted) == 1
PYTHON
echo 'As stated: a mention of the right type is spurious.'
