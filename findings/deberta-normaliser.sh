#!/usr/bin/env bash
# transformers 5.23.0: a DeBERTa-v3 folder that has SentencePiece's file alone, as the published ones, is read without the
# normaliser that is in the file. The model was trained with it, so other pieces come out, without a word:
#   - SentencePiece itself makes `μg m2` of `µg m²` (U+00B5, U+00B2), and all its characters are known
#   - AutoTokenizer (DebertaV2Tokenizer) looks up µ and ², which no vocabulary trained on normalised text has: [UNK]
# XLM-R's file is read with its normaliser (Precompiled), by the same version. Biomedical text is full of such characters.
# A tokenizer.json with the normaliser, under "tokenizer_class": "PreTrainedTokenizerFast", is read as it stands.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install transformers==5.23.0 sentencepiece==0.2.3 protobuf==7.36.2
cd "$folder"
cat > try.py <<'PYTHON'
import json
import pathlib

import sentencepiece
from transformers import AutoTokenizer

text = 'A dose of 5 μg per m2 was given to the patients, and 7 μg to the others.'
for name, file, model_type, pieces in (
    ('deberta', 'spm.model', 'deberta-v2', ['[PAD]', '[CLS]', '[SEP]', '[UNK]']),
    ('xlmr', 'sentencepiece.bpe.model', 'xlm-roberta', ['<pad>', '<s>', '</s>', '<unk>']),
):
    pathlib.Path(name).mkdir()
    pathlib.Path('texts.txt').write_text('\n'.join([text] * 20), 'utf-8')
    pad, cls, sep, unknown = pieces
    sentencepiece.SentencePieceTrainer.train(
        input='texts.txt', model_prefix=f'{name}/m', vocab_size=50, hard_vocab_limit=False, minloglevel=2,
        pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece=pad, bos_piece=cls, eos_piece=sep, unk_piece=unknown,
    )
    pathlib.Path(name, 'm.model').rename(f'{name}/{file}')
    pathlib.Path(name, 'config.json').write_text(json.dumps({'model_type': model_type}))
    pathlib.Path(name, 'tokenizer_config.json').write_text('{}')
    own = sentencepiece.SentencePieceProcessor(model_file=f'{name}/{file}').encode('5 µg m²', out_type=str)
    tokenizer = AutoTokenizer.from_pretrained(name)
    read = tokenizer.convert_ids_to_tokens(tokenizer('5 µg m²', add_special_tokens=False)['input_ids'])
    print(f'{name}: SentencePiece {own}, transformers {read}')
    assert unknown not in own
    assert (unknown in read) is (name == 'deberta'), 'the normaliser is read otherwise now'
PYTHON
env/bin/python try.py
echo 'As stated: the normaliser of a DeBERTa-v3 folder is left out.'
