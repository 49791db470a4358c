#!/usr/bin/env bash
# lexical-diversity 0.1.1: `tokenize` takes the letters SYM out of words in capitals, and counts an empty word where a
# text ends with a space. Short texts have a diversity of 0 by HD-D, and texts without any repeated word by MTLD.
#   - `SYMPTOMS` becomes `ptoms`, `ASYMPTOMATIC` `aptomatic` and `SYMPATHETIC` `pathetic`. In a note with headings in
#     capitals, SYMPTOMS and symptoms are two words.
#   - `12.5` and `125` are one word, and so are `0.5` and `05`. A dose and its tenth count as a repetition.
#   - A note of 30 words, all different, has the type-token ratio 1, the highest, and MTLD 0, the lowest. One word 41
#     times has 10, and 54 words of which 40 are different have 28.
#   - HD-D is 0 for any text of fewer than 42 words, whether they are one word or all different.
#   - So of 400 notes of 41 and 42 words the shorter ones come out as the poorest of all by HD-D.
# The reason: SYM, a tag of the Penn Treebank, stands in the list of signs that are taken out, and they are taken out
# before the text is made small. For HD-D, a division by 0 becomes 0, where it is not defined, and so it is for the
# factors of MTLD if there are none.
# The README offers tokenize "for convenience", and has no word on signs or on length. Nothing is raised. An open issue
# of 2023 has a text with MTLD 0 and no answer. Remedy: another tokenizer, and no HD-D or MTLD of short texts.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install lexical-diversity==0.1.1 setuptools==80.10.2
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import random
from importlib.metadata import version

from lexical_diversity import lex_div

print('lexical-diversity', version('lexical-diversity'))
for text, seen in (
    ('SYMPTOMS: fever. No other symptoms.', ['ptoms', 'fever', 'no', 'other', 'symptoms']),
    ('ASYMPTOMATIC', ['aptomatic']), ('Asymptomatic', ['asymptomatic']), ('SYMPATHETIC', ['pathetic']),
    ('12.5 mg, not 125 mg', ['125', 'mg', 'not', '125', 'mg']), ('0.5 or 05', ['05', 'or', '05']),
    ('Fever of 39 (at night) .', ['fever', 'of', '39', 'at', 'night', '']),
):
    print(text, lex_div.tokenize(text))
    assert lex_div.tokenize(text) == seen, 'words are cut in another way now'

different = [f'word{number}' for number in range(41)]
thirds = [word for number, word in enumerate(different[:40]) for word in [word] * (1 + (number % 3 == 0))]
for name, words, seen in (
    ('30 words, all different', different[:30], (1, 0, 0)), ('41 words, all different', different, (1, 0, 0)),
    ('one word 41 times', ['word'] * 41, (1 / 41, 10.25, 0)),
):
    found = lex_div.ttr(words), lex_div.mtld(words), lex_div.hdd(words)
    print(f'{name}: type-token ratio {found[0]:.2f}, MTLD {found[1]:.1f}, HD-D {found[2]:.2f}')
    assert all(abs(value - right) < 1e-9 for value, right in zip(found, seen))
found = lex_div.mtld(thirds)
print(f'{len(thirds)} words, {len(set(thirds))} different: MTLD {found:.1f}')
assert 27 < found < 30

draw = random.Random(0)
notes = [draw.choices(different, k=41 + number % 2) for number in range(400)]
diversity = [lex_div.hdd(words) for words in notes]
short, long = diversity[::2], diversity[1::2]
ratios = [sum(map(lex_div.ttr, notes[start::2])) / 200 for start in (0, 1)]
print(f'HD-D of 41 words {max(short):.2f}, of 42 words {min(long):.2f} to {max(long):.2f}, ratios {ratios}')
assert max(short) == 0 and min(long) > 0.4 and abs(ratios[0] - ratios[1]) < 0.02
PYTHON
echo 'As stated: words in capitals lose SYM, and short texts have no diversity.'
