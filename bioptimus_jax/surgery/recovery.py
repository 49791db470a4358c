"""How near rebuilt rows come to the true ones: cosine, rank of the true token, norm; medians with intervals.

N: tokens rebuilt, V: source tokens, D: hidden size.
"""

from typing import Any

import numpy as np

from bioptimus_jax.surgery.rows import seeded

MEASURES = ('rank_cosine', 'rank_dot', 'cosine', 'norm_ratio')
RESAMPLES = 1000
BLOCK = 512
BY_CONTEXTS = {'0': (0, 0), '1': (1, 1), '2-4': (2, 4), '5-9': (5, 9), '10+': (10, None)}
BY_PIECES = {'1': (0, 1), '2': (2, 2), '3': (3, 3), '4+': (4, None)}


def measure(rows_NxD: np.ndarray, true_N: np.ndarray, table_VxD: np.ndarray) -> dict[str, np.ndarray]:
    """Of every rebuilt row, beside the true row table[true_N]: MEASURES, each [N].

    A rank counts the rows of the table that score higher than the true one, plus 1: by cosine with the rebuilt row,
    and by dot product, where long rows have it easier, as in the output layer. `norm_ratio` is rebuilt to true.
    """
    table_VxD = table_VxD.astype(np.float32)
    norms_V = np.linalg.norm(table_VxD, axis=1)
    safe_V = np.where(norms_V > 0, norms_V, 1)
    by_cosine_N, by_dot_N, cosine_N = (np.empty(len(true_N)) for _ in range(3))
    for start in range(0, len(true_N), BLOCK):
        part = slice(start, start + BLOCK)
        rows_BxD, own = rows_NxD[part].astype(np.float32), np.arange(len(true_N[part]))
        scores_BxV = rows_BxD @ table_VxD.T
        by_dot_N[part] = 1 + (scores_BxV > scores_BxV[own, true_N[part]][:, None]).sum(axis=1)
        scores_BxV /= safe_V
        true_B = scores_BxV[own, true_N[part]]
        by_cosine_N[part] = 1 + (scores_BxV > true_B[:, None]).sum(axis=1)
        lengths_B = np.linalg.norm(rows_BxD, axis=1)
        cosine_N[part] = true_B / np.where(lengths_B > 0, lengths_B, 1)
    ratio_N = np.linalg.norm(rows_NxD, axis=1) / safe_V[true_N]
    return {'rank_cosine': by_cosine_N, 'rank_dot': by_dot_N, 'cosine': cosine_N, 'norm_ratio': ratio_N}


def summary(
    measured: dict[str, np.ndarray], contexts_N: np.ndarray, pieces_N: np.ndarray, seed: int
) -> dict[str, Any]:
    """Per measure [median, low, high] with a bootstrap interval of 95 % over tokens; the rank by cosine by classes
    of contexts and of pieces as well, each [median, low, high, tokens]; classes without a token are left out."""
    result: dict[str, Any] = {name: _median(measured[name], seed) for name in MEASURES}
    for title, numbers_N, classes in (
        ('by_contexts', contexts_N, BY_CONTEXTS),
        ('by_pieces', pieces_N, BY_PIECES),
    ):
        result[title] = {}
        for name, (low, high) in classes.items():
            within = (numbers_N >= low) & (numbers_N <= (np.inf if high is None else high))
            if within.any():
                values = measured['rank_cosine'][within]
                result[title][name] = [*_median(values, seed), int(within.sum())]
    return result


def _median(values_N: np.ndarray, seed: int) -> list[float]:
    """[median, 2.5 %, 97.5 %] over RESAMPLES resamples; the same ones for every variant of a probe."""
    drawn = seeded(seed, len(values_N)).integers(0, len(values_N), (RESAMPLES, len(values_N)))
    low, high = np.quantile(np.median(values_N[drawn], axis=1), (0.025, 0.975))
    return [round(float(value), 4) for value in (np.median(values_N), low, high)]


def text(variants: list[dict[str, Any]]) -> str:
    """The table for a terminal: a line a variant, in the order given."""
    lines = [f'{"rank":>7} {"95 %":>13} {"by dot":>7} {"cosine":>7} {"norm":>7}']
    classes = {
        t: list(dict.fromkeys(n for v in variants for n in v[t])) for t in ('by_contexts', 'by_pieces')
    }
    for title, word in (('by_contexts', 'ctx'), ('by_pieces', 'pcs')):
        lines[0] += ''.join(f' {f"{name} {word}":>8}' for name in classes[title])
    lines[0] += '  variant (medians; the classes are ranks)'
    for v in variants:
        rank, low, high = v['rank_cosine']
        line = f'{rank:7.0f} {f"{low:.0f}-{high:.0f}":>13} {v["rank_dot"][0]:7.0f} {v["cosine"][0]:7.3f} '
        line += f'{v["norm_ratio"][0]:7.2f}'
        for title, names in classes.items():
            line += ''.join(f' {v[title][n][0]:8.0f}' if n in v[title] else f' {"":>8}' for n in names)
        lines.append(f'{line}  {v["name"]}')
    return '\n'.join(lines)
