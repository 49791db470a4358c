#!/usr/bin/env bash
# icu4py 1.2.0: `WordBreaker(text, locale).segments()` (and the other breakers) gives pairs of numbers that look like places
# in the Python string and are units of UTF-16, in which ICU counts. Behind the first character outside the basic plane (an
# emoji, a mathematical letter, a rare ideograph) every pair is one further to the right, so slices of the text by them are
# wrong, and nothing says so. Until such a character they are right, so tests on ordinary text pass.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install icu4py==1.2.0
"$folder/env/bin/python" - <<'PYTHON'
from icu4py.breakers import WordBreaker

for text, expected in (('IL and cells', ['IL', 'and', 'cells']), ('𝛽 and cells', ['𝛽', 'and', 'cells'])):
    pairs = [pair for pair in WordBreaker(text, 'en').segments()]
    units = text.encode('utf-16-le')
    sliced = [text[begin:end] for begin, end in pairs]
    decoded = [units[2 * begin : 2 * end].decode('utf-16-le') for begin, end in pairs]
    print(repr(text), len(text), 'characters;', pairs[-1], 'is the last;', sliced)
    assert [part for part in decoded if part.strip()] == expected
    assert (sliced == decoded) is text.isascii(), 'the numbers count characters now'
PYTHON
echo 'As stated: places are counted in units of UTF-16.'
