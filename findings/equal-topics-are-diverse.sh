#!/usr/bin/env bash
# octis 1.14.0 (OCTIS, for training and judging topic models): by `WordEmbeddingsInvertedRBOCentroid` a model whose
# topics are all the same has a diversity of 0.73, and so a score depends on `topk` and on the first words more than on
# anything.
#   - Two topics of the same ten words get 0.730 at the default settings. It should be 0, and it is 0 by `InvertedRBO`
#     and by `WordEmbeddingsInvertedRBO`. `WordEmbeddingsRBOCentroid`, the same as a similarity, is 0.270 for 1.
#   - The number of words alone changes it: 0, 0.45, 0.585 and 0.73 with topk 1, 2, 3 and 10.
#   - Which model is better changes: two topics that share their first word alone get 0.801, and two that share all
#     words but the first get 0.814. So the second pair counts as the more diverse. It should be 0.403 and 0.206.
#   - At each depth d the similarity of two centroids, a number up to 1, is taken for a number of common words, and is
#     divided by d. So the d-th depth can give 1/d at most. Only depth 1 is right.
# The README calls it InvertedRBO from word embeddings, and RBO of equal lists is 1: a doctest of octis's own RBO says
# so. Nothing is raised, and all is between 0 and 1. Since no score can be low, all models seem diverse, and a collapsed
# one does not show. Remedy: take WordEmbeddingsInvertedRBO, which pairs words, or multiply each similarity by its
# depth. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install gensim==4.3.3 numpy==1.26.4 scipy==1.12.0 scikit-learn==1.1.3 pandas==2.2.3 \
  requests==2.32.3
"$folder/env/bin/pip" --quiet install --no-deps octis==1.14.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
import math
from importlib.metadata import version

import numpy as np
from gensim.models import KeyedVectors
from octis.evaluation_metrics.diversity_metrics import (
    InvertedRBO,
    WordEmbeddingsInvertedRBO,
    WordEmbeddingsInvertedRBOCentroid,
)
from octis.evaluation_metrics.similarity_metrics import WordEmbeddingsRBOCentroid

print('octis', version('octis'))
WORDS = [f'word{number}' for number in range(40)]
vectors = KeyedVectors(100)
vectors.add_vectors(WORDS, list(np.random.default_rng(1).normal(size=(40, 100))))
vectors.save_word2vec_format('vectors.txt')
vectors = KeyedVectors.load_word2vec_format('vectors.txt')
SPACE = {'word2vec_path': 'vectors.txt', 'binary': False}


def centroid(topics, topk=10):
    return WordEmbeddingsInvertedRBOCentroid(topk=topk, **SPACE).score({'topics': topics})


def by_hand(topics, by_depth=False, p=0.9):
    """1 - RBO (extrapolated) of two lists, with the angular similarity of centroids for the agreement at each depth."""
    agreements = []
    for depth in range(1, len(topics[0]) + 1):
        left, right = (np.mean([vectors[word] for word in topic[:depth]], axis=0) for topic in topics)
        cosine = float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))
        agreement = 1 - math.acos(max(-1, min(1, cosine))) / math.pi
        agreements.append(agreement / depth if by_depth else agreement)
    parts = sum(p**depth * agreement for depth, agreement in enumerate(agreements, 1))
    return 1 - ((1 - p) / p * parts + p ** len(agreements) * agreements[-1])


first = WORDS[:10]
CASES = {
    'the same topic twice': ([first, first], 0.730, 0.0),
    'the first word in common': ([first, [first[0], *WORDS[20:29]]], 0.801, 0.403),
    'all words but the first': ([first, [WORDS[30], *first[1:]]], 0.814, 0.206),
}
for name, (topics, seen, expected) in CASES.items():
    found, right, divided = centroid(topics), by_hand(topics), by_hand(topics, by_depth=True)
    plain = InvertedRBO(topk=10).score({'topics': topics})
    pairs = WordEmbeddingsInvertedRBO(topk=10, **SPACE).score({'topics': topics})
    print(f'{name}: {found:.3f}, by hand {right:.3f}, divided by depth {divided:.3f}')
    print(f'  without vectors {plain:.3f}, by pairs of words {pairs:.3f}')
    assert abs(found - seen) < 1e-3, 'the diversity is another one now'
    assert abs(found - divided) < 1e-3 and abs(right - expected) < 1e-3
    if topics[0] == topics[1]:
        assert plain == 0 and abs(pairs) < 1e-3
    else:
        # The first word in common leaves more diversity than all the others in common.
        assert (plain > 0.7 and pairs > 0.3) if name.startswith('the first') else (plain < 0.3 and pairs < 0.2)

by_length = [centroid([first, first], topk) for topk in (1, 2, 3, 10)]
similar = WordEmbeddingsRBOCentroid(topk=10, **SPACE).score({'topics': [first, first]})
print('the same topic twice, with topk 1, 2, 3, 10:', np.round(by_length, 3), 'similarity', round(similar, 3))
assert np.allclose(by_length, [0, 0.45, 0.585, 0.73], atol=1e-3) and abs(similar - 0.27) < 1e-3
PYTHON
echo 'As stated: equal topics have a diversity of 0.73.'
