"""What decides the result of a stage, and whether what was made before still is that result."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.config.fields import default_of, walk
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.config import Configuration
from bioptimus_jax.progress.tracker import check_trackers
from bioptimus_jax.records.manifests import Begun, Claim
from bioptimus_jax.run import manifests
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.shipped import PLUG_IN, plug_ins
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import is_left


def result_keys(experiment: Configuration, sections: tuple[str, ...]) -> dict[str, Any]:
    """Flat `key -> value` of those sections, without runtime keys and paths: what a fingerprint covers.

    An objective's own settings are all there, given or not: whoever changes a default in its file changes the result.
    """
    # An objective is imported only for who needs it: most of them import jax.
    keys = list(walk(experiment.resolved if 'objective' in sections else experiment))
    every = {name: value for name, value, _ in keys}
    flat = {}
    for name, value, metadata in keys:
        # A key that decides nothing under these settings must not make anybody build a stage again.
        other, values = metadata.get('active_if') or (name, (value,))
        if not metadata.get('path') and name.split('.')[0] in sections and every[other] in values:
            flat[name] = _as_json(value)
    return flat


def _as_json(value: Any) -> Any:
    """The value as it comes back from a manifest."""
    if isinstance(value, Mapping):
        return {name: _as_json(inner) for name, inner in value.items()}
    return list(value) if isinstance(value, tuple) else value


def check_ahead(run: Run[Any], stage: Stage) -> None:
    """Raise what can be known of a stage before it, or any before it, begins: ConfigError, InputError."""
    check_trackers(run.config.runtime.tracked)
    external_inputs(stage, run.config)
    stage.check(run)


def external_inputs(stage: Stage, experiment: Configuration) -> dict[str, Path | str]:
    """What outside the run decides the result, by name, the code of plug-ins among it.

    Raises InputError for a file that is not there.
    """
    given = stage.external(experiment)
    if not isinstance(given, dict):
        given = {f'{number}:{path.name}': path for number, path in enumerate(given)}
    given |= plug_ins(experiment, stage.sections)
    for path in given.values():
        if isinstance(path, Path) and not path.is_file():
            raise InputError(f'{path}: no such file; it is an input of stage {stage.name!r}')
    return given


def check_settings(run: Run[Any], stage: Stage, replace: bool) -> list[str]:
    """Settings that have changed since the stage was made, or begun.

    Raises ConfigError where `bring_up_to_date` would refuse them, whatever the inputs are.
    """
    folder = run.workdir / stage.name
    manifest = run.manifest(stage.name)
    previous: Begun | None = manifest or manifests.read_claim(folder)
    if replace or not previous or (not manifest and is_empty(folder)):
        return []
    wanted = Claim(config=settings_of(run, stage))
    before = dataclasses.replace(previous, inputs={})
    changes = changes_between(run, before, wanted)
    if refusal := refusal_of(folder, stage, changes, before, wanted):
        raise refusal
    return changes


@dataclasses.dataclass(frozen=True)
class Seen:
    """Inputs against those that a stage was made of, without reading large files: what differs, what is not known."""

    changes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def check_inputs(run: Run[Any], stage: Stage, replace: bool) -> Seen:
    """What is seen of the inputs of a stage that was made, or begun, before.

    A large file is not read: it is known by size and time, and what is neither the same nor surely another is `unread`.
    Raises ConfigError where `bring_up_to_date` would refuse what is seen, InputError for a file that is not there.
    """
    folder = run.workdir / stage.name
    manifest = run.manifest(stage.name)
    previous: Begun | None = manifest or manifests.read_claim(folder)
    if replace or stage.always or not previous or (not manifest and is_empty(folder)):
        return Seen()
    before, remembered = previous.inputs, run.checksums()
    inputs: dict[str, Any] = {}
    unread = []
    for name in stage.needs(run):
        manifest = run.manifest(name)
        inputs[name] = manifest.content if manifest and manifest.content else before.get(name)
    for name, value in external_inputs(stage, run.config).items():
        inputs[name] = remembered.at_sight(value) if isinstance(value, Path) else value
        if inputs[name] is None and isinstance(value, Path):
            if name in before and not remembered.has_other_size(value, before[name]):
                inputs[name] = before[name]
                unread.append(str(value))
            else:
                inputs[name] = f'{value.stat().st_size:,} bytes'
    old, new = dataclasses.replace(previous, config={}), Claim(config={}, inputs=inputs)
    changes = changes_between(run, old, new)
    if refusal := refusal_of(folder, stage, changes, old, new):
        raise refusal
    return Seen(tuple(changes), tuple(unread))


def changes_between(run: Run[Any], old: Begun, new: Claim) -> list[str]:
    """`manifests.differences`, by the defaults of the run's configuration."""
    return manifests.differences(old, new, functools.partial(default_of, type(run.config)))


def settings_of(run: Run[Any], stage: Stage) -> dict[str, Any]:
    """The result keys that a stage reads, and its format."""
    config = result_keys(run.config, stage.sections)
    if stage.format > 1:
        config[f'{stage.name}.format'] = stage.format
    return config


def refusal_of(
    folder: Path, stage: Stage, changes: Sequence[str], old: Begun, new: Claim
) -> ConfigError | None:
    """What to raise where the changes do not let the stage go on from the old fingerprint to the new one."""
    # A plug-in comes with a phase that is added, and goes once the program ships it.
    against = manifests.refused(changes, old, new, stage.changeable_keys, (*stage.open_ended_inputs, PLUG_IN))
    if not against:
        return None
    return ConfigError(
        f'{folder}: belongs to another configuration or other inputs ({"; ".join(against[:4])}); '
        f'use another --workdir, or `bioptimus {stage.name} --replace` to rebuild it'
    )


def check_bases(bases: Sequence[str]) -> None:
    """Raise ConfigError for a base run that is not there, also where nothing is to be taken from it."""
    for base in bases:
        if not os.path.isdir(base):
            raise ConfigError(
                f'config.runtime.base_run: {base}: no such run folder; correct it, or leave it empty'
            )


def fingerprint(run: Run[Any], stage: Stage, external: bool = True) -> Claim:
    """What decides a stage's result: its result keys, and its inputs by content, unless only those of the run."""
    inputs: dict[str, Any] = {}
    for name in stage.needs(run):
        run.place(name)  # says which stage is missing
        manifest = run.manifest(name)
        inputs[name] = manifest.content if manifest else None
    given = external_inputs(stage, run.config) if external else {}
    sizes = [path.stat().st_size for path in given.values() if isinstance(path, Path)]
    progress = run.console.progress(f'{stage.name}: checksums of the inputs', sum(sizes) / 1e6, 'MB')
    remembered = run.checksums()
    for name, value in given.items():
        inputs[name] = remembered.sha256(value, progress.update) if isinstance(value, Path) else value
        run.console.check_stop()
    remembered.save()
    return Claim(config=settings_of(run, stage), inputs=inputs)


def is_empty(folder: Path) -> bool:
    """Whether a stage began and left nothing: its input was bad, and whoever corrects it need not say --replace."""
    return not any(p.is_file() and p.name != manifests.STARTED and not is_left(p) for p in folder.rglob('*'))
