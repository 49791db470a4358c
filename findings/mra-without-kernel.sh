#!/usr/bin/env bash
# transformers 5.24.0: an MRA computes no attention where its kernel for CUDA is not loaded, and says nothing of it. On a
# CPU, on other accelerators, and on a GPU without ninja or without the kernel, the attention of each layer gives zeros.
#   - A word's states do not depend on any other word: all others can be changed and they stay the same to the last bit.
#     What is left is a network of each word and its position, and the vector of [CLS] is the same for all texts.
#   - Shapes are right, nothing is NaN, and a mask is accepted.
#   - It trains: the loss goes down, since much can be learned from each word alone. Query, key, value and the matrix behind
#     them get no gradient, so those of a checkpoint stay what they were and those of a new model stay random.
#   - The same checkpoint on a machine with the kernel computes something else: there the random or unused matrices come in.
# One would expect an error, or a slow way to compute the same, as YOSO of the same library has by default. The only hint is
# a warning where CUDA and ninja are there and loading the kernel fails, and it speaks of "multi-scale deformable
# attention", another model's. What shows it is a look at whether another word changes a state. Seen on 2026-11-29, in the
# newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install transformers==5.24.0 torch==2.13.0 numpy
export CUDA_VISIBLE_DEVICES=
cat > "$folder/try.py" <<'PYTHON'
import logging
import warnings

import torch
import transformers

seen = []
warnings.showwarning = lambda message, *rest, **more: seen.append(str(message))
transformers.logging.set_verbosity_info()
handler = logging.Handler()
handler.emit = lambda record: seen.append(record.getMessage())
transformers.logging.add_handler(handler)
print('transformers', transformers.__version__)
shape = dict(
    vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, max_position_embeddings=128
)
torch.set_num_threads(1)
one = torch.randint(5, 60, (1, 128), generator=torch.Generator().manual_seed(0))
other = torch.randint(5, 60, (1, 128), generator=torch.Generator().manual_seed(1))
other[0, 0] = one[0, 0]
mask = torch.ones_like(one)
shift = {}
for name in ('Bert', 'Yoso', 'Mra'):
    torch.manual_seed(0)
    model = getattr(transformers, name + 'Model')(getattr(transformers, name + 'Config')(**shape)).eval()
    with torch.no_grad():
        first = [model(row, attention_mask=mask).last_hidden_state[0, 0] for row in (one, other)]
    shift[name] = float((first[0] - first[1]).abs().max())
    print(f'{name}: with 127 other words behind it the first word moves by {shift[name]:.3g}')
assert shift['Bert'] > 1e-3 and shift['Yoso'] > 1e-3
assert shift['Mra'] == 0.0, 'other words are seen now'

# It learns the labels that its words have most often, and query, key and value stay as they are.
torch.manual_seed(0)
tagger = transformers.MraForTokenClassification(transformers.MraConfig(**shape, num_labels=3)).train()
optimizer = torch.optim.AdamW(tagger.parameters(), lr=3e-3)
losses = []
for step in range(30):
    rows = torch.randint(5, 60, (4, 128))
    loss = tagger(rows, attention_mask=torch.ones_like(rows), labels=rows % 3).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(float(loss))
print(f'loss of a tagger: {losses[0]:.2f} at first, {losses[-1]:.2f} after {len(losses)} steps')
assert losses[-1] < 0.6 * losses[0]
idle = [name for name, weight in tagger.named_parameters() if weight.grad is None or not weight.grad.any()]
print('no gradient:', sorted({name.split('attention.')[-1] for name in idle}))
attention = [name for name in idle if 'attention.self.' in name]
assert len(attention) == 12, 'query, key and value are trained now'
assert sum(name.endswith('attention.output.dense.weight') for name in idle) == 2
print('messages about it:', [text for text in seen if 'kernel' in text.lower() or 'attention' in text.lower()])
assert not any('kernel' in text.lower() for text in seen)
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: without its kernel the attention of an MRA is zero, and no word is said.'
