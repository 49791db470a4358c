"""results.jsonl: a line a run with all that the tables of several runs need, so that they outlive the run folders.

A file of such records stands for its runs wherever `bioptimus report` takes folders. What one run's own page has beyond
those tables (tokens, documents, slices, points of figures) is not in it.
"""

import contextlib
import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.analysis import Shape
from bioptimus_jax.records.finetune import FineTuning
from bioptimus_jax.records.manifests import Manifest
from bioptimus_jax.records.metrics import EncodedFlops, Spent
from bioptimus_jax.records.runs import KeptClaim, KeptManifest, RunRecord
from bioptimus_jax.report.cells import units_of
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.sections.efficiency import effort_at
from bioptimus_jax.report.sections.training import told
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.metrics import MetricsLog
from bioptimus_jax.storage.files import JsonObject

RECORDS = 'results.jsonl'
SEED = '.seed-'
"""What stands between the name of an arm and its seed."""
REMEDY = f'`bioptimus sweep`, and `bioptimus report` of run folders, write {RECORDS}'


@dataclasses.dataclass(eq=False)
class Recorded(Run):
    """A run of which the record is left. It has a name, a configuration and manifests, and no folder."""

    workdir: Path
    config: Experiment
    manifests: Mapping[str, Manifest]

    def __post_init__(self) -> None:
        self.leads, self.mirror = True, None
        self.console, self.metrics = Console(quiet=True), MetricsLog(self.workdir)

    def manifest(self, stage: str) -> Manifest | None:
        return self.manifests.get(stage)


def record_of(name: str, m: Measures) -> RunRecord:
    """What `measures_of` needs, and the seconds of the stages that the run made itself."""
    own = {s: x.seconds for s, x in m.manifests.items() if x.seconds is not None and not x.folder}
    return RunRecord(
        arm=name,
        cloze=tuple(m.cloze),
        finetuned=tuple(_cell(m, cell) for cell in m.finetuned),
        seconds=own,
        phases=tuple(m.phases),
        evaluations=tuple(m.evaluations),
        training=tuple(_spent(m)),
        kept_steps=m.kept_steps,
        encoded=(EncodedFlops(effort_at(m, 0).flops),) if m.encoded else (),
        geometry=tuple(Shape(x.model, x.rows, x.words.without_replicates()) for x in m.geometry),
        manifests={stage: KeptManifest.of(manifest) for stage, manifest in m.manifests.items()},
        statistics=tuple(m.statistics) or None,
        crossed=tuple(m.crossed) or None,
        frozen=tuple(m.frozen) or None,
        snapshots=tuple(m.snapshots) or None,
        curriculum=tuple(m.curriculum) or None,
        begun={stage: KeptClaim(claim.settings) for stage, claim in m.begun.items()} or None,
        training_mentions=tuple(m.training_mentions) or None,
    )


def named(runs: Sequence[Measures]) -> dict[str, Measures]:
    """Runs by the names of their folders."""
    return dict(zip(names_of(runs), runs, strict=True))


def names_of(runs: Sequence[Measures]) -> list[str]:
    """The names of the folders of runs; where several are alike, with the folders around them that tell them apart.

    If two sweeps have the same seed of an arm, all runs of that name are told apart: they are two arms.
    """
    paths, depth = [Path(os.path.abspath(m.run.workdir)).parts[1:] for m in runs], [1] * len(runs)
    while True:
        names = ['/'.join(parts[-deep:]) for parts, deep in zip(paths, depth, strict=True)]
        double = {name.partition(SEED)[0] for name in names if names.count(name) > 1}
        longer = [
            at
            for at, name in enumerate(names)
            if name.partition(SEED)[0] in double and depth[at] < len(paths[at])
        ]
        if not longer:
            return names
        for at in longer:
            depth[at] += 1


def records_of(runs: Sequence[Measures]) -> list[JsonObject]:
    """Records of several runs, as the lines of RECORDS have them."""
    return [record_of(name, m).json() for name, m in named(runs).items()]


def read_record(line: Mapping[str, Any], where: str) -> RunRecord:
    """The record of a line. Raises InputError where it is of something else, or of another version."""
    record = RunRecord.read(line, where, REMEDY)
    if Path(record.arm).is_absolute() or '..' in Path(record.arm).parts:
        raise InputError(f'{where}: is damaged (arm is not a name); {REMEDY}')
    return record


def measures_of(record: RunRecord, place: Path, experiment: Experiment) -> Measures:
    """The measures of a record; `place` is where a run of that name would lie."""
    manifests = {stage: kept.manifest for stage, kept in record.manifests.items()}
    return Measures(
        run=Recorded(place, dataclasses.replace(experiment, phases=record.phases), manifests),
        spent=list(record.training),
        evaluations=list(record.evaluations),
        finetuned=list(record.finetuned),
        cloze=list(record.cloze),
        geometry=list(record.geometry),
        frozen=list(record.frozen or ()),
        snapshots=list(record.snapshots or ()),
        encoded=record.encoded,
        statistics=list(record.statistics or ()),
        crossed=list(record.crossed or ()),
        kept_steps=dict(record.kept_steps),
        curriculum=list(record.curriculum or ()),
        manifests=manifests,
        begun={stage: kept.claim for stage, kept in (record.begun or {}).items()},
        training_mentions=list(record.training_mentions or ()),
    )


def _cell(m: Measures, cell: FineTuning) -> FineTuning:
    """The cell with its counts by unit, where its predictions are there."""
    with contextlib.suppress(InputError):
        return dataclasses.replace(cell, units=units_of(m, cell).record())
    return cell


def _spent(m: Measures) -> list[Spent]:
    """What was spent up to each evaluation and each model that was kept, and what the objective told there."""
    steps = sorted({e.step for e in m.evaluations} | set(m.kept_steps.values()))
    last = (next((r for r in reversed(m.spent) if r.step <= step), None) for step in steps)
    kept, names = {r.step: r for r in last if r}.values(), told(m)
    return [dataclasses.replace(r, told={n: r.told[n] for n in names if n in r.told}) for r in kept]
