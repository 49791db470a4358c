#!/usr/bin/env bash
# transformers 5.23.0: the tensors of a saved UltraBERT are not called as in its state_dict. save_pretrained reverses the
# renaming by which the first checkpoints are loaded, for all classes but the bare encoder:
#   - state_dict:      model.embed_tokens.weight, head.decoder.weight (the output table)
#   - in the file:     ultrabert.embed_tokens.weight, cls.weight
#   - bare encoder:    embed_tokens.weight
# Both spellings load. What reads safetensors by the names of the class finds neither table nor layers, and `cls.weight`
# looks like a classifier's.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install transformers==5.23.0 torch safetensors
cd "$folder"
cat > try.py <<'PYTHON'
from safetensors import safe_open
from transformers import UltrabertConfig, UltrabertForMaskedLM

shape = dict(vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = UltrabertForMaskedLM(UltrabertConfig(**shape, max_position_embeddings=64))
model.save_pretrained('saved')
with safe_open('saved/model.safetensors', 'np') as file:
    written = set(file.keys())
named = set(model.state_dict())
print('only in the class:', *sorted(named - written)[:2], '... only in the file:', *sorted(written - named)[:2], '...')
assert {'model.embed_tokens.weight', 'head.decoder.weight'} <= named - written
assert {'ultrabert.embed_tokens.weight', 'cls.weight'} <= written - named, 'the names of the class are written now'
PYTHON
env/bin/python try.py
echo 'As stated: an UltraBERT is saved under other names than it has.'
