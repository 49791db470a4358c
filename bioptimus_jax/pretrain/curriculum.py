"""The curriculum as data: phases become a table of steps, settings and learning rates, looked up by step.

The paper's curriculum (section 8): 0.1 tokens 15 % -> 0.2 whole words 15 % -> 0.3 whole words 20 % -> 0.4 all [MASK].
The order of the phases may be computed instead (`ordered`), and under self-pacing their ends too
(`after_evaluation`): what was decided is on record in curriculum.json, so that a resumed run does not decide it again.
"""

import bisect
import dataclasses
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.model.config import SNAPSHOT
from bioptimus_jax.pretrain.config import BY_DIFFICULTY, ENTITIES, MOST_STEPS, SELF_PACED, HasTraining, Phase
from bioptimus_jax.pretrain.masking import seed_key
from bioptimus_jax.pretrain.objective import Setting, objective_of
from bioptimus_jax.pretrain.rates import FALLS
from bioptimus_jax.pretrain.shape import (
    Counts,
    Stair,
    StepShape,
    counts_of,
    phase_shapes,
    shape_of,
    warmup_of,
)
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.curriculum import PlacedPhase, RowCounts
from bioptimus_jax.records.metrics import Evaluation
from bioptimus_jax.records.record import plain
from bioptimus_jax.run.manifests import rerun_hint
from bioptimus_jax.storage.files import read_json, write_json

RECORD, PHASES, CHECKPOINTS = 'curriculum.json', 'phases.json', 'checkpoints'
"""Files of stage pretrain: where its phases are planned, at which steps the ended ones did; a folder for each step."""


@dataclasses.dataclass(frozen=True)
class ScheduledPhase:
    """A phase with its place on the step axis: steps start <= step < stop.

    A self-paced phase that has `ended` may have stopped before its `planned_stop`; `taken`: how many steps of such ones
    it has beside its own. `reduced`: some of the steps that its duration `asked` for were taken away. `warmup`: its
    first steps, which have shapes of their own. `counts`: of the rows that it is measured against, where it reads other
    corpora, by the split of their shape.
    """

    name: str
    phase: Phase
    start: int
    stop: int
    planned_stop: int = 0
    ended: bool = False
    reduced: bool = False
    asked: int = 0
    taken: int = 0
    warmup: tuple[Stair, ...] = ()
    counts: Mapping[str, RowCounts] = dataclasses.field(default_factory=dict, hash=False)

    @property
    def planned(self) -> int:
        """How many steps it was to have."""
        return self.planned_stop - self.start

    def evenly(self, parts: int) -> list[int]:
        """The steps where 1, 2, ... of so many parts of the planned length are done, over the end or not."""
        length = max(self.stop, self.planned_stop) - self.start
        return [self.start + max(1, round(length * number / parts)) for number in range(1, parts + 1)]


class RateRamp(NamedTuple):
    """A number of a setting that moves within a phase, in a straight line or in so many equal `parts`."""

    first: Any
    last: Any
    parts: Any

    def at(self, done: Any, length: Any) -> Any:
        """The value after `done` of `length` steps: `first` in the first one, `last` in the last one."""
        # `parts` is traced, so both ways are computed, and no divisor may be 0 in the one that is not taken. The last
        # part also has the steps that the division leaves over.
        of_part = jnp.maximum(length // jnp.maximum(self.parts, 1), 1)
        stairs = jnp.minimum(done // of_part, self.parts - 1) / jnp.maximum(self.parts - 1, 1)
        share = jnp.where(self.parts > 0, stairs, jnp.minimum(done / jnp.maximum(length - 1, 1), 1))
        return self.first + (self.last - self.first) * share.astype(jnp.float32)


Column: TypeAlias = np.ndarray | np.generic
"""A number for each phase; the number of one phase before they are put together."""


class Table(NamedTuple):
    """The curriculum as the step reads it: arrays over the P phases, and the `seed`, key data of a random key.

    It is an argument of the step and no constant in it, so that runs that differ in it are one compiled program. The
    `path_`s are of the learning rate, which rises and falls once over the phases of a path. `setting`:
    what an objective asks of a phase.
    """

    start: Column
    length: Column
    peak: Column
    path_start: Column
    path_steps: Column
    path_warmup: Column
    path_drop: Column
    path_fall: Column
    reset: Column
    setting: Setting
    seed: Column | None = None


Schedule = tuple[ScheduledPhase, ...]


@dataclasses.dataclass(frozen=True)
class Stretch:
    """Steps of a phase, start <= step < stop, that all have one shape; the last of all has no end."""

    start: int
    stop: int | None
    phase: str
    shape: StepShape


def stretches(schedule: Schedule, config: HasTraining) -> tuple[Stretch, ...]:
    """The steps of a schedule in the order of training, one stretch for every shape that a phase goes through."""
    found: list[Stretch] = []
    for s in schedule:
        start = s.start
        for steps, shape in s.warmup:
            if start < (stop := min(start + steps, s.stop)):
                found.append(Stretch(start, stop, s.name, shape))
            start = stop
        if start < s.stop:
            found.append(Stretch(start, s.stop, s.name, shape_of(config, s.phase)))
    return (*found[:-1], dataclasses.replace(found[-1], stop=None))


def stretch_at(among: Sequence[Stretch], step: int) -> Stretch:
    """The stretch that a step belongs to."""
    return among[bisect.bisect_right([one.start for one in among], step) - 1]


def make_schedule(
    experiment: HasTraining,
    counts: Counts,
    order: Sequence[str] = (),
    record: Collection[PlacedPhase] = (),
    over: Collection[str] = (),
) -> Schedule:
    """Every phase with its first and last step, in `order` (default: as given); `counts`: of the rows that they read.

    Phases that self-pacing has ended, by the `record` of the run, end there; the last one takes what remains, and keeps
    it where others come behind it. Phases that were reduced for lack of time keep the steps that they have while their
    duration stays, if they are `over` or there is a limit of time.
    """
    names = order or experiment.phases
    warmups = {n: warmup_of(experiment, n, counts) for n in names}
    steps = {n: phase_steps(experiment, n, counts, warmups[n]) for n in names}
    if sum(steps.values()) > MOST_STEPS:
        longest = max(steps, key=lambda name: steps[name])
        raise ConfigError(
            f'config.phase.{longest}.duration: is {numbered(steps[longest], "step")}; '
            f'all phases may have {MOST_STEPS:,}, lower it'
        )
    if 2 * (first := experiment.pretrain.head_steps) > sum(steps.values()):
        raise ConfigError(
            f'config.pretrain.head_steps: {first:,} of {numbered(sum(steps.values()), "step")}; '
            'the encoder would never come to its learning rate: lower it to half of the steps or less'
        )
    limited = experiment.runtime.train_hours > 0
    kept = [r for r in record if r.reduced_from == steps.get(r.name, 0) and (limited or r.name in over)]
    reduced = {r.name: r.stop - r.start for r in kept}
    own = {name: reduced.get(name, asked) for name, asked in steps.items()}
    taken = {r.name: r.taken for r in record if r.taken}
    phases = [
        ScheduledPhase(
            name,
            experiment.phase[name],
            start=0,
            stop=0,  # both are given below
            planned_stop=own[name] + taken.get(name, 0),
            reduced=name in reduced,
            asked=asked,
            taken=taken.get(name, 0),
            warmup=warmups[name],
            counts={
                shape.rows.split(experiment.rows): counts_of(counts, name, shape.rows)
                for shape in phase_shapes(experiment, experiment.phase[name])
                if experiment.phase[name].corpora
            },
        )
        for name, asked in steps.items()
    ]
    ends = {r.name: r.stop for r in record if r.ended}
    return _consecutive(phases, sum(own.values()), ends)


def without(schedule: Schedule, done: int, fewer: int) -> Schedule:
    """The phases with so many steps fewer, after `done` of them: each that is not over loses the same share of what it
    has left. The last step of a phase stays."""
    left = schedule[-1].stop - done
    share, start, shorter = max(left - fewer, 0) / left, 0, list[ScheduledPhase]()
    for s in schedule:
        stop = max(done + round((s.stop - done) * share), start + 1, done + 1) if s.stop > done else s.stop
        over = s.stop <= done
        shorter.append(
            s if over else dataclasses.replace(s, start=start, stop=stop, planned_stop=stop, reduced=True)
        )
        start = stop
    return tuple(shorter)


def _consecutive(phases: Sequence[ScheduledPhase], total: int, ends: Mapping[str, int]) -> Schedule:
    """Phases one after the other, each as long as it was to be; some `ends` are given, and the last one's is the
    total."""
    schedule: list[ScheduledPhase] = []
    start = 0
    for phase in phases:
        own = planned_stop = start + phase.planned
        if len(schedule) == len(phases) - 1:
            # It gets the steps that others gave up, so that runs with and without self-pacing are equally long.
            stop = planned_stop = max(planned_stop, total)
        else:
            stop = ends.get(phase.name, planned_stop)
        ended = ends.get(phase.name) == stop
        placed = dataclasses.replace(phase, start=start, stop=stop, planned_stop=planned_stop)
        schedule.append(dataclasses.replace(placed, ended=ended, taken=phase.taken + planned_stop - own))
        start = stop
    return tuple(schedule)


def ordered(experiment: HasTraining, difficulty: Mapping[str, float]) -> tuple[str, ...]:
    """The phases in the order of `config.curriculum.order`; equally difficult ones as given (paper, section 8)."""
    order, names = experiment.curriculum.order, experiment.phases
    if order in BY_DIFFICULTY:
        # Sorting is stable, and reversing would turn the ties round too.
        sign = 1 if order == 'easy_to_hard' else -1
        return tuple(sorted(names, key=lambda name: sign * difficulty[name]))
    if order == 'shuffled':
        # numpy's generator, so that planning the order starts no device.
        return tuple(names[at] for at in np.random.default_rng(experiment.seed).permutation(len(names)))
    return names


def recorded_order(experiment: HasTraining, record: Collection[PlacedPhase]) -> tuple[str, ...]:
    """The order that the run began with; phases added since come last. Empty for a run that begins."""
    before = [r.name for r in record if r.name in experiment.phases]
    return (*before, *(name for name in experiment.phases if name not in before)) if record else ()


def after_evaluation(
    schedule: Schedule, done: int, losses: Mapping[int, float], experiment: HasTraining
) -> Schedule:
    """The phases after the evaluation at step `done`, given by step the `losses` that pacing goes by (`pace_value`).

    Under self-pacing the phase ends here if its evaluations so far have flattened; those after it move up, and the
    last one, which never ends early, takes the steps that are left. Otherwise `schedule` as it was.
    """
    settings = experiment.curriculum
    here = next(s for s in schedule if s.start < done <= s.stop)
    if settings.order != SELF_PACED or here.ended:
        return schedule
    # Only evaluations of this phase, at its own points: a resumed run must see what the first attempt saw, and a
    # snapshot's or a pause's evaluation must not count.
    points = sorted(set(here.evenly(experiment.evaluation.per_phase)))
    seen = [losses[point] for point in points if point <= done and point in losses]
    # The last phase never ends early: the run is as long as one without self-pacing.
    flat = here is not schedule[-1] and flattened(seen, settings.patience, settings.min_improvement)
    if not flat and done < here.stop:
        return schedule
    ends = {s.name: s.stop for s in schedule if s.ended} | {here.name: done}
    return _consecutive(schedule, schedule[-1].stop, ends)


EARLY_STOP_METRICS: Mapping[str, Callable[[Evaluation], float]] = {
    'heldout': lambda evaluation: evaluation.loss,
    ENTITIES: lambda evaluation: 1 - float(np.mean(list(evaluation.entity_f1.values()))),
}
"""config.curriculum.pace -> what self-pacing goes by, of the record of an evaluation; the lower the better."""


def pace_value(experiment: HasTraining, evaluation: Evaluation) -> float:
    """What self-pacing goes by in this run."""
    return EARLY_STOP_METRICS[experiment.curriculum.pace](evaluation)


def flattened(losses: Sequence[float], patience: int, min_improvement: float) -> bool:
    """Whether the last `patience` losses are no better than those before, by that share of the best of them."""
    before, last = losses[:-patience], losses[-patience:]
    # The best of each side, so that one noisy evaluation neither ends a phase nor keeps it alive.
    return bool(before) and min(last) > min(before) * (1 - min_improvement)


def evaluation_steps(schedule: Schedule, per_phase: int) -> set[int]:
    """The steps at which the held-out documents are scored, the end of every phase among them."""
    points = {point for s in schedule for point in s.evenly(per_phase) if point <= s.stop}
    return points | {s.stop for s in schedule}


def kept_steps(
    schedule: Schedule, per_phase: int, before: Mapping[str, int], next_save: int = 0
) -> dict[str, int]:
    """Name -> step, by step, of the checkpoints kept for good: phase ends, and snapshots as 0.1@25 on the way.

    A snapshot that was taken `before` stays what it is if its phase is made longer or shorter afterwards. Others
    that would lie before the step of the `next_save`, as the phase was longer once, are taken there.
    """
    snapshots = {
        snapshot_name(s.name, number, per_phase): max(point, next_save)
        if s.start < next_save < s.stop
        else point
        for s in schedule
        for number, point in enumerate(s.evenly(per_phase)[:-1], 1)
        if point <= s.stop
    }
    # Its checkpoint exists and may be exported already; its name keeps meaning that step.
    snapshots |= {name: before[name] for name in snapshots if name in before}
    kept = {**snapshots, **{s.name: s.stop for s in schedule}}
    return dict(sorted(kept.items(), key=lambda entry: entry[1]))


def snapshot_name(phase: str, number: int, per_phase: int) -> str:
    """What the n-th of a phase's kept checkpoints is called: its share of the steps; the last one as the phase."""
    return phase if number == per_phase else f'{phase}{SNAPSHOT}{round(100 * number / per_phase)}'


def kept_names(experiment: HasTraining) -> list[str]:
    """The names of `kept_steps`, before their steps are known."""
    per_phase = experiment.evaluation.snapshots_per_phase
    return [snapshot_name(p, n, per_phase) for p in experiment.phases for n in range(1, per_phase + 1)]


def read_phases(folder: Path) -> list[PlacedPhase]:
    """What curriculum.json says of the run so far; empty for a run that begins. Raises InputError for a damaged one."""
    record = read_json(folder / RECORD, rerun_hint(folder))
    return [] if record is None else PlacedPhase.read_all(record, str(folder / RECORD), rerun_hint(folder))


def write_record(folder: Path, schedule: Schedule) -> None:
    """Write curriculum.json, whole or not at all: phases in order, their steps, which ended early or were reduced, and
    what those of other corpora are measured against."""
    write_json(
        folder / RECORD,
        plain(
            [
                PlacedPhase(
                    s.name,
                    s.start,
                    s.stop,
                    ended=s.ended or None,
                    reduced_from=s.asked if s.reduced else None,
                    taken=s.taken or None,
                    planned_stop=s.planned_stop if s.ended and s.planned_stop > s.stop else None,
                    counts=s.counts or None,
                )
                for s in schedule
            ]
        ),
    )


def finished_phases(folder: Path) -> list[str]:
    """Names of the phases that have ended and of the snapshots within phases, in the order of their steps."""
    return list(recorded_phases(folder))


def recorded_phases(folder: Path) -> dict[str, int]:
    """Name -> step of what is kept for good: '0.1' at the end of the phase, '0.1@25' a quarter into it.

    Raises InputError for a damaged record.
    """
    remedy = 'delete it and run `bioptimus pretrain` again'
    recorded = read_json(folder / PHASES, remedy)
    if recorded is None:
        return {}
    if not isinstance(recorded, dict) or not all(isinstance(step, int) for step in recorded.values()):
        raise InputError(f'{folder / PHASES}: is damaged (no steps by phase); {remedy}')
    return recorded


def record_phases(folder: Path, ends: Mapping[str, int]) -> None:
    """Say which phases have ended and which snapshots there are, each with a finished checkpoint at its step."""
    write_json(folder / PHASES, dict(ends))


def saved_step(folder: Path) -> int:
    """The step of the newest checkpoint on disk, which an interrupted run goes on from; 0 before there is one."""
    names = (path.name for path in (folder / CHECKPOINTS).glob('*'))
    return max((int(name) for name in names if name.isdecimal()), default=0)  # others are not finished


def phase_steps(experiment: HasTraining, name: str, counts: Counts, warmup: Sequence[Stair] = ()) -> int:
    """The phase's duration in optimiser steps, those of its warm-up among them, rounded, at least one.

    Raises ConfigError where its warm-up alone is longer.
    """
    phase = experiment.phase[name]

    def steps_of(shape: StepShape, duration: float) -> float:
        """How many steps of a shape have that duration."""
        of = counts_of(counts, name, shape.rows)
        if phase.duration_unit == 'steps':
            return duration
        per_epoch = {'epochs': 1, 'tokens': of.tokens, 'words': of.words}[phase.duration_unit]
        # A share of an epoch is that share of its rows, since rows have about equally many tokens and words.
        return duration / per_epoch * of.rows / shape.batch_rows

    before = sum(steps / steps_of(shape, 1) for steps, shape in warmup)
    if before >= phase.duration:
        raise ConfigError(
            f'config.phase.{name}.warmup_tokens: its warm-up has {before:,.6g} {phase.duration_unit}, and the phase '
            f'{phase.duration:,.6g}; lower it'
        )
    later = max(1, round(steps_of(shape_of(experiment, phase), phase.duration - before)))
    return sum(steps for steps, _ in warmup) + later


def table(schedule: Schedule, experiment: HasTraining, objective: str = '') -> Table:
    """The table of a schedule.

    The objective is the one of that name, or the run's own; nobody reads its setting in phases with another one.
    """
    columns_of = objective_of(experiment, objective).columns
    # A learning-rate path is one warm-up and one decay; phases that continue share that of the phase before.
    path_of, first = [], 0
    for number, scheduled in enumerate(schedule):
        if scheduled.phase.schedule == 'restart':
            first = number
        path_of.append(first)
    base, pretrain = experiment.pretrain.learning_rate, experiment.pretrain
    rows = []
    for scheduled, first in zip(schedule, path_of, strict=True):
        members = [s for s, f in zip(schedule, path_of, strict=True) if f == first]
        phase, length = scheduled.phase, members[-1].stop - members[0].start
        path = members[0].phase
        # Below 0: that of the run.
        warmup = pretrain.warmup_fraction if path.warmup_fraction < 0 else path.warmup_fraction
        end = pretrain.end_fraction if path.end_fraction < 0 else path.end_fraction
        rows.append(
            Table(
                start=np.int32(scheduled.start),
                # The planned one, also where self-pacing ended it: what moves within a phase must not jump.
                length=np.int32(max(scheduled.stop, scheduled.planned_stop) - scheduled.start),
                peak=np.float32(phase.learning_rate or base),
                path_start=np.int32(members[0].start),
                path_steps=np.int32(length),
                path_warmup=np.int32(round(warmup * length)),
                path_drop=np.float32(1 - end),
                path_fall=np.int32(list(FALLS).index(path.fall)),
                reset=np.bool_(phase.optimizer == 'reset'),
                setting=columns_of(phase, experiment),
            )
        )
    stacked: Table = jax.tree.map(lambda *values: np.stack(values), *rows)
    return stacked._replace(seed=np.asarray(jax.random.key_data(seed_key(experiment.seed))))


def seed_key_of(table: Table) -> jax.Array:
    """`seed_key`, from a table."""
    return jax.random.wrap_key_data(jnp.asarray(table.seed), impl='threefry2x32')


def setting_at(table: Table, step: Any) -> Setting:
    """The objective's setting of a step, as scalars."""
    at = phase_at(table, step)
    start, length = (jnp.asarray(column)[at] for column in (table.start, table.length))
    here = jax.tree.map(lambda column: jnp.asarray(column)[at], table.setting)

    def moves(value: Any) -> bool:
        return isinstance(value, RateRamp)

    return jax.tree.map(lambda v: v.at(step - start, length) if moves(v) else v, here, is_leaf=moves)


def phase_at(table: Table, step: Any) -> Any:
    """Number of the phase that a step belongs to."""
    # `right`: a step at which a phase starts belongs to that phase.
    return jnp.searchsorted(jnp.asarray(table.start), step, side='right') - 1


def learning_rate_at(table: Table, step: Any) -> Any:
    """Linear warm-up to the peak, then the fall of the path to `end_fraction`, continuous at the peak."""
    at = phase_at(table, step)
    peak, start, steps, warmup, drop = (
        jnp.asarray(column)[at].astype(jnp.float32)
        for column in (table.peak, table.path_start, table.path_steps, table.path_warmup, table.path_drop)
    )
    done = step - start
    # + 1: else the first step would have a learning rate of 0, and change nothing.
    rising = (done + 1) / jnp.maximum(warmup, 1)
    since, length, fallen = done - warmup, jnp.maximum(steps - warmup, 1), done - warmup
    # Each fall is computed and one is chosen: the phase is traced, so there is no `if`.
    for number, fall in enumerate(FALLS.values()):
        chosen = jnp.asarray(table.path_fall)[at] == number
        fallen = jnp.where(chosen, fall.fallen(since, length), fallen)
    falling = 1 - drop * fallen / length
    return peak * jnp.where(done < warmup, rising, falling)


def check_continues(before: Sequence[PlacedPhase], schedule: Schedule, step: int) -> None:
    """Steps already taken must lie in the phases they were taken in. Raises ConfigError naming the phase."""
    for old, new in itertools.zip_longest(before, schedule[: len(before)]):
        # Nothing of this phase was taken yet, so it and those behind it may change freely.
        if old.start >= step:
            return
        took = f'{step} steps are done, and phase {old.name} took steps {old.start}-{min(old.stop, step)}'
        if new is None or new.name != old.name:
            raise ConfigError(f'config.phases: {took}; keep it, and at its place')
        unchanged = (old.start, old.stop) == (new.start, new.stop)
        # A phase is over once the step after it was taken; the last one of a finished run may still be made longer.
        running = step < old.stop or step == old.stop == before[-1].stop
        longer = running and new.start == old.start and new.stop >= step
        if not unchanged and not longer:
            raise ConfigError(
                f'config.phase.{new.name}.duration: {took}; only phases that are not over can be changed'
            )
