#!/usr/bin/env bash
# dose-instruction-parser 2025.1024a0 (dose instructions of prescriptions, by Public Health Scotland): half a tablet
# that is written as 1/2 is a dose of three tablets. A comma or a leading point changes doses, too.
#   - "1/2 tablet" becomes 3 tablets, "1/4 tablet" 5 and "3/4 tablet" 7. "half tablet" is .5, as it should be.
#     "1 1/2 tablets" becomes 3, and "one and a half tablets" 1.
#   - "1,000mg" becomes 0 to 1 mg, ".5ml" 5 ml, and "twenty five mg" 5 to 20 mg. "1000mg" and "0.5ml" are right.
#   - "every 8-12 hours" becomes every 12 hours, though "every 4-6 hours" becomes every 4, by the rule of the lowest
#     number, and "max 8 in 24 hours" 0 to 24 in an hour. "for 10/7", ten days, lasts 17.
#   - "1 tablet od", once a day, becomes "1 tablet right eye", in which nothing is left of how often.
# The reasons: slashes get spaces before fractions are looked for, so that none is left, and numbers on both sides of a
# slash are added up; numbers in words are read word by word; the lowest number is the first one in the order of
# letters; and abbreviations of eye doctors stand in the list of replacements. A docstring has "half" for .5, and
# `_convert_fract_to_num` knows 1/2. For "every 8-12 hours" a warning says that the lowest unit is used. Otherwise
# nothing is said. The steps before and after the model are run here, on what the model would give to them.
# Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install inflect==7.5.0 word2number==1.1 pyspellchecker==0.5.5
"$folder/env/bin/pip" --quiet install --no-deps dose-instruction-parser==2025.1024a0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

from dose_instruction_parser.di_dosage import get_dosage_info
from dose_instruction_parser.di_duration import get_duration_info
from dose_instruction_parser.di_frequency import get_frequency_info
from dose_instruction_parser.di_prepare import pre_process

print('dose-instruction-parser', version('dose-instruction-parser'))
WRONG = (
    (get_dosage_info, '1/2 tablet', (3, 3, None), 'half'), (get_dosage_info, '1/4 tablet', (5, 5, None), 'a quarter'),
    (get_dosage_info, '3/4 tablet', (7, 7, None), 'three quarters'),
    (get_dosage_info, '1 1/2 tablets', (3, 3, None), 'one and a half'),
    (get_dosage_info, 'one and a half tablets', (1, 1, None), 'one and a half'),
    (get_dosage_info, '1,000mg', (0, 1, 'mg'), '1000 mg'), (get_dosage_info, '.5ml', (5, 5, 'ml'), 'half a ml'),
    (get_dosage_info, 'twenty five mg', (5, 20, 'mg'), '25 mg'),
    (get_frequency_info, 'every 8-12 hours', (1, 1, '12 Hour'), 'every 8 hours'),
    (get_frequency_info, 'max 8 in 24 hours', (0, 24, 'Hour'), 'up to 8 a day'),
    (get_duration_info, 'for 10/7', (17, 17, None), '10 days'),
)
RIGHT = (
    (get_dosage_info, 'half tablet', (0.5, 0.5, 'tablet')), (get_dosage_info, '1.5 tablets', (1.5, 1.5, 'tablet')),
    (get_dosage_info, '1000mg', (1000, 1000, 'mg')), (get_dosage_info, '0.5ml', (0.5, 0.5, 'ml')),
    (get_dosage_info, '2 5ml spoonfuls', (10, 10, 'ml')), (get_dosage_info, '8-12 tablets', (8, 12, None)),
    (get_frequency_info, 'every 4-6 hours', (1, 1, '4 Hour')),
    (get_frequency_info, 'up to four times daily', (0, 4, 'Day')), (get_duration_info, 'for 5-10 days', (5, 10, 'Day')),
)
for function, text, seen, right in WRONG:
    found = function(pre_process(text))
    print(f'{text}: {found}, should be {right}')
    assert found == seen, 'read in another way now'
for function, text, seen in RIGHT:
    found = function(pre_process(text))
    print(f'{text}: {found}')
    assert found == seen
print('1 tablet od:', pre_process('1 tablet od'))
assert pre_process('1 tablet od') == '1 tablet right eye' and get_frequency_info('od')[:2] == (1, 1)
PYTHON
echo 'As stated: half a tablet is three.'
