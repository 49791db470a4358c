#!/usr/bin/env bash
# twosamplemr 0.1.3 (Mendelian randomisation, after R's TwoSampleMR): multivariable analyses give the effect of one
# exposure to another one, unless the exposures come in the order of their identifiers.
#   - Body mass index (ieu-b-40) raises the outcome by .5, years of schooling (ieu-a-1239) do nothing. With body mass
#     first, which is the order of the alphabet that `mv_extract_exposures` gives, `mv_multiple`, `mv_residual`,
#     `mv_ivw` and `mv_basic` say .02 for body mass (p of .2) and .49 for schooling (p below 1e-200).
#   - The same rows with schooling first give .49 to body mass. So do identifiers that ascend: a-1 and a-2.
#   - With body mass, sleep (ieu-b-4424) and schooling, in this order, it is sleep that gets the .49.
# The reason: `mv_harmonise_data` makes columns by `pivot`, which sorts identifiers, and lists names as they come. The
# functions take the n-th name for the n-th column. Nothing is raised. The R package keeps names with the columns.
# Remedy: `exposure_dat.sort_values('id.exposure')` before `mv_harmonise_data`.
# Seen on 2026-12-01, in the newest version. It asks for pandas before 3 and for scikit-learn.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install numpy==2.4.6 pandas==2.3.3 scipy==1.17.1 statsmodels==0.15.0 scikit-learn==1.9.1 \
    matplotlib==3.11.2 requests==2.34.2 retry==0.9.2 python-dotenv==1.2.4
"$folder/env/bin/pip" --quiet install --no-deps twosamplemr==0.1.3 ieugwaspy==1.0.6
cd "$folder"
"$folder/env/bin/python" -W ignore - <<'PYTHON'
import contextlib
import io
from importlib.metadata import version

import numpy as np
import pandas as pd

with contextlib.redirect_stdout(io.StringIO()):
    from twosamplemr.multivariable_mr import mv_basic, mv_harmonise_data, mv_ivw, mv_multiple, mv_residual

print('twosamplemr', version('twosamplemr'))
draw = np.random.default_rng(0)
variants = [f'rs{number}' for number in range(60)]
effects = {'schooling': draw.normal(0, 0.1, 60), 'body mass': draw.normal(0, 0.1, 60), 'sleep': draw.normal(0, 0.1, 60)}
alleles = {'effect_allele': 'A', 'other_allele': 'G', 'eaf': 0.3}
outcome = pd.DataFrame({
    'SNP': variants, 'outcome': 'disease', 'id.outcome': 'ieu-a-7',
    **{f'{name}.outcome': value for name, value in alleles.items()},
    'beta.outcome': 0.5 * effects['body mass'] + draw.normal(0, 0.01, 60), 'se.outcome': 0.01, 'pval.outcome': 0.1,
})


def study(*exposures):
    """What the functions say of exposures, each a name and an identifier, in this order."""
    tables = [pd.DataFrame({
        'SNP': variants, 'exposure': name, 'id.exposure': identifier,
        **{f'{column}.exposure': value for column, value in alleles.items()},
        'beta.exposure': effects[name], 'se.exposure': 0.005, 'pval.exposure': 1e-20,
    }) for name, identifier in exposures]
    with contextlib.redirect_stdout(io.StringIO()):
        data = mv_harmonise_data(pd.concat(tables, ignore_index=True), outcome)
        results = [function(data, **settings)['result'] for function, settings in (
            (mv_multiple, {}), (mv_residual, {}), (mv_ivw, {'plots': False}), (mv_basic, {'plots': False}),
        )]
    found = [dict(zip(result['exposure'], result['b'].round(2) + 0)) for result in results]
    p_value = dict(zip(results[0]['exposure'], results[0]['pval']))
    print(*exposures, found, {name: float(f'{value:.1g}') for name, value in p_value.items()}, sep='\n   ')
    assert all(set(result) == {name for name, _ in exposures} for result in found)
    return [max(result, key=lambda name: abs(result[name])) for result in found], max(map(max, map(dict.values, found)))


body, school, sleep = ('body mass', 'ieu-b-40'), ('schooling', 'ieu-a-1239'), ('sleep', 'ieu-b-4424')
assert study(body, school) == (['schooling'] * 4, 0.49), 'names stay with their columns now'
assert study(school, body) == (['body mass'] * 4, 0.49)
assert study(('body mass', 'a-1'), ('schooling', 'a-2')) == (['body mass'] * 4, 0.49)
assert study(body, sleep, school)[0] == ['sleep'] * 4
PYTHON
echo 'As stated: schooling gets the effect of body mass.'
