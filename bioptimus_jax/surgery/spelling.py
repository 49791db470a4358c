"""Rows predicted from characters alone: ridge regression from n-grams of a token's text to rows of the source.

Inflections and compounds have rows near each other's, so spelling says much about a row, and it is known of every
token without reading a sentence. V: tokens of the source, N: tokens predicted, F: n-grams, D: columns of the table.
"""

import collections
import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg

from bioptimus_jax.surgery.rows import seeded
from bioptimus_jax.tokenizer.subwords import Subwords

LONGEST = 6
GRAMS = 8192
"""The most frequent ones. With MiniLM 4,096 have a median rank of 6 for hidden rows, 8,192 of 5, in twice the time."""
RIDGE = 1.0
"""Features of a token have length 1. MiniLM: 3 is worse by a rank or two, and 0.1 and 0.3 are no better than 1."""
GRAMS_FOR_ONE = 512
"""N-grams for each token: a single token takes conjugate gradients a second, and all 8,192 of them decomposed eight."""
EXACT = 1e-13
"""Relative residual of conjugate gradients: far below what float32 rows tell apart."""
PARTS = 2
BLOCK = 512

Predictor = Callable[[Sequence[str]], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Spelled:
    """Rows predicted from characters: of new tokens [N, D], and of `anchors` [M, D] as if the source lacked them.

    `seconds`: what the first and the second of these took.
    """

    rows: np.ndarray
    anchors: np.ndarray
    seconds: tuple[float, float]


def spelled(
    subwords: Subwords, table_VxD: np.ndarray, tokens: Sequence[str], anchors_M: np.ndarray, seed: int
) -> Spelled:
    """What the characters of `written` tokens and of anchors predict, as learned from every token of the source.

    Special and reserved tokens teach nothing, nor do tokens that are hidden.
    """
    started, known_K = time.monotonic(), np.sort(subwords.drawn_N)
    texts, rows_KxD = with_borders(subwords, known_K), table_VxD[known_K]
    rows_NxD, halfway = fitted(texts, rows_KxD)(tokens), time.monotonic()
    anchors_MxD = crossed(texts, rows_KxD, np.searchsorted(known_K, anchors_M), seed)
    return Spelled(rows_NxD, anchors_MxD, (halfway - started, time.monotonic() - halfway))


def with_borders(subwords: Subwords, numbers: Iterable[int]) -> list[str]:
    """Tokens with marks of their borders, `<kinase>`; one that continues a word has no first mark, `ase>`."""
    return [f'{"<" if subwords.begins_V[i] else ""}{subwords.text(int(i))}>' for i in numbers]


def grams(text: str) -> set[str]:
    """All runs of one to LONGEST characters of a `written` token."""
    return {text[i : i + n] for n in range(1, LONGEST + 1) for i in range(len(text) - n + 1)}


def fitted(texts: Sequence[str], rows_VxD: np.ndarray) -> Predictor:
    """Rows, float64 [N, D], for `written` tokens, as learned from those of known rows."""
    counts = collections.Counter(gram for text in texts for gram in grams(text))
    # Grams of the same count in the order of their letters: the choice depends on nothing else.
    ordered = sorted(counts, key=lambda gram: (-counts[gram], gram))[:GRAMS]
    number_of = {gram: number for number, gram in enumerate(ordered)}
    features_VxF, mean_D = _features(texts, number_of), rows_VxD.mean(axis=0, dtype=np.float64)
    targets_FxD = features_VxF.T @ (rows_VxD - mean_D)

    def predict(wanted: Sequence[str]) -> np.ndarray:
        wanted_NxF = _features(wanted, number_of)
        if GRAMS_FOR_ONE * len(wanted) <= len(ordered):
            return mean_D + _solved(features_VxF, wanted_NxF) @ targets_FxD
        return mean_D + wanted_NxF @ _weights(features_VxF, targets_FxD)

    return predict


def _weights(features_VxF: scipy.sparse.csr_array, targets_FxD: np.ndarray) -> np.ndarray:
    """What every n-gram adds to a row."""
    products_FxF = (features_VxF.T @ features_VxF).toarray()
    products_FxF[np.diag_indices_from(products_FxF)] += RIDGE
    # The ridge makes it positive definite, so that the faster Cholesky decomposition solves it.
    weights_FxD: np.ndarray = scipy.linalg.solve(products_FxF, targets_FxD, assume_a='pos', overwrite_a=True)
    return weights_FxD


def _solved(features_VxF: scipy.sparse.csr_array, wanted_NxF: scipy.sparse.csr_array) -> np.ndarray:
    """What every n-gram's target adds to the row of each wanted token: the same answer without the products."""
    across_FxV = features_VxF.T.tocsr()
    diagonal_F = features_VxF.multiply(features_VxF).sum(axis=0) + RIDGE
    shape = (len(diagonal_F), len(diagonal_F))

    def operator(multiply: Callable[[np.ndarray], np.ndarray]) -> scipy.sparse.linalg.LinearOperator:
        return scipy.sparse.linalg.LinearOperator(shape, matvec=multiply, dtype=np.float64)

    ridged = operator(lambda x_F: across_FxV @ (features_VxF @ x_F) + RIDGE * x_F)
    scaled = operator(lambda x_F: x_F / diagonal_F)
    found = [scipy.sparse.linalg.cg(ridged, row_F, rtol=EXACT, M=scaled)[0] for row_F in wanted_NxF.toarray()]
    return np.array(found).reshape(len(found), len(diagonal_F))


def crossed(texts: Sequence[str], rows_VxD: np.ndarray, wanted: np.ndarray, seed: int) -> np.ndarray:
    """Rows of known tokens as if they were not known: float64 [len(wanted), D].

    The `wanted` numbers are cut into PARTS by chance; each is predicted by what the others and all remaining tokens
    teach. What is learned from such rows holds for tokens that are new.
    """
    predicted = np.empty((len(wanted), rows_VxD.shape[1]))
    order = seeded(seed, len(texts), len(wanted)).permutation(len(wanted))
    for part in np.array_split(order, PARTS):
        kept = np.setdiff1d(np.arange(len(texts)), wanted[part])
        if len(part):
            predict = fitted([texts[i] for i in kept], rows_VxD[kept])
            predicted[part] = predict([texts[i] for i in wanted[part]])
    return predicted


def likeness(texts: Sequence[str], known: Sequence[str]) -> np.ndarray:
    """How like the nearest of the `known` tokens each of N looks: the highest cosine of their n-grams, float64 [N]."""
    numbers: dict[str, int] = {}
    for text in known:
        for gram in sorted(grams(text)):
            numbers.setdefault(gram, len(numbers))
    others_FxV = _features(known, numbers).T.tocsr()
    found = [np.zeros(0)]
    for start in range(0, len(texts), BLOCK):
        part = texts[start : start + BLOCK]
        features = _features(part, numbers)
        # Features have length 1 over the grams that are known; the others of a token count as well.
        share_B = np.sqrt(np.diff(features.indptr) / [len(grams(text)) for text in part])
        found.append((features @ others_FxV).max(axis=1).toarray().ravel() * share_B)
    return np.concatenate(found)


def _features(texts: Iterable[str], number_of: dict[str, int]) -> scipy.sparse.csr_array:
    """1 where a token has the n-gram, then each token at length 1; 0 where it has none of them: [V, F]."""
    columns, starts = [], [0]
    for text in texts:
        columns += sorted(number_of[gram] for gram in grams(text) if gram in number_of)
        starts.append(len(columns))
    lengths = np.diff(starts)
    values = np.repeat(1 / np.sqrt(np.maximum(lengths, 1)), lengths)
    return scipy.sparse.csr_array((values, columns, starts), (len(lengths), len(number_of)))
