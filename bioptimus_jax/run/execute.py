"""Bringing a stage up to date: kept, resumed, taken from a base run, refused or made."""

import contextlib
import dataclasses
import os
import shutil
import time
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import (
    Afresh,
    ConfigError,
    InputError,
    Stopped,
    lacks_memory,
    of_the_system,
    reason_of,
)
from bioptimus_jax.hosts import devices
from bioptimus_jax.hosts.remote.inputs import READ_BY
from bioptimus_jax.hosts.workers import WorkerKilled
from bioptimus_jax.progress.console import clock
from bioptimus_jax.records.counts import StageResult
from bioptimus_jax.records.manifests import Claim, FileEntry, Manifest
from bioptimus_jax.run import manifests
from bioptimus_jax.run.fingerprint import StageOfRun, check_bases, is_empty
from bioptimus_jax.run.folder import Run, no_time
from bioptimus_jax.run.metrics import lines_of
from bioptimus_jax.run.stage import Stage
from bioptimus_jax.storage.files import alone, digest, is_left, write_json

SECONDS_BETWEEN = 10.0
"""How often the time that a stage has taken is written down."""


def execute(run: Run[Any], stage: Stage, replace: bool = False, keep_matching: bool = False) -> Manifest:
    """Bring a stage up to date while no other process works on the same stage of the same run.

    A matching manifest is kept; an unfinished folder of the same fingerprint is resumed; anything else is refused with
    what differs, unless `replace`. With `keep_matching`, `replace` touches only what would be refused, so that the same
    command can be given again. What can be refused from settings and small files is refused before anything is written.
    Raises ConfigError, InputError, Stopped.
    """
    check_bases(run.config.runtime.base_run)
    attempt = Attempt(run, stage)
    for name in attempt.needs():
        run.place(name)  # says which stage is missing
    if attempt.check_settings(replace) or replace or not run.manifest(stage.name):
        attempt.check_ahead()
    with alone(run.lock(stage.name), f'{attempt.folder}: another process is working on it'):
        return attempt.bring_up_to_date(replace, keep_matching)


@dataclasses.dataclass
class Stopwatch:
    """The seconds of a stage: those `before`, of earlier attempts, and this attempt's `own`; `kept` of these."""

    folder: Path
    before: float
    started: float
    kept: float = 0.0

    @property
    def own(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds(self) -> float:
        """The seconds of all attempts."""
        return round(self.before + self.own, 1)

    def keep(self, now: bool = False) -> None:
        """Keep the seconds so far in the claim, for the next attempt: at a bounded rate unless `now`."""
        if now or self.own >= self.kept + SECONDS_BETWEEN:
            self.kept = self.own
            manifests.claim_seconds(self.folder, self.seconds)


class Attempt(StageOfRun):
    """One attempt at a stage of a run: it is kept, taken from a base run, gone on with, refused or made."""

    def bring_up_to_date(self, replace: bool = False, keep_matching: bool = False) -> Manifest:
        """The stage's manifest, once it is what `execute` says."""
        run, stage = self.run, self.stage
        folder, wanted = self.folder, self.fingerprint()
        found = self._look(wanted)
        if found.is_unwanted(replace, keep_matching, is_empty(folder)):
            _remove(folder)
            found = manifests.StageState()
        if found.refusal:
            raise found.refusal
        finished = None if found.changes or found.missing or stage.always else found.manifest
        self._clear(scratch=bool(finished))
        if finished:
            run.say_of(stage.name, 'up to date')
            return finished
        if not (found.begun or stage.always) and (taken := self._from_base(wanted)):
            return taken
        return self._make(wanted, found)

    def _look(self, wanted: Claim) -> manifests.StageState:
        """What the stage's folder holds, against the fingerprint that is `wanted`; nothing is changed."""
        run, stage = self.run, self.stage
        folder, manifest = self.folder, run.manifest(stage.name)
        if manifest is None:
            run.fetch(stage.name)  # what an earlier attempt has left
        claim = None if manifest else manifests.read_claim(folder)
        found = manifests.StageState(manifest, claim)
        if not found.begun:
            return dataclasses.replace(found, refusal=_refuse_strange(folder))
        changes = tuple(self.changes(found.begun, wanted))
        refusal = self.refusal(changes, found.begun, wanted)
        found = dataclasses.replace(found, changes=changes, refusal=refusal)
        # Only now, as it may read gigabytes: the checksums of what is finished and would be kept.
        if refusal or not manifest or stage.always:
            return found
        flaws, place = run.flaws(stage.name), Path(manifest.folder or folder)
        try:  # what is missing is made again here, and in no other run
            manifests.require_as_taken(folder, manifest)
            manifests.require_whole(
                place, flaws if place != folder else dataclasses.replace(flaws, missing=())
            )
        except InputError as error:
            return dataclasses.replace(found, refusal=error)
        return dataclasses.replace(found, missing=flaws.missing)

    def _make(self, wanted: Claim, found: manifests.StageState) -> Manifest:
        """Make the stage, or go on with it, and return its manifest.

        Where it is refused before it has saved anything, the folder is as it was, or a copy of what was taken. Raises
        Afresh where jax holds what it needs.
        """
        run, stage = self.run, self.stage
        if devices.held() and stage.needs_free_accelerator(run.config):
            self._leave_accelerators()
        if found.begun or stage.always:
            run.fetch('' if stage.always else stage.name, bulk=not stage.always)
        folder = self.folder
        folder.mkdir(exist_ok=True)
        if found.manifest and found.manifest.folder:
            self._bring_here(Path(found.manifest.folder))
        if found.manifest:
            # Finished no longer. Renamed, as a kill must not leave files without a record: they would be refused.
            os.replace(folder / manifests.MANIFEST, folder / manifests.STARTED)
        # The claim keeps what was begun before: entries that are left out for once must not come back as others.
        begun = found.begun.settings if found.begun else {}
        origins = {
            key: tuple(urls) for key, urls in run.origins.items() if stage.name in READ_BY[key]
        } or None
        before = 0.0 if stage.always or not found.begun else found.begun.seconds or 0.0
        claim = dataclasses.replace(
            wanted, config={**begun, **wanted.settings}, origins=origins, seconds=before or None
        )
        write_json(folder / manifests.STARTED, claim.json())
        run.saved(now=True)
        run.kept, run.computed_on, run.began = False, None, time.time()
        watch = Stopwatch(folder, before, time.monotonic())
        run.keep_time = watch.keep
        run.say_of(stage.name, stage.summary)
        for name in found.missing:
            run.console.say(f'{stage.name}: {name} is missing, and is rebuilt')
        result = self._build(found)
        files, metrics = self._records()
        for name in set(found.missing) - files.keys():
            run.console.say(
                f'{stage.name}: {name} is still missing; only `bioptimus {stage.name} --replace` rebuilds it'
            )
        sums = {name: entry.sha256 for name, entry in files.items()}
        manifest = Manifest(
            stage=stage.name,
            config=wanted.config,
            inputs=wanted.inputs,
            content=result.content or digest(sums),
            counts=result.counts.json(),
            files=files,
            metrics=metrics,
            versions=manifests.versions(),
            computed=run.computed_on,
            origins=origins,
            seconds=watch.seconds,
        )
        manifests.write_manifest(folder, manifest)
        self._clear()
        run.saved(now=True)
        run.say_of(stage.name, f'done in {clock(watch.own)}')
        return manifest

    def _bring_here(self, place: Path) -> None:
        """Copy what was taken from another run, files and lines of metrics.jsonl: the stage goes on from it here."""
        self.run.say_of(self.stage.name, f'goes on from {place}, which is copied')
        hidden = shutil.ignore_patterns(manifests.MANIFEST, '.*')
        try:
            shutil.copytree(place, self.folder, ignore=hidden, dirs_exist_ok=True)
        except shutil.Error as error:  # what happened to each file, as (from, to, reason)
            raise InputError(
                f'{place}: cannot be copied to {self.folder} ({error.args[0][0][-1]})'
            ) from error
        for name in (self.stage.name, *self.stage.lines):
            self.run.metrics.take(name, lines_of(self.folder, name))

    def _leave_accelerators(self) -> None:
        """Have another process go on, once, where jax holds the memory that the stage needs: raises Afresh, Stopped."""
        run, stage = self.run, self.stage
        run.console.check_stop()
        distributed = run.config.runtime.distributed
        if not distributed and devices.replaced_since() is None:
            raise Afresh
        alone = ' in one process, without config.runtime.distributed,' * bool(distributed)
        run.console.say(
            f'{stage.name}: WARNING: jax holds memory of the accelerators in this run; `bioptimus {stage.name}`{alone} '
            'has all of it once the run has ended'
        )

    def _build(self, found: manifests.StageState) -> StageResult:
        """What the stage has built. Where it is refused its folder is left as `StageState.after_refusal` says."""
        run, stage, folder = self.run, self.stage, self.folder
        try:
            return stage.build(run, folder)
        except (ConfigError, InputError) as error:
            left = found.after_refusal(error, run.kept, killed=isinstance(error, WorkerKilled))
            if left is manifests.FolderOutcome.FINISHED and found.manifest:
                # `_make` has made a claim of the manifest: it comes back, with what this attempt has written.
                files, metrics = self._records()
                files = {**found.manifest.files, **files}
                # What was taken from another run has been copied by now.
                back = dataclasses.replace(found.manifest, files=files, metrics=metrics, folder=None)
                manifests.write_manifest(folder, back)
            elif left is manifests.FolderOutcome.NOTHING:
                _remove(folder)
            raise
        # No error: the folder stays with its claim, for the next attempt to go on from.
        except Stopped:
            with contextlib.suppress(OSError):  # a full disk: the work itself is saved
                run.keep_time(True)
            raise
        except Exception as error:
            if lacks_memory(error):
                raise InputError(
                    f'{stage.name}: there is not enough memory ({reason_of(error)}); {stage.memory}'
                ) from error
            if reason := of_the_system(error, str(folder)):
                raise InputError(reason) from error
            raise
        finally:
            run.keep_time = no_time

    def _records(self) -> tuple[dict[str, FileEntry], str]:
        """What the stage has written: its files, and the digest of its lines in metrics.jsonl."""
        checksums = self.run.checksums()
        files = manifests.listed(self.folder, checksums)
        checksums.save()
        return files, digest(self.run.metrics.of(self.stage.name))

    def _clear(self, scratch: bool = True) -> None:
        """Delete what kills have left: files half written, a folder half removed.

        With `scratch` also claim and scratch.
        """
        folder = self.folder
        for path in [p for p in folder.rglob('.*') if is_left(p)]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        shutil.rmtree(_removed(folder), ignore_errors=True)
        if scratch:
            (folder / manifests.STARTED).unlink(missing_ok=True)
            shutil.rmtree(self.run.scratch(self.stage.name), ignore_errors=True)

    def _from_base(self, wanted: Claim) -> Manifest | None:
        """The manifest of the same stage in a base run, the first that matches, now also in this run's folder.

        None where there is none.
        """
        run, stage = self.run, self.stage
        if run.mirror and run.config.runtime.base_run:
            raise ConfigError(
                'config.runtime.base_run: a run in a bucket cannot depend on a folder of one machine; leave it empty'
            )
        remembered = run.checksums()
        # A base is a run, or a folder of runs such as a sweep's.
        bases = [Path(base) for base in run.config.runtime.base_run]
        below = {base: sorted(p for p in base.iterdir() if p.is_dir() and p.name[0] != '.') for base in bases}
        for folder in (place / stage.name for base in bases for place in (base, *below[base])):
            manifest = manifests.read_manifest(folder)
            if manifest is None or self.changes(manifest, wanted):
                continue
            # A base may have taken the stage from a third run: its own folder then holds the manifest alone.
            place = manifest.folder or str(folder.resolve())
            manifest = dataclasses.replace(manifest, folder=place)
            # Compared now: the files are somebody else's, and may have changed since their stage was done.
            flaws = manifests.find_flaws(Path(place), manifest, remembered)
            if flaws != manifests.Flaws():
                name = (*flaws.changed, *flaws.missing)[0]
                run.console.say(f'{stage.name}: not taken from {place}, whose {name} is damaged or missing')
                continue
            remembered.save()
            self.folder.mkdir(exist_ok=True)
            manifests.write_manifest(self.folder, manifest)
            run.say_of(stage.name, f'taken from {place}')
            return manifest
        return None


def _refuse_strange(folder: Path) -> ConfigError | None:
    """What to raise for a folder without a record that holds more than a kill leaves."""
    if not folder.exists() or all(is_left(path) for path in folder.iterdir()):
        return None
    return ConfigError(
        f'{folder}: holds files that no stage of this program began (or its {manifests.MANIFEST} is gone: '
        'restore it); remove the folder, or use another --workdir'
    )


def _remove(folder: Path) -> None:
    """Delete a stage's folder so that a kill in between never leaves a manifest with half of its files."""
    shutil.rmtree(_removed(folder), ignore_errors=True)
    os.replace(folder, _removed(folder))
    shutil.rmtree(_removed(folder))


def _removed(folder: Path) -> Path:
    return folder.with_name(f'.{folder.name}.removed')
