#!/usr/bin/env bash
# scattertext 0.2.2: `CraigsZetaScorer(corpus)` divides numbers of texts by the number of words in the vocabulary,
# where Zeta divides by the number of texts. With groups of different size the words of the smaller group come out
# last.
#   - Notes of 20 cases and 200 controls. `fever` is in 17 of 20 (85 %) and in 22 of 200 (11 %). Zeta is 1.74 and it is
#     the second of 509 words. The table says .99, and it is the 95th. 59 words that a single case has stand before it
#     or beside it.
#   - `uveitis`, in 25 % of cases and 11 % of controls, goes from place 6 to 504. `patient`, in 95 % and 91 %, is at
#     508.
#   - The words that cases avoid go up: `aspirin`, in 15 % of cases and 33 % of controls, is the last by Zeta, and in
#     the table it stands before `patient` and `cough`.
#   - Zeta lies between 0 and 2, and 1 means no difference. With three words, 60 cases and 240 controls the table has
#     -59 for a word that stands in all texts.
# The reason: the matrix has texts in its rows and words in its columns, and the second is taken for the number of
# texts. So the score is 1 plus a difference of two counts, divided by one number for all words, and no size of a group
# is in it.
# The docstring gives the definition with the numbers of segments of both groups. Nothing is raised. It hurts whoever
# looks for the words of a rare disease or a rare label among many other texts: a list of the top words has frequent
# words of that group far down, and the list of words that it avoids is that of its most frequent words. Remedy: the
# columns Base and Counter of get_score_df(), each divided by the number of texts of its group.
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

print('scattertext', version('scattertext'))


def zeta(texts, groups):
    """The table of the scorer, with the share of texts of each group that hold a word, counted in the texts."""
    table = pd.DataFrame({'text': texts, 'group': groups})
    table['parsed'] = table['text'].map(scattertext.whitespace_nlp_with_sentences)
    corpus = scattertext.CorpusFromParsedDocuments(table, category_col='group', parsed_col='parsed').build()
    corpus = corpus.get_unigram_corpus()
    found = scattertext.CraigsZetaScorer(corpus).set_categories('case', ['control']).get_score_df()
    for group in ('case', 'control'):
        held = [set(text.split()) for text, name in zip(texts, groups) if name == group]
        found[group] = [sum(word in words for words in held) / len(held) for word in found.index]
    found['zeta'] = found['case'] + 1 - found['control']
    for name, score in (('place', 'Score'), ('right place', 'zeta')):
        found[name] = found[score].rank(ascending=False, method='min').astype(int)
    return found


WORDS = {'the': (1, 1), 'patient': (0.9, 0.9), 'fever': (0.9, 0.1), 'sarcoidosis': (0.8, 0.02), 'uveitis': (0.5, 0.05),
         'cough': (0.5, 0.5), 'aspirin': (0.1, 0.3), 'fracture': (0, 0.1), 'falls': (0.05, 0.06)}
draw = np.random.default_rng(0)
groups = ['case'] * 20 + ['control'] * 200
others = [f'filler{chr(97 + number % 26)}{chr(97 + number // 26)}' for number in range(500)]
texts = []
for group in groups:
    words = [word for word, shares in WORDS.items() if draw.random() < shares[int(group == 'control')]]
    texts.append(' '.join(words + list(draw.choice(others, 20))))
table = zeta(texts, groups)
columns = ['Base', 'Counter', 'case', 'control', 'Score', 'zeta', 'place', 'right place']
print(table.loc[list(WORDS), columns].to_string(float_format='{:.3f}'.format))
assert len(table) == 509
for word, score, right, place, right_place in (('fever', 0.99, 1.74, 95, 2), ('uveitis', 0.97, 1.145, 504, 6)):
    row = table.loc[word]
    assert np.isclose(row['Score'], score, atol=0.005) and row['place'] == place, 'Zeta divides by texts now'
    assert np.isclose(row['zeta'], right, atol=0.005) and row['right place'] == right_place
assert np.isclose(17 / 20 + (200 - 22) / 200, 1.74)
assert table.loc['patient', 'place'] == 508 and table.loc['aspirin', 'right place'] == 509
assert table.loc['aspirin', 'Score'] > table.loc['cough', 'Score'] > table.loc['patient', 'Score']
assert np.allclose(table['Score'], 1 + (table['Base'] - table['Counter']) / len(table))
ahead = table[(table['Score'] >= table.loc['fever', 'Score']) & (table['Base'] == 1)]
print(f'{len(ahead)} words that one case has are before fever or level with it')
assert len(ahead) > 10

# Fewer words than texts.
few = zeta(['fever cough'] * 60 + ['fever pain'] * 240, ['case'] * 60 + ['control'] * 240)
print(few[columns[:6]].to_string(float_format='{:.2f}'.format))
assert np.isclose(few.loc['fever', 'Score'], 1 + (60 - 240) / 3) and few.loc['fever', 'zeta'] == 1
assert few.loc['cough', 'zeta'] == 2 and np.isclose(few.loc['cough', 'Score'], 1 + 60 / 3)
PYTHON
echo 'As stated: Zeta divides by the number of words.'
