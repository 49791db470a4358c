#!/usr/bin/env bash
# transformers 5.23.0: an MPNet takes id 1 for padding, whatever pad_token_id says. Positions are counted over the pieces
# whose id is not 1, and those with id 1 get the position of padding. With a vocabulary that pads with another id
# (BERT's: 0 is [PAD] and 1 is [UNK]) every text with an unknown word is numbered wrongly, without a message.
# relative_attention_num_buckets is not read by the computation either: it uses 32, so that larger tables are read in
# part, and smaller ones end with an IndexError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install transformers==5.23.0 torch
cd "$folder"
cat > try.py <<'PYTHON'
import torch
from transformers import MPNetConfig, MPNetModel

torch.manual_seed(0)
shape = dict(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48)
model = MPNetModel(MPNetConfig(**shape, max_position_embeddings=40, pad_token_id=0)).eval()
tokens = torch.tensor([[2, 1, 7, 8, 3]])  # 1 is a word here
found = {
    name: model(tokens, position_ids=torch.tensor([places])).last_hidden_state
    for name, places in (('counted from 1', [1, 2, 3, 4, 5]), ('counted from 2 without id 1', [2, 1, 3, 4, 5]))
}
by_default = model(tokens).last_hidden_state
for name, states in found.items():
    print(f'{name}: states differ by {(states - by_default).abs().max().item():.3f}')
assert not torch.equal(found['counted from 1'], by_default), 'pad_token_id is read now'
assert torch.equal(found['counted from 2 without id 1'], by_default)

few = MPNetModel(MPNetConfig(**shape, max_position_embeddings=40, relative_attention_num_buckets=8)).eval()
try:
    few(tokens)
except IndexError as error:
    print('8 buckets: IndexError:', error)
else:
    raise AssertionError('relative_attention_num_buckets is read now')
PYTHON
env/bin/python try.py
echo 'As stated: positions are counted by id 1 and distances by 32 buckets, whatever config.json says.'
