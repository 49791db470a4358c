#!/usr/bin/env bash
# scattertext 0.2.2: `CliffsDelta(corpus).get_score_df()` gives intervals that do not hold the estimate. For large
# effects the 95 % interval lies on the other side of zero.
#   - 60 notes of cases and 60 of controls. For `fever` the delta is .62, and the columns `Low-95.0% CI` and
#     `High-95.0% CI` say -1.23 and -.54. By the formula, and by bootstrap, it is .45 to .75.
#   - For `cough` the delta is -.65 and the interval .41 to .93. For `sarcoidosis` it is -5.79 to -2.47, where nothing
#     below -1 is possible.
#   - For the other six words the limits are exchanged: the higher one is in the column `Low`.
#   - With 40 cases and 160 controls the column `Stddev` is wrong as well, nearly twice too large: .191 for `patient`,
#     where .104 is right. `dose`, with a delta of -.52, gets 6.6 to 49.9.
# The reason: in the denominator, 1 - d * d + z * z * s * s, the last term is taken with a minus and with the delta in
# the place of its standard deviation, so it is below zero for a delta above .52. z is negative and that of a 90 %
# interval. The matrix of comparisons is read with its two sides exchanged, which does no harm to equal groups.
# The estimates in the column `Metric` are right. The docstring refers to Cliff and to a page with the formula. Nothing
# is raised. It hurts whoever plots effects of words with their intervals, or keeps words by an interval that excludes
# zero: typical words of one group get an interval that says the other. Remedy: the formula by hand, as in this script,
# or a bootstrap over texts.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install scattertext==0.2.2 numpy==2.2.6 scipy==1.13.1 pandas==3.1.1 six==1.17.0
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
import pandas as pd
import scattertext
from scipy.stats import norm

print('scattertext', version('scattertext'))


def read(texts, groups):
    """A corpus of single words, and the shares of each word in the texts of cases and of controls."""
    table = pd.DataFrame({'text': texts, 'group': groups})
    table['parsed'] = table['text'].map(scattertext.whitespace_nlp_with_sentences)
    corpus = scattertext.CorpusFromParsedDocuments(table, category_col='group', parsed_col='parsed').build()
    corpus = corpus.get_unigram_corpus()
    counts = corpus.get_term_doc_mat().toarray()
    shares = pd.DataFrame(counts / counts.sum(axis=1, keepdims=True), columns=corpus.get_terms())
    return corpus, shares[groups == 'case'], shares[groups == 'control']


def delta(first, second):
    return np.sign(first[:, None] - second[None, :])


def by_hand(first, second):
    """Cliff's delta, its standard deviation, and the 95 % interval."""
    signs = delta(first, second)
    rows, columns = signs.shape
    d = signs.mean()
    squares = columns ** 2 * ((signs.mean(axis=1) - d) ** 2).sum() + rows ** 2 * ((signs.mean(axis=0) - d) ** 2).sum()
    variance = (squares - ((signs - d) ** 2).sum()) / (rows * columns * (rows - 1) * (columns - 1))
    z = norm.isf(0.025)
    half = z * np.sqrt(variance) * np.sqrt((1 - d * d) ** 2 + z * z * variance)
    low, high = ((d - d ** 3 + side * half) / (1 - d * d + z * z * variance) for side in (-1, 1))
    return d, np.sqrt(variance), low, high


def bootstrap(first, second, draw):
    drawn = [delta(draw.choice(first, len(first)), draw.choice(second, len(second))).mean() for _ in range(1000)]
    return np.std(drawn), *np.quantile(drawn, (0.025, 0.975))


WORDS = {'the': (0.30, 0.30), 'patient': (0.20, 0.20), 'fever': (0.16, 0.12), 'cough': (0.08, 0.12),
         'sarcoidosis': (0.03, 0.01), 'pain': (0.10, 0.10), 'dose': (0.05, 0.07), 'tablet': (0.05, 0.05),
         'rash': (0.03, 0.03)}
weights = np.array(list(WORDS.values()))
draw = np.random.default_rng(0)
differ = [word for word, shares in WORDS.items() if len(set(shares)) == 2]
names = ['Metric', 'Stddev', 'Low-95.0% CI', 'High-95.0% CI']
right = ['delta', 'deviation', 'low', 'high']
for cases, controls in ((60, 60), (40, 160)):
    groups = np.array(['case'] * cases + ['control'] * controls)
    texts = [' '.join(draw.choice(list(WORDS), 100, p=weights[:, int(group == 'control')])) for group in groups]
    corpus, first, second = read(texts, groups)
    table = scattertext.CliffsDelta(corpus).set_categories('case', ['control']).get_score_df()[names].copy()
    table.columns = ['Metric', 'Stddev', 'Low', 'High']
    table[right] = [by_hand(first[word].to_numpy(), second[word].to_numpy()) for word in table.index]
    print(f'{cases} cases and {controls} controls, the table and by hand')
    print(table.to_string(float_format='{:.2f}'.format))
    assert np.allclose(table['Metric'], table['delta'])

    # The interval by hand is the one that a bootstrap gives.
    for word in ('fever', 'cough', 'the'):
        spread, low, high = bootstrap(first[word].to_numpy(), second[word].to_numpy(), np.random.default_rng(1))
        row = table.loc[word]
        assert abs(row['deviation'] - spread) < 0.012
        assert abs(row['low'] - low) < 0.04 and abs(row['high'] - high) < 0.04

    ends = table[['Low', 'High']]
    outside = (table['Metric'] < ends.min(axis=1)) | (table['Metric'] > ends.max(axis=1))
    other = np.sign(ends).sum(axis=1) == -2 * np.sign(table['Metric'])
    exchanged = table['Low'] > table['High']
    print('outside their own interval:', ', '.join(table.index[outside]))
    print('on the other side of zero:', ', '.join(table.index[other]))
    print('low and high exchanged:', ', '.join(table.index[exchanged]))
    if cases == controls:
        assert np.allclose(table['Stddev'], table['deviation'])
        for word, seen, limits in (('fever', (-1.23, -0.54), (0.45, 0.75)), ('cough', (0.41, 0.93), (-0.77, -0.48))):
            assert np.allclose(ends.loc[word], seen, atol=0.006), 'intervals hold the estimate now'
            assert np.allclose(table.loc[word, ['low', 'high']].astype(float), limits, atol=0.006)
        assert set(table.index[other]) == {'fever', 'cough', 'sarcoidosis'} and ends.loc['sarcoidosis'].max() < -2
        assert set(table.index[exchanged]) == set(WORDS) - {'fever', 'cough', 'sarcoidosis'}
    else:
        row = table.loc['patient']
        print(f'patient: standard deviation {row["Stddev"]:.3f}, by hand {row["deviation"]:.3f}')
        assert np.isclose(row['Stddev'], 0.191, atol=0.001) and np.isclose(row['deviation'], 0.104, atol=0.001)
        assert np.allclose(ends.loc['dose'], (6.55, 49.93), atol=0.01)
    assert set(table.index[outside]) >= {'fever', 'cough', 'sarcoidosis'}
PYTHON
echo 'As stated: the interval of a large effect has the other sign.'
