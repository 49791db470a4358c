#!/usr/bin/env bash
# legibilidad 0.21 (readability of Spanish): for the scores each number of two digits or more becomes the words "tipo
# de moneda inválida", no valid kind of currency. `textdict`, the count of words, starts again at each capital.
#   - `numbers2words('pulso de 80 y 120 mg')` is "pulso de tipo de moneda inválida y tipo de moneda inválida mg".
#   - Two sentences on blood pressure have 79 by Szigriszt-Pazos with their numbers as words, and 68 with digits: the
#     same with other numbers, 11, 999 and 10000.
#   - Three sentences on age, weight and doses fall from "bastante fácil" to "algo difícil" by INFLESZ, two levels,
#     from 75 to 52.
#   - 2.5 mg are two sentences and four more words, 2,5 mg are one sentence and none. Fernández-Huerta,
#     Szigriszt-Pazos, INFLESZ and Crawford depend on both.
#   - "Dolor en el pecho. El dolor es fuerte. Dolor al respirar." has the word dolor 3 times; `textdict` has 1.
#   - A space at the end of a text is a sentence.
# The reasons: numbers go through a converter of amounts of money with no currency, whose search for a currency always fails,
# since it calls a method that Python 3 has no more; and the count is read under the word as written, but kept in
# small letters. The docstring says "2 to two". The README has no word on numbers. Nothing is raised. Remedy: write
# numbers as words.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install legibilidad==0.21
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from collections import Counter
from importlib.metadata import version

from legibilidad import legibilidad

print('legibilidad', version('legibilidad'))
text = legibilidad.numbers2words('pulso de 80 y 120 mg')
print(text)
assert text == 'pulso de tipo de moneda inválida y tipo de moneda inválida mg', 'numbers are numbers now'


def scores(text):
    index = legibilidad.szigriszt_pazos(text)
    return index, legibilidad.fernandez_huerta(text), legibilidad.inflesz(index)


pressure = 'El paciente tiene una presión de {} y un pulso de {}. Toma la medicina cada {} horas.'
for numbers, seen in (
    (('ciento veinte', 'ochenta', 'doce'), (79.29, 83.75)), (('120', '80', '12'), (68.03, 72.71)),
    (('11', '999', '10000'), (68.03, 72.71)),
):
    found = scores(pressure.format(*numbers))
    print(numbers, found)
    assert found[:2] == seen

patient = 'La mujer tiene {} años. Pesa {} kilos y mide {} centímetros. Toma {} gotas cada {} horas.'
SEEN = {'as words': (74.57, 79.02, 'bastante fácil'), 'as digits': (52.36, 57.62, 'algo difícil')}
for name, numbers in (
    ('as words', ('ochenta y dos', 'setenta', 'ciento sesenta y cinco', 'veinte', 'doce')),
    ('as digits', ('82', '70', '165', '20', '12')),
):
    found = scores(patient.format(*numbers))
    print(name, found)
    assert found == SEEN[name]
point, comma = (scores(f'Tome {dose} miligramos. Repita mañana.') for dose in ('2.5', '2,5'))
print('2.5', point, '2,5', comma)
sentences = [legibilidad.count_sentences(f'Tome {dose} miligramos.') for dose in ('2.5', '2,5')]
lengths = [len(legibilidad.numbers2words(f'Tome {dose} miligramos.').split()) for dose in ('2.5', '2,5')]
assert sentences == [2, 1] and lengths == [6, 3] and point[:2] != comma[:2]

text = 'Dolor en el pecho. El dolor es fuerte. Dolor al respirar.'
counted, right = legibilidad.textdict(text), Counter(text.lower().replace('.', '').split())
print('dolor', counted['dolor'], 'times, by hand', right['dolor'])
assert counted['dolor'] == 1 and right['dolor'] == 3

ends = [legibilidad.count_sentences(text) for text in ('Tiene fiebre. Tiene tos.', 'Tiene fiebre. Tiene tos. ')]
print('sentences without and with a space at the end:', ends)
assert ends == [2, 3]
PYTHON
echo 'As stated: numbers are an invalid currency.'
