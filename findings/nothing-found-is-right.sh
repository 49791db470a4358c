#!/usr/bin/env bash
# eval4ner 0.1.0: `muc.evaluate_all(predictions, gold, texts)` gives a model that finds nothing an F1 of 0.9, if nine of
# ten sentences hold no entity.
#   - 100 sentences, ten of which name a disease. A model that finds nothing has precision, recall and F1 of 0.9, in all
#     four modes. A model that finds all ten diseases, and one name too many in each of 20 other sentences, has 0.8. By
#     the counts of all sentences the first has F1 of 0, and the second has 0.5 (precision 1/3, recall 1). So the order
#     of the two models is reversed.
#   - A sentence without gold entities and without predicted ones counts as precision 1, recall 1 and F1 1, and the
#     result is the mean of the sentences' scores. So a score grows with the share of sentences that have nothing in
#     them.
#   - The mean also gives a sentence with one entity the weight of one with four. Where the one is found and the four
#     are missed, recall is 0.5 and not 0.2, and precision is 0.5 although the one predicted entity is right.
#   - The F1 is the mean of F1s. It is not the harmonic mean of the precision and the recall beside it.
# The README calls the package a toolkit for the metrics of MUC-5, and the function names SemEval-2013 task 9.1. Both
# add up the counts of all texts and then divide. The README does not speak of a mean of sentences, and its example has
# entities in every sentence. Nothing is raised. It hurts whoever scores sentences of abstracts or of clinical notes,
# most of which have no entity of a given type. Remedy: call `evaluate_one` for each sentence that has an entity in
# either list, add up its counts, and compute the scores from the sums. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install eval4ner==0.1.0 nervaluate==1.2.1
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

from eval4ner import muc
from nervaluate import Evaluator

print('eval4ner', version('eval4ner'))
MODES = 'strict', 'exact', 'partial', 'type'
SCORES = 'precision', 'recall', 'f1_score'
TEXT, OTHER = 'The patient has asthma today', 'The visit was without events'
FOUND, EXTRA = ('Disease', 'asthma'), ('Disease', 'visit')
texts = [TEXT] * 10 + [OTHER] * 90
gold = [[FOUND]] * 10 + [[]] * 90
nothing = [[]] * 100
all_and_more = [[FOUND]] * 10 + [[EXTRA]] * 20 + [[]] * 70


def divided(right, predicted, real):
    """Precision, recall and F1 of counts."""
    return tuple(round(above / below, 3) if below else 0.0
                 for above, below in ((right, predicted), (right, real), (2 * right, predicted + real)))


def by_hand(predictions, gold):
    """Strict scores from the counts of all sentences. (No sentence here names an entity twice.)"""
    right = sum(len(set(one) & set(other)) for one, other in zip(predictions, gold))
    return divided(right, sum(map(len, predictions)), sum(map(len, gold)))


def by_another_library(predictions, gold, texts):
    """Strict scores of another package for the same task, which wants places."""
    def places(lists):
        return [[{'label': label, 'start': text.index(name), 'end': text.index(name) + len(name) - 1}
                 for label, name in names] for names, text in zip(lists, texts)]
    evaluator = Evaluator(places(gold), places(predictions), tags=['Disease'], loader='dict')
    found = evaluator.evaluate()['overall']['strict']
    return tuple(round(score, 3) for score in (found.precision, found.recall, found.f1))


def by_the_package(predictions, gold, texts):
    """The scores of each mode."""
    found = muc.evaluate_all(predictions, gold, texts)
    return {mode: tuple(round(found[mode][score], 3) for score in SCORES) for mode in MODES}


FEVER_AND_MORE = [('Disease', name) for name in ('fever', 'cough', 'rash', 'pain')]
CASES = (
    ('nothing found', nothing, gold, texts, (0.9, 0.9, 0.9), (0.0, 0.0, 0.0)),
    ('all found, and 20 too many', all_and_more, gold, texts, (0.8, 0.8, 0.8), (0.333, 1.0, 0.5)),
    ('one found of one, none of four', [[FOUND], []], [[FOUND], FEVER_AND_MORE], [TEXT, 'fever cough rash pain'],
     (0.5, 0.5, 0.5), (1.0, 0.2, 0.333)),
)
for name, predictions, real, its_texts, seen, right in CASES:
    found = by_the_package(predictions, real, its_texts)
    hand, other = by_hand(predictions, real), by_another_library(predictions, real, its_texts)
    print(f'{name}: precision, recall, F1 {found["strict"]}, by counts {hand}, by nervaluate {other}')
    assert all(found[mode] == seen for mode in MODES), 'scores are no longer the mean of all sentences'
    assert hand == other == right

# The F1 of the package and its precision and recall are means of different things.
two = [[FOUND], [FOUND, EXTRA]], [[FOUND, ('Disease', 'fever')], [FOUND]], ['asthma fever', 'asthma visit']
assert by_the_package(*two)['strict'] == (0.75, 0.75, 0.667) and by_hand(*two[:2]) == (0.667, 0.667, 0.667)

# The remedy.
sums = dict.fromkeys(('correct', 'actual', 'possible'), 0)
for prediction, real, text in zip(all_and_more, gold, texts):
    if prediction or real:
        counts = muc.evaluate_one(prediction, real, text)['strict']
        sums = {name: number + counts[name] for name, number in sums.items()}
assert divided(sums['correct'], sums['actual'], sums['possible']) == (0.333, 1.0, 0.5)
PYTHON
echo 'As stated: a model that finds nothing is right in nine of ten.'
