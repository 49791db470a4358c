"""Stage `pretrain`: one loop through all phases, stoppable anywhere, resuming from this run's newest good checkpoint.

Order of starting: this run's checkpoint, else the weights that surgery made.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from bioptimus_jax.corpus.config import HOLD_OUT_MORE
from bioptimus_jax.errors import InputError, Paused, Stopped
from bioptimus_jax.hosts.devices import present
from bioptimus_jax.model.config import INITIAL
from bioptimus_jax.model.tensors import load_folder
from bioptimus_jax.pretrain import adapter, curriculum, difficulty, goodput, mixture, overlap, watch
from bioptimus_jax.pretrain.backends import MeasuredAttention
from bioptimus_jax.pretrain.batches import Batches, stream
from bioptimus_jax.pretrain.checkpoint import Checkpoints, phase_checksums
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.deadline import steps_in_time
from bioptimus_jax.pretrain.energy import Meter
from bioptimus_jax.pretrain.entities import with_entities
from bioptimus_jax.pretrain.goodput import CHECKPOINT, COMPILE, EVALUATION, TRAINING, Clock
from bioptimus_jax.pretrain.objective import Evaluation, most_places
from bioptimus_jax.pretrain.programs import Objectives, Program, check_programs, make_objectives
from bioptimus_jax.pretrain.shape import Turning
from bioptimus_jax.pretrain.sharding import batch_sharding, make_mesh, mesh_in_words
from bioptimus_jax.pretrain.state import AVERAGE, TrainState
from bioptimus_jax.pretrain.step import TrainStep, sharded_steps
from bioptimus_jax.pretrain.watch import LogInterval, Profiler
from bioptimus_jax.progress.console import Console, Progress
from bioptimus_jax.records.counts import PretrainCounts, StageResult
from bioptimus_jax.records.metrics import Evaluation as Evaluated
from bioptimus_jax.records.metrics import Resumed, Spans, Start, Training
from bioptimus_jax.rows.config import RowShape
from bioptimus_jax.rows.stored import Rows
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import rerun_hint
from bioptimus_jax.run.processes import any_of, meet, of_first
from bioptimus_jax.storage.files import JsonObject, digest
from bioptimus_jax.surgery.made import NOTHING_MADE, made_in
from bioptimus_jax.tokenizer.subwords import load as load_subwords

SPENT = ('predicted', 'flops', 'seconds', 'joules')
"""What the records count from step 0 on."""
NO_LOSS = 'the objective has to score held-out documents'


@dataclasses.dataclass
class Session:
    """What the loop works with, made once."""

    run: Run[HasTraining]
    folder: Path
    objectives: Objectives
    train_steps: dict[Program, TrainStep]
    schedule: curriculum.Schedule
    rows: dict[RowShape, Rows]
    sharding: jax.sharding.Sharding
    checkpoints: Checkpoints
    evaluations_by: dict[Turning, Evaluation]
    clock: Clock
    pace_values: dict[int, float]
    tokens: int
    spent: dict[str, float | None]
    evaluations: int = 0
    meter: Meter = dataclasses.field(default_factory=Meter)
    taken: dict[str, int] = dataclasses.field(default_factory=dict)
    """Name -> step of those of `kept` that there are: known to every process, whereas phases.json is the leader's."""
    next_save: int = 0
    """The first step that can be saved still, where the phases are other ones than before."""
    placed: tuple[curriculum.Schedule, tuple[curriculum.Stretch, ...]] | None = None

    @property
    def total(self) -> int:
        return self.schedule[-1].stop

    @property
    def evaluate_at(self) -> set[int]:
        """The steps after which the held-out documents are scored."""
        # Where the command pauses too, so that a run with `until` shows how far it has come.
        points = curriculum.evaluation_steps(self.schedule, self.run.config.evaluation.per_phase)
        return points | {self.pause}

    @property
    def pause(self) -> int:
        """The step after which the command ends (`runtime.until`): the last one, or one before it."""
        return min(self.total, math.ceil(self.run.config.runtime.until * self.total))

    def check_pause(self, done: int) -> None:
        """Raise Paused where so many steps are as many as this command may take, and not all of them."""
        if self.pause <= done < self.total:
            raise Paused(
                f'pretrain: {done:,} of {self.total:,} steps are done and saved; config.runtime.until='
                f'{self.run.config.runtime.until:g} asks for no more. The same command without it continues'
            )

    @property
    def kept(self) -> dict[str, int]:
        """Name -> step of the checkpoints that are kept for good."""
        per_phase = self.run.config.evaluation.snapshots_per_phase
        return curriculum.kept_steps(self.schedule, per_phase, self.taken, self.next_save)

    @property
    def tables(self) -> dict[str, curriculum.Table]:
        """The curriculum's table of each objective."""
        names = {program.name for program in self.objectives.by_program}
        return {name: curriculum.table(self.schedule, self.run.config, name) for name in names}

    def stretch_at(self, done: int) -> curriculum.Stretch:
        """The stretch of the step that made `done` steps: its phase and its shape."""
        return curriculum.stretch_at(self.stretches, done - 1)

    def program_at(self, done: int) -> Program:
        """What computed the step that made `done` steps."""
        stretch = self.stretch_at(done)
        return Program(self.run.config.objective_in(stretch.phase), stretch.shape)

    @property
    def stretches(self) -> tuple[curriculum.Stretch, ...]:
        """The steps of the schedule by their shapes; asked at every step, so they are kept while it stays."""
        if self.placed is None or self.placed[0] is not self.schedule:
            self.placed = self.schedule, curriculum.stretches(self.schedule, self.run.config)
        return self.placed[1]

    def batches(self) -> dict[RowShape, Batches]:
        """The batches of the schedule, by the shape of their rows."""
        config = self.run.config
        reads = tuple(
            dict.fromkeys(name for one in self.objectives.by_program.values() for name in one.reads)
        )
        patterns = {shape: mixture.patterns_of(config, self.schedule, shape) for shape in self.rows}
        return {
            shape: Batches(self.rows[shape], of_shape, config.seed, self.sharding, reads)
            for shape, of_shape in patterns.items()
            if of_shape
        }

    def stream(self, start: int) -> Iterator[tuple[int, dict[str, jax.Array], float]]:
        """Steps from `start` to the end, with batches and the seconds waited; the schedule may change meanwhile."""
        while start < self.total:
            schedule, batches, by_shape = self.schedule, self.batches(), self.stretches

            def at(step: int) -> dict[str, jax.Array]:
                return batches[curriculum.stretch_at(by_shape, step).shape.rows].at(step)  # noqa: B023

            for step, batch, waited in stream(at, start, self.total):
                yield step, batch, waited
                start = step + 1
                if self.schedule is not schedule:  # what was read ahead is of the old one
                    break


def build(run: Run[HasTraining], folder: Path) -> StageResult:
    """Train through every phase; the checkpoint at each phase's end is kept for export."""
    # Before anything else: what opening takes is part of the goodput.
    clock = Clock(run.metrics, run.began, anew=not curriculum.read_phases(folder))
    try:
        if jax.process_count() > 1:
            meet('pretrain')
        session, state = _open(run, folder, clock)
        _take_steps(session, state)
    finally:  # also of what is refused or asked to stop: a process that was killed has no last word
        if not clock.silent:
            clock.record(clock.step, ended=True)
    if run.leads:
        run.console.say(f'pretrain: {goodput.line(Spans.among(run.metrics.of(goodput.STAGE)))}')
    ends = {s.name: s.stop for s in session.schedule}
    kept = curriculum.recorded_phases(folder)
    counts = PretrainCounts(
        steps=session.total,
        phase_ends=ends,
        snapshots={name: at for name, at in kept.items() if name not in ends},
        tokens=session.tokens,
        slots=most_places(run.config),
    )
    return StageResult(counts, digest({name: phase_checksums(folder, name) for name in kept}))


def _take_steps(session: Session, state: TrainState) -> None:
    """Train from where the state stands to the end, with the scores of the start before the first step."""
    run, clock = session.run, session.clock
    step = clock.first = int(state['step'])
    clock.record(step)
    progress = run.console.progress('pretrain', session.total, 'steps')
    progress.start_at(step)
    run.metrics.add('pretrain', Resumed(step=step) if step else Start(step=0, tokens=0))
    # The start has scores too: they are what every phase is compared with.
    if step == 0:
        _evaluate(session, state, 0, phase_end=True)
        clock.record(0)
    try:
        _train(session, state, step, progress)
    finally:
        with clock.within(CHECKPOINT):
            session.checkpoints.close()


def _open(run: Run[HasTraining], folder: Path, clock: Clock) -> tuple[Session, TrainState]:
    config, runtime = run.config, run.config.runtime
    rows = mixture.open_rows(run.config, run.folder('rows'), run.manifest('vocab'))
    subwords = load_subwords(run.folder('vocab'))
    architecture, params, _ = load_folder(run.folder('surgery') / 'model')
    mixture.check_lengths(config, architecture)
    heldout = _heldout_rows(run.folder('rows'))
    others = mixture.others_in(config, rows)
    if run.leads and others and not (folder / overlap.RECORD).is_file():
        overlap.record(run.console, heldout, others, folder)
    here, mesh = present(), make_mesh(runtime.devices, runtime.fsdp, runtime.tensor)
    check_programs(config, architecture, here, mesh)
    measured = MeasuredAttention()
    # A run that goes on takes the attention that it began with: another one rounds in another way.
    measured.read(folder)
    objectives = make_objectives(config, architecture, subwords, rows, mesh, run.console.say, measured, here)
    run.computes('pretrain', str(here), mesh=mesh_in_words(mesh), **objectives.own.compute.words())
    if measured.made:
        run.console.say(
            f'pretrain: attention, forward and backward of all layers, measured once: {measured.line()}'
        )
    clock.computed = run.computed_on
    clock.record(0)
    record = curriculum.read_phases(folder)
    order = difficulty.phase_order(run.console, run.config, run.folder, folder, objectives.own, record)
    # By the checkpoint: a kill may have come before its phase was recorded.
    saved = curriculum.saved_step(folder)
    over = [phase.name for phase in record if phase.stop <= saved]
    schedule = curriculum.make_schedule(config, mixture.counts_of(config, rows), order, record, over)
    made = made_in(run.folder('surgery'), architecture) if config.pretrain.lora else NOTHING_MADE
    train_steps, beginning = sharded_steps(list(objectives.by_program.values()), mesh, params, made)
    recorded = curriculum.recorded_phases(folder)
    kept = curriculum.kept_steps(schedule, config.evaluation.snapshots_per_phase, recorded)
    # Where a mirror carries the files, no folder is seen by all processes.
    own_copies = run.mirror is not None and jax.process_count() > 1
    checkpoints = Checkpoints(folder, runtime.keep_checkpoints, kept.values(), own_copies)
    found = checkpoints.restore(beginning.like, run.console.say)
    state, step = found or (beginning.make(), 0)
    if found:
        if not record:  # without it nobody knows where the phases ended
            raise InputError(f'{folder / curriculum.RECORD}: is missing; {rerun_hint(folder)}')
        curriculum.check_continues(record, schedule, step)
        run.console.say(f'pretrain: resuming after step {step}')
    evaluations = {
        turning: with_entities(one.evaluation(heldout), run.config, run.leads, one, subwords)
        for turning, one in objectives.scoring.items()
    }
    if run.leads:
        measured.write(folder)
        # Before the first checkpoint: one without this record is refused at the next start.
        curriculum.write_record(folder, schedule)
        # A kill may have come between a save and its record; a phase that was made longer has not ended.
        _record_ended(folder, kept, checkpoints, step)
        next(iter(evaluations.values())).save(folder)  # the same masks in all of them
    session = Session(
        run,
        folder,
        objectives,
        dict(zip(objectives.by_program, train_steps, strict=True)),
        schedule,
        rows,
        batch_sharding(mesh),
        checkpoints,
        evaluations,
        clock,
        **_behind(config, run.metrics.of('pretrain'), step)._asdict(),
        taken={n: at for n, at in recorded.items() if at <= step} | _on_disk(kept, checkpoints, step),
        next_save=step + 1 if found else 0,
    )
    checkpoints.mark(session.kept.values())
    return session, state


def _heldout_rows(folder: Path) -> Rows:
    """The rows that phases are judged, and may be ended, by. Raises InputError before a step is taken without any."""
    heldout = Rows(folder, 'heldout')
    if not len(heldout):
        raise InputError(f'{folder}: no held-out rows to evaluate on; {HOLD_OUT_MORE}')
    return heldout


class Behind(NamedTuple):
    """What a session has behind it: evaluations by their steps, tokens, what was spent."""

    pace_values: dict[int, float]
    tokens: int
    spent: dict[str, float | None]


def _behind(e: HasTraining, metrics: Sequence[JsonObject], step: int) -> Behind:
    """What is on record up to the step that a session goes on from."""
    # Records of steps after the checkpoint are of work that is lost: those steps are taken again.
    before = [r for r in metrics if r['step'] <= step]
    trained, evaluated = Training.among(before), Evaluated.among(before)
    last = trained[-1] if trained else None
    both: list[Evaluated | Training] = [*evaluated, *trained]
    newest = max(both, key=lambda r: r.step, default=None)
    # At step 0 there may be one of a run that was replaced.
    pace_values = {r.step: curriculum.pace_value(e, r) for r in evaluated if r.step}
    tokens = newest.tokens or 0 if newest else 0
    return Behind(pace_values, tokens, {name: getattr(last, name) if last else 0.0 for name in SPENT})


def _train(session: Session, state: Any, start: int, progress: Progress) -> None:
    run, runtime, clock = session.run, session.run.config.runtime, session.clock
    session.check_pause(start)
    tables, evaluate_at, kept = session.tables, session.evaluate_at, session.kept
    profiler = Profiler(runtime.profile_steps, session.folder / 'profile')
    interval, compiled = LogInterval(), set[Program]()
    clock.enter(TRAINING)
    for step, batch, waited in session.stream(start):
        clock.waited(waited)
        done = step + 1
        profiler.before(done)
        program = session.program_at(done)
        with clock.within(TRAINING if program in compiled else COMPILE):  # which the first call waits for
            # Metrics stay on the device until the next record, so that the host prepares batches meanwhile.
            state, metrics = session.train_steps[program](state, batch, tables[program.name])
        compiled.add(program)
        interval.add(done, metrics, waited)
        profiler.after(done, state)
        stopping, logged = (
            _stopping(run.console, done, runtime.log_every_steps),
            done % runtime.log_every_steps == 0,
        )
        leaving = stopping or done == session.pause
        save_now = done in kept.values() or leaving or done % runtime.checkpoint_every_steps == 0
        # Checkpoints and evaluations have a record of their step, which counts the tokens; and none is of two shapes.
        recorded = save_now or done in evaluate_at or logged or any(s.stop == done for s in session.stretches)
        if recorded:
            record = _log(session, interval)
            progress.update(
                len(interval.steps), f'phase {session.stretch_at(done).phase}, {watch.line(record)}'
            )
            interval = LogInterval()
        if done in evaluate_at:
            if _ends_phase(session, state, done):
                tables, evaluate_at, kept = session.tables, session.evaluate_at, session.kept
            interval = _fresh(session)
        if recorded and runtime.train_hours and _reduced(session, done, len(compiled)):
            tables, evaluate_at, kept = session.tables, session.evaluate_at, session.kept
            progress.total = session.total
        with clock.within(CHECKPOINT):
            # Asked again: the evaluation may have ended the phase here, and then this step is kept for good.
            if save_now or done in kept.values():
                _save(session, state, done, kept, leaving)
                interval = _fresh(session)
            # After the save, so that its time is on record with this step: `account` counts what comes later as lost
            # where another process goes on from here.
            if recorded:
                clock.record(done)
            session.check_pause(done)
            if stopping:
                raise Stopped
            if save_now or logged:
                run.saved()  # what is on disk by now: the checkpoint before, where this one is still being written
    profiler.close()


def _fresh(session: Session) -> LogInterval:
    """An interval that begins here: the time and the energy of an evaluation or a checkpoint are in no rate."""
    session.meter.since_last()
    return LogInterval()


def _ends_phase(session: Session, state: Any, done: int) -> bool:
    """Score the held-out documents; whether self-pacing ends the phase by it, so that the schedule is another one."""
    ending = any(s.stop == done for s in session.schedule)
    _evaluate(session, state, done, phase_end=ending)
    if not _phase_ended_early(session, done):
        return False
    if not ending:  # it is one now: under every setting, in place of the record just made
        _evaluate(session, state, done, phase_end=True)
    return True


def _save(session: Session, state: Any, done: int, kept: Mapping[str, int], leaving: bool) -> None:
    """Save in the background, but wait where this process ends, or where phases.json is to name the checkpoint."""
    session.checkpoints.save(done, state)
    # phases.json names checkpoints that exports read: it may not be ahead of the disk.
    if done in kept.values() or leaving:
        session.checkpoints.wait()
    session.taken |= {name: at for name, at in kept.items() if at == done}
    if done in kept.values() and session.run.leads:
        _record_ended(session.folder, kept, session.checkpoints, done)


def _stopping(console: Console, done: int, log_every_steps: int) -> bool:
    """Whether to save and stop after this step; several processes agree, at every record, on the same one."""
    if jax.process_count() == 1:
        return console.stopping.is_set()
    # Asking costs a collective; and one process that leaves alone would have the others wait for it in theirs.
    return done % log_every_steps == 0 and any_of(console.stopping.is_set())


def _phase_ended_early(session: Session, done: int) -> bool:
    """Whether self-pacing ends the phase here. It is on record before the checkpoint of this step can be."""
    schedule = curriculum.after_evaluation(session.schedule, done, session.pace_values, session.run.config)
    return _rescheduled(session, schedule)


def _reduced(session: Session, done: int, compiled: int) -> bool:
    """Whether steps were taken away here, so that training ends in time. Every process must ask at the same steps."""
    hours, clock, left = session.run.config.runtime.train_hours, session.clock, session.total - done
    clock.enter(clock.span)  # the time up to now is counted
    evaluations = session.evaluations, sum(at > done for at in session.evaluate_at)
    until = session.run.started + hours * 3600
    fitting = steps_in_time(left, done - (clock.first or 0) - compiled, clock.spans, evaluations, until)
    fewer = round(of_first([left - fitting])[0])
    session.next_save = done
    if not fewer or not _rescheduled(session, curriculum.without(session.schedule, done, fewer)):
        return False
    session.run.console.say(
        f'pretrain: {session.total:,} of {done + left:,} steps fit into config.runtime.train_hours={hours:g}; the '
        'phases are shortened'
    )
    return True


def _rescheduled(session: Session, schedule: curriculum.Schedule) -> bool:
    if schedule == session.schedule:
        return False
    session.schedule = schedule
    if session.run.leads:
        curriculum.write_record(session.folder, schedule)
    session.checkpoints.mark(session.kept.values())
    return True


def _record_ended(folder: Path, kept: Mapping[str, int], checkpoints: Checkpoints, step: int) -> None:
    curriculum.record_phases(folder, _on_disk(kept, checkpoints, step))


def _on_disk(kept: Mapping[str, int], checkpoints: Checkpoints, step: int) -> dict[str, int]:
    """The checkpoints to be kept, up to a step, that are on disk: a snapshot that was asked for later may have none."""
    there = checkpoints.steps()
    return {name: at for name, at in kept.items() if at <= step and at in there}


def _log(session: Session, interval: LogInterval) -> Training:
    """Read the interval (which waits for its steps), stop on a value that is not finite, write one record."""
    values, seconds = interval.read()
    settings = session.run.config.pretrain
    bad = watch.first_not_finite(values)
    # Found with the record, not at the step: to ask every step would make the host wait for the device.
    if bad is not None and settings.not_finite == 'stop':
        _report_not_finite(session, bad)
    step = values[-1][0]
    # An interval never holds two objectives or shapes: every stretch ends with a record.
    program = session.program_at(step)
    objective, cells = (
        session.objectives.by_program[program],
        program.shape.batch_rows * program.shape.rows.row_pieces,
    )
    phase = session.stretch_at(step).phase
    record = watch.summarise(interval, values, seconds, cells, objective, phase, session.tokens)
    record = dataclasses.replace(record, joules=session.meter.since_last())
    for name in SPENT:  # since step 0, also over kills; unknown once a part of it is
        before, here = session.spent[name], getattr(record, name)
        session.spent[name] = None if before is None or here is None else before + here
    spent: dict[str, Any] = session.spent
    record, session.tokens = dataclasses.replace(record, **spent), record.tokens
    session.run.metrics.add('pretrain', record)
    return record


def _report_not_finite(session: Session, step: int) -> None:
    # Batches are a function of the step, so the rows of the bad one can be named afterwards.
    rows = session.batches()[session.stretch_at(step).shape.rows].row_numbers(step - 1)[:8].tolist()
    good = session.checkpoints.latest()
    remedy = (
        'Lower config.pretrain.learning_rate, look at those rows, or set config.pretrain.not_finite=skip'
        if step > 1
        else 'No update came before it, so the learning rate is not the cause: look at those rows, and at the weights '
        'that stage surgery wrote from config.source.path'
    )
    raise InputError(
        f'pretrain: the loss or gradient of step {step} is not finite (rows {rows} ...); last checkpoint: step {good}. '
        f'{remedy}'
    )


def _evaluate(session: Session, state: Any, step: int, phase_end: bool) -> None:
    own, *_ = session.train_steps.values()
    # The average is what is exported, so it is what is scored.
    phase, tokens = session.stretch_at(step).phase if step else INITIAL, session.tokens
    with session.clock.within(EVALUATION):
        evaluation = session.evaluations_by[session.stretch_at(step).shape.turning if step else Turning()]
        params = adapter.whole(session.run.config.pretrain, state.get(AVERAGE, state['params']), own.frozen)
        values = dict(evaluation.scores(params, own.frozen, phase_end))
    losses = {n.removeprefix('loss/'): values.pop(n) for n in list(values) if n.startswith('loss/')}
    facts = {'step': step, 'phase': phase, 'phase_end': phase_end, 'tokens': tokens}
    record = Evaluated.read({**facts, **values, 'losses': losses}, 'pretrain: an evaluation', NO_LOSS)
    session.evaluations += 1
    session.pace_values[step] = curriculum.pace_value(session.run.config, record)
    session.run.metrics.add('pretrain', record)
    if phase_end:
        f1s = [f', {name} F1 {100 * f1:.2f} from frozen states' for name, f1 in record.entity_f1.items()]
        session.run.console.say(
            f'pretrain: step {step}, end of phase {phase}: held-out loss {record.loss:.4f}{"".join(f1s)}'
        )
