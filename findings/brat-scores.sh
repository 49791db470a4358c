#!/usr/bin/env bash
# brat-peek 0.1.2.1: `peek.metrics.show_fscore(gold, predicted, labels)` and `show_iaa(...)` compare the words of mentions, where
# they say that they compare places.
#   - The documentation of show_iaa recommends ['filename', 'label', 'offset'] as "same position in text", and show_fscore uses
#     these three. The column that is called offset is filled with the text of the mention, and `span` with the numbers.
#   - So a prediction of "fever" anywhere in a document hits, wherever the gold has it, and a word that is marked ten times in a
#     document counts once. A tagger that marks one of three mentions at a place where the gold has none has F1 1.0.
#   - Mentions that are cut one character off are compared by their text, so those are still wrong, which makes it look right.
#   - show_iaa by ['filename', 'label', 'span'] compares places; show_fscore has no such choice.
# These are the scores of shared tasks on clinical text (exact place and class). Nothing is raised. show_fscore runs with pandas
# 1 only, which needs numpy 1 and Python 3.11 or older; show_iaa runs with any. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install brat-peek==0.1.2.1 pandas==1.5.3 numpy==1.26.4 seaborn==0.13.2 unidecode==1.4.0
cd "$folder"
mkdir gold predicted elsewhere
text='Fever rose. No fever later. Her fever and a cough. The fever fell.'
for part in gold predicted elsewhere; do printf '%s\n' "$text" > "$part/1.txt"; done
printf 'T1\tSymptom 15 20\tfever\nT2\tSymptom 32 37\tfever\nT3\tSymptom 44 49\tcough\n' > gold/1.ann
printf 'T1\tSymptom 15 20\tfever\nT2\tSymptom 44 49\tcough\n' > predicted/1.ann
printf 'T1\tSymptom 55 60\tfever\nT2\tSymptom 44 49\tcough\n' > elsewhere/1.ann
cat > try.py <<'PYTHON'
import contextlib
import io
import pathlib
import re
import warnings

warnings.simplefilter('ignore')
import peek

text = pathlib.Path('gold/1.txt').read_text()
for file in pathlib.Path().glob('*/*.ann'):
    for line in file.read_text().splitlines():
        _, place, mention = line.split('\t')
        _, begin, end = place.split()
        assert text[int(begin) : int(end)] == mention
gold, predicted, elsewhere = (peek.AnnCorpus(f'{name}/', txt=True) for name in ('gold', 'predicted', 'elsewhere'))


def places(corpus):
    return {tuple(map(tuple, item.span)) for document in corpus.docs for item in document.anns['entities']}


def scores(other):
    with contextlib.redirect_stdout(io.StringIO()):
        return peek.metrics.show_fscore(gold, other, ['Symptom'])


def agreement(other, what):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        peek.metrics.show_iaa([gold, other], ['filename', 'label', what], ['Symptom'])
    return float(re.search(r'Symptom: ([\d.]+)', said.getvalue()).group(1))


for name, other in (('one of two fevers', predicted), ('a fever that the gold has not', elsewhere)):
    right = len(places(gold) & places(other))
    print(f'{name}: precision, recall, F1', scores(other), f'; by places {right} of {len(places(gold))} are found')
    print('  agreement by offset', agreement(other, 'offset'), ', by span', agreement(other, 'span'))
    assert scores(other) == (1.0, 1.0, 1.0), 'places count now'
    assert agreement(other, 'offset') == 1.0 and agreement(other, 'span') < 1
assert len(places(gold) & places(predicted)) == 2 and len(places(gold) & places(elsewhere)) == 1
PYTHON
env/bin/python try.py
echo 'As stated: the words of mentions are compared, and each once a document.'
