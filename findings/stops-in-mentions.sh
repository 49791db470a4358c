#!/usr/bin/env bash
# label-studio-sdk 2.1.2: in the CoNLL file that its converter writes, a mention at the end of a sentence has the full stop
# as its last letter, for every sentence of a document but the last.
#   - "Patients had fever. Cough was rare. Aspirin helped." with `fever` marked becomes the word `fever.` with the tag
#     B-Disease. The last full stop of the text is a word of its own, and so are commas, colons and brackets.
#   - A document is one sentence in the file, whatever its length: no empty line stands between its sentences. The tokenizer
#     is NLTK's for one sentence, which takes a full stop off at the end of the text alone, and documents are what Label
#     Studio shows to annotators.
#   - The last sentence is always right, so an example of one sentence is too.
#   - A mention within a word is widened to all of it, `CD4` of `CD4+` and `IL-2` of `IL-2-deficient`. Of two in one word
#     (`TMPRSS2-ERG`) the second is left out, and so is one that lies in another.
#   - Importing the converter changes NLTK's TreebankWordTokenizer for the whole program: `mg/kg` is one word before, three
#     after.
# One would expect the words of a mention to be what was marked, as in the JSON of the same project, where all is right.
# Nothing is raised. A tagger that is trained on it learns `fever.`, and one that marks `fever` is counted as wrong; scores
# of taggers that were trained on the same file do not show it. Remedy: export JSON and cut words by the places of the
# mentions.
# Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install label-studio-sdk==2.1.2
cd "$folder"
cat > try.py <<'PYTHON'
import json
from importlib.metadata import version
from pathlib import Path

from nltk.tokenize.treebank import TreebankWordTokenizer

print('label-studio-sdk', version('label-studio-sdk'), 'nltk', version('nltk'))
before = TreebankWordTokenizer().tokenize('Give 5 mg/kg daily')
from label_studio_sdk.converter import Converter  # noqa: E402

after = TreebankWordTokenizer().tokenize('Give 5 mg/kg daily')
print("NLTK's tokenizer before and after the import:", before, after)
assert before == ['Give', '5', 'mg/kg', 'daily'] and after == ['Give', '5', 'mg', '/', 'kg', 'daily']

CONFIG = """<View><Labels name="label" toName="text"><Label value="Disease"/><Label value="Drug"/>
<Label value="Protein"/></Labels><Text name="text" value="$text"/></View>"""


def written(text, *mentions):
    """Words with their tags, and the number of sentences, in the CoNLL file of a document with these mentions."""
    marks = [
        {
            'id': str(number),
            'from_name': 'label',
            'to_name': 'text',
            'type': 'labels',
            'value': {'start': text.index(words), 'end': text.index(words) + len(words), 'text': words, 'labels': [label]},
        }
        for number, (words, label) in enumerate(mentions)
    ]
    task = {'id': 1, 'data': {'text': text}, 'annotations': [{'id': 1, 'completed_by': 1, 'result': marks}]}
    Path('project.json').write_text(json.dumps([task]))
    Converter(config=CONFIG, project_dir='.').convert('project.json', 'out', 'CONLL2003', is_dir=False)
    blocks = Path('out/result.conll').read_text().strip().split('\n', 1)[1].strip().split('\n\n')
    rows = [line.split(' ') for block in blocks for line in block.splitlines()]
    tagged = [(row[0], row[-1]) for row in rows]
    print(repr(text), '\n   ', len(blocks), 'sentence(s):', ' '.join(f'{word}/{tag}' for word, tag in tagged))
    return tagged, len(blocks)


tagged, sentences = written(
    'Patients had fever. Cough, if any, was a sign of heart failure. Most took aspirin.',
    ('fever', 'Disease'),
    ('Cough', 'Disease'),
    ('heart failure', 'Disease'),
    ('aspirin', 'Drug'),
)
marked = [word for word, tag in tagged if tag != 'O']
assert marked == ['fever.', 'Cough', 'heart', 'failure.', 'aspirin'], 'full stops are words of their own now'
assert tagged[-1] == ('.', 'O') and sentences == 1

tagged, _ = written('Patients had fever.', ('fever', 'Disease'))
assert tagged[-2:] == [('fever', 'B-Disease'), ('.', 'O')]

tagged, _ = written('In IL-2-deficient CD4+ cells', ('IL-2', 'Protein'), ('CD4', 'Protein'))
assert [word for word, tag in tagged if tag != 'O'] == ['IL-2-deficient', 'CD4+']

tagged, _ = written('a TMPRSS2-ERG fusion, ETV1 too', ('TMPRSS2', 'Protein'), ('ERG', 'Protein'), ('ETV1', 'Protein'))
assert [word for word, tag in tagged if tag != 'O'] == ['TMPRSS2-ERG', 'ETV1']

tagged, _ = written('acute heart failure now', ('heart failure', 'Disease'), ('failure', 'Disease'))
assert [tag for _, tag in tagged] == ['O', 'B-Disease', 'I-Disease', 'O']
PYTHON
env/bin/python try.py
echo 'As stated: only the last full stop of a document is kept out of its mentions.'
