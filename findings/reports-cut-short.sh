#!/usr/bin/env bash
# model2vec 0.10.0: `StaticModel.encode` leaves out words of texts that have far fewer tokens than max_length. A text is cut
# to a number of characters, max_length times the median length of the vocabulary's pieces, before it is made into tokens.
#   - Documented is that tokens beyond max_length (512 by default) are cut off. A laboratory report in columns, 60 lines of
#     72 characters, has 302 tokens. The median is 6, so what lies behind character 3,072 is not read, 92 of the tokens.
#     The last line is the diagnosis, and the vectors of "benign" and of "malignant" are equal to the last bit.
#   - With one space between the words they differ: spaces and line ends are counted, and are no tokens.
#   - With a smaller limit it meets plain text, and half a word is another word: "hypertension glomerulonephritis creatinine
#     hyperplasia" has four tokens, and with max_length=8 its vector is that of the same words with `hyper` as the last.
#   - Words that are added to a vocabulary move its median, and with it the place where old texts end.
# One would expect 512 tokens, or all of a text that has fewer. The cut was made for speed and lost nothing in an
# encyclopaedia's prose. Nothing is raised or logged, the number of tokens below the limit looks safe, and vectors of
# reports look like others. `encode_as_sequence` does it where a max_length is given. Remedy: `max_length=None`, which
# cuts nothing, or runs of spaces made into one before.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install model2vec==0.10.0 numpy tokenizers
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata

import numpy
from model2vec import StaticModel
from tokenizers import Tokenizer, models, pre_tokenizers

print('model2vec', importlib.metadata.version('model2vec'))
words = """[UNK] 0 1 2 3 4 5 6 7 8 9 sodium urea glucose calcium chloride albumin protein lactate ferritin bilirubin
creatinine potassium mmol litre below above normal result range blood serum plasma report benign malignant
diagnosis patient hyper hypertension hyperplasia glomerulonephritis cardiomyopathy""".split()
tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token='[UNK]'))
tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
vectors = numpy.random.default_rng(0).normal(size=(len(words), 16)).astype(numpy.float32)
model = StaticModel(vectors, tokenizer, {}, normalize=False)
print('median length of a piece:', model.median_token_length, 'longest text in tokens:', model.max_length)
assert model.max_length == 512

names = 'sodium urea glucose calcium chloride albumin protein lactate ferritin bilirubin creatinine potassium'.split()
lines = [f'{names[line % 12]:32s}{line % 90 + 10:<16d}{"mmol":12s}{"normal":12s}' for line in range(60)]


def report(diagnosis):
    return '\n'.join([*lines, 'diagnosis ' + diagnosis])


def apart(one, other):
    return float(numpy.abs(one - other).max())


benign, malignant = report('benign'), report('malignant')
count = len(tokenizer.encode(benign, add_special_tokens=False).ids)
print(f'a report of {len(benign)} characters and {count} tokens')
assert count < model.max_length
found = apart(model.encode(benign), model.encode(malignant))
whole = apart(model.encode(benign, max_length=None), model.encode(malignant, max_length=None))
close = [' '.join(text.split()) for text in (benign, malignant)]
single = apart(model.encode(close[0]), model.encode(close[1]))
print(f'benign and malignant: {found} apart, {whole:.4f} with max_length=None, {single:.4f} with one space between words')
assert found == 0.0, 'all of a text that has fewer tokens than max_length is read now'
assert whole > 1e-4 and single > 1e-4
read = model.encode_as_sequence(benign, max_length=512)
print(f'tokens that were read: {len(read)} of {count}')
assert len(read) < count

text = 'hypertension glomerulonephritis creatinine hyperplasia'
taken = text.replace('hyperplasia', 'hyper')
states = [model.encode(text, max_length=8), model.encode(text, max_length=None), model.encode(taken, max_length=None)]
print(f'max_length=8, {text!r}: {apart(states[0], states[1]):.4f} from its own vector,', end=' ')
print(f'{apart(states[0], states[2])} from that of {taken!r}')
assert len(text.split()) < 8
assert apart(states[0], states[1]) > 0.01, 'four words of four tokens are read now'
assert apart(states[0], states[2]) == 0.0
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: texts are cut by characters, and some are far shorter than max_length tokens.'
