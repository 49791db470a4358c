"""What pre-training decides of its phases: curriculum.json; and the difficulty of their settings: difficulty.json."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bioptimus_jax.records.record import Record, left_out


@dataclasses.dataclass(frozen=True)
class RowCounts(Record):
    """What durations in epochs, tokens and words are measured against."""

    rows: int
    tokens: float
    words: float


@dataclasses.dataclass(frozen=True)
class PlacedPhase(Record):
    """A phase of curriculum.json, a list in the order of training: steps start <= step < stop.

    `ended`: true where self-pacing has ended it; `planned_stop`: where it was to end, if that was later.
    `taken`: how many steps of such phases it has beside its own. `reduced_from`: how many steps its duration asked for,
    where some were taken away for lack of time. `counts`: of what it reads, where that is not the run's own corpus
    alone, by the split of the run's own rows of that shape.
    """

    name: str
    start: int
    stop: int
    ended: bool | None = left_out()
    reduced_from: int | None = left_out()
    planned_stop: int | None = left_out()
    taken: int | None = left_out()
    counts: Mapping[str, RowCounts] | None = left_out()


@dataclasses.dataclass(frozen=True)
class HeldoutOverlap(Record):
    """How many held-out documents a run has, and how many of them were `found` in another corpus that is trained on.

    An entry of the list in pretrain/heldout_overlap.json; see `pretrain.overlap`.
    """

    corpus: str
    heldout: int
    found: int


@dataclasses.dataclass(frozen=True)
class Perplexity(Record):
    """Perplexity of samples of texts: the geometric mean, its 95 % interval (None for one sample), and each of them."""

    mean: float
    interval: tuple[float, ...] | None
    samples: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class OfSetting(Record):
    """Perplexity under a masking setting, over all selected positions and by what stands there.

    That is [MASK], another token, or the token itself; None where a sample has no such position. `positions`: their
    mean number in a sample, by the same names.
    """

    perplexity: Perplexity | None
    masked: Perplexity | None
    replaced: Perplexity | None
    kept: Perplexity | None
    positions: Mapping[str, float]

    def of(self, kind: str) -> Perplexity | None:
        """The perplexity at a kind of position, by the name of the key."""
        return vars(self).get(kind)


@dataclasses.dataclass(frozen=True)
class MaskedAs(Record):
    """A masking setting: the strategy, the rate, and the shares of [MASK], another token and the token itself."""

    masking: str
    rate: float
    corruption: tuple[float, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts(Record):
    """What difficulty was measured on: texts, how many documents in how many samples, and the setting of each phase.

    `measure`: what the order goes by, config.curriculum.measure.
    """

    texts: tuple[str, ...]
    documents: int
    samples: int
    measure: str
    phases: Mapping[str, MaskedAs]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OrderDifficulty(Facts):
    """pretrain/difficulty.json: by phase, for the model `probe`, from so many `rows` and `pieces` of text."""

    FIRST: ClassVar[tuple[str, ...]] = ('probe',)
    probe: str
    rows: int
    pieces: int
    settings: Mapping[str, OfSetting]


@dataclasses.dataclass(frozen=True)
class OfModel(Record):
    """A model that was measured: its name and folder, what computed it, size of the texts in its pieces; by phase."""

    model: str
    folder: str
    computed_by: str
    rows: int
    pieces: int
    settings: Mapping[str, OfSetting]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difficulty(Facts):
    """WORKDIR/difficulty.json of `bioptimus difficulty`: several models on the same texts."""

    models: tuple[OfModel, ...]
    seconds: float
