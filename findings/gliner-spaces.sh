#!/usr/bin/env bash
# gliner 0.2.29 with an encoder whose vocabulary is byte-level (RoBERTa, ModernBERT): a piece that begins a word holds the
# space before it, and GLiNER gives the tokenizer words without. So no word is read as it was in pre-training: a word that
# is one piece of the vocabulary becomes several that stand within words elsewhere. Nothing is said of it, in training
# or afterwards. The remedy is a setting of the tokenizer after GLiNER has made it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install gliner==0.2.29 transformers==5.16.1 torch==2.13.0
cd "$folder"
cat > try.py <<'PYTHON'
from gliner import GLiNER, GLiNERConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

# A vocabulary in which "Ġdrug" is one piece, as it comes in running text, and "drug" is none.
special = ['<s>', '<pad>', '</s>', '<unk>', '<mask>']
merges = [('Ġ', 'd'), ('Ġd', 'r'), ('Ġdr', 'u'), ('Ġdru', 'g')]
names = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), *map(''.join, merges)]
tokenizer = Tokenizer(models.BPE({name: at for at, name in enumerate(names)}, merges, unk_token='<unk>'))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
named = dict(bos_token='<s>', eos_token='</s>', pad_token='<pad>', unk_token='<unk>', mask_token='<mask>')
PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **named).save_pretrained('encoder')
shape = dict(vocab_size=len(names), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48)
AutoModel.from_config(AutoConfig.for_model('roberta', **shape)).save_pretrained('encoder')

reader = GLiNER.from_config(GLiNERConfig(model_name='encoder', hidden_size=32)).data_processor.transformer_tokenizer


def pieces(words):
    given = reader(words, is_split_into_words=True, add_special_tokens=False)
    return reader.convert_ids_to_tokens(given['input_ids'])


in_text = reader.tokenize('a drug drug')[1:]
as_it_is = pieces(['drug', 'drug'])
print('in running text:', in_text, '; word by word, as GLiNER reads it:', as_it_is)
assert in_text == ['Ġdrug', 'Ġdrug']
assert as_it_is == [*'drug', *'drug'], 'words have their spaces now'
reader.backend_tokenizer.pre_tokenizer.add_prefix_space = True
assert pieces(['drug', 'drug']) == in_text
print('with add_prefix_space set on what GLiNER has made:', pieces(['drug', 'drug']))
PYTHON
env/bin/python try.py 2> said || { cat said; exit 1; }
echo 'As stated: words lose the space that their first piece holds, until the tokenizer is told to put it there.'
