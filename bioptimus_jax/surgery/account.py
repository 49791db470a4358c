"""What surgery did: where every parameter and every token's row came from, norms and nearest neighbours.

V: source tokens, W: the run's vocabulary, N: its new tokens, D: hidden size.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from bioptimus_jax.schema import Experiment
from bioptimus_jax.surgery import rows
from bioptimus_jax.trees import flatten

COPIED, SYNTHESISED, FRESH = 'copied', 'synthesised', 'fresh'
NEIGHBOURS = 10


@dataclasses.dataclass(frozen=True)
class NewRows:
    """Rows of new tokens [N, D], the context-free rows beside them, and what is known of each token.

    `averaged` is what the layers that are read make of the token alone (through the map, where there is one) where a
    row falls back to that, else averaged_input; moved and stretched as the rows are, by `scale` and `factor`.
    `spellings` are source ids, `spelled` the same as strings, `windows` counts the sentences encoded.
    `map` says how well the map of `surgery.map` was fitted.
    """

    rows: np.ndarray
    averaged: np.ndarray
    spellings: list[list[int]]
    spelled: list[list[str]]
    contexts: np.ndarray
    fallback: Sequence[str | None]
    scale: str
    factor: float
    kind: str
    windows: int
    map: dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Origin of every parameter (path -> copied | synthesised | fresh) and, with a source, of every row.

    A parameter with rows of several origins counts as what its new rows are. `shared` holds source ids or -1.
    `bias` holds what the rule for the new tokens' MLM bias has fitted.
    """

    parameters: dict[str, str]
    shared: np.ndarray | None = None
    new_ids: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    new: NewRows | None = None
    source_table: np.ndarray | None = None
    bias: dict[str, float] | None = None


def token_records(vocabulary: list[str], table_WxD: np.ndarray, ledger: Ledger) -> list[dict[str, Any]]:
    """One record per token in order of ids; new tokens say how they were made and what lies near them.

    `cosine` compares a new row with the context-free value of `NewRows.averaged`; `neighbours` are the ten
    tokens of highest cosine in the new table, `[token, cosine]`.
    """
    norms_W = np.linalg.norm(table_WxD.astype(np.float64), axis=1)
    kind = FRESH if ledger.shared is None else COPIED
    records: list[dict[str, Any]] = [
        {'token': token, 'id': i, 'kind': kind, 'norm': round(float(norm), 5)}
        for i, (token, norm) in enumerate(zip(vocabulary, norms_W, strict=True))
    ]
    new = ledger.new
    if new is None:
        return records
    near_NxC, values_NxC = rows.neighbours(table_WxD, ledger.new_ids, NEIGHBOURS)
    cosines_N = rows.cosines(new.rows, new.averaged)
    for n, i in enumerate(ledger.new_ids):
        records[i].update(
            kind=new.kind,
            spelling=new.spelled[n],
            contexts=int(new.contexts[n]),
            cosine=round(float(cosines_N[n]), 5),
            fallback=new.fallback[n],
            neighbours=[
                [vocabulary[j], round(float(v), 4)] for j, v in zip(near_NxC[n], values_NxC[n], strict=True)
            ],
        )
    return records


def report(
    experiment: Experiment, records: list[dict[str, Any]], parameters: dict[str, Any], ledger: Ledger
) -> dict[str, Any]:
    """Counts, norms and the origin of every parameter. Raises ValueError for a parameter that has none."""
    paths = list(flatten(parameters))
    if unaccounted := sorted(set(paths) ^ set(ledger.parameters)):
        raise ValueError(f'parameters without an origin, or origins without a parameter: {unaccounted}')
    origins = {k: [p for p in paths if ledger.parameters[p] == k] for k in (COPIED, SYNTHESISED, FRESH)}
    kinds = collections.Counter(record['kind'] for record in records)
    new = ledger.new
    norms_W = np.array([record['norm'] for record in records])
    is_new_W = np.zeros(len(records), bool)
    is_new_W[ledger.new_ids] = True
    source_norms = [] if ledger.source_table is None else np.linalg.norm(ledger.source_table, axis=1)
    with_contexts = new.contexts if new is not None else np.zeros(0, np.int64)
    return {
        'strategy': experiment.surgery.strategy,
        'settings': dataclasses.asdict(experiment.surgery),
        'scale': new.scale if new is not None else 'literal',
        'scale_factor': new.factor if new is not None else 1.0,
        'tokens': {kind: kinds[kind] for kind in (COPIED, SYNTHESISED, FRESH)},
        'fallbacks': dict(collections.Counter(f for f in new.fallback if f)) if new is not None else {},
        'encoded': {'windows': new.windows if new is not None else 0, 'contexts': int(with_contexts.sum())},
        'contexts_per_token': {str(n): int(c) for n, c in enumerate(np.bincount(with_contexts)) if c},
        'norms': {
            'source': _summary(np.asarray(source_norms)),
            'shared': _summary(norms_W[~is_new_W] if ledger.shared is not None else np.zeros(0)),
            'new': _summary(norms_W[is_new_W] if ledger.shared is not None else norms_W),
        },
        'map': new.map if new is not None else None,
        'bias': ledger.bias,
        'parameters': origins,
    }


def _summary(norms: np.ndarray) -> dict[str, float] | None:
    """Mean and 5/50/95 % quantiles of Euclidean norms; None of none."""
    if not len(norms):
        return None
    low, middle, high = np.quantile(norms, (0.05, 0.5, 0.95))
    return {
        'mean': round(float(np.mean(norms)), 5),
        'q05': round(float(low), 5),
        'median': round(float(middle), 5),
        'q95': round(float(high), 5),
    }
