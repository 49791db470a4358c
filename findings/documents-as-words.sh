#!/usr/bin/env bash
# tmtoolkit 0.12.0: `metric_held_out_documents_wallach09`, the probability of documents that a topic model has not seen,
# gives each document one topic and each word none. It prefers a model without topics to the true one.
#   - 40 documents of 20 words are drawn from an LDA with two topics. By integration over the mixture of topics their
#     log probability is -1035 under the true topics, and -1109 under two topics that are both the same. The package
#     says -1122 and -1110: the true model is worse by 12, where it is better by 74.
#   - For a document of one word it is right (-1.4). For [0, 1, 0, 2, 3, 3], three words of each topic, it is -11.4
#     where -9.2 is right, and for six words of one topic it is -5.5 where -6.2 is right. All are from 20000 samples.
# One would expect the estimate of the paper that the documentation names: it draws a topic for each word of a document,
# from the mixture of that document. Here one topic is drawn for each document, all words of a document are counted as
# words of it, and the prior over topics is put on the numbers of documents, as if all documents were one. It is one of
# the measures that the package offers for finding the number of topics, and is to be as large as may be. Nothing is
# raised. Documents of one topic gain and mixtures lose, so a model is chosen for what LDA is not.
# Remedy: one of the paper's estimators, for each document by itself, or another measure such as coherence.
# Seen on 2026-11-30, in the newest version.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" --quiet install tmtoolkit==0.12.0 gmpy2==2.3.2
cat > "$folder/try.py" <<'PYTHON'
import importlib.metadata

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta
from tmtoolkit.topicmod.evaluate import metric_held_out_documents_wallach09

print('tmtoolkit', importlib.metadata.version('tmtoolkit'))
TOPICS = np.array([[0.45, 0.45, 0.05, 0.05], [0.05, 0.05, 0.45, 0.45]])
SAME = np.full((2, 4), 0.25)


def given_mixture(share, document, topics):
    """Probability of the words of a document whose share of topic 0 is this."""
    return np.prod((share * topics[0] + (1 - share) * topics[1]) ** document)


def right(documents, topics, prior):
    """Log probability of all documents, by integration over the share of topic 0 in each."""
    def density(share, document):
        return beta.pdf(share, prior, prior) * given_mixture(share, document, topics)
    return sum(np.log(quad(density, 0, 1, args=(document,))[0]) for document in documents)


def mixtures(documents, topics, prior):
    """The expected mixture of topics of each document."""
    shares = np.linspace(0.0005, 0.9995, 1000)
    rows = []
    for document in documents:
        weights = beta.pdf(shares, prior, prior) * [given_mixture(share, document, topics) for share in shares]
        rows.append((shares * weights).sum() / weights.sum())
    return np.column_stack([rows, 1 - np.array(rows)])


def told(documents, topics, prior):
    """What the package says, from 20000 samples."""
    np.random.seed(0)
    return metric_held_out_documents_wallach09(documents, mixtures(documents, topics, prior), topics, prior, 20000)


for words, expected in (([0], (-1.39, -1.39)), ([0, 1, 0, 2, 3, 3], (-11.4, -9.2)), ([0, 1, 0, 0, 1, 1], (-5.5, -6.2))):
    document = np.bincount(words, minlength=4)[None]
    found = told(document, TOPICS, 0.5), right(document, TOPICS, 0.5)
    print(f'{words}: {found[0]:.2f}, right {found[1]:.2f}')
    assert np.allclose(found, expected, atol=0.06), 'words have topics now'

draw = np.random.default_rng(0)
shares = draw.dirichlet([1, 1], 40)
documents = np.array([np.bincount(draw.choice(4, 20, p=share @ TOPICS), minlength=4) for share in shares])
assert documents.shape == (40, 4) and (documents.sum(1) == 20).all()
found = {name: (told(documents, topics, 1.0), right(documents, topics, 1.0))
         for name, topics in (('true topics', TOPICS), ('two equal topics', SAME))}
for name, (said, truth) in found.items():
    print(f'40 documents, {name}: {said:.1f}, right {truth:.1f}')
(true_said, true_right), (same_said, same_right) = found.values()
assert true_right > same_right + 30 and true_said < same_said - 5
assert abs(same_said - same_right) < 1
PYTHON
"$folder/env/bin/python" "$folder/try.py"
echo 'As stated: each document has one topic, and the model without topics wins.'
