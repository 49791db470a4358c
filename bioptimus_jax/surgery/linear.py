"""A linear map from states of the source to its input rows, fitted on tokens whose rows are known.

M: tokens of the fit, N: tokens mapped, D: hidden size. With centred states X [M, D] and rows Y [M, D] the map is
W = (X'X + r t I)^-1 X'Y, [D, D], where t is the mean eigenvalue of X'X and r the ridge; a state x becomes
(x - mean of the states) W + mean of the rows. r is the one of RIDGES that leaves the least squared error in
a fifth of the tokens, which the fit has not seen; then all tokens are used.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.surgery.rows import seeded

RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
HELD_OUT = 0.2
LEAST_TOKENS = 10


@dataclasses.dataclass(frozen=True)
class LinearMap:
    """The map, and how well it does: `explained` is the share of the held-out rows' variance that it predicts."""

    weights_DxD: np.ndarray
    state_D: np.ndarray
    row_D: np.ndarray
    ridge: float
    tokens: int
    explained: float

    def __call__(self, states_NxD: np.ndarray) -> np.ndarray:
        """Rows for states: float64 [N, D]."""
        return (states_NxD - self.state_D) @ self.weights_DxD + self.row_D


def side_by_side(known: Sequence[np.ndarray]) -> Callable[..., np.ndarray]:
    """What puts blocks of columns side by side, each with a mean square deviation of 1 as that of `known` is measured.

    A ridge costs every column alike, so that blocks in other units would be of other weight.
    """
    whole = (block.astype(np.float64) for block in known)
    scales = [(np.sqrt(block.var(axis=0).mean()) if len(block) else 0.0) or 1.0 for block in whole]
    return lambda *blocks: np.hstack([block / scale for block, scale in zip(blocks, scales, strict=True)])


def fit(states_MxD: np.ndarray, rows_MxD: np.ndarray, seed: int) -> LinearMap:
    """The ridge map. Raises InputError for fewer than LEAST_TOKENS tokens, which say nothing about others."""
    count = len(states_MxD)
    if count < LEAST_TOKENS:
        raise InputError(
            f'config.surgery.map: only {count} tokens of the source can be fitted on in the contexts, '
            f'{LEAST_TOKENS} are needed; take a larger corpus, or config.surgery.map=none'
        )
    order = seeded(seed, count).permutation(count)
    held, seen = np.split(order, [max(int(count * HELD_OUT), 1)])
    spread = ((rows_MxD[held] - rows_MxD[seen].mean(axis=0, dtype=np.float64)) ** 2).sum()
    # The ridge is chosen on tokens that the fit has not seen: on its own ones the smallest would always win.
    errors = []
    for weights_DxD, state_D, row_D in _solved(states_MxD[seen], rows_MxD[seen], RIDGES):
        predicted = (states_MxD[held] - state_D) @ weights_DxD + row_D
        errors.append(float(((predicted - rows_MxD[held]) ** 2).sum()))
    best = int(np.argmin(errors))
    [(weights_DxD, state_D, row_D)] = _solved(states_MxD, rows_MxD, RIDGES[best : best + 1])
    explained = 1 - errors[best] / float(spread) if spread else 0.0
    return LinearMap(weights_DxD, state_D, row_D, RIDGES[best], count, explained)


def _solved(
    states_MxD: np.ndarray, rows_MxD: np.ndarray, ridges: tuple[float, ...]
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(W, mean state, mean row) for each ridge, from one decomposition."""
    state_D, row_D = states_MxD.mean(axis=0, dtype=np.float64), rows_MxD.mean(axis=0, dtype=np.float64)
    centred_MxD = states_MxD.astype(np.float64) - state_D
    # X'X = V diag(values) V': with it every ridge costs a product, not a decomposition of its own.
    values_D, vectors_DxD = np.linalg.eigh(centred_MxD.T @ centred_MxD)
    projected_DxD = vectors_DxD.T @ (centred_MxD.T @ (rows_MxD.astype(np.float64) - row_D))
    mean = float(values_D.mean()) or 1.0  # 0 where all states are alike: any other number then gives W = 0
    return [
        # Rounding may leave eigenvalues a little below 0, where X'X has none.
        (vectors_DxD @ (projected_DxD / (np.maximum(values_D, 0) + r * mean)[:, None]), state_D, row_D)
        for r in ridges
    ]
