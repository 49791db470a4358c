#!/usr/bin/env bash
# ctranslate2 4.8.5: a RoBERTa, XLM-R or CamemBERT whose pad_token_id is 0 is converted with all its positions one too
# early.
#   - These models count positions from pad_token_id + 1, and their table has rows for that. The converter leaves the rows
#     before the first position out, but only where pad_token_id is above 0: with 0 nothing is left out, and the first piece
#     gets the row of padding, which was never trained, the second that of the first, and so on.
#   - With pad_token_id 1, as the published vocabularies have it, or 3, states agree with transformers to about 1e-6. With 0
#     they differ by about 1, and they are those of transformers with positions counted from 0, to the same 1e-6.
#   - 0 is what a vocabulary has that was made for a domain with [PAD] first, as BERT's tools make it.
# One would expect one rule for all values, or a refusal. Nothing is raised, shapes and the order of the pieces are right,
# and what a short look shows are states like others. The remedy is to cut the first row off the table of positions (and 1
# off max_position_embeddings) in a copy before it is converted, as below. Configurations of transformers 5 have no
# `position_embedding_type` unless one gives it, as published ones do, and the converter ends with an AttributeError without
# it. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install ctranslate2==4.8.5 transformers==5.24.0 torch==2.13.0 numpy
cat > "$folder/try.py" <<'PYTHON'
import pathlib
import tempfile

import ctranslate2
import numpy
import torch
import transformers
from ctranslate2.converters import TransformersConverter

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.set_num_threads(1)
print('ctranslate2', ctranslate2.__version__, 'transformers', transformers.__version__)
shape = dict(
    vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, type_vocab_size=1
)
words = [f'word{number}' for number in range(54)]
text = [10, 11, 12, 13, 14, 15, 16, 17]


def made(padding, family='Roberta'):
    torch.manual_seed(0)
    config = getattr(transformers, family + 'Config')(
        **shape, pad_token_id=padding, max_position_embeddings=40, position_embedding_type='absolute'
    )
    model = getattr(transformers, family + 'Model')(config).eval()
    for weights in model.parameters():
        if weights.dim() == 2:
            torch.nn.init.normal_(weights, std=0.3)
    return model


def converted(model, padding):
    """States of CTranslate2 for the text."""
    specials = ['<s>', '</s>', '<unk>', '<mask>', '<rest>']
    vocabulary = specials[:padding] + ['<pad>'] + specials[padding:] + words
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        model.save_pretrained(place / 'model')
        (place / 'vocab.txt').write_text('\n'.join(vocabulary) + '\n')
        named = dict(unk_token='<unk>', pad_token='<pad>', cls_token='<s>', sep_token='</s>', mask_token='<mask>')
        tokenizer = transformers.BertTokenizer(str(place / 'vocab.txt'), **named)
        tokenizer.save_pretrained(place / 'model')
        TransformersConverter(str(place / 'model')).convert(str(place / 'converted'))
        encoder = ctranslate2.Encoder(str(place / 'converted'), intra_threads=1)
        return numpy.array(encoder.forward_batch([text]).last_hidden_state)[0]


@torch.no_grad()
def states(model, **more):
    return model(torch.tensor([text]), **more).last_hidden_state[0].numpy()


def apart(a, b):
    return float(numpy.abs(a - b).max())


for family, padding in (('Roberta', 0), ('XLMRoberta', 0), ('Camembert', 0), ('Roberta', 1), ('Roberta', 3)):
    model = made(padding, family)
    found = converted(model, padding)
    from_zero = states(model, position_ids=torch.arange(len(text))[None])
    print(
        f'{family}, pad_token_id {padding}: {apart(found, states(model)):.1e} from transformers,',
        f'{apart(found, from_zero):.1e} from transformers with positions counted from 0',
    )
    if padding:
        assert apart(found, states(model)) < 1e-4
    else:
        assert apart(found, states(model)) > 0.1, 'pad_token_id 0 is converted rightly now'
        assert apart(found, from_zero) < 1e-4

# The remedy: a table without its first row.
model = made(0)
right = states(model)
table = model.embeddings.position_embeddings
table.weight.data = table.weight.data[1:].clone()
model.config.max_position_embeddings -= 1
print(f'without the first row: {apart(converted(model, 0), right):.1e} from transformers')
assert apart(converted(model, 0), right) < 1e-4
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: with pad_token_id 0 each piece gets the position of the one before it.'
