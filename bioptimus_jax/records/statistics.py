"""What stage finetune sums up of its cells: statistics.json, slices.json, crossed.json, search.json; and votes.jsonl.

An interval holds 95 % of what other test items would give; None where nothing defines it.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bioptimus_jax.records.finetune import ModelOnSet, Scores
from bioptimus_jax.records.record import Record, left_out, or_null


@dataclasses.dataclass(frozen=True, kw_only=True)
class OverSeeds(Record):
    """A measure over seeds, and how many of them `failed`; None where none is left, `sd` also of one alone.

    `sd`: the sample standard deviation.
    """

    seeds: int
    failed: int
    mean: float | None
    median: float | None = or_null()
    sd: float | None = or_null()
    mean_without_failed: float | None = or_null()
    sd_without_failed: float | None = or_null()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Together(Record):
    """Scores on test of what several seeds say together, and the interval of the first of them."""

    test: Scores
    interval: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ensemble(Together):
    """The votes of so many seeds; `mean_logits`: the answers of their mean logits, where these were kept."""

    FIRST: ClassVar[tuple[str, ...]] = ('seeds',)
    seeds: int
    mean_logits: Together | None = left_out()

    def kept(self, averages: bool) -> Together:
        """What a folder of all seeds answers (config.finetune.keep=ensemble); `averages`: see `Task.averages`."""
        return self.mean_logits or self if averages else self


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelStatistics(ModelOnSet):
    """An entry of statistics.json: every metric over the seeds of a model, set and setting.

    `ensemble`: what several seeds say together. `interval`: of the mean on test. `units`: how many of which `unit` were
    drawn for intervals. `failures`: seed -> why it failed.
    """

    devel: Mapping[str, OverSeeds]
    test: Mapping[str, OverSeeds]
    ensemble: Ensemble | None = left_out()
    interval: tuple[float, ...] | None
    unit: str
    units: int
    failures: Mapping[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MentionRates(Record):
    """Mentions of a class: `gold`, the mean number `predicted` by a seed, rates with intervals.

    None where no seed has anything to divide by.
    """

    gold: int
    predicted: float
    precision: float | None = or_null()
    precision_interval: tuple[float, ...] | None = or_null()
    recall: float | None = or_null()
    recall_interval: tuple[float, ...] | None = or_null()
    f1: float | None = or_null()
    f1_interval: tuple[float, ...] | None = or_null()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ItemScore(Record):
    """Test items of a class, the mean score over seeds on them alone, and its interval."""

    items: int
    score: float | None = left_out()
    interval: tuple[float, ...] | None = left_out()


MentionSlices = Mapping[str, Mapping[str, MentionRates]]
"""Slicing of mentions -> class -> rates."""
ItemSlices = Mapping[str, Mapping[str, ItemScore]]
"""Slicing of test items -> class -> scores."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class SlicedModel(ModelOnSet):
    """An entry of slices.json: mentions by kind; test items by what training or the corpus has of their text."""

    slices: MentionSlices
    overlap: ItemSlices


@dataclasses.dataclass(frozen=True, kw_only=True)
class CrossedModel(ModelOnSet):
    """An entry of crossed.json: models that were `trained_on` another set, on the `types` that both have.

    `in_corpus`: the score of models that were trained on this set, by as many `seeds`. `drop`: how far it is above.
    """

    trained_on: str
    types: tuple[str, ...]
    seeds: int
    test: float
    interval: tuple[float, ...] | None
    in_corpus: float
    drop: float
    drop_interval: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoppedSetting(Record):
    """A setting of a set that halving stopped: so many `cells`, `after` so many `of` their epochs; mean on devel."""

    models: tuple[str, ...]
    dataset: str
    setting: str
    cells: int
    after: int
    of: int
    devel: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettingSearch(Record):
    """search.json: how settings were searched, which of them stopped, and the epochs that were trained.

    `epochs_of_all`: those that all cells would have taken.
    """

    halving: int
    tuned_on: tuple[str, ...]
    stopped: tuple[StoppedSetting, ...]
    epochs: int
    epochs_of_all: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ArmVote(Ensemble):
    """A line of votes.jsonl of a sweep: what all trainings of an arm say together of a test set."""

    FIRST: ClassVar[tuple[str, ...]] = ('arm', 'dataset', 'seeds')
    arm: str
    dataset: str
