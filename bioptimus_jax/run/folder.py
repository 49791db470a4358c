"""A run folder: stage folders with manifests, `metrics.jsonl`, progress, and files that are never half-written."""

import contextlib
import dataclasses
import errno
import fnmatch
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from bioptimus_jax.errors import InputError, of_the_system
from bioptimus_jax.hosts import devices
from bioptimus_jax.hosts.config import Configuration
from bioptimus_jax.hosts.hardware import unused
from bioptimus_jax.hosts.remote.mirror import BULK, Mirror
from bioptimus_jax.progress.console import Console, clock
from bioptimus_jax.progress.tracker import Trackers
from bioptimus_jax.records.manifests import ComputedOn, Manifest
from bioptimus_jax.run import manifests
from bioptimus_jax.run.metrics import MetricsLog, lines_of
from bioptimus_jax.storage.files import Checksums, JsonObject, digest, existing

NAMED = 3
"""Missing files of a stage that are named."""

ConfigT = TypeVar('ConfigT', bound=Configuration, covariant=True)


class Run(Generic[ConfigT]):
    """What a stage works with: the run's folder and configuration, earlier stages, a console, a log of metrics."""

    def __init__(
        self,
        workdir: Path | str,
        experiment: ConfigT,
        *,
        quiet: bool = False,
        leads: bool = True,
        writes: bool = True,
    ):
        self.workdir = Path(workdir)
        self.config = experiment
        self.console = Console(quiet or not leads)
        self.metrics = MetricsLog(self.workdir, self._open_trackers if leads else None)
        self.leads = leads  # of several processes one writes
        self.command = ''  # that was given, where there was one: it makes the same again
        self.mirror: Mirror | None = None  # of a run folder in a bucket
        self.origins: dict[str, list[str]] = {}  # of keys whose files were fetched at a commit
        self.kept = False  # whether this attempt at a stage has saved something
        self.counted = ''  # of several stages: which one is being made, of how many
        self.started = devices.replaced_since() or time.time()
        self.computed_on: ComputedOn | None = None  # of the stage that is being made, for its manifest
        self.began = time.time()  # with that stage, in this process
        self.keep_time: Callable[[bool], None] = no_time  # that it has taken so far, in its claim
        self._whole = set[str]()  # stages whose files were compared with their manifest
        # Unlike Path's, os.path's answer is no for names that cannot be.
        if os.path.exists(self.workdir) and not os.path.isdir(self.workdir):
            raise InputError(f'{self.workdir}: is a file; --workdir needs a folder')
        self._made = [p for p in (self.workdir, *self.workdir.parents) if writes and not os.path.exists(p)]
        try:
            if writes:
                self.workdir.mkdir(parents=True, exist_ok=True)
            else:
                require_writable(self.workdir)
        except OSError as error:
            self.withdraw()
            raise InputError(f'--workdir={of_the_system(error) or error}') from error

    def withdraw(self) -> None:
        """Take back the folders that were made for this run and are empty: what was refused leaves nothing."""
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()

    def folder(self, stage: str) -> Path:
        """The finished folder of an earlier stage, in this run or in the base run that it was taken from.

        Raises InputError where its files are not those of its manifest; they are compared once.
        """
        folder = self.place(stage)
        self.fetch(stage)
        if self.leads and stage not in self._whole:
            manifests.require_as_taken(self.workdir / stage, self.manifest(stage) or Manifest())
            manifests.require_whole(folder, self.flaws(stage))
            self._whole.add(stage)
        return folder

    def place(self, stage: str) -> Path:
        """The stage's folder, for a run in a bucket perhaps without the stage's files."""
        return manifests.finished_place(self.workdir / stage)

    def stage_folder(self, stage: str) -> Path:
        """Where a stage's files lie, finished or not: in this run, or in the run that it was taken from."""
        return manifests.place_of(self.workdir / stage)

    def manifest(self, stage: str) -> Manifest | None:
        """The manifest of a finished stage, or None."""
        return manifests.read_manifest(self.workdir / stage)

    def flaws(self, stage: str, bulk: bool = True) -> manifests.Flaws:
        """Files of a finished stage that are gone or changed; without `bulk`, not of weights, documents and rows."""
        manifest = self.manifest(stage) or Manifest()
        remembered, absent = self.checksums(), self.mirror.absent if self.mirror else ()

        def reads(name: str) -> bool:
            whole = f'{stage}/{name}'
            return whole not in absent and (bulk or not any(fnmatch.fnmatch(whole, glob) for glob in BULK))

        sizes = [entry.bytes for name, entry in manifest.files.items() if reads(name)]
        progress = self.console.progress(f'{stage}: checksums of its files', sum(sizes) / 1e6, 'MB')
        flaws = manifests.find_flaws(
            self.stage_folder(stage), manifest, remembered, reads=reads, advance=progress.update
        )
        remembered.save()
        return flaws

    def lacks(self, stage: str) -> list[str]:
        """What a stage that was finished has lost, in words. Raises InputError for files that are not what it wrote."""
        folder, manifest, said = self.stage_folder(stage), self.manifest(stage), []
        if not manifest and folder.is_dir() and not (folder / manifests.STARTED).exists():
            said.append(f'{stage} has lost {manifests.MANIFEST}: restore it')
        flaws = self.flaws(stage, bulk=False)
        manifests.require_as_taken(self.workdir / stage, manifest or Manifest())
        manifests.require_whole(folder, dataclasses.replace(flaws, missing=()))
        if flaws.missing:
            rest = f' and {len(flaws.missing) - NAMED} more' if len(flaws.missing) > NAMED else ''
            named = f'{", ".join(flaws.missing[:NAMED])}{rest}'
            said.append(f'{stage} has lost {named}, which `bioptimus {stage}` rebuilds')
        if lost := self.lost_metrics(stage):
            said.append(f'{lost}: curves and times may be wrong')
        return said

    def stage_metrics(self, stage: str, lines: str = '') -> list[JsonObject]:
        """The stage's lines of metrics.jsonl, or `lines` of another name that it wrote, from the run that made them."""
        return lines_of(self.workdir / stage, lines)

    def lost_metrics(self, stage: str) -> str:
        """What to say where metrics.jsonl is not what a finished stage left in it; otherwise ''."""
        manifest = self.manifest(stage)
        if not manifest or not manifest.metrics or manifest.metrics == digest(self.stage_metrics(stage)):
            return ''
        return f'metrics.jsonl does not hold the lines that {stage} wrote'

    def fetch(self, stage: str, bulk: bool = True) -> None:
        """Bring the files of a stage of a run in a bucket here; without `bulk`, no weights, documents and rows."""
        if self.mirror:
            self.mirror.need(stage, bulk)

    def refresh(self) -> None:
        """Take over what the leader has put there, where several processes mirror a bucket."""
        if self.mirror and not self.leads:
            self.mirror.refresh()

    def saved(self, now: bool = False) -> None:
        """Something worth keeping is on disk: a run in a bucket puts it there, at a bounded rate unless `now`."""
        self.kept = True
        self.keep_time(now)
        if self.mirror and now:
            self.mirror.push()
        elif self.mirror:
            self.mirror.saved()

    def came_from(self, key: str, url: str) -> None:
        """Remember for the manifests of stages that read a key which commit its files are from."""
        self.console.say(f'{key}: {url}')
        self.origins.setdefault(key, []).append(url)

    def scratch(self, stage: str) -> Path:
        """Where a stage may keep work between attempts, under names that say what it is of; gone once it is done."""
        return self.workdir / f'.{stage}.scratch'

    def lock(self, stage: str) -> Path:
        """What the process that works on the stage holds."""
        return self.workdir / f'.{stage}.lock'

    def checksums(self) -> Checksums:
        """What is remembered of the files outside the run."""
        return Checksums(self.workdir / '.checksums.json')

    def say_of(self, stage: str, message: str) -> None:
        """One line about a stage as a whole; of several also which one it is, and the time since the first began."""
        where = f' ({self.counted}, {clock(time.time() - self.started)} in all)' if self.counted else ''
        self.console.say(f'{stage}: {message}{where}')

    def computes(self, stage: str, on: str, **how: str | int) -> None:
        """Say on what a stage computes, in one line, and remember it for the manifest; loud beside unused devices."""
        self.computed_on = ComputedOn(on, how)
        self.console.say(f'{stage}: computes on {self.computed_on}')
        if wrong := unused(on):
            self.console.say(
                f'{stage}: WARNING: {wrong}; `bioptimus doctor` says what is missing (or set JAX_PLATFORMS=cpu if it '
                'is intended)'
            )

    def _open_trackers(self) -> Trackers:
        return Trackers(self.workdir, self.config.runtime.tracked, self.config, self.console.say)


def no_time(now: bool) -> None:
    """Keep no time: no stage is being made."""


def require_writable(folder: Path) -> None:
    """Raise OSError where the folder could not be made, or not be written to; nothing is made."""
    try:
        os.stat(folder)
    except FileNotFoundError:
        if os.path.islink(folder):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder)) from None
    there = existing(folder)
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))
