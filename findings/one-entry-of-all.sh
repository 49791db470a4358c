#!/usr/bin/env bash
# pybtexnbib 0.2.0 (pybtex's plugin for .nbib, the files that PubMed gives to citation managers): a file of several records
# becomes one entry, and abstracts lose their text from a line on that begins with the name of a gene.
#   - PubMed ends a record with an empty line. The plugin waits for a line `ER  -`, which RIS has and .nbib has not. So all
#     records of a file are one entry: titles, dates and abstracts are joined by semicolons, the authors of all papers are
#     the authors of one, and the year is that of the first. Of two records one entry comes out.
#   - PubMed breaks long lines. The plugin puts the parts together without a space: `with long` and `lasting headache` are
#     `with longlasting headache`, and so it goes for every line of an abstract.
#   - A continued line that begins with two to four capitals and a hyphen is taken for the next field: in an abstract,
#     `IL-2 treated patients ...` and all that follows goes to a field called IL, and the abstract ends before it. `PD-1`,
#     `TNF-alpha` and `COX-2` do the same, and which word comes first in a line is chance. In the file the two cannot be
#     mistaken for each other: a field's hyphen is in column five, and a continued line begins with six spaces.
#   - The letters ER, a space and a hyphen end a record wherever they are: of `CANCER - A REVIEW` the title is `CANC`.
# One would expect an entry for each PMID with its text, since the README names the page that describes this format. The
# file is read without an error, and the first three cases come without a warning. A single record with a short title and
# abstract is right, and that is what one tries first. Remedy: cut the file at its empty lines, and join a continued line to
# the line before it by a space. Seen on 2026-11-29, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install pybtexnbib==0.2.0 'setuptools<80'
"$folder/env/bin/python" - <<'PYTHON'
import re
import warnings

from pybtexnbib import NBIBParser

FIRST = '''PMID- 1
OWN - NLM
DP  - 2020 Jan
TI  - Aspirin and its use in the treatment of patients with long
      lasting headache.
AB  - Antibodies against the receptor were compared with chemotherapy alone. In
      IL-2 treated patients the response was better than in all others.
FAU - Smith, Anna
PT  - Journal Article
JT  - One journal
'''
SECOND = '''PMID- 2
OWN - NLM
DP  - 2021 Feb
TI  - Fever in children.
AB  - Cough was rare.
FAU - Jones, Bert
PT  - Journal Article
JT  - Another journal
'''


def read(text):
    """The entries of a text in PubMed's format."""
    return NBIBParser().parse_string(text).entries


with warnings.catch_warnings():
    warnings.simplefilter('error', UserWarning)
    entries = read(FIRST + '\n' + SECOND)
    print(f'two records: {len(entries)} entry')
    (entry,) = entries.values()
    for name in ('PMID', 'title', 'year', 'date', 'journal', 'abstract', 'IL'):
        print(f'  {name}: {entry.fields[name]}')
    print(f'  authors: {[str(person) for person in entry.persons["author"]]}')
    assert entry.fields['PMID'] == '1; 2' and entry.fields['year'] == '2020'
    assert 'longlasting' in entry.fields['title'] and 'Fever' in entry.fields['title'], 'records or lines are kept apart now'

    for line in ('IL-2', 'PD-1', 'TNF-alpha', 'COX-2', 'HER-2', 'CTLA-4'):
        record = FIRST.replace('      IL-2', f'      {line}')
        (entry,) = read(record).values()
        assert entry.fields['abstract'].endswith('chemotherapy alone. In'), 'the abstract is whole now'
        left = entry.fields[line.split('-')[0]]
        print(f'a line that begins with {line}: the field {line.split("-")[0]} is "{left[:34]}..."')
    (entry,) = read(FIRST.replace('      IL-2', '      Interleukin')).values()
    assert entry.fields['abstract'].endswith('than in all others.'), 'the control is read otherwise now'

    (entry,) = read(SECOND).values()
    assert entry.fields['title'] == 'Fever in children.' and 'IL' not in entry.fields
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    entries = read(SECOND.replace('Fever in children.', 'BREAST CANCER - A REVIEW.'))
    titles = [entry.fields.get('title') for entry in entries.values()]
    print(f'one record with the title BREAST CANCER - A REVIEW: {len(entries)} entries, with the titles {titles}')
    assert titles == ['BREAST CANC', None], 'the title is whole now'

# The remedy.
whole = [read(re.sub(r'\n {6}', ' ', record)) for record in re.split(r'\n\s*\n', FIRST + '\n' + SECOND)]
fields = [entry.fields for entries in whole for entry in entries.values()]
assert [f['PMID'] for f in fields] == ['1', '2'] and fields[0]['title'].endswith('with long lasting headache.')
assert fields[0]['abstract'].endswith('In IL-2 treated patients the response was better than in all others.')
PYTHON
echo 'As stated: all records of a file are one entry, and lines that begin with IL-2 leave the abstract.'
