"""Initialisations that are not in the paper: rows drawn like the source's, and similarity-weighted copies.

V: source tokens, M: source tokens with contexts, N: new tokens, D: hidden size.
"""

import numpy as np

from bioptimus_jax.surgery.rows import seeded, unit

MEAN_RESIZING_VARIANCE = 1e-9  # what transformers multiplies the covariance with
BLOCK = 512


def gaussian(table_VxD: np.ndarray, count: int, seed: int, variance: float = 1.0) -> np.ndarray:
    """Normal rows with the mean of the source's rows, and their covariance times `variance`: float64 [count, D].

    They lie where the source's rows lie and are as long, but say nothing of their token.
    """
    mean_D = table_VxD.mean(axis=0, dtype=np.float64)
    centred_VxD = table_VxD.astype(np.float64) - mean_D
    values_D, vectors_DxD = np.linalg.eigh(centred_VxD.T @ centred_VxD / len(table_VxD))
    # The symmetric root is the one that does not depend on the signs of eigenvectors.
    root_DxD = (vectors_DxD * np.sqrt(np.maximum(values_D, 0))) @ vectors_DxD.T
    drawn_NxD = seeded(seed, count).standard_normal((count, len(mean_D)))
    return mean_D + np.sqrt(variance) * drawn_NxD @ root_DxD


def mean_resizing(table_VxD: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Nearly the mean of the source's rows, as transformers' resize_token_embeddings draws: float64 [count, D]."""
    return gaussian(table_VxD, count, seed, MEAN_RESIZING_VARIANCE)


def similarity(states_NxD: np.ndarray, known_MxD: np.ndarray, rows_MxD: np.ndarray) -> np.ndarray:
    """Weighted sums of known rows; the weights are the sparsemax of the cosines of context means: float64 [N, D].

    As in FOCUS, with context means of the source in place of fastText vectors, centred by the mean of the known
    ones, because states of one layer all point the same way.
    """
    centre_D = known_MxD.mean(axis=0, dtype=np.float64)
    known_MxD = unit(known_MxD - centre_D)
    made_NxD = np.empty((len(states_NxD), rows_MxD.shape[1]))
    for start in range(0, len(states_NxD), BLOCK):
        cosines_BxM = unit(states_NxD[start : start + BLOCK] - centre_D) @ known_MxD.T
        made_NxD[start : start + BLOCK] = sparsemax(cosines_BxM) @ rows_MxD
    return made_NxD


def sparsemax(scores_BxM: np.ndarray) -> np.ndarray:
    """Per row the point of the probability simplex that is nearest to the scores; most weights are 0 (Martins and
    Astudillo, 2016)."""
    descending_BxM = -np.sort(-scores_BxM, axis=1)
    sums_BxM = np.cumsum(descending_BxM, axis=1)
    numbers_M = np.arange(1, scores_BxM.shape[1] + 1)
    size_B = (1 + numbers_M * descending_BxM > sums_BxM).sum(axis=1)
    threshold_B = (np.take_along_axis(sums_BxM, size_B[:, None] - 1, axis=1)[:, 0] - 1) / size_B
    return np.maximum(scores_BxM - threshold_B[:, None], 0)
