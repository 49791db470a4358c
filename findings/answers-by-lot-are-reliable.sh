#!/usr/bin/env bash
# reliabilipy 0.0.36 (reliability of questionnaires): of answers that are drawn by lot it makes a reliable scale. Each
# negative correlation between two questions is taken for a positive one.
#   - 50 people answer 20 questions by a die. Cronbach's alpha is .72 in the mean of ten such studies, and -.20 by the
#     definition. Omega total is .75. From .7 on a scale is commonly called good enough.
#   - With 40 questions and 200 people alpha is .70, with 20 questions and 1,000 people .34, where 0 is right.
#   - The correlations of the same answers, passed as such, give what is right.
#   - A scale of ten questions of which three are asked the other way round, and were not turned, has an alpha of .91, as
#     if they had been. By the definition it is .23, and this is how such a mistake is noticed.
# The reason: with `is_corr_matrix=False` all correlations lose their sign by `np.abs`. The pages do not say so. Their
# model, `omega` of R's psych, may turn whole questions, and not each correlation by itself. Nothing is raised.
# Remedy: `correlations_matrix=data.corr()`. Seen on 2026-12-01, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scipy==1.17.1 scikit-learn==1.7.2
"$folder/env/bin/pip" --quiet install --no-deps factor-analyzer==0.5.1 reliabilipy==0.0.36
"$folder/env/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
from reliabilipy import reliability_analysis

print('reliabilipy', version('reliabilipy'))


def by_definition(data):
    """Cronbach's alpha of standardised answers: shares of the variance of the sum."""
    standard = (data - data.mean()) / data.std()
    count = data.shape[1]
    return count / (count - 1) * (1 - count / standard.sum(axis=1).var())


def report(data, by_correlations=False):
    if by_correlations:
        result = reliability_analysis(correlations_matrix=data.corr())
    else:
        result = reliability_analysis(raw_dataset=data, is_corr_matrix=False)
    result.fit()
    return result.alpha_cronbach, result.omega_total


draw = np.random.default_rng(0)
for people, questions, seen, right in (
    (50, 20, (0.72, 0.75), -0.20), (200, 40, (0.70, 0.71), 0), (1000, 20, (0.34, 0.36), -0.01),
):
    studies = [pd.DataFrame(draw.integers(1, 7, (people, questions)).astype(float)) for _ in range(10)]
    found = np.mean([report(data) for data in studies], axis=0)
    definition = np.mean([by_definition(data) for data in studies])
    print(f'{people} people, {questions} questions: alpha, omega {found.round(2)}, by definition {definition:.2f}')
    assert np.allclose(found, seen, atol=0.01), 'signs count now'
    assert np.isclose(definition, right, atol=0.01)
    assert np.isclose(np.mean([report(data, True)[0] for data in studies]), definition)

trait = draw.normal(size=500)
answers = pd.DataFrame({f'question {number}': trait + draw.normal(size=500) for number in range(10)})
turned = answers.assign(**{f'question {number}': -answers[f'question {number}'] for number in (1, 3, 6)})
for name, data, seen, right in (('all one way', answers, 0.91, 0.91), ('three the other way', turned, 0.91, 0.23)):
    alpha, definition = report(data)[0], by_definition(data)
    print(f'{name}: alpha {alpha:.2f}, by definition {definition:.2f}')
    assert np.isclose(alpha, seen, atol=0.01) and np.isclose(definition, right, atol=0.01)
PYTHON
echo 'As stated: answers by lot are reliable.'
