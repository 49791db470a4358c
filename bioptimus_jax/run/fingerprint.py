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
from bioptimus_jax.records.manifests import Begun, Claim, ConfigValues, Manifest
from bioptimus_jax.run import manifests
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.shipped import PLUG_IN, plug_ins, variations
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import is_left


def result_keys(experiment: Configuration, sections: tuple[str, ...]) -> ConfigValues:
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


def external_inputs(stage: Stage, experiment: Configuration) -> dict[str, Path | str]:
    """What outside the run decides the result, by name, the code of plug-ins among it.

    Raises InputError for a file that is not there.
    """
    given = stage.external(experiment)
    if not isinstance(given, dict):
        given = {f'{number}:{path.name}': path for number, path in enumerate(given)}
    given |= plug_ins(variations(experiment, stage.sections))
    for path in given.values():
        if isinstance(path, Path) and not path.is_file():
            raise InputError(f'{path}: no such file; it is an input of stage {stage.name!r}')
    return given


def check_bases(bases: Sequence[str]) -> None:
    """Raise ConfigError for a base run that is not there, also where nothing is to be taken from it."""
    for base in bases:
        if not os.path.isdir(base):
            raise ConfigError(
                f'config.runtime.base_run: {base}: no such run folder; correct it, or leave it empty'
            )


def is_empty(folder: Path) -> bool:
    """Whether a stage began and left nothing: its input was bad, and whoever corrects it need not say --replace."""
    return not any(p.is_file() and p.name != manifests.STARTED and not is_left(p) for p in folder.rglob('*'))


@dataclasses.dataclass(frozen=True)
class Seen:
    """Inputs against those that a stage was made of, without reading large files: what differs, what is not known."""

    changes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class StageOfRun:
    """A stage in a run: what its result is made of now, and whether what was made before still is that result."""

    run: Run[Any]
    stage: Stage

    @property
    def folder(self) -> Path:
        """Where the stage is made."""
        return self.run.workdir / self.stage.name

    def needs(self) -> tuple[str, ...]:
        """The stages whose results it reads."""
        run, stage = self.run, self.stage
        if_there = [name for name in stage.reads_if_done if run.manifest(name)]
        return (*stage.needs(run.config), *if_there)

    def of_stages(self) -> dict[str, str | None]:
        """What earlier stages have made, by content: None of one that is not finished."""
        manifests_of = {name: self.run.manifest(name) or Manifest() for name in self.needs()}
        found = {name: manifest.content for name, manifest in manifests_of.items()}
        for file in self.stage.reads_files(self.run.config):
            name, _, within = file.partition('/')
            entry = manifests_of[name].files.get(within)
            found[file] = entry.sha256 if entry else None
        return found

    def previous(self, replace: bool) -> Begun | None:
        """What is on record of the stage if it counts: finished, or begun with something to go on from."""
        manifest = self.run.manifest(self.stage.name)
        if replace or (not manifest and is_empty(self.folder)):
            return None
        return manifest or manifests.read_claim(self.folder)

    def settings(self) -> ConfigValues:
        """The result keys that a stage reads, and its format."""
        run, stage = self.run, self.stage
        versioned = {f'{stage.name}.format': stage.format} if stage.format > 1 else {}
        return {**result_keys(run.config, stage.sections), **versioned}

    def fingerprint(self, external: bool = True) -> Claim:
        """What decides a stage's result: its result keys, and its inputs by content, unless only those of the
        run."""
        run, stage = self.run, self.stage
        for name in self.needs():
            run.place(name)  # says which stage is missing
        inputs = self.of_stages()
        given = external_inputs(stage, run.config) if external else {}
        sizes = [path.stat().st_size for path in given.values() if isinstance(path, Path)]
        progress = run.console.progress(f'{stage.name}: checksums of the inputs', sum(sizes) / 1e6, 'MB')
        remembered = run.checksums()
        for name, value in given.items():
            inputs[name] = remembered.sha256(value, progress.update) if isinstance(value, Path) else value
            run.console.check_stop()
        remembered.save()
        return Claim(config=self.settings(), inputs=inputs)

    def changes(self, old: Begun, new: Claim) -> list[str]:
        """`manifests.differences`, by the defaults of the run's configuration."""
        return manifests.differences(old, new, functools.partial(default_of, type(self.run.config)))

    def refusal(self, changes: Sequence[str], old: Begun, new: Claim) -> ConfigError | None:
        """What to raise where the changes do not let the stage go on from the old fingerprint to the new one."""
        # A plug-in comes with a phase that is added, and goes once the program ships it.
        open_ended = (*self.stage.open_ended_inputs, PLUG_IN)
        against = manifests.refused(changes, old, new, self.stage.changeable_keys, open_ended)
        if not against:
            return None
        return ConfigError(
            f'{self.folder}: belongs to another configuration or other inputs ({"; ".join(against[:4])}); '
            f'use another --workdir, or `bioptimus {self.stage.name} --replace` to rebuild it'
        )

    def check_ahead(self) -> None:
        """Raise what can be known of a stage before it, or any before it, begins: ConfigError, InputError."""
        run, stage = self.run, self.stage
        check_trackers(run.config.runtime.tracked)
        external_inputs(stage, run.config)
        stage.check(run)

    def check_settings(self, replace: bool) -> list[str]:
        """Settings that have changed since the stage was made, or begun.

        Raises ConfigError where `execute` would refuse them, whatever the inputs are.
        """
        previous = self.previous(replace)
        if not previous:
            return []
        wanted = Claim(config=self.settings())
        before = dataclasses.replace(previous, inputs={})
        changes = self.changes(before, wanted)
        if refusal := self.refusal(changes, before, wanted):
            raise refusal
        return changes

    def check_inputs(self, replace: bool) -> Seen:
        """What is seen of the inputs of a stage that was made, or begun, before.

        A large file is not read: it is known by size and time, and what is neither the same nor surely another is
        `unread`. Raises ConfigError where `execute` would refuse what is seen, InputError for a file that is not there.
        """
        run, stage = self.run, self.stage
        previous = self.previous(replace)
        if stage.always or not previous:
            return Seen()
        before, remembered = previous.inputs, run.checksums()
        inputs = {n: value or before.get(n) for n, value in self.of_stages().items()}
        unread = []
        for name, value in external_inputs(stage, run.config).items():
            inputs[name] = remembered.at_sight(value) if isinstance(value, Path) else value
            if inputs[name] is None and isinstance(value, Path):
                if name in before and not remembered.has_other_size(value, before[name]):
                    inputs[name] = before[name]
                    unread.append(str(value))
                else:
                    inputs[name] = f'{value.stat().st_size:,} bytes'
        old, new = dataclasses.replace(previous, config={}), Claim(config={}, inputs=inputs)
        changes = self.changes(old, new)
        if refusal := self.refusal(changes, old, new):
            raise refusal
        return Seen(tuple(changes), tuple(unread))
