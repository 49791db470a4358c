#!/usr/bin/env bash
# onnxruntime-extensions 0.15.2: `gen_processing_models(tokenizer, pre_kwargs={})`, which turns a BertTokenizer of transformers 5.23.0
# into a graph that can go before an exported encoder, gives other ids than the tokenizer does.
#   - With do_lower_case it makes small letters of ASCII and Latin-1 only. Greek capitals stay as they are, and an uncased
#     vocabulary has none: `ΔF508`, `Δ9-THC` and `Ω-3` become or begin with [UNK], where the tokenizer finds `δ` and `ω`.
#   - Accents stay, too: `strip_accents` that is not given means "as do_lower_case" to the tokenizer, and "no" to the graph, so
#     that `Sjögren` has an unknown letter. strip_accents=True takes them from Latin-1 alone (`Šidák` keeps its first).
#     Of the letters, digits and signs below U+3000 nearly 1,500 of 10,000 are read otherwise without it, and 1,400 with it.
#   - Cased or not, a word of which one character is not in the vocabulary is [UNK] as a whole for the tokenizer. The graph
#     keeps the pieces before that character and puts [UNK] behind them: more ids, and all later ones have other positions.
#   - `[MASK]` in a text becomes a bracket, `mask` and a bracket, so a masked LM behind it has nothing to fill in.
# Nothing is raised, and plain English is the same to the last id, so a check on ordinary sentences passes. The biomedical
# encoders that are read most are uncased, and their text is full of Greek. Whoever ships one file compares on such words first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install \
  onnxruntime-extensions==0.15.2 onnxruntime==1.32.0 onnx==1.23.2 transformers==5.23.0 tokenizers==0.23.3 numpy==2.4.6
cd "$folder"
cat > try.py <<'PYTHON'
import os
import unicodedata

import numpy
import onnxruntime
from onnxruntime_extensions import gen_processing_models, get_library_path
from transformers import BertTokenizerFast

SPECIAL = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']


def both(folder, vocabulary, **settings):
    """The pieces of a text, by the tokenizer and by the graph that is made of it."""
    os.makedirs(folder)
    with open(f'{folder}/vocab.txt', 'w', encoding='utf-8') as file:
        file.write(''.join(f'{piece}\n' for piece in vocabulary))
    tokenizer = BertTokenizerFast.from_pretrained(folder, **settings)
    graph, _ = gen_processing_models(tokenizer, pre_kwargs={})
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options)
    names = [output.name for output in session.get_outputs()]
    ids = names.index('input_ids')

    def pieces(text):
        found = session.run(None, {session.get_inputs()[0].name: numpy.array([text], dtype=object)})[ids]
        given = tokenizer(text)['input_ids']
        assert tokenizer.convert_tokens_to_ids(vocabulary) == list(range(len(vocabulary)))
        return tokenizer.convert_ids_to_tokens(given)[1:-1], [vocabulary[at] for at in numpy.ravel(found)][1:-1]

    return pieces


def compared(pieces, text, tokenizer_says, graph_says):
    by_tokenizer, by_graph = pieces(text)
    print(f'{text!r}: tokenizer {by_tokenizer}, graph {by_graph}')
    assert by_tokenizer == tokenizer_says
    assert by_graph == graph_says, 'the graph reads it otherwise now'


letters = 'abcdefghijklmnopqrstuvwxyz0123456789αβγδωκµ°'
signs = list('-–+±.,()[]/%')
small = [*SPECIAL, *letters, *(f'##{letter}' for letter in letters), *signs, 'mask', 'interleukin', 'mutation']
uncased = both('uncased', small, do_lower_case=True)
for text in ('Interleukin-2 mutation (5 µg, ± 3 °c)', 'TNF-α and IL-1β'):
    by_tokenizer, by_graph = uncased(text)
    assert by_tokenizer == by_graph, text
compared(uncased, 'ΔF508', ['δ', '##f', '##5', '##0', '##8'], ['[UNK]'])
compared(uncased, 'Δ9-thc', ['δ', '##9', '-', 't', '##h', '##c'], ['[UNK]', '-', 't', '##h', '##c'])
compared(uncased, 'Ω-3', ['ω', '-', '3'], ['[UNK]', '-', '3'])
compared(uncased, 'Sjögren', ['s', '##j', '##o', '##g', '##r', '##e', '##n'], ['s', '##j', '[UNK]'])
compared(uncased, 'Šidák', ['s', '##i', '##d', '##a', '##k'], ['[UNK]'])
compared(uncased, '[MASK]', ['[MASK]'], ['[', 'mask', ']'])

cased = both('cased', [*small, 'I', 'B'], do_lower_case=False)
compared(cased, 'abΔc 5', ['[UNK]', '5'], ['a', '##b', '[UNK]', '5'])
compared(cased, 'IκB mutation', ['[UNK]', 'mutation'], ['I', '##κ', '[UNK]', 'mutation'])

single = [chr(number) for number in range(0x21, 0x3000) if unicodedata.category(chr(number))[0] in 'LSPN']
each = both('each', [*SPECIAL, *single], do_lower_case=True)
differing = [character for character in single if len({*map(tuple, each(character))}) == 2]
greek = [character for character in differing if 'GREEK CAPITAL LETTER' in unicodedata.name(character, '')]
print(f'{len(differing)} of {len(single)} single characters are read otherwise, {len(greek)} Greek capitals among them')
assert {*'ΔΩΑΒΓΣΦ'} <= {*greek}
assert 1300 < len(differing) < 1600, 'other characters are read as they are now'
assert all(ord(character) > 0x7F for character in differing)

stripped = both('stripped', small, do_lower_case=True, strip_accents=True)
compared(stripped, 'Sjögren', ['s', '##j', '##o', '##g', '##r', '##e', '##n'], ['s', '##j', '##o', '##g', '##r', '##e', '##n'])
compared(stripped, 'Šidák', ['s', '##i', '##d', '##a', '##k'], ['[UNK]'])
compared(stripped, 'ΔF508', ['δ', '##f', '##5', '##0', '##8'], ['[UNK]'])
PYTHON
env/bin/python try.py 2> said || { cat said; exit 1; }
echo 'As stated: Greek capitals and accents stay, pieces before an unknown character stay, and a mask is none.'
