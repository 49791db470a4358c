#!/usr/bin/env bash
# rispy 0.10.0 (reads RIS, the files of citation managers): the second and later lines of a tag that is to be ignored go
# to the tag before it. Whoever ignores abstracts finds most of them in titles, journals or among the authors.
#   - With `ignore=['AB']`, a title that stands before an abstract of two lines becomes "Aspirin in stroke The trial was
#     stopped early." So does the journal, or the year, if that is what stands before it.
#   - After a list, such as authors or keywords, each further line is one more author.
#   - An abstract of one line is ignored, as it should be. Without `ignore` all is right, and an unknown tag that is left
#     out by `skip_unknown_tags=True` takes its lines with it.
# The reason: the parser goes on to the next line without noting that the ignored tag was the last one. The docstring has
# "List of tags to ignore". Nothing is raised. Remedy: read all, and drop keys afterwards.
# Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps rispy==0.10.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import rispy

print('rispy', version('rispy'))
ABSTRACT = ['{}  - Aspirin did not help.', 'The trial was stopped early.']


def read(*before, tag='AB', lines=2, **settings):
    """The record of these lines, an abstract and a year, read with these settings."""
    text = ['TY  - JOUR', *before, *ABSTRACT[:lines], 'PY  - 2020', 'ER  - ', '']
    record, = rispy.loads('\n'.join(text).format(tag), **settings)
    return record


title, author, journal = 'TI  - Aspirin in stroke', 'AU  - Smith, J.', 'JO  - Lancet'
rest = ABSTRACT[1]
for before, name, seen, right in (
    ([author, title], 'title', f'Aspirin in stroke {rest}', 'Aspirin in stroke'),
    ([author, title, journal], 'journal_name', f'Lancet {rest}', 'Lancet'),
    ([title, author], 'authors', ['Smith, J.', rest], ['Smith, J.']),
):
    found = read(*before, ignore=['AB'])[name]
    print(f'{name}: {found}, should be {right}')
    assert found == seen, 'lines of ignored tags are ignored now'
    assert read(*before)[name] == read(*before, lines=1, ignore=['AB'])[name] == right
    assert read(*before, tag='Q9', skip_unknown_tags=True)[name] == right
assert read(title)['abstract'] == f'Aspirin did not help. {rest}' and 'abstract' not in read(title, ignore=['AB'])
PYTHON
echo 'As stated: ignored abstracts go to the tag before.'
