#!/usr/bin/env bash
# octis 1.14.0 (OCTIS, for training and judging topic models): `WECoherencePairwise` turns the sign of the similarity of
# two words around, if the numbers of one vector add up to more than 0 and those of the other to less. That is chance.
#   - A topic of six words for the lung, whose vectors have a mean cosine of .914, gets a coherence of -0.182. Six words
#     for the heart, .906, get 0.299. A topic of three words for the heart and three for the lung, .301, gets -0.106. So
#     the jumble is called more coherent than the lung.
#   - If one coordinate of all vectors has its sign changed, all cosines stay as they are. The coherence of the lung is
#     then anything from -0.182 to 0.914, by the coordinate. So two trainings of equally good vectors do not agree.
#   - Each vector is divided by the sum of its numbers before cosines are taken. A cosine takes no notice of a positive
#     factor, but a negative one turns the vector round. Vectors of words have numbers of both signs, so about half of
#     the sums are negative, and about half of the pairs in a topic count with the wrong sign. The more words a topic
#     has, the nearer its coherence comes to 0.
#   - The same division stands in `WECoherenceCentroid`, whose result moves by the same changes of sign.
# The README lists it as coherence from word embeddings, and the paper that `info()` cites takes the mean of cosines. An
# open report says that this division makes no difference. Nothing is raised, and all results lie between -1 and 1.
# Whoever picks the number of topics or a topic model by it picks by chance. Remedy: take the mean of
# `KeyedVectors.similarity` over the pairs of words. Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install gensim==4.3.3 numpy==1.26.4 scipy==1.12.0 scikit-learn==1.1.3 pandas==2.2.3 \
  requests==2.32.3
"$folder/env/bin/pip" --quiet install --no-deps octis==1.14.0
cd "$folder"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from itertools import combinations

import numpy as np
from gensim.models import KeyedVectors
from octis.evaluation_metrics.coherence_metrics import WECoherenceCentroid, WECoherencePairwise

print('octis', version('octis'))
HEART = 'heart cardiac infarction angina stent atrial'.split()
LUNG = 'lung asthma airway copd bronchial pneumonia'.split()
WIDTH = 50
draw = np.random.default_rng(0)
middles = draw.normal(size=WIDTH), draw.normal(size=WIDTH)
# The words of one organ lie close together.
rows = np.array([
    middle - middle.mean() + 0.3 * draw.normal(size=WIDTH)
    for middle, words in zip(middles, (HEART, LUNG)) for _ in words
])


def save(path, numbers):
    """Write vectors in the format of word2vec, and read them back by gensim."""
    vectors = KeyedVectors(WIDTH)
    vectors.add_vectors(HEART + LUNG, list(numbers))
    vectors.save_word2vec_format(path)
    return KeyedVectors.load_word2vec_format(path)


def by_hand(vectors, topic):
    """The mean cosine over pairs, and the same with the sign of both sums."""
    cosines = [float(vectors.similarity(*pair)) for pair in combinations(topic, 2)]
    signs = [np.sign(vectors[a].sum() * vectors[b].sum()) for a, b in combinations(topic, 2)]
    return np.mean(cosines), np.mean(np.multiply(cosines, signs))


def measured(path, topic):
    return WECoherencePairwise(word2vec_path=path, topk=len(topic)).score({'topics': [topic]})


vectors = save('vectors.txt', rows)
sums = {word: round(float(vectors[word].sum()), 2) for word in HEART + LUNG}
print('sums of the numbers:', sums)
TOPICS = {'heart': (HEART, 0.299, 0.906), 'lung': (LUNG, -0.182, 0.914), 'both': (HEART[:3] + LUNG[:3], -0.106, 0.301)}
for name, (topic, seen, expected) in TOPICS.items():
    found = measured('vectors.txt', topic)
    right, turned = by_hand(vectors, topic)
    print(f'{name:6s} coherence {found:.3f}, mean cosine {right:.3f}, mean cosine with signs of sums {turned:.3f}')
    assert abs(found - seen) < 1e-3, 'the coherence is another one now'
    assert abs(right - expected) < 1e-3 and abs(found - turned) < 1e-4

# Other signs of one coordinate, of all words: all cosines are the same.
pairwise, centroid = [], []
for coordinate in range(WIDTH):
    changed = rows.copy()
    changed[:, coordinate] *= -1
    others = save('changed.txt', changed)
    assert abs(by_hand(others, LUNG)[0] - by_hand(vectors, LUNG)[0]) < 1e-5
    pairwise.append(measured('changed.txt', LUNG))
    by_centroid = WECoherenceCentroid(topk=6, word2vec_path='changed.txt', binary=False)
    centroid.append(by_centroid.score({'topics': [LUNG]}))
print(f'lung, by the sign of one coordinate: {min(pairwise):.3f} to {max(pairwise):.3f}')
print(f'lung, by the centroid: {min(centroid):.3f} to {max(centroid):.3f}')
assert min(pairwise) < -0.17 and max(pairwise) > 0.9, 'the signs of coordinates make no difference now'
assert max(centroid) - min(centroid) > 0.5
PYTHON
echo 'As stated: a topic of synonyms gets less coherence than a jumble, by the sign of sums.'
