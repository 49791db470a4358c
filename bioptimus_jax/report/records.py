"""results.jsonl: a line a run with all that the tables of several runs need, so that they outlive the run folders.

A file of such records stands for its runs wherever `bioptimus report` takes folders. What one run's own page has beyond
those tables (tokens, documents, slices, points of figures) is not in it.
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.finetune.config import STANDARD
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.analysis import FrozenScore, HiddenWords, Shape
from bioptimus_jax.records.curriculum import PlacedPhase
from bioptimus_jax.records.manifests import Claim, Manifest
from bioptimus_jax.records.metrics import EncodedFlops, Evaluation, Spent
from bioptimus_jax.records.record import Record, plain
from bioptimus_jax.report.cells import units_of
from bioptimus_jax.report.measures import Measures
from bioptimus_jax.report.sections.efficiency import effort_at
from bioptimus_jax.report.sections.training import told
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.metrics import MetricsLog

RECORDS = 'results.jsonl'
OF_A_MANIFEST = ('config', 'content', 'inputs', 'counts', 'seconds')
NEEDED: dict[str, tuple[str, ...]] = {
    'cloze': ('model',),
    'finetuned': ('model', 'dataset', 'seed', 'devel', 'test'),
    'evaluations': ('step', 'phase', 'frozen_loss'),
    'training': ('step', 'tokens'),
    'geometry': ('model',),
    'encoded': ('flops',),
}
"""Lists of a record, and what each of their entries has."""
OPTIONAL = {
    **dict.fromkeys(('statistics', 'crossed', 'frozen', 'snapshots', 'curriculum'), list),
    'begun': dict,
}
"""Measures of a record where a run has them."""
RESTORE = 'restore the file'
LISTS: Mapping[str, type[Record]] = {
    'cloze': HiddenWords,
    'geometry': Shape,
    'frozen': FrozenScore,
    'snapshots': HiddenWords,
}


class Recorded(Run):
    """A run of which the record is left. It has a name, a configuration and manifests, and no folder."""

    def __init__(self, place: Path, experiment: Experiment, manifests: Mapping[str, Manifest]):
        self.workdir, self.config, self.manifests = place, experiment, manifests
        self.leads, self.mirror = True, None
        self.console, self.metrics = Console(quiet=True), MetricsLog(place)

    def manifest(self, stage: str) -> Manifest | None:
        return self.manifests.get(stage)


def record_of(name: str, m: Measures) -> dict[str, Any]:
    """What `measures_of` needs, and the seconds of the stages that the run made itself."""
    manifests = {s: _kept(x.json()) for s, x in m.manifests.items()}
    own = [s for s, of_stage in m.manifests.items() if of_stage.seconds is not None and not of_stage.folder]
    return {
        'arm': name,
        'cloze': plain(m.cloze),
        'finetuned': [_cell(m, cell) for cell in m.finetuned],
        'seconds': {s: found['seconds'] for s, found in manifests.items() if s in own},
        'phases': m.phases,
        'evaluations': plain(m.evaluations),
        'training': plain(_spent(m)),
        'kept_steps': m.kept_steps,
        'encoded': [{'flops': effort_at(m, 0).flops}] if m.encoded else [],
        'geometry': [_without_replicates(plain(record)) for record in m.geometry],
        'manifests': manifests,
        **{name: value for name in OPTIONAL if name != 'begun' and (value := plain(getattr(m, name)))},
        **(
            {'begun': {s: {'config': plain(claim.settings)} for s, claim in m.begun.items()}}
            if m.begun
            else {}
        ),
    }


def _kept(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {key: manifest[key] for key in OF_A_MANIFEST if key in manifest}


def named(runs: Sequence[Measures]) -> dict[str, Measures]:
    """Runs by the names of their folders; those of one name are told apart by the folder around it."""
    names = [m.run.workdir.name for m in runs]
    return {
        name if names.count(name) == 1 else f'{m.run.workdir.parent.name}/{name}': m
        for name, m in zip(names, runs, strict=True)
    }


def records_of(runs: Sequence[Measures]) -> list[dict[str, Any]]:
    """Records of several runs."""
    return [record_of(name, m) for name, m in named(runs).items()]


def check(record: dict[str, Any], where: str) -> dict[str, Any]:
    """The record. Raises InputError where it is of something else, or of an older version."""
    flaw = _flaw(record)
    if flaw:
        raise InputError(
            f'{where}: is not a record of a run ({flaw}); `bioptimus sweep`, and `bioptimus report` of run folders,'
            f' write {RECORDS}'
        )
    return record


def _flaw(record: Mapping[str, Any]) -> str:
    kinds = {'arm': str, 'phases': list, 'manifests': dict, 'kept_steps': dict, **dict.fromkeys(NEEDED, list)}
    kinds |= {name: kind for name, kind in OPTIONAL.items() if name in record}
    for name, kind in kinds.items():
        if not isinstance(record.get(name), kind):
            return f'{name} is missing, or not of type {kind.__name__}'
    if Path(record['arm']).is_absolute() or '..' in Path(record['arm']).parts:
        return 'arm is not a name'
    for name, keys in NEEDED.items():
        for entry in record.get(name, ()):
            lacking = [key for key in keys if not isinstance(entry, dict) or key not in entry]
            if lacking:
                return f'an entry of {name} has no {lacking[0]}'
    return ''


def manifests_of(value: Mapping[str, Any], place: Path) -> dict[str, Manifest]:
    """What a record keeps of the manifests of a run, by stage."""
    return {stage: Manifest.read(x, f'{place}: manifests: {stage}', RESTORE) for stage, x in value.items()}


def measures_of(record: Mapping[str, Any], place: Path, experiment: Experiment) -> Measures:
    """The measures of a checked record; `place` is where a run of that name would lie."""
    known: dict[str, Any] = {name: record[name] for name in (*NEEDED, 'kept_steps', 'manifests')}
    del known['training']
    known['spent'] = Spent.read_all(record['training'], f'{RECORDS}: {place.name}: training')
    known['evaluations'] = Evaluation.read_all(record['evaluations'], f'{RECORDS}: {place.name}: evaluations')
    known['encoded'] = EncodedFlops.read_all(record['encoded'], f'{RECORDS}: {place.name}: encoded')
    known |= {name: record[name] for name in OPTIONAL if name in record}
    for name, kind in LISTS.items():
        known[name] = kind.read_all(record.get(name, []), f'{place}: {name}', RESTORE)
    known['curriculum'] = PlacedPhase.read_all(record.get('curriculum', []), f'{place}: curriculum', RESTORE)
    known['finetuned'] = [{'setting': STANDARD, **cell} for cell in record['finetuned']]
    experiment = dataclasses.replace(experiment, phases=tuple(record['phases']))
    known['manifests'] = manifests_of(record['manifests'], place)
    if 'begun' in record:
        known['begun'] = {
            s: Claim.read(x, f'{place}: begun: {s}', RESTORE) for s, x in record['begun'].items()
        }
    known['run'] = Recorded(place, experiment, known['manifests'])
    return Measures(**known)


def _cell(m: Measures, cell: dict[str, Any]) -> dict[str, Any]:
    """The cell with its counts by unit, where its predictions are there."""
    with contextlib.suppress(InputError):
        return {**cell, 'units': units_of(m, cell).record()}
    return cell


def _spent(m: Measures) -> list[Spent]:
    """What was spent up to each evaluation and each model that was kept, and what the objective told there."""
    steps = sorted({e.step for e in m.evaluations} | set(m.kept_steps.values()))
    last = (next((r for r in reversed(m.spent) if r.step <= step), None) for step in steps)
    kept, names = {r.step: r for r in last if r}.values(), told(m)
    return [dataclasses.replace(r, told={n: r.told[n] for n in names if n in r.told}) for r in kept]


def _without_replicates(value: Any) -> Any:
    """Measures without the replicates of their intervals over words, which say nothing across runs."""
    if isinstance(value, dict):
        return {name: _without_replicates(x) for name, x in value.items() if name != 'replicates'}
    return value
