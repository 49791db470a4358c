#!/usr/bin/env bash
# nbib 0.3.2 (reads the .nbib files that PubMed exports): of several trial registrations of an article only the last one
# is kept, and the last record of a text is lost if the text does not end with a line break.
#   - An article with three lines `SI`, which name two registrations at ClinicalTrials.gov and one at ISRCTN, has one
#     `secondary_source`: the third. Of two study groups (`CN`) and two languages (`LA`) the second is kept as well.
#   - `nbib.read(text)` gives two records for a text of two. `nbib.read(text.rstrip())` gives one, and for a text of one
#     record it gives an empty list. `read_file` does the same.
# One would expect a list where a field may come several times, as there is one for authors, grants, keywords and MeSH
# terms: the README says that lists are created where appropriate, that unexpected input raises, and that the order of
# records and of lists is kept. It names no field of which all but one are dropped.
# Nothing is raised. PubMed repeats these fields (`SI` for each registration or data set). Who links articles to
# registered trials by them, for a systematic review, misses trials, and a count of reports per trial is too low. Who
# splits or trims an export loses an article. Remedy: read lines that begin with `SI  - ` from the text as well, and
# append a line break before reading.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install nbib==0.3.2
"$folder/env/bin/python" - "$folder" <<'PYTHON'
import sys
from importlib.metadata import version
from pathlib import Path

import nbib

print('nbib', version('nbib'))
article = '''PMID- {number}
OWN - NLM
STAT- MEDLINE
TI  - Long-term results of two trials of one drug.
LA  - eng
LA  - fre
FAU - Doe, Jane
AU  - Doe J
FAU - Roe, Richard
AU  - Roe R
CN  - First Trial Group
CN  - Second Trial Group
PT  - Clinical Trial
PT  - Journal Article
SI  - ClinicalTrials.gov/NCT00000001
SI  - ISRCTN/ISRCTN00000002
SI  - ClinicalTrials.gov/NCT00000003
OT  - drug
OT  - trial
'''
text = article.format(number=11) + '\n' + article.format(number=12)
record = nbib.read(text)[0]
for field, tag in {'secondary_source': 'SI', 'corporate_author': 'CN', 'language': 'LA'}.items():
    lines = [line[6:] for line in article.splitlines() if line.startswith(tag)]
    print(f'{tag}: in the file {lines}, in the record {record[field]!r}')
    assert record[field] == lines[-1] and len(lines) > 1, 'more than the last one is kept'
assert not any('NCT00000001' in str(value) for value in record.values())
assert len(record['authors']) == len(record['keywords']) == len(record['publication_types']) == 2

counts = [len(nbib.read(part)) for part in (text, text.rstrip(), article.format(number=11).rstrip())]
path = Path(sys.argv[1], 'export.nbib')
path.write_text(text.rstrip())
counts.append(len(nbib.read_file(str(path))))
print('records of two, of two without the last line break, of one without, of the file without:', *counts)
assert counts == [2, 1, 0, 1], 'the last record is there'
PYTHON
echo 'As stated: only the last registration is kept, and the last record is lost without a line break at the end.'
