#!/usr/bin/env bash
# clinlp 0.10.0 (Dutch clinical text): `InfoExtractionMetrics.qualifier_metrics()` gives one number, the accuracy, as
# precision, as recall and as F1. A tool that finds no negation at all has .87 for each of them.
#   - 500 findings with the frequencies that the documentation shows: 436 present, 34 uncertain, 30 absent. If all are
#     called present, precision, recall and F1 are .872. No absent finding is found, and the mean F1 of the values is
#     .31. For the question whose finding it is, "patient" for all gives .978, and none of the 11 of relatives and
#     others is found.
#   - Of 470 present and 30 absent findings one tool calls 25 of the absent ones absent, and 20 present ones too.
#     Another one calls 5 of the absent ones absent, and nothing else. Both have .95. By the value "absent" precision
#     and recall are .56 and .83 for the first, 1 and .17 for the second.
# In the documentation precision and recall differ: .77 and .61 for negation. The docstring says that a ValueError comes
# if a qualifier has more than two values, and none comes. The reason: scikit-learn is asked for micro averages, which
# are all the accuracy where each finding has one value, and the frequent value, which is of no interest, makes it high.
# Nothing is raised. Two negation detectors look alike, and the one that does nothing looks good.
# Remedy: scikit-learn's classification_report over the values of the findings whose places agree, as in this script.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install 'clinlp[metrics]==0.10.0' spacy==3.8.18 scikit-learn==1.9.1
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

from clinlp.metrics import InfoExtractionDataset, InfoExtractionMetrics
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

print('clinlp', version('clinlp'))


def dataset(name, values):
    """One finding in each document, with a value of the qualifier."""
    docs = []
    for number, value in enumerate(values):
        finding = {'text': 'anemie', 'start': 0, 'end': 6, 'label': 'anemie'}
        finding['qualifiers'] = [{'name': name, 'value': value}]
        docs.append({'identifier': str(number), 'text': 'anemie', 'annotations': [finding]})
    return InfoExtractionDataset.from_dict({'docs': docs})


def compare(name, true, found):
    metrics = InfoExtractionMetrics(dataset(name, true), dataset(name, found))
    return metrics.qualifier_metrics(misses=False)[name]['metrics']


for name, numbers, macro in (
    ('Presence', {'Present': 436, 'Uncertain': 34, 'Absent': 30}, 0.310),
    ('Experiencer', {'Patient': 489, 'Family': 9, 'Other': 2}, 0.330),
):
    true = [value for value, number in numbers.items() for _ in range(number)]
    found = compare(name, true, [true[0]] * len(true))
    share, mean = numbers[true[0]] / len(true), f1_score(true, [true[0]] * len(true), average='macro')
    print(f'{name}, all {true[0]}: {found}, by hand {share:.3f} are right, mean F1 of the values {mean:.3f}')
    assert found['n'] == 500 and abs(mean - macro) < 1e-3
    for metric in ('precision', 'recall', 'f1'):
        assert abs(found[metric] - share) < 1e-9, 'another average is used now'
    for value in list(numbers)[1:]:
        assert recall_score(true, [true[0]] * len(true), labels=[value], average='macro') == 0

true = ['Present'] * 470 + ['Absent'] * 30
eager = ['Absent'] * 20 + ['Present'] * 450 + ['Absent'] * 25 + ['Present'] * 5
shy = ['Present'] * 470 + ['Absent'] * 5 + ['Present'] * 25
for tool, values, precision, recall in (('eager', eager, 25 / 45, 25 / 30), ('shy', shy, 1, 5 / 30)):
    found = compare('Presence', true, values)
    hand = [metric(true, values, pos_label='Absent') for metric in (precision_score, recall_score)]
    print(f'{tool}: {found}, for absent precision {hand[0]:.3f}, recall {hand[1]:.3f}')
    assert all(abs(found[metric] - 0.95) < 1e-9 for metric in ('precision', 'recall', 'f1'))
    assert abs(accuracy_score(true, values) - 0.95) < 1e-9
    assert abs(hand[0] - precision) < 1e-9 and abs(hand[1] - recall) < 1e-9
assert 'non-binary' in InfoExtractionMetrics.qualifier_metrics.__doc__
PYTHON
echo 'As stated: precision, recall and F1 are the accuracy, and finding nothing is fine.'
