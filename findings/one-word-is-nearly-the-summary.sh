#!/usr/bin/env bash
# calibrax 0.1.1: its ROUGE-L is the higher the shorter the text is, and its area under the ROC curve depends on the
# order of the rows.
#   - A reference of 11 words: its first word alone has .92, its first two .87, its first seven .86, and eleven words of
#     which seven are the same .64. The F-measure has .17, .31, .78 and .64.
#   - A text of 110 words that begins with the reference has .92 as well. It should be .18.
#   - The same score for all of ten patients, three of whom are ill: the area is 1 if the ill ones come first, and 0 if
#     they come last. It should be .5. The average precision is 1 and .22. It should be .3.
#   - 1000 patients, with grades from 0 to 4 as scores: .89 or .72, by the order of rows. It should be .81.
# The F-measure is taken with recall / precision as beta, which gives (P^2 + R^2) / (P + R). That is near the greater of
# both. A comment in the code calls it balanced; the documentation has "F-measure", and .5 for random scores. Equal
# scores are ranked as they come. The package is said to be validated against scikit-learn. Nothing is raised.
# Seen on 2026-12-01; version 0.1.14, for Python from 3.12, has the same lines.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install --no-deps calibrax==0.1.1 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 \
    opt_einsum==3.4.0 numpy==2.4.6 scipy==1.17.1 flax==0.12.8 optax==0.2.8 absl-py==2.5.1 msgpack==1.2.4 \
    treescope==0.1.10 rich==15.0.0 pygments==2.21.0 PyYAML==6.0.3 typing_extensions==4.16.0 psutil==7.2.2 etils==1.15.0
JAX_PLATFORMS=cpu "$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from calibrax.metrics.functional.classification import average_precision, roc_auc
from calibrax.metrics.functional.text import rouge_l

print('calibrax', version('calibrax'))
REFERENCE = 'the patient was admitted with chest pain and short breath today'
OTHER = ''.join(f' word{place}' for place in range(99))


def f_measure(text, common):
    """The F-measure of a text that has so many words in common with the reference, in order."""
    return 2 * common / (len(text.split()) + len(REFERENCE.split()))


for text, common, seen, right in (('the', 1, 0.924, 0.167), ('the patient', 2, 0.874, 0.308),
                                  ('the patient was admitted with chest pain', 7, 0.859, 0.778),
                                  ('the patient was admitted with chest pain because of a fall', 7, 0.636, 0.636),
                                  (REFERENCE + OTHER, 11, 0.918, 0.182)):
    found = float(rouge_l(text, REFERENCE))
    print(f'{len(text.split())} words: {found:.3f}, F-measure {f_measure(text, common):.3f}')
    assert np.isclose(found, seen, atol=0.001), 'beta is another now'
    assert np.isclose(f_measure(text, common), right, atol=0.001)


def area(scores, ill):
    """The share of pairs of an ill and a well one that are in order, where equal scores count half."""
    differences = scores[ill == 1][:, None] - scores[ill == 0]
    return ((differences > 0) + (differences == 0) / 2).mean()


ill = np.array([1] * 3 + [0] * 7)
scores = np.full(10, 0.5)
found = [[float(function(scores, each)) for each in (ill, ill[::-1])] for function in (roc_auc, average_precision)]
print('the same score for all:', found, 'by hand', area(scores, ill), ill.mean())
assert np.allclose(found, [[1, 0], [1, 0.2157]], atol=1e-3), 'equal scores are equal now'
assert area(scores, ill) == 0.5

draw = np.random.default_rng(0)
risks = draw.random(1000)
ill = (draw.random(1000) < risks).astype(int)
grades = np.round(risks * 4)
order = np.argsort(-ill, kind='stable')
first, last = (float(roc_auc(grades[rows], ill[rows])) for rows in (order, order[::-1]))
print(f'grades: {first:.3f} if the ill come first, {last:.3f} if they come last, by hand {area(grades, ill):.3f}')
assert np.allclose([first, last, area(grades, ill)], [0.893, 0.718, 0.806], atol=0.001)
PYTHON
echo 'As stated: one word is nearly the summary.'
