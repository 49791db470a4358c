"""Geometry of the word embeddings: do the rows share one direction, and are new rows like shared ones?

Rows only, without special and [unused] tokens. N rows, D hidden size.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from bioptimus_jax.vocab.wordpiece import SPECIAL_TOKENS

UNUSED = re.compile(r'\[unused\d+\]')


def measure(rows_NxD: np.ndarray, *, pairs: int, seed: int) -> dict[str, Any]:
    """Mean cosine of random pairs (raw and centred, with standard errors), top component, norms.

    The top principal component's share is that of the variance around the mean. Cosine 0 and share 1/D are
    isotropic. Raises ValueError with fewer than two rows.
    """
    if len(rows_NxD) < 2:
        raise ValueError('two rows or more have a geometry')
    rows_NxD = rows_NxD.astype(np.float64)
    centred_NxD = rows_NxD - rows_NxD.mean(axis=0, keepdims=True)
    norms_N = np.linalg.norm(rows_NxD, axis=1)
    cosine, cosine_error = mean_cosine(rows_NxD, pairs, seed)
    centred, centred_error = mean_cosine(centred_NxD, pairs, seed)
    spectrum_D = np.clip(np.linalg.eigvalsh(centred_NxD.T @ centred_NxD), 0, None)
    quantiles = np.quantile(norms_N, (0.05, 0.25, 0.5, 0.75, 0.95))
    return {
        'count': len(rows_NxD),
        'cosine': cosine,
        'cosine_error': cosine_error,
        'cosine_centred': centred,
        'cosine_centred_error': centred_error,
        'top_component_share': float(spectrum_D[-1] / spectrum_D.sum()) if spectrum_D.sum() > 0 else 0.0,
        'norm_mean': float(norms_N.mean()),
        'norm_sd': float(norms_N.std(ddof=1)),
        'norm_quantiles': dict(zip(('5', '25', '50', '75', '95'), map(float, quantiles), strict=True)),
    }


def mean_cosine(rows_NxD: np.ndarray, pairs: int, seed: int) -> tuple[float, float]:
    """Mean cosine of random pairs of different rows, and its standard error. A zero row has cosine 0."""
    generator = np.random.default_rng(seed)
    first = generator.integers(len(rows_NxD), size=pairs)
    second = (first + generator.integers(1, len(rows_NxD), size=pairs)) % len(rows_NxD)
    lengths_Nx1 = np.linalg.norm(rows_NxD, axis=1, keepdims=True)
    unit_NxD = rows_NxD / np.where(lengths_Nx1 > 0, lengths_Nx1, 1.0)
    cosines = np.einsum('pd,pd->p', unit_NxD[first], unit_NxD[second])
    return float(cosines.mean()), float(cosines.std(ddof=1) / np.sqrt(pairs))


def by_kind(
    table_VxD: np.ndarray, vocabulary: Sequence[str], new: frozenset[str], *, pairs: int, seed: int
) -> dict[str, Any]:
    """`measure` of all rows, of those shared with the source and of new ones; two rows or more each."""
    real = [i for i, t in enumerate(vocabulary) if t not in SPECIAL_TOKENS and not UNUSED.fullmatch(t)]
    groups = {
        'all': real,
        'shared': [i for i in real if vocabulary[i] not in new],
        'new': [i for i in real if vocabulary[i] in new],
    }
    if not groups['new'] or not groups['shared']:
        groups = {'all': real}
    return {
        name: measure(table_VxD[at], pairs=pairs, seed=seed) for name, at in groups.items() if len(at) > 1
    }
