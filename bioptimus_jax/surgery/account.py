"""What surgery did: where every parameter and every token's row came from, norms and nearest neighbours.

V: source tokens, W: the run's vocabulary, N: its new tokens, D: hidden size.
"""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from bioptimus_jax.model.trees import Params, flatten
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.surgery import (
    COPIED,
    EncodedSentences,
    FitSummary,
    FittedBias,
    FittedMap,
    Norms,
    SurgeryReport,
    TokenFit,
    TokenRow,
)
from bioptimus_jax.surgery import rows
from bioptimus_jax.surgery.config import Surgery

SYNTHESISED, FRESH = 'synthesised', 'fresh'
NEIGHBOURS = 10
TOKENS_FILE, REPORT = 'tokens.jsonl', 'report.json'
"""Files of stage surgery: a record for every token, and where all parameters came from."""


@dataclasses.dataclass(frozen=True)
class Fit:
    """Disagreement with the source of each new token, mean over `contexts` [N] of its contexts, before the gradient fit
    and after it: [N] each, NaN without a context. `again` [N]: which tokens were fitted twice.

    A disagreement is the mean squared difference of states, in their units squared. `summary` goes to report.json.
    """

    before: np.ndarray
    after: np.ndarray
    contexts: np.ndarray
    again: np.ndarray
    summary: FitSummary

    def record(self, token: int) -> TokenFit:
        """What tokens.jsonl says of a token: `before` and `after` are None without a context."""
        values = {'before': self.before[token], 'after': self.after[token]}
        rounded = {n: None if np.isnan(v) else float(f'{v:.5g}') for n, v in values.items()}
        return TokenFit(contexts=int(self.contexts[token]), again=bool(self.again[token]), **rounded)

    def words(self) -> str:
        """One line: the median before and after, the tokens that are still worst."""
        s = self.summary
        if not s.tokens:
            return 'gradient fit: no context spells a new token in whole pieces, all rows stay as they were'
        line = f'gradient fit: disagreement of the median token {s.before:.3g}, now {s.after:.3g}'
        if again := s.again:
            line += f'; {numbered(again.tokens, "token")} fitted again'
            if again.before is not None:
                line += f' ({again.before:.3g}, now {again.after:.3g})'
        return f'{line}; worst: ' + ', '.join(f'{token} {value:.3g}' for token, value in s.worst[:3])


@dataclasses.dataclass(frozen=True)
class NewRows:
    """Rows of new tokens [N, D], and what is known of each: contexts used [N], fallback, spelling in source ids.

    `context_free` holds the rows that tokens without a context fall back to, moved and stretched as the rows are, by
    `scale` and `factor`. `kind` says where the rows come from, `windows` counts the sentences encoded, and `map` says
    how well the map of `surgery.map` was fitted. `fit`: what the gradient fit of `surgery.fit_steps` has reached.
    """

    rows: np.ndarray
    context_free: np.ndarray
    contexts: np.ndarray
    fallback: Sequence[str | None]
    spellings: Sequence[Sequence[int]]
    kind: str
    windows: int
    scale: str = 'literal'
    factor: float = 1.0
    map: FittedMap | None = None
    fit: Fit | None = None


NONE_NEW = NewRows(np.zeros((0, 1)), np.zeros((0, 1)), np.zeros(0, np.int64), (), (), FRESH, 0)


@dataclasses.dataclass(frozen=True)
class Ledger:
    """Origin of every parameter (path -> copied | synthesised | fresh) and, with a source, of every row.

    A parameter with rows of several origins counts as what its new rows are. `bias` holds what the rule for the new
    tokens' MLM bias has fitted.
    """

    parameters: dict[str, str]
    source_table: np.ndarray | None = None
    source_vocabulary: Sequence[str] = ()
    new_ids: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    new: NewRows = NONE_NEW
    bias: FittedBias | None = None


def token_records(vocabulary: list[str], table_WxD: np.ndarray, ledger: Ledger) -> list[TokenRow]:
    """One record per token in order of ids; new tokens say how they were made and what lies near them.

    `cosine` compares a new row with the context-free one; `neighbours` are the ten tokens
    of highest cosine in the new table, `[token, cosine]`.
    """
    norms_W = np.linalg.norm(table_WxD.astype(np.float64), axis=1)
    kind = FRESH if ledger.source_table is None else COPIED
    records = [
        TokenRow(token=token, id=i, kind=kind, norm=round(float(norm), 5))
        for i, (token, norm) in enumerate(zip(vocabulary, norms_W, strict=True))
    ]
    new = ledger.new
    near_NxC, values_NxC = rows.neighbours(table_WxD, ledger.new_ids, NEIGHBOURS)
    cosines_N = rows.cosines(new.rows, new.context_free)
    for n, i in enumerate(ledger.new_ids):
        records[i] = dataclasses.replace(
            records[i],
            kind=new.kind,
            spelling=tuple(ledger.source_vocabulary[piece] for piece in new.spellings[n]),
            contexts=int(new.contexts[n]),
            cosine=round(float(cosines_N[n]), 5),
            fallback=new.fallback[n],
            fit=new.fit.record(n) if new.fit else None,
            neighbours=tuple(
                (vocabulary[j], round(float(v), 4)) for j, v in zip(near_NxC[n], values_NxC[n], strict=True)
            ),
        )
    return records


def report(
    settings: Surgery, records: Sequence[TokenRow], parameters: Params, ledger: Ledger
) -> SurgeryReport:
    """Counts, norms and the origin of every parameter. Raises ValueError for a parameter that has none."""
    paths = list(flatten(parameters))
    if unaccounted := sorted(set(paths) ^ set(ledger.parameters)):
        raise ValueError(f'parameters without an origin, or origins without a parameter: {unaccounted}')
    origins = {k: tuple(p for p in paths if ledger.parameters[p] == k) for k in (COPIED, SYNTHESISED, FRESH)}
    kinds = collections.Counter(record.kind for record in records)
    new = ledger.new
    norms_W = np.array([record.norm for record in records])
    copied_W = np.array([record.kind == COPIED for record in records], bool)
    source_norms = [] if ledger.source_table is None else np.linalg.norm(ledger.source_table, axis=1)
    return SurgeryReport(
        strategy=settings.strategy,
        # Content decides, never a path: what is written must be the same wherever the donor is.
        settings={**dataclasses.asdict(settings), 'donor': bool(settings.donor)},
        scale=new.scale,
        scale_factor=new.factor,
        tokens={kind: kinds[kind] for kind in (COPIED, SYNTHESISED, FRESH)},
        fallbacks=dict(collections.Counter(f for f in new.fallback if f)),
        encoded=EncodedSentences(new.windows, int(new.contexts.sum())),
        contexts_per_token={str(n): int(c) for n, c in enumerate(np.bincount(new.contexts)) if c},
        norms={
            'source': _summary(np.asarray(source_norms)),
            'shared': _summary(norms_W[copied_W]),
            'new': _summary(norms_W[~copied_W]),
        },
        map=new.map,
        fit=new.fit.summary if new.fit else None,
        bias=ledger.bias,
        parameters=origins,
    )


def _summary(norms: np.ndarray) -> Norms | None:
    """Mean and 5/50/95 % quantiles of Euclidean norms; None of none."""
    if not len(norms):
        return None
    low, middle, high = np.quantile(norms, (0.05, 0.5, 0.95))
    return Norms(*(round(float(value), 5) for value in (np.mean(norms), low, middle, high)))
