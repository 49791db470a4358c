#!/usr/bin/env bash
# transformers 5.23.0: an encoder takes a mask of pairs, [rows, 1, places, places], "as it is", which is how documents that
# share a row are kept apart. What it means depends on the attention. Under `sdpa` a mask of True and False hides pairs;
# under `eager` it is added to the scores, so that hidden pairs have 1 less and are seen. And ModernBERT gives one such mask
# to its windowed layers, too, which then see the whole document: it needs a dict with a mask for each kind of layer.
# Nothing is said in either case, and outputs have the right shape.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install transformers==5.23.0 torch==2.13.0 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
import torch
import transformers
from transformers import BertConfig, BertForMaskedLM, ModernBertConfig, ModernBertForMaskedLM

sizes = dict(
    vocab_size=100, hidden_size=32, num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
    initializer_range=0.2, pad_token_id=0,
)
windows = dict(num_hidden_layers=3, local_attention=8, global_attn_every_n_layers=3)
special = dict(bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2)
MODELS = {
    'BERT': (BertForMaskedLM, BertConfig(num_hidden_layers=2, **sizes)),
    'ModernBERT': (ModernBertForMaskedLM, ModernBertConfig(**sizes, **windows, **special)),
}
torch.manual_seed(0)
documents = [torch.randint(5, 100, (length,)) for length in (19, 25)]
positions = torch.cat([torch.arange(len(one)) for one in documents])[None]
number = torch.cat([torch.full((len(one),), at) for at, one in enumerate(documents)])
pairs = (number[:, None] == number)[None, None]
place = torch.arange(len(number))
near = pairs & ((place[:, None] - place).abs() <= 4)
print('transformers', transformers.__version__, '- the largest difference from a document alone:')
found = {}
for name, (make, config) in MODELS.items():
    for attention in ('sdpa', 'eager'):
        config._attn_implementation = attention
        torch.manual_seed(1)
        model = make(config).eval()

        def added(mask):
            return torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)

        masks = {
            'true and false': pairs,
            'added': added(pairs),
            'a dict, added': {'full_attention': added(pairs), 'sliding_attention': added(near)},
        }
        with torch.no_grad():
            alone = torch.cat([model(input_ids=one[None]).logits[0] for one in documents])
            for form, mask in masks.items():
                if name == 'BERT' and isinstance(mask, dict):
                    continue
                given = dict(input_ids=torch.cat(documents)[None], position_ids=positions, attention_mask=mask)
                found[name, attention, form] = float((model(**given).logits[0] - alone).abs().max())
                print(f'{name:10} {attention:5} {form:14} {found[name, attention, form]:.1e}')
apart = {key for key, difference in found.items() if difference < 1e-4}
assert apart == {
    ('BERT', 'sdpa', 'true and false'),
    *(('BERT', attention, 'added') for attention in ('sdpa', 'eager')),
    *(('ModernBERT', attention, 'a dict, added') for attention in ('sdpa', 'eager')),
}, 'it has changed'
assert min(difference for key, difference in found.items() if key not in apart) > 0.01
PYTHON
echo 'As stated: BERT adds True and False under eager, and ModernBERT forgets its windows under one mask.'
