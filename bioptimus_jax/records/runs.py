"""results.jsonl of a sweep or a report: a line a run, with all that the tables of several runs need."""

import dataclasses
from collections.abc import Mapping

from bioptimus_jax.records.analysis import FrozenScore, HiddenWords, Shape
from bioptimus_jax.records.curriculum import PlacedPhase
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.manifests import Claim, ConfigValues, Manifest
from bioptimus_jax.records.metrics import EncodedFlops, Evaluation, Spent
from bioptimus_jax.records.record import Record, left_out
from bioptimus_jax.records.sets import TrainingMentions
from bioptimus_jax.records.statistics import CrossedModel, ModelStatistics
from bioptimus_jax.storage.files import JsonObject


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeptManifest(Record):
    """What the record of a run keeps of a manifest; see `Manifest`."""

    config: ConfigValues | None = left_out()
    content: str | None = left_out()
    inputs: Mapping[str, str | None] | None = left_out()
    counts: JsonObject | None = left_out()
    seconds: float | None = left_out()

    @classmethod
    def of(cls, manifest: Manifest) -> 'KeptManifest':
        """The part of a manifest that is kept."""
        return cls(**{field.name: getattr(manifest, field.name) for field in dataclasses.fields(cls)})

    @property
    def manifest(self) -> Manifest:
        """A manifest with what is kept."""
        inputs, counts = self.inputs or {}, self.counts or {}
        return Manifest(
            config=self.config, content=self.content, inputs=inputs, counts=counts, seconds=self.seconds
        )


@dataclasses.dataclass(frozen=True)
class KeptClaim(Record):
    """What the record of a run keeps of a stage that has not ended."""

    config: ConfigValues

    @property
    def claim(self) -> Claim:
        """A claim with what is kept."""
        return Claim(config=self.config)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRecord(Record):
    """A run. `arm`: its name. `seconds`: by stage that it made itself. `phases`: in the order of training.

    `finetuned`: its lines of finetune/results.jsonl, with `units`, counts by test item, where predictions are there.
    `statistics`, `crossed`: those files of stage finetune. `training`: up to each evaluation and each kept model.
    `kept_steps`: name -> step of the models that were kept. From `statistics` on a key is there where the run has such
    records.
    """

    arm: str
    cloze: tuple[HiddenWords, ...]
    finetuned: tuple[FineTuning, ...]
    seconds: Mapping[str, float]
    phases: tuple[str, ...]
    evaluations: tuple[Evaluation, ...]
    training: tuple[Spent, ...]
    kept_steps: Mapping[str, int]
    encoded: tuple[EncodedFlops, ...]
    geometry: tuple[Shape, ...]
    manifests: Mapping[str, KeptManifest]
    statistics: tuple[ModelStatistics, ...] | None = left_out()
    crossed: tuple[CrossedModel, ...] | None = left_out()
    frozen: tuple[FrozenScore, ...] | None = left_out()
    snapshots: tuple[HiddenWords, ...] | None = left_out()
    curriculum: tuple[PlacedPhase, ...] | None = left_out()
    begun: Mapping[str, KeptClaim] | None = left_out()
    training_mentions: tuple[TrainingMentions, ...] | None = left_out()

    @property
    def stages(self) -> dict[str, Manifest | Claim]:
        """Stage -> what is known of how it was made, finished or not."""
        begun = {stage: kept.claim for stage, kept in (self.begun or {}).items()}
        return {**begun, **{stage: kept.manifest for stage, kept in self.manifests.items()}}
