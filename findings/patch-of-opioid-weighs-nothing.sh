#!/usr/bin/env bash
# medcalc-bench 1.7.0 (the medical calculators of MedCalc-Bench, by which language models are judged): a patch of
# fentanyl counts as a thousandth of its dose, and units, signs and points of four more calculators go wrong.
#   - `mme_explanation`: a patch of 50 µg of fentanyl an hour is .12 mg of morphine a day, where 120 is right (2.4 for
#     each µg, which is the factor that it shows). Written "FentaNYL", as its other form is, it raises a KeyError.
#   - `compute_homa_ir_explanation`: 72 pmol/L of insulin are 432 µIU/mL, where 12 is right. So HOMA-IR is 96, and not
#     2.7, as it is for the same insulin in µIU/mL or ng/mL.
#   - `framingham_risk_score_explanation`: a man who smokes, with high cholesterol and high blood pressure, has a risk of
#     a heart attack of 0 % at 45 years, 50 % at 65 and 100 % at 75, where 37, 35 and 34 % are right. The formula is for
#     mg/dL of cholesterol, which the text says, and gets mmol/L. Besides, all risks are rounded to tens.
#   - `caprini_score_explanation`: an embolism before, a stroke and a broken hip add nothing to the risk of thrombosis.
#     The text says "we add 3 to the total", and the score is 1, for age alone, where 14 is right.
#   - `add_40_weeks_explanation`: with cycles of 24 days a child is due 4 days later than with 28, as with 32. The text
#     says "we must subtract 4 days".
# The reasons: two spellings of the patch; a product for a quotient; another unit; a score to which nobody adds; and a
# sign. Nothing is raised. Remedy: other calculators. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps medcalc-bench==1.7.0
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version
from math import exp, log

from medcalc.caprini_score import caprini_score_explanation
from medcalc.estimated_due_date import add_40_weeks_explanation
from medcalc.framingham_risk_score import framingham_risk_score_explanation
from medcalc.homa_ir import compute_homa_ir_explanation
from medcalc.mme import mme_explanation

print('medcalc-bench', version('medcalc-bench'))


def morphine(drug, dose, unit, times):
    return mme_explanation({f'{drug} Dose': (dose, unit), f'{drug} Dose Per Day': (times, 'per day')})['Answer']


found = morphine('FentANYL patch', 50, 'µg', 1)
print('patch of 50 µg an hour:', found, 'mg of morphine, should be', 50 * 2.4)
assert found == 0.12, 'a patch weighs something else now'
assert morphine('FentaNYL buccal', 200, 'µg', 4) == 104 and morphine('OxyCODONE', 10, 'mg', 4) == 60
try:
    morphine('FentaNYL patch', 50, 'µg', 1)
    raise SystemExit('The other spelling of the patch is known now.')
except KeyError as error:
    print('the other spelling: KeyError', error)

for insulin, unit, seen in ((12, 'µIU/mL', 2.667), (12 / 24.8, 'ng/mL', 2.667), (72, 'pmol/L', 96)):
    found = compute_homa_ir_explanation({'insulin': (insulin, unit), 'glucose': (90, 'mg/dL')})['Answer']
    print(f'insulin {insulin:.3g} {unit}: HOMA-IR {found}, should be {12 * 90 / 405:.3f}')
    assert abs(found - seen) < 0.001, 'insulin is converted in another way now'


def risk_by_text(age, total, high, pressure):
    """The formula for men in what the function says, for one who smokes and takes medicine for blood pressure."""
    score = 52.00961 * log(age) + 20.014077 * log(total) - 0.905964 * log(high) + 1.305784 * log(pressure) + 0.241549
    score += 12.096316 - 4.605038 * log(age) * log(total) - 2.84367 * log(min(age, 70)) - 2.93323 * log(age) ** 2
    return 100 * (1 - 0.9402 ** exp(score - 172.300168))


for age, seen, right in ((45, 0, 36.9), (65, 50, 34.9), (75, 100, 33.6)):
    result = framingham_risk_score_explanation({
        'sex': 'Male', 'age': (age, 'years'), 'sys_bp': (150, 'mm Hg'), 'smoker': True, 'bp_medicine': True,
        'total_cholestrol': (280, 'mg/dL'), 'hdl_cholestrol': (35, 'mg/dL'),
    })
    print(f'{age} years: risk {result["Answer"]} %, should be {risk_by_text(age, 280, 35, 150):.1f} %')
    assert result['Answer'] == seen, 'the risk is another now'
    assert abs(risk_by_text(age, 280, 35, 150) - right) < 0.1
    assert 'total cholestrol and hdl cholestrol are in mg/dL' in result['Explanation']

events = {'previous_pe': True, 'stroke': True, 'hip_pelvis_leg_fracture': True}
result = caprini_score_explanation({'sex': 'Male', 'age': (50, 'years'), **events})
print('Caprini with three events:', result['Answer'], 'should be', 1 + 3 + 5 + 5)
assert result['Answer'] == 1 and 'we add 3 to the total' in result['Explanation']

for days, seen in ((24, '10/11/2024'), (28, '10/07/2024'), (32, '10/11/2024')):
    result = add_40_weeks_explanation({'menstrual_date': '01/01/2024', 'cycle_length': days})
    print(f'cycles of {days} days: due on {result["Answer"]}')
    assert result['Answer'] == seen
    assert days != 24 or 'we must subtract 4 days' in result['Explanation']
PYTHON
echo 'As stated: a patch is a thousandth, and units, signs and points go wrong.'
