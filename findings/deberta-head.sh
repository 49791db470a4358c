#!/usr/bin/env bash
# transformers 5.23.0: the masked-LM head of a published DeBERTa-v3 is either left out or cannot be resized.
#   - The published files name it lm_predictions.*, and their config.json says nothing of `legacy`. Its default is True:
#     AutoModelForMaskedLM then draws another head, cls.predictions.*, at random, and goes on with a table of warnings.
#   - With legacy=False the head is read. But get_output_embeddings is then the head's dense layer, and so
#     resize_token_embeddings makes that as wide as the vocabulary: the next forward pass ends with an error.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install transformers==5.23.0 torch
cd "$folder"
cat > try.py <<'PYTHON'
import json
from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM, DebertaV2Config, DebertaV2ForMaskedLM

shape = dict(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48)
like_v3 = dict(relative_attention=True, position_buckets=8, share_att_key=True, pos_att_type='p2c|c2p')
like_v3 |= dict(norm_rel_ebd='layer_norm', position_biased_input=False, max_position_embeddings=40)
model = DebertaV2ForMaskedLM(DebertaV2Config(**shape, **like_v3, legacy=False)).eval()
model.save_pretrained('saved')
said = json.loads(Path('saved/config.json').read_text())
assert said.pop('legacy') is False
Path('saved/config.json').write_text(json.dumps(said))  # as the published one

tokens = torch.tensor([[1, 2, 3, 4]])
expected = model(tokens).logits
for options, same in (({}, False), ({'legacy': False}, True)):
    read = AutoModelForMaskedLM.from_pretrained('saved', **options).eval()
    off = (read(tokens).logits - expected).abs().max().item()
    print(f'{options or "by default"}: logits differ by {off:.3f}')
    assert (off == 0) is same, 'another head is read now'
read.resize_token_embeddings(60)
dense = tuple(read.lm_predictions.lm_head.dense.weight.shape)
print('dense layer of the head after resizing:', dense)
assert dense == (60, 32), 'the head keeps its width now'
try:
    read(tokens)
except RuntimeError as error:
    print('RuntimeError:', error)
else:
    raise AssertionError('a resized model computes now')
PYTHON
env/bin/python try.py
echo 'As stated: the published head is drawn anew, or breaks when the vocabulary is resized.'
