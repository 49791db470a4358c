"""Rankings of documents for queries: their measures, one order for equal scores, and BM25 to beat.

The measures are those of trec_eval, which BEIR reports: a document is relevant from grade 1, the gain of nDCG is the
grade, and the ideal has all judged documents. Rankings have DEPTH documents at most.

Shapes: Q queries, N documents, V words, K a rank that is counted.
"""

import functools
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from bioptimus_jax.scoring.metrics import Answers, Metric, divided

DEPTH = 1000
"""The documents of a ranking, as in trec_eval."""
PLACES = 6
"""Decimal places of a score that count: equal texts have scores that differ by rounding, and no more."""
QUERIES_AT_ONCE = 256
K1, B = 0.9, 0.4
"""What BEIR's own BM25 has (Anserini), for how often a word counts, and for long documents."""


def ranked(
    scores: Callable[[int, int], np.ndarray],
    queries: Sequence[str],
    documents: Sequence[str],
    least: float = -math.inf,
) -> list[tuple[str, ...]]:
    """The ids of the best documents of every query, the best first, those with a score above `least`.

    `scores(begin, end)`: of those queries with all documents. Equal scores: the larger id comes first, as text, by
    trec_eval's rule. A document with the id of the query is not ranked, as in BEIR.
    """
    names, found = np.array(documents), []
    place_N = np.empty(len(names), np.int64)
    place_N[np.argsort([name.encode() for name in documents], kind='stable')] = np.arange(len(names))
    for begin in range(0, len(queries), QUERIES_AT_ONCE):
        end = min(begin + QUERIES_AT_ONCE, len(queries))
        for query, scores_N in zip(queries[begin:end], np.round(scores(begin, end), PLACES), strict=True):
            order_N = np.lexsort((-place_N, -scores_N))
            order_N = order_N[(scores_N[order_N] > least) & (names[order_N] != query)]
            found.append(tuple(names[order_N[:DEPTH]].tolist()))
    return found


@functools.cache
def _word() -> re.Pattern[str]:
    # Python's \w has no combining marks, so it would cut words of Hindi, and of texts whose accents stand apart.
    marks = [sign for sign in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(sign)[0] == 'M']
    # All of them lie behind U+02FF: that is asked first, as it takes a fifth of the time.
    return re.compile(rf'\w+(?:(?=[^\x00-\u02ff])[{"".join(marks)}]+\w*)*')


def words_in(text: str) -> list[str]:
    """Runs of letters, their marks, and digits, in small letters; accents may stand on their letters or behind them."""
    return _word().findall(unicodedata.normalize('NFC', text.lower()))


class Bm25:
    """BM25 (Robertson et al. 1994), with the idf of Lucene, over `words_in` texts.

    scikit-learn counts the words; no word is left out and none is cut to its stem.
    """

    def __init__(self, texts: Sequence[str]):
        from sklearn.feature_extraction.text import CountVectorizer  # slow to import

        self.counter = CountVectorizer(analyzer=words_in, dtype=np.float64)
        counts_NxV = self.counter.fit_transform(texts).tocsr()
        length_N = np.asarray(counts_NxV.sum(axis=1)).ravel()
        seen_V = np.asarray((counts_NxV > 0).sum(axis=0)).ravel()
        idf_V = np.log1p((len(texts) - seen_V + 0.5) / (seen_V + 0.5))
        row = np.repeat(np.arange(len(texts)), np.diff(counts_NxV.indptr))
        norm_N = K1 * (1 - B + B * length_N / length_N.mean())
        counts = counts_NxV.data
        weights = counts / (counts + norm_N[row]) * idf_V[counts_NxV.indices]
        self.weights_NxV = scipy.sparse.csr_matrix(
            (weights, counts_NxV.indices, counts_NxV.indptr), counts_NxV.shape
        )

    def scores(self, queries: Sequence[str]) -> np.ndarray:
        """The score of every document for every query, QxN."""
        return (self.counter.transform(queries) @ self.weights_NxV.T).toarray()


def _per_query(
    name: str, title: str, meaning: str, of_query: Callable[[np.ndarray, np.ndarray], float]
) -> Metric:
    """The mean over queries. `of_query`: of the grades of a ranking, and of all judged documents."""

    def counts(gold: Answers, predicted: Answers) -> np.ndarray:
        values = []
        for judged, ranking in zip(gold, predicted, strict=True):
            grades = {document: max(grade, 0) for document, grade in judged}
            in_ranking = np.array([grades.get(document, 0) for document in ranking], np.float64)
            values.append((of_query(in_ranking, np.array(list(grades.values()), np.float64)), 1.0))
        return np.array(values, np.float64).reshape(-1, 2)

    def value(sums_x2: np.ndarray) -> np.ndarray:
        return divided(sums_x2[..., 0], sums_x2[..., 1])

    return Metric(name, title, title, meaning, ('sum', 'queries'), counts, value)


def _gain(grades_K: np.ndarray) -> float:
    return float((grades_K / np.log2(np.arange(2, len(grades_K) + 2))).sum())


def _ndcg(grades: np.ndarray, judged: np.ndarray, most: int) -> float:
    ideal = _gain(np.sort(judged)[::-1][:most])
    return _gain(grades[:most]) / ideal if ideal else 0.0


def _recall(grades: np.ndarray, judged: np.ndarray, most: int) -> float:
    return float((grades[:most] > 0).sum() / max((judged > 0).sum(), 1))


def _average_precision(grades: np.ndarray, judged: np.ndarray) -> float:
    relevant = grades > 0
    precisions = np.cumsum(relevant) / np.arange(1, len(grades) + 1)
    return float(precisions[relevant].sum() / max((judged > 0).sum(), 1))


def ndcg(most: int) -> Metric:
    """The gain of the first documents, as a share of that of the ideal order."""
    of_query = functools.partial(_ndcg, most=most)
    return _per_query('ndcg', f'nDCG@{most}', f'queries, their first {most} documents', of_query)


def recall(most: int) -> Metric:
    """The share of the relevant documents that is among the first."""
    of_query = functools.partial(_recall, most=most)
    return _per_query('recall', f'recall@{most}', f'queries, their first {most} documents', of_query)


def mean_average_precision() -> Metric:
    """The mean of the precision at every relevant document, 0 for one that is not found."""
    return _per_query('map', 'MAP', f'queries, their first {DEPTH} documents', _average_precision)


METRICS: dict[str, Any] = {
    'default': ndcg(10),
    'recall@10': recall(10),
    'recall@100': recall(100),
    'map': mean_average_precision(),
}
"""The measures by their keys in records; the first is what models are compared by."""
