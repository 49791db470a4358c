#!/usr/bin/env bash
# bioc 2.1: brat annotations turned into BioC by `bioc.tools.brat2bioc` lose their negation, their identifiers, and in part
# their types.
#   - An annotator's comment on a mention takes the place of its type: a Gene that someone wrote a note on is an
#     "AnnotatorNotes", which is then one more class in the counts, and one gene less.
#   - The name of an attribute is not written, only its values. Negation and speculation have none, so `A1 Negation E1` becomes
#     an empty string: the event stands there as a fact. A second attribute of the same event writes over the first.
#   - Normalisations (`N1 Reference T2 HGNC:1100`) are left out already by the reader, `bioc.brat.loads`.
#   - The parts of a discontinuous mention come in any order, though the text beside them has them in the right one.
# One would expect all of them as infons, which BioC is made for. Nothing is raised, the BioC is valid, and plain mentions and
# relations are right, so a look at the first documents does not show it. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install bioc==2.1
cd "$folder"
cat > try.py <<'PYTHON'
from bioc import brat
from bioc.tools.brat2bioc import brat2bioc_doc

text = 'Aspirin did not raise BRCA1 levels and ulcer and liver pain may follow.\n'
lines = [
    'T1\tDrug 0 7\tAspirin',
    'T2\tGene 22 27\tBRCA1',
    'T3\tRise 16 21\traise',
    'T4\tSymptom 39 44;55 59\tulcer pain',
    'T5\tCause 64 70\tfollow',
    'E1\tRise:T3 Theme:T2 Agent:T1',
    'E2\tCause:T5 Theme:T4 Agent:T1',
    'A1\tNegation E1',
    'A2\tSpeculation E2',
    'A3\tLevel E2 L2',
    'N1\tReference T2 HGNC:1100\tBRCA1',
    '#1\tAnnotatorNotes T2\tchecked twice',
]
for line in lines:
    if line.startswith('T'):
        _, place, mention = line.split('\t')
        parts = [part.split() for part in place.split(' ', 1)[1].split(';')]
        assert ' '.join(text[int(begin) : int(end)] for begin, end in parts) == mention
given = brat.loads(text, '\n'.join(lines) + '\n', docid='1')
read = [item.id for item in given.annotations]
print('read:', *read)
assert 'N1' not in read and {'A1', 'A2', 'A3', '#1'} <= set(read)

document = brat2bioc_doc(given)
mentions = {item.id: item for item in document.annotations}
events = {item.id: item for item in document.relations}
print('T1:', mentions['T1'].infons)
print('T2:', mentions['T2'].infons)
print('E1:', events['E1'].infons)
print('E2:', events['E2'].infons)
assert mentions['T1'].infons == {'type': 'Drug'}
assert mentions['T2'].infons['type'] == 'AnnotatorNotes', 'the type is kept now'
assert not any('Gene' in str(value) for value in mentions['T2'].infons.values())
assert events['E1'].infons == {'type': 'Rise', 'trigger_id': 'T3', 'note_id': 'A1', 'attributes': ''}
assert events['E2'].infons == {'type': 'Cause', 'trigger_id': 'T5', 'note_id': 'A3', 'attributes': 'L2'}
everything = str(document)
for name in ('Negation', 'Speculation', 'Level', 'HGNC:1100'):
    assert name in '\n'.join(lines)
    assert name not in everything + ''.join(str(item.infons) for item in [*mentions.values(), *events.values()])
parts = [text[part.offset : part.end] for part in mentions['T4'].locations]
print('T4:', mentions['T4'].text, 'has the parts', parts)
assert parts == ['pain', 'ulcer'], 'parts are in order now'

# Without the comment the type is there.
again = brat2bioc_doc(brat.loads(text, '\n'.join(lines[:-1]) + '\n'))
assert {item.id: item for item in again.annotations}['T2'].infons == {'type': 'Gene'}
PYTHON
env/bin/python try.py
echo 'As stated: a comment replaces the type, and negation, speculation and identifiers are gone.'
