#!/usr/bin/env bash
# conllu 6.0.0: a value of the MISC column (and of FEATS) ends at its second equals sign, and is written back without the rest.
#   - CoNLL-U leaves MISC to the annotators, and the identifier of a mention may be a link there:
#     `Ref=https://host.example/term?id=C001` is read as https://host.example/term?id, for every mention the same. A value such as
#     `Dose=p=0.05` is `p`.
#   - Metadata lines of the same file (`# source = https://host.example/?pmid=1`) keep all of it: only tokens lose theirs.
#   - Of two values with one name the last one stays.
# One would expect the first equals sign to divide name and value, as in metadata. Nothing is raised, columns and counts are
# right, and parse(...)[0].serialize() is a valid file without the identifiers. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install conllu==6.0.0
cd "$folder"
cat > try.py <<'PYTHON'
import conllu

lines = [
    '# source = https://host.example/?pmid=1&part=2',
    '1\tAspirin\taspirin\tNOUN\t_\tNumber=Sing\t2\tnsubj\t_\tRef=https://host.example/term?id=C001',
    '2\thelps\thelp\tVERB\t_\t_\t0\troot\t_\t_',
    '3\tulcers\tulcer\tNOUN\t_\tNumber=Plur\t2\tobj\t_\tRef=https://host.example/term?id=C002|SpaceAfter=No',
]
text = '\n'.join(lines) + '\n\n'
[sentence] = conllu.parse(text)
print('metadata:', sentence.metadata)
assert sentence.metadata == {'source': 'https://host.example/?pmid=1&part=2'}
links = [token['misc']['Ref'] for token in sentence if token['misc']]
print('links:', links)
assert links == ['https://host.example/term?id'] * 2, 'links are whole now'
written = sentence.serialize()
print(written.strip())
assert 'C001' in text and 'C001' not in written and 'C002' not in written
assert written == text.replace('=C001', '').replace('=C002', '')

[twice] = conllu.parse('1\tIL-2\t_\tNOUN\t_\t_\t0\troot\t_\tDose=p=0.05|Ref=C001|Ref=C002\n\n')
print('a value with a sign in it, and two values of one name:', twice[0]['misc'])
assert twice[0]['misc'] == {'Dose': 'p', 'Ref': 'C002'}
PYTHON
env/bin/python try.py
echo 'As stated: values end at their second equals sign, and are written so.'
