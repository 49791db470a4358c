"""The lines of metrics.jsonl, by their kind; `stage`, `step`, `time` and `kind` begin each of them."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from bioptimus_jax.errors import InputError
from bioptimus_jax.records.manifests import ComputedOn
from bioptimus_jax.records.record import Record, left_out, or_null, others
from bioptimus_jax.storage.files import JsonObject

FILE = 'metrics.jsonl'
DURING = 'remove the line, or rerun the stage that wrote it'
ENTITY_SET = 'entities/'
"""Prefix, in the line of an evaluation, of a set's name: its F1 from frozen states."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Line(Record):
    """A line of a kind. `time`: in seconds since 1970, when it was written, which the log puts in."""

    KIND: ClassVar[str]
    step: int
    time: float | None = left_out()

    @classmethod
    def among(cls, lines: Iterable[JsonObject]) -> list[Self]:
        """The lines of this kind. Raises InputError for a line that lacks a key."""
        return [
            cls.read(line, f'{FILE}: line {cls.KIND!r} of step {line.get("step")}', DURING)
            for line in lines
            if line.get('kind') == cls.KIND
        ]

    @classmethod
    def _checked(cls, value: Any) -> Self:
        stripped = isinstance(value, dict) and {n: x for n, x in value.items() if n not in ('stage', 'kind')}
        return super()._checked(stripped)

    def json(self) -> JsonObject:
        """The numbers, after the step; the record of a run has them without the time."""
        return {name: value for name, value in super().json().items() if name != 'time'}

    @property
    def values(self) -> JsonObject:
        """The numbers without the step."""
        return {name: value for name, value in self.json().items() if name != 'step'}

    def line(self, stage: str) -> JsonObject:
        """The whole line that a stage has written."""
        when = {} if self.time is None else {'time': self.time}
        return {'stage': stage, 'step': self.step, **when, 'kind': self.KIND, **self.values}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start(Line):
    """A stage began anew: lines before it are of another attempt."""

    KIND = 'start'
    tokens: int | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resumed(Line):
    """A stage goes on from this step: lines before it that are of later steps are of work that was lost."""

    KIND = 'resumed'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spent(Record):
    """What pre-training took up to a step, and what it did there; in the record of a run.

    `flops`, `seconds`, `joules`, `predicted` pieces since step 0; None: not known. `told`: what the objective records
    of its own.
    """

    step: int
    tokens: int
    flops: float | None = or_null()
    seconds: float | None = or_null()
    joules: float | None = or_null()
    tokens_per_second: float | None = left_out()
    realised_rate: float | None = left_out()
    predicted: float | None = left_out()
    told: JsonObject = others()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training(Line):
    """The steps of pre-training since the line before, in means; losses in nats a piece.

    `tokens`, `flops`, `seconds`, `joules`, `predicted` pieces are since step 0, None where that is not known.
    `skipped`: steps that were not finite. `input_wait`: share of the time spent waiting for batches. `fill`: share
    of the places that hold pieces. `realised_rate`: share of the maskable pieces that were predicted, also by
    length of words in pieces. `unit_pieces`: mean length of what was drawn. `mfu`: where the peak of the device is
    known. `told`: what the objective records of its own.
    """

    KIND = 'train'
    phase: str
    tokens: int
    loss: float
    learning_rate: float
    gradient_norm: float | None = left_out()
    skipped: int = 0
    tokens_per_second: float
    padded_tokens_per_second: float | None = left_out()
    input_wait: float | None = left_out()
    fill: float | None = left_out()
    accuracy: float | None = left_out()
    word_accuracy: float | None = left_out()
    realised_rate: float | None = left_out()
    realised_rate_by_length: Mapping[str, float] | None = left_out()
    unit_pieces: float | None = left_out()
    predicted: float | None = left_out()
    told: JsonObject = others()
    flops: float | None = or_null()
    seconds: float | None = or_null()
    mfu: float | None = left_out()
    joules: float | None = or_null()

    @property
    def spent(self) -> Spent:
        """The part that the record of a run keeps."""
        same = {field.name: getattr(self, field.name) for field in dataclasses.fields(Spent)}
        return Spent(**same)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evaluation(Line):
    """Held-out documents, scored after a step; losses in nats a piece.

    `frozen_loss`: of pieces under the frozen mask; None in the record of a run that keeps the step alone.
    `frozen_accuracy`: share of them that is predicted. `scores`: other scores by name, an objective's and the F1 of
    sets of entities. `losses`: by phase, with the mask of its setting, where `phase_end` or the first step asks for
    them.
    """

    KIND = 'evaluation'
    phase: str
    phase_end: bool = False
    tokens: int | None = left_out()
    frozen_loss: float | None
    frozen_accuracy: float | None = left_out()
    scores: Mapping[str, float] = others()
    losses: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The loss under the frozen mask. Raises InputError where it is not on record."""
        if self.frozen_loss is None:
            raise InputError(f'{FILE}: the evaluation of step {self.step} has no frozen_loss; {DURING}')
        return self.frozen_loss

    @property
    def entity_f1(self) -> dict[str, float]:
        """Set -> F1 of its entities from frozen states; empty where none is named."""
        return {n.removeprefix(ENTITY_SET): f1 for n, f1 in self.scores.items() if n.startswith(ENTITY_SET)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spans(Line):
    """Seconds of a process by what it spent them on, up to a step. Its stage is called clock.

    `name`: of the process, the time at which it `began`. `first`: the step that it went on from, None before that is
    known. `ended`: whether it ended in order. `computed`: once for a process.
    """

    KIND = 'spans'
    name: str
    began: float
    first: int | None
    ended: bool
    spans: Mapping[str, float]
    computed: ComputedOn | None = left_out()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Encoded(Line):
    """Text that surgery read with the source model: its `pieces`, and how many each `attended` to on average."""

    KIND = 'encoded'
    name: str
    pieces: int
    attended: float


@dataclasses.dataclass(frozen=True)
class EncodedFlops(Record):
    """What all of `Encoded` comes to in operations; in the record of a run. None: not known."""

    flops: float | None
