"""Tables of embedding rows in numpy: scale, fallback, the table that is filled, neighbours.

V: source tokens, N: new tokens, W: the run's vocabulary, D: hidden size. Sums are taken in float64.
"""

import dataclasses

import numpy as np

LEAST_ROWS = 10
"""A mean of fewer rows is their own more than that of the space they lie in."""


def seeded(*numbers: int) -> np.random.Generator:
    """A generator whose stream is a function of these numbers: the seed, and sizes that tell its uses apart."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(numbers)))


def shuffled(rows_NxD: np.ndarray, seed: int) -> np.ndarray:
    """The same rows, each at the place of another: float64 [N, D]; a single row stays.

    A control that keeps lengths, directions and covariance, and takes away only what a row says of its own token.
    """
    # The 1 sets this stream apart from other draws of as many numbers with the same seed.
    order_N = seeded(seed, len(rows_NxD), 1).permutation(len(rows_NxD))
    dealt_NxD = np.empty_like(rows_NxD)
    dealt_NxD[order_N] = rows_NxD[np.roll(order_N, 1)]  # one cycle through all: none stays where it was
    return dealt_NxD


@dataclasses.dataclass(frozen=True)
class Scaling:
    """Rows moved and stretched as a whole: what lies at `own` [D] comes to `wanted` [D], distances grow by `factor`."""

    name: str
    own: np.ndarray
    wanted: np.ndarray
    factor: float

    def __call__(self, rows_NxD: np.ndarray) -> np.ndarray:
        """The rows in their new place: float64 [N, D]."""
        return self.wanted + self.factor * (rows_NxD - self.own)


def scaling(name: str, rows_NxD: np.ndarray, table_VxD: np.ndarray) -> Scaling:
    """What brings new rows to the source's rows: as `literal`, nothing at all.

    `rescaled`: their mean Euclidean norm becomes that of the source's rows. Directions and the ratios of norms stay.
    `centred`: their mean, and their mean distance from it, become those of the source's rows. States and rows each lie
    around a mean of their own, far from zero; one factor for all cannot bring one to the other. Fewer than LEAST_ROWS
    rows are rescaled instead: moved to the source's mean they would lose what is their own.
    """
    own_D = wanted_D = np.zeros(table_VxD.shape[1])
    if name == 'centred' and len(rows_NxD) < LEAST_ROWS:
        name = 'rescaled'
    if name == 'literal' or not len(rows_NxD):
        return Scaling('literal', own_D, wanted_D, 1.0)
    table_VxD = table_VxD.astype(np.float64)
    if name == 'centred':
        own_D, wanted_D = rows_NxD.mean(axis=0), table_VxD.mean(axis=0)
    distance, goal = (
        float(np.linalg.norm(values - mean_D, axis=1).mean())
        for values, mean_D in ((rows_NxD, own_D), (table_VxD, wanted_D))
    )
    return Scaling(name, own_D, wanted_D, goal / distance if distance else 1.0)


def filled_table(
    shared_W: np.ndarray, table_VxD: np.ndarray, new_W: np.ndarray, rows_NxD: np.ndarray
) -> np.ndarray:
    """Shared rows of the source beside new ones: float32 [W, D].

    `new_W` lists the ids that `rows_NxD` belong to. Raises ValueError, naming the ids, for a row that nothing
    filled, that two rules filled, or that is not finite.
    """
    filled_WxD = np.full((len(shared_W), table_VxD.shape[1]), np.nan, np.float32)
    copied_W = np.flatnonzero(shared_W >= 0)
    twice = np.intersect1d(copied_W, new_W)
    if len(twice) or len(np.unique(new_W)) != len(new_W):
        raise ValueError(f'rows filled twice: {twice[:5].tolist()}')
    filled_WxD[copied_W] = table_VxD[shared_W[copied_W]]
    filled_WxD[new_W] = rows_NxD
    empty = np.flatnonzero(~np.isfinite(filled_WxD).all(axis=1))
    if len(empty):
        raise ValueError(f'{len(empty)} rows that nothing filled, or not finite: ids {empty[:5].tolist()}')
    return filled_WxD


def cosines(left_NxD: np.ndarray, right_NxD: np.ndarray) -> np.ndarray:
    """Cosine of corresponding rows, 0 where one of them is 0: float64 [N]."""
    return np.einsum('nd,nd->n', unit(left_NxD), unit(right_NxD))


def neighbours(
    table_WxD: np.ndarray, wanted_N: np.ndarray, count: int = 10, block: int = 512
) -> tuple[np.ndarray, np.ndarray]:
    """The `count` rows of highest cosine for each wanted id, itself left out, nearest first.

    Returns ids int64 [N, count] and cosines float32 [N, count].
    """
    count = max(min(count, len(table_WxD) - 1), 0)
    unit_WxD = unit(table_WxD).astype(np.float32)
    ids_NxC = np.empty((len(wanted_N), count), np.int64)
    cosines_NxC = np.empty((len(wanted_N), count), np.float32)
    for start in range(0, len(wanted_N) if count else 0, block):
        own_B = wanted_N[start : start + block]
        scores_BxW = unit_WxD[own_B] @ unit_WxD.T
        scores_BxW[np.arange(len(own_B)), own_B] = -np.inf
        best_BxC = np.argpartition(-scores_BxW, count - 1, axis=1)[:, :count]
        # `argpartition` gives no certain order; by ids first, so that the stable sort has equal cosines by id.
        best_BxC.sort(axis=1)
        values_BxC = np.take_along_axis(scores_BxW, best_BxC, axis=1)
        order_BxC = np.argsort(-values_BxC, axis=1, kind='stable')
        ids_NxC[start : start + block] = np.take_along_axis(best_BxC, order_BxC, axis=1)
        cosines_NxC[start : start + block] = np.take_along_axis(values_BxC, order_BxC, axis=1)
    return ids_NxC, cosines_NxC


def unit(rows_NxD: np.ndarray) -> np.ndarray:
    """The rows at length 1, those of length 0 as they are: float64 [N, D]."""
    rows_NxD = rows_NxD.astype(np.float64)
    norms_N = np.linalg.norm(rows_NxD, axis=1, keepdims=True)
    return rows_NxD / np.where(norms_N > 0, norms_N, 1.0)
