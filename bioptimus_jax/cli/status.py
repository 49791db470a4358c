"""What a run has done and what it is at, read from its folder alone, also while a process works in it."""

import contextlib
import dataclasses
import itertools
import math
import statistics
import time
from pathlib import Path

from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.experiment.stages import STAGES
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.finished import CELLS, SCORES, cells_of, read_cell
from bioptimus_jax.model.config import SNAPSHOT
from bioptimus_jax.pretrain import goodput
from bioptimus_jax.pretrain.curriculum import read_phases, saved_step
from bioptimus_jax.progress.console import clock, in_units, numbered
from bioptimus_jax.records.counts import ExportCounts
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.manifests import Begun, Claim, Manifest
from bioptimus_jax.records.metrics import FILE, Spent, Training
from bioptimus_jax.report.layout import Cell, Column, Table, missing
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import outdated, place_of, read_claim, read_manifest
from bioptimus_jax.run.metrics import MetricsLog
from bioptimus_jax.sets.corpora import settings_on
from bioptimus_jax.storage.files import JsonObject, bytes_below, intact_jsonl, is_held

DONE, AT_WORK, UNFINISHED, NOT_BEGUN = 'done', 'at work', 'unfinished', 'not begun'
RATED = 10
"""The newest records of pre-training, which its rate is taken from."""


@dataclasses.dataclass(frozen=True)
class StageStatus:
    """What a stage has done; `folder`: of another run, which it was taken from.

    `outdated`: earlier stages that were run again, or are running again, since this stage used their results.
    """

    stage: str
    state: str
    seconds: float | None
    bytes: int
    folder: str | None
    outdated: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class StepsDone:
    """Where pre-training is; `steps`: of the whole, None where they are not known yet."""

    step: int
    phase: str
    tokens: int
    loss: float
    tokens_per_second: float
    steps: int | None
    seconds_left: int | None


@dataclasses.dataclass(frozen=True)
class CellsDone:
    """Cells that are finished; `cells`: all that were asked for, None where they are not known yet."""

    cells_done: int
    cells: int | None
    seconds_left: int | None


@dataclasses.dataclass(frozen=True)
class NewestRecord:
    """The newest record of metrics.jsonl, and its age."""

    seconds_ago: int
    record: JsonObject


@dataclasses.dataclass(frozen=True)
class Status:
    """The status of a run. `pretrain`: where it is, or would go on from, while it is not done."""

    run: str
    stages: list[StageStatus]
    pretrain: StepsDone | None
    finetune: CellsDone | None
    bytes: int
    last: NewestRecord | None

    def text(self) -> str:
        """The same for a terminal, in a line a stage."""
        columns = [
            Column('stage', lambda s: s.stage),
            Column(
                'state', lambda s: s.state + f', of an earlier {", ".join(s.outdated)}' * bool(s.outdated)
            ),
            Column('progress', lambda s: self._progress(s.stage)),
            Column('left', lambda s: self._left(s)),
            Column('time', lambda s: missing() if s.seconds is None else clock(s.seconds)),
            Column('size', lambda s: in_units(s.bytes) if s.bytes else missing()),
            Column('taken from', lambda s: s.folder or '', when=any(s.folder for s in self.stages)),
        ]
        said = [Table.of(self.run, columns, self.stages).text(), '', f'disk: {in_units(self.bytes)}']
        if self.last:
            line = ', '.join(
                f'{name} {value:.4g}' if isinstance(value, float) else f'{name} {value}'
                for name, value in self.last.record.items()
                if name != 'time'
            )
            said.append(f'last record, {clock(self.last.seconds_ago)} ago: {line[:200]}')
        return '\n'.join(said)

    def _progress(self, stage: str) -> str:
        """How far a stage is that counts steps or cells; '' of others."""
        if stage == 'pretrain' and (at := self.pretrain):
            of = f' of {at.steps:,}' if at.steps else ''
            rate = f'{at.tokens_per_second:,.0f} tokens/s'
            return f'step {at.step:,}{of}, phase {at.phase}, loss {at.loss:.3f}, {rate}'
        if stage == 'finetune' and (cells := self.finetune):
            of = numbered(cells.cells, 'cell') if cells.cells else '? cells'
            return f'{cells.cells_done:,} of {of}'
        return ''

    def _left(self, stage: StageStatus) -> Cell:
        """The time that a stage still takes, where its progress tells."""
        of_stages: dict[str, StepsDone | CellsDone | None] = {
            'pretrain': self.pretrain,
            'finetune': self.finetune,
        }
        at = of_stages.get(stage.stage)
        if at is None or at.seconds_left is None or stage.state == DONE:
            return missing()
        return Cell(clock(at.seconds_left))


def status_of(folder: Path) -> Status:
    """The status of the run in a folder, of which nothing is changed. Raises InputError where there is none."""
    if not folder.is_dir():
        raise InputError(f'{folder}: no such run folder')
    run = Run(folder, Experiment(), quiet=True)
    known = {name: manifest for name in STAGES if (manifest := run.manifest(name))}
    begun = {name for name in STAGES if read_claim(folder / name)}
    older = outdated(known, begun)
    states = {name: _state(is_held(run.lock(name)), name in known, name in begun) for name in STAGES}
    stages = [
        _stage(folder / name, known.get(name, Manifest()), state, run.scratch(name), older.get(name, ()))
        for name, state in states.items()
    ]
    if {*states.values()} == {NOT_BEGUN}:
        raise InputError(f'{folder}: holds no stage of a run; give the folder that was its --workdir')
    training = states['pretrain'] in (AT_WORK, UNFINISHED)
    return Status(
        str(folder),
        stages,
        _pretraining(folder / 'pretrain', run.metrics, states['pretrain']) if training else None,
        _cells(folder / 'finetune', folder / 'export') if (folder / 'finetune').is_dir() else None,
        bytes_below(folder),
        _last(folder / FILE),
    )


def _state(held: bool, finished: bool, begun: bool) -> str:
    """The state of a stage in a word; `held`: a process works on it."""
    if held:
        return AT_WORK
    if finished:
        return DONE
    return UNFINISHED if begun else NOT_BEGUN


def _stage(
    folder: Path, manifest: Manifest, state: str, scratch: Path, older: tuple[str, ...]
) -> StageStatus:
    """What a stage has done in its folder."""
    size = bytes_below(folder) + bytes_below(scratch)
    return StageStatus(folder.name, state, manifest.seconds, size, manifest.folder, older)


def _pretraining(folder: Path, metrics: MetricsLog, state: str) -> StepsDone | None:
    """Where it is: the newest record of a process at work, else that of the newest checkpoint, as later steps are lost.

    None if there is no such record.
    """
    end = saved_step(folder) if state == UNFINISHED else math.inf
    records = [record for record in Training.among(metrics.of('pretrain')) if record.step <= end]
    if not records:
        return None
    last = records[-1]
    schedule = read_phases(folder)
    steps = schedule[-1].stop if schedule else None
    # Records hold the seconds since step 0, over stops too; None where a record before did not know them.
    before = records[-RATED - 1] if len(records) > RATED else Spent(step=0, tokens=0, seconds=0.0)
    left = None
    if steps is not None and last.seconds is not None and before.seconds is not None:
        left = round((steps - last.step) * (last.seconds - before.seconds) / (last.step - before.step))
    return StepsDone(last.step, last.phase, last.tokens, last.loss, last.tokens_per_second, steps, left)


def _cells(folder: Path, export: Path) -> CellsDone:
    """Finished ones; and all, by what the manifest or the claim says was asked for. A search knows these at its end."""
    manifest, place = read_manifest(folder), place_of(folder)
    asked = manifest or read_claim(place) or Claim(config={})
    settings, ends = _settings(asked), sorted(path.stat().st_mtime for path in _finished(place))
    done = len(ends)
    if settings.halving or settings.tuned_on:
        return CellsDone(done, done if manifest else None, None)
    cells, left = _asked_for(settings, asked, read_manifest(export)), None
    # The median, as a gap between two ends may hold a stop.
    if gaps := [later - end for end, later in itertools.pairwise(ends)]:
        left = round(max((cells or done) - done, 0) * statistics.median(gaps)) if cells else None
    return CellsDone(done, cells, left)


def _finished(place: Path) -> list[Path]:
    """The records of the cells that the stage asks for and that are done; of one that has not said which, all."""
    try:
        asked = cells_of(place)
    except InputError:  # it was stopped before it said which
        asked = None
    if asked is None:
        return list(place.glob(CELLS))
    files = [(folder / SCORES, fingerprint) for folder, fingerprint in asked.items()]
    return [file for file, by in files if file.is_file() and (by is None or _print_of(file) == by)]


def _print_of(file: Path) -> str | None:
    with contextlib.suppress(InputError):  # a damaged one is trained again
        record = read_cell(file)
        return record.print if isinstance(record, FineTuning) else None
    return None


def _settings(asked: Begun) -> Finetune:
    config, known = asked.settings, {field.name for field in dataclasses.fields(Finetune)}
    given = {name.removeprefix('finetune.'): value for name, value in config.items()}
    return Finetune(**{name: value for name, value in given.items() if name in known})


def _asked_for(settings: Finetune, asked: Begun, export: Manifest | None) -> int | None:
    """Models times the seeds of every setting of every set; None where the record does not tell."""
    sets = {name.removeprefix('set ').partition(':')[0] for name in asked.inputs if name.startswith('set ')}
    # Not by the folders: an objective may have models of its own beside those of the phases.
    counts = ExportCounts.of(export)
    exported = counts.phases if counts else ()
    models = len(settings.models or [name for name in exported if SNAPSHOT not in name])
    seeds = sum(len(own.seeds) for name in sets for own in settings_on(settings, name).tried)
    return models * seeds or None


def _last(metrics: Path) -> NewestRecord | None:
    with contextlib.suppress(OSError):
        for record in reversed(intact_jsonl(metrics)):
            with contextlib.suppress(TypeError, KeyError):
                if (
                    record['stage'] == goodput.STAGE
                ):  # seconds by what they were spent on: nothing for a person
                    continue
                return NewestRecord(round(max(time.time() - record['time'], 0)), record)
    return None
