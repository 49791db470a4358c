#!/usr/bin/env bash
# transformers 5.23.0: `truncate` of YaRN is read in one place only. Where rope_parameters has an object for each type of
# layers, every other setting is taken from that object, but `truncate` is looked for beside the objects
# (`config.rope_parameters.get("truncate", True)`), so `truncate: false` of a type of layers has no effect, without a word.
#   - EuroBERT, one object for all layers: the angles differ by .02 between true and false
#   - UltraBERT, an object for each type: they are the same to the last bit
# ModernBERT and Gemma 3 write such objects too. A model that was trained elsewhere without the rounding is computed with
# other angles. Whoever reads such a file otherwise than transformers does must refuse it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install transformers==5.23.0 torch
cd "$folder"
cat > try.py <<'PYTHON'
from transformers import EuroBertConfig, EuroBertModel, UltrabertConfig, UltrabertModel

shape = dict(vocab_size=50, hidden_size=64, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32)
shape |= dict(max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2)


def yarn(truncate):
    extent = {'factor': 4.0, 'original_max_position_embeddings': 64, 'truncate': truncate}
    return {'rope_type': 'yarn', 'rope_theta': 10000.0, **extent}


def of_all(truncate):
    return EuroBertModel(EuroBertConfig(**shape, mask_token_id=3, rope_parameters=yarn(truncate))).rotary_emb.inv_freq


def of_types(truncate):
    plain = {'rope_type': 'default', 'rope_theta': 10000.0}
    ropes = {'full_attention': yarn(truncate), 'sliding_attention': plain}
    return UltrabertModel(UltrabertConfig(**shape, rope_parameters=ropes)).rotary_emb.full_attention_inv_freq


one, other = ((make(True) - make(False)).abs().max().item() for make in (of_all, of_types))
print(f'angles differ by {one:.4f} with one object, by {other:.4f} with one for each type')
assert one > 0.01
assert other == 0, 'truncate of a type of layers is read now'
PYTHON
env/bin/python try.py
echo 'As stated: truncate of a type of layers has no effect.'
