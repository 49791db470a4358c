"""What stage surgery writes of tokens and of all that it did: tokens.jsonl and report.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bioptimus_jax.records.manifests import ConfigValues
from bioptimus_jax.records.record import Record, left_out, or_null
from bioptimus_jax.storage.files import JsonObject

COPIED = 'copied'
"""The kind of a row that is the source's."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenFit(Record):
    """The gradient fit of a token in so many of its contexts: its disagreement with the source before it and after it.

    None without a context. `again`: whether it was fitted twice.
    """

    contexts: int
    before: float | None
    after: float | None
    again: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class TokenRow(Record):
    """A token in order of ids, the `kind` of its row (copied, synthesised, fresh) and the norm; of new ones also more.

    `spelling`: in pieces of the source. `contexts`: how many were used. `cosine`: to the row without contexts.
    `fallback`: why it has none of its own, None where it has. `fit`: of the gradient fit. `neighbours`: the
    tokens of highest cosine, `[token, cosine]`.
    """

    token: str
    id: int
    kind: str
    norm: float
    spelling: tuple[str, ...] | None = left_out()
    contexts: int | None = left_out()
    cosine: float | None = left_out()
    fallback: str | None = None
    fit: TokenFit | None = left_out()
    neighbours: tuple[Any, ...] | None = left_out()

    @property
    def is_new(self) -> bool:
        """Whether the source does not have it."""
        return self.spelling is not None

    def json(self) -> JsonObject:
        """The JSON object; tokens of the source have no fallback."""
        return {n: x for n, x in super().json().items() if self.is_new or n != 'fallback'}


@dataclasses.dataclass(frozen=True)
class FittedMap(Record):
    """A map of states to rows: its ridge, how many tokens it was fitted on, the share of variance that it explains."""

    ridge: float
    tokens: int
    explained: float


@dataclasses.dataclass(frozen=True)
class FittedAgain(Record):
    """The tokens that were fitted twice: their number, and the median disagreement after the first and second fit."""

    tokens: int
    before: float | None
    after: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class FitSummary(Record):
    """The gradient fit of all tokens with a context: medians before and after, the worst as `[token, value]`."""

    tokens: int
    before: float | None
    after: float | None
    worst: tuple[Any, ...]
    again: FittedAgain | None = or_null()


@dataclasses.dataclass(frozen=True)
class FittedBias(Record):
    """The rule of new biases: so much for the logarithm of a count, and a constant."""

    log_count: float
    constant: float


@dataclasses.dataclass(frozen=True)
class Norms(Record):
    """Euclidean norms of rows: the mean and quantiles of 5, 50 and 95 %."""

    mean: float
    q05: float
    median: float
    q95: float


@dataclasses.dataclass(frozen=True)
class EncodedSentences(Record):
    """The sentences that the source read, and the contexts of tokens that were used of them."""

    windows: int
    contexts: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class SurgeryReport(Record):
    """report.json: where every row and every parameter came from.

    `settings`: config.surgery. `scale`, `scale_factor`: how the new rows were stretched. `tokens`: kind of row -> how
    many. `fallbacks`: why rows have none of their own -> how many. `contexts_per_token`: number of contexts -> tokens.
    `norms`: of the source, of shared rows, of new ones; None of none. `map`, `fit`, `bias`: what was fitted.
    `parameters`: kind -> paths.
    """

    strategy: str
    settings: ConfigValues
    scale: str
    scale_factor: float
    tokens: Mapping[str, int]
    fallbacks: Mapping[str, int]
    encoded: EncodedSentences
    contexts_per_token: Mapping[str, int]
    norms: Mapping[str, Norms | None]
    map: FittedMap | None
    fit: FitSummary | None
    bias: FittedBias | None
    parameters: Mapping[str, tuple[str, ...]]
