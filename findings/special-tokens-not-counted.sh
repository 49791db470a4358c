#!/usr/bin/env bash
# bpeasy 0.1.6: `len(tokenizer)` does not count the special tokens, and `fill_to_nearest_multiple_of_eight=True` fills
# nothing.
#   - A vocabulary of 300 with [PAD], [MASK], [CLS] and [SEP] has the ids 0 to 303, and len() is 300. An embedding of
#     len() rows has none for the special tokens.
#   - In jax, reading beyond the end of an array gives the last row. So all four have the vector of id 299, which is a
#     word of the texts below, and they never learn another: the gradient of such a read is dropped.
#   - With fill_to_nearest_multiple_of_eight=True and two special tokens the tokenizer has 302 entries, and so has the
#     file for Hugging Face. The entries are added to a list after the vocabulary was made from it.
#     save_vocab_to_tiktoken of the same package, by the same option, writes 304, so the two do not agree on the size of
#     the model.
# One would expect len() to be the number of ids, as tiktoken's n_vocab is and as it is in Hugging Face's tokenizers,
# and the page says of the option "pad vocab to multiple of 8". torch raises for such an id, and jax, where sizes of a
# multiple of 8 matter most, says nothing. Remedy: `tokenizer._encoder.n_vocab` is the number of ids; round it up for
# the table.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install bpeasy==0.1.6 tokenizers==0.23.3 jax==0.10.2 numpy==2.4.6
cd "$folder"
cat > try.py <<'PYTHON'
from importlib.metadata import version

import jax
import jax.numpy as jnp
import numpy as np
from bpeasy import save_vocab_to_tiktoken
from bpeasy.tokenizer import BPEasyTokenizer
from tokenizers import Tokenizer

print('bpeasy', version('bpeasy'))
text = 'Interleukin 6 binds the receptor of patients with hypertension and hypertensive heart failure.'
special = ['[PAD]', '[MASK]', '[CLS]', '[SEP]']


def trained(special, fill=False):
    return BPEasyTokenizer.train(
        iter([text] * 50), vocab_size=300, special_tokens=special, fill_to_nearest_multiple_of_eight=fill
    )


tokenizer = trained(special)
ids = [tokenizer.encode(token, allowed_special='all')[0] for token in special]
print(f'len {len(tokenizer)}, n_vocab {tokenizer._encoder.n_vocab}, special tokens {ids}')
assert ids == [300, 301, 302, 303] and tokenizer._encoder.n_vocab == 304
assert len(tokenizer) == 300, 'special tokens are counted now'

last = tokenizer.decode([len(tokenizer) - 1])
assert last in text
table = jnp.asarray(np.random.default_rng(0).standard_normal((len(tokenizer), 8)))
rows = table[jnp.array([len(tokenizer) - 1, *ids])]
print(f'rows of {last!r} and of the special tokens, the first number of each: {rows[:, 0].round(3).tolist()}')
assert (rows == rows[0]).all() and jnp.isfinite(rows).all()
gradient = jax.grad(lambda table: (table[jnp.array(ids)] ** 2).sum())(table)
print(f'largest gradient at any row, from the special tokens: {float(abs(gradient).max())}')
assert (gradient == 0).all()

filled = trained(special[:2], fill=True)
print(f'filled: n_vocab {filled._encoder.n_vocab}, len {len(filled)}')
assert filled._encoder.n_vocab == 302, 'the option fills the vocabulary now'
filled.export_to_huggingface_format('tokenizer.json')
exported = Tokenizer.from_file('tokenizer.json').get_vocab_size()
save_vocab_to_tiktoken(filled.vocab, 'vocab.tiktoken', special[:2], fill_to_nearest_multiple_of_eight=True)
with open('vocab.tiktoken', 'rb') as file:
    lines = sum(1 for _ in file)
print(f'entries for Hugging Face {exported}, lines for tiktoken {lines}')
assert exported == 302 and lines == 304
PYTHON
env/bin/python try.py
echo 'As stated: special tokens are beyond the end.'
