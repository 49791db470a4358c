"""What `bioptimus surgery --probe` writes: probe.json, known rows that every initialisation rebuilds."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bioptimus_jax.records.record import Record, left_out, or_null
from bioptimus_jax.records.surgery import FitSummary, FittedMap

Median = tuple[float, ...]
"""A median over tokens, and the ends of its interval of 95 %."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecoveredClass(Record):
    """The tokens of a class: how many they are, and medians of them."""

    tokens: int
    rank: Median
    cosine: Median
    norm_ratio: Median


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecoveredRows(Record):
    """How near rebuilt rows come to the true ones: medians, all tokens and by class.

    `rank`: of the true token among all by cosine from the mean of all rows; `rank_uncentred`: from zero; `rank_dot`: by
    dot product. `rank_weighted`: hidden tokens weighted to be as like others as new ones are. `by_contexts`,
    `by_pieces`, `by_frequency`: class -> medians.
    """

    rank: Median
    rank_uncentred: Median
    rank_dot: Median
    cosine: Median
    norm_ratio: Median
    rank_weighted: Median | None = left_out()
    by_contexts: Mapping[str, RecoveredClass] | None = left_out()
    by_pieces: Mapping[str, RecoveredClass] | None = left_out()
    by_frequency: Mapping[str, RecoveredClass] | None = left_out()

    def classes(self, kind: str) -> Mapping[str, RecoveredClass]:
        """Class -> medians, by `contexts`, `pieces` or `frequency`; empty where these were not given."""
        return getattr(self, f'by_{kind}') or {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbedRows(RecoveredRows):
    """An initialisation: its name, its flags on the command line, the seconds to make its rows."""

    FIRST: ClassVar[tuple[str, ...]] = ('name', 'flags', 'seconds', 'map')
    name: str
    flags: str
    seconds: float | None = left_out()
    map: FittedMap | None = or_null()
    fit: FitSummary | None = left_out()


@dataclasses.dataclass(frozen=True)
class HiddenToken(Record):
    """A token that was hidden, its contexts, its pieces without it, and its count in the corpus."""

    token: str
    contexts: int
    pieces: int
    count: int


@dataclasses.dataclass(frozen=True)
class LikenessOfTokens(Record):
    """Quartiles of the likeness of tokens to the nearest other one of the source: of hidden and of new ones."""

    hidden: tuple[float, ...]
    new: tuple[float, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probe(Record):
    """probe.json: the source, how much was read of it, and every initialisation, the nearest to the true rows first."""

    source: str
    seed: int
    contexts_per_token: int
    source_tokens: int
    windows: int
    likeness: LikenessOfTokens | None = or_null()
    variants: tuple[ProbedRows, ...]
    hidden: tuple[HiddenToken, ...]
    seconds: float
