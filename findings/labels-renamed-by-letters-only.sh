#!/usr/bin/env bash
# medkit-lib 0.17.0 (clinical text): `SeqEvalEvaluator(tokenizer=..., labels_remapping=...)` renames labels only where
# there is no tokenizer. A model that is always right gets F1 = 0.
#   - A model says problem for what the corpus calls disease, and makes no error. With {'problem': 'disease'} F1 is 1.
#     With a tokenizer besides it is 0 for diseases, and the mean over the labels is .33, as without any mapping.
#   - "problem" itself is in the result, as a label with a score, though it should be renamed.
#   - Two classes that are one in the corpus, such as drug and vaccine: without a tokenizer F1 of drugs is 1, with one
#     .67.
# By the docstring, a label that is found in `labels_remapping` is replaced, for a "mismatch between the predicted
# labels and the reference labels", and a tokenizer is advised for long documents. The reason: the branch for tokens
# makes tags of the entities as they are.
# Nothing is raised. A class with another name has a score of 0, which looks like a bad model.
# Remedy: rename the labels of the entities before, as in this script.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install medkit-lib==0.17.0 seqeval==1.2.2 transformers==5.24.0 tokenizers==0.23.3
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

from medkit.core.text import Entity, Span, TextDocument
from medkit.text.metrics.ner import SeqEvalEvaluator
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

print('medkit-lib', version('medkit-lib'))
words = Tokenizer(WordLevel({'[UNK]': 0}, unk_token='[UNK]'))
words.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token='[UNK]')


def entities(text, labels):
    """An entity for each word that has a label."""
    return [
        Entity(label=label, spans=[Span(text.index(word), text.index(word) + len(word))], text=word)
        for word, label in labels.items()
    ]


def scores(text, true, found, names=None, tokenizer=None):
    document = TextDocument(text=text, anns=entities(text, true))
    evaluator = SeqEvalEvaluator(tokenizer=tokenizer, labels_remapping=names)
    result = evaluator.compute([document], [entities(text, found)])
    return {key.removesuffix('_f1-score'): round(float(value), 3) for key, value in result.items() if 'f1' in key}


text = 'Pneumonia was treated with amoxicillin, and asthma was not.'
true = {'Pneumonia': 'disease', 'amoxicillin': 'drug', 'asthma': 'disease'}
found = {'Pneumonia': 'problem', 'amoxicillin': 'drug', 'asthma': 'problem'}
names = {'problem': 'disease'}
right = {'macro': 1, 'disease': 1, 'drug': 1}
wrong = {'macro': 0.333, 'disease': 0, 'drug': 1, 'problem': 0}
for case, options, seen in (
    ('renamed, by letters', {'names': names}, right),
    ('renamed, by tokens', {'names': names, 'tokenizer': tokenizer}, wrong),
    ('as they are, by letters', {}, wrong),
    ('as they are, by tokens', {'tokenizer': tokenizer}, wrong),
):
    result = scores(text, true, found, **options)
    print(f'{case}: {result}')
    assert result == seen, 'labels are renamed otherwise now'
renamed = {word: names.get(label, label) for word, label in found.items()}
assert renamed == true and scores(text, true, renamed, tokenizer=tokenizer) == right
print('renamed before, by tokens:', right)

text = 'She had amoxicillin and influvac.'
true, found = {'amoxicillin': 'drug', 'influvac': 'drug'}, {'amoxicillin': 'drug', 'influvac': 'vaccine'}
names = {'vaccine': 'drug'}
for case, chosen, seen in (('letters', None, {'macro': 1, 'drug': 1}),
                           ('tokens', tokenizer, {'macro': 0.333, 'drug': 0.667, 'vaccine': 0})):
    result = scores(text, true, found, names, chosen)
    print(f'vaccines are drugs, by {case}: {result}')
    assert result == seen
PYTHON
echo 'As stated: with a tokenizer labels are not renamed.'
