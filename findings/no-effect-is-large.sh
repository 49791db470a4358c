#!/usr/bin/env bash
# scattertext 0.2.2: `CohensD(corpus)` and `HedgesG(corpus)` divide by the root of the mean where the definition says
# the standard deviation. In ordinary notes effects come out ten times too small, and no word is significant.
#   - 60 notes of cases and 60 of controls, 100 words each. `fever` is 16 % of the words of cases and 12 % of those of
#     controls, and d is 1.25. The table says 0.11. For `cough`, with 8 % and 12 %, -1.30 becomes -0.13.
#   - For `fever` the one-sided p is .28 in the table, and .0000000002 by a t-test. None of 9 words has p < .05 in the
#     table. Four have it by a t-test.
#   - The spread does not count any more. One word has shares of .20 and .10 in every note, another 0 or .40 and 0 or
#     .20. Both get d = 0.29, where 1.41 and 0.58 are right.
# The reason: the shares come as a sparse matrix. For that case the code takes the mean in the place of the variance,
# and the root of a mean share of .14 is .37, where the standard deviation is .036.
# The comments refer to a guide on effect sizes and say that one empty text is added to each group for the variance,
# and that changes little. Nothing is raised. It hurts whoever reports the words that separate two groups of patients
# by effect size: all effects look negligible, so the report says that the groups write alike. Remedy: the shares by
# corpus.get_term_doc_mat(), divided by the sum of each row, as a dense array, and the formula by hand.
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
from scipy.stats import ttest_ind

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


def by_hand(first, second, empty=False):
    """Cohen's d; with an empty text in each group for the variance, as the comments in the code have it."""
    difference = first.mean() - second.mean()
    if empty:
        first, second = np.append(first, 0), np.append(second, 0)
    squares = sum(((group - group.mean()) ** 2).sum() for group in (first, second))
    return difference / np.sqrt(squares / (len(first) + len(second) - 2))


# Two words with the same means and another spread.
groups = np.array(['case'] * 4 + ['control'] * 4)
corpus, cases, controls = read([
    ' '.join(['fever'] * fever + ['rash'] * rash + ['dose'] * (10 - fever - rash))
    for fever, rash in ((2, 0), (2, 4), (2, 0), (2, 4), (1, 0), (1, 2), (1, 0), (1, 2))
], groups)
table = scattertext.CohensD(corpus).set_categories('case', ['control']).get_score_df()
fever, rash = (by_hand(cases[word].to_numpy(), controls[word].to_numpy(), empty=True) for word in ('fever', 'rash'))
found = table.loc[['fever', 'rash'], 'cohens_d']
print(f'always .20 and .10: d {found["fever"]:.3f}, by hand {fever:.2f}; '
      f'0 and .40, 0 and .20: d {found["rash"]:.3f}, by hand {rash:.2f}')
assert np.isclose(found['fever'], found['rash']), 'the spread counts now'
assert np.isclose(fever, 1.41, atol=0.01) and np.isclose(rash, 0.58, atol=0.01)

# Notes of two groups.
WORDS = {'the': (0.30, 0.30), 'patient': (0.20, 0.20), 'fever': (0.16, 0.12), 'cough': (0.08, 0.12),
         'sarcoidosis': (0.03, 0.01), 'pain': (0.10, 0.10), 'dose': (0.05, 0.07), 'tablet': (0.05, 0.05),
         'rash': (0.03, 0.03)}
draw = np.random.default_rng(0)
groups = np.array(['case'] * 60 + ['control'] * 60)
weights = np.array(list(WORDS.values()))
texts = [' '.join(draw.choice(list(WORDS), 100, p=weights[:, int(group == 'control')])) for group in groups]
corpus, cases, controls = read(texts, groups)
table = scattertext.CohensD(corpus).set_categories('case', ['control']).get_score_df()
hedges = scattertext.HedgesG(corpus).set_categories('case', ['control']).get_scores()
rows = {}
for word in table.index:
    first, second = cases[word].to_numpy(), controls[word].to_numpy()
    lower = ttest_ind(first, second, alternative='greater').pvalue
    pooled = np.sqrt((np.append(first, 0).mean() + np.append(second, 0).mean()) / 2)
    rows[word] = {'d': table.loc[word, 'cohens_d'], 'by hand': by_hand(first, second),
                  'with empty': by_hand(first, second, empty=True), 'p': table.loc[word, 'cohens_d_p'], 't-test': lower}
    # The formula with the mean in the place of the variance gives the number in the table.
    assert np.isclose(rows[word]['d'], (first.mean() - second.mean()) / pooled)
    assert np.isclose(hedges[word], rows[word]['d'], rtol=0.01)
rows = pd.DataFrame(rows).T.sort_values('by hand')
print(rows.to_string(float_format='{:.3g}'.format))
for word, seen, expected in (('fever', 0.109, 1.25), ('cough', -0.126, -1.30), ('sarcoidosis', 0.104, 1.07)):
    assert np.isclose(rows.loc[word, 'd'], seen, atol=0.001), 'the standard deviation is used now'
    assert np.isclose(rows.loc[word, 'by hand'], expected, atol=0.01)
    assert np.isclose(rows.loc[word, 'with empty'], expected, rtol=0.15)
assert np.isclose(rows.loc['fever', 'p'], 0.275, atol=0.001) and rows.loc['fever', 't-test'] < 1e-9
significant = {name: int((2 * np.minimum(rows[name], 1 - rows[name]) < 0.05).sum()) for name in ('p', 't-test')}
print('words with p < .05 on both sides:', significant)
assert significant == {'p': 0, 't-test': 4}
PYTHON
echo 'As stated: effects are divided by the root of a mean, and none is left.'
