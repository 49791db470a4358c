"""Runs as their manifests say they were made: the configuration of a folder, without the config that it came from."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from bioptimus_jax.config.extensions import NotInstalled
from bioptimus_jax.config.fields import walk
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.experiment import config
from bioptimus_jax.experiment.schema import Experiment
from bioptimus_jax.records.manifests import Begun, Claim
from bioptimus_jax.report import records
from bioptimus_jax.report.measures import Measures, read_measures
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.manifests import MANIFEST, differences, read_claim, read_manifest
from bioptimus_jax.storage.files import numbered_jsonl

STAGES = tuple(stage for stage in Experiment().stages if stage != 'report')


def read_runs(folders: Sequence[Path | str]) -> list[Measures]:
    """The runs in these folders, each of them a run, a folder of runs (a sweep) or a file of records of runs.

    Raises InputError where none is.
    """
    found: dict[Path, Measures] = {}
    for folder in map(Path, folders):
        if folder.is_file():
            found |= {m.run.workdir.resolve(): m for m in _recorded(folder)}
            continue
        if not folder.is_dir():
            raise InputError(f'{folder}: no such run folder, and no file of records')
        runs = [folder] if _is_run(folder) else [p for p in sorted(folder.iterdir()) if _is_run(p)]
        if not runs:
            raise InputError(
                f'{folder}: is not a run and holds none; give the --workdir of a run or of a sweep'
            )
        for run in runs:
            if run.resolve() not in found:
                found[run.resolve()] = read_measures(Run(run, experiment_of(run), quiet=True), details=False)
    return list(found.values())


def experiment_of(folder: Path) -> Experiment:
    """The experiment that the manifests of a run's stages record; what no stage recorded is as by default.

    Paths, which a fingerprint leaves out, are empty. Raises InputError for a manifest that is none.
    """
    manifests = {stage: manifest for stage in STAGES if (manifest := _manifest(folder, stage))}
    return _experiment(manifests, folder)


def as_made(given: Experiment, folder: Path) -> Experiment:
    """The settings that the stages of a run folder were begun with; what no stage recorded is as it is given.

    Raises InputError for a manifest that is none, and where the two do not go together.
    """
    try:
        return given.recorded_by(lambda stage: _manifest(folder, stage))
    except NotInstalled:
        raise
    except ConfigError as error:
        raise InputError(
            f'{folder}: its stages were made with settings that do not go with those given ({error}); give the '
            'configuration of the run'
        ) from error


def given_otherwise(made: Experiment, given: Experiment) -> list[str]:
    """The settings that are given and are not those that stages were begun with: `key: of the stages -> given`."""
    # Resolved: keys of objectives and of an initialisation among them, given or not.
    before, now = (
        Claim(config={name: value for name, value, _ in walk(one.resolved)}) for one in (made, given)
    )
    return differences(before, now)


def _experiment(manifests: Mapping[str, Begun], folder: Path) -> Experiment:
    resolved = config.defaults()
    resolved.stages = tuple(manifests)
    found = []
    for stage, manifest in manifests.items():
        if manifest.config is None:
            raise InputError(f'{folder / stage / MANIFEST}: is damaged (no configuration); make it again')
        found.append(manifest.config)
    try:
        return Experiment.overlaid(resolved, found)
    except NotInstalled:
        raise
    except ConfigError as error:
        raise InputError(
            f'{folder}: its manifests do not belong together ({error}); run its stages again under one configuration'
        ) from error


def _recorded(file: Path) -> list[Measures]:
    """Measures of every line of a file of records. Raises InputError that names the line."""
    found = []
    for number, line in numbered_jsonl(file, 'restore the file'):
        record = records.read_record(line, f'{file}, line {number}')
        place = file / record.arm
        manifests = {stage: record.stages[stage] for stage in STAGES if stage in record.stages}
        found.append(records.measures_of(record, place, _experiment(manifests, place)))
    if not found:
        raise InputError(f'{file}: holds no record; give {records.RECORDS} of a sweep')
    return found


def _is_run(folder: Path) -> bool:
    return folder.is_dir() and any(_manifest(folder, stage) for stage in STAGES)


def _manifest(folder: Path, stage: str) -> Begun | None:
    return read_manifest(folder / stage) or read_claim(folder / stage)
