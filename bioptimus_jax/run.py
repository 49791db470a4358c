"""A run folder: stage folders with manifests, `metrics.jsonl`, progress, and files that are never half-written."""

import contextlib
import dataclasses
import errno
import fnmatch
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax import manifests
from bioptimus_jax.errors import (
    Afresh,
    ConfigError,
    InputError,
    Stopped,
    lacks_memory,
    of_the_system,
    reason_of,
)
from bioptimus_jax.fields import FORMER
from bioptimus_jax.files import Checksums, alone, digest, existing, intact_jsonl, is_left, write_json
from bioptimus_jax.hosts import devices
from bioptimus_jax.hosts.hardware import unused
from bioptimus_jax.hosts.remote.inputs import READ_BY
from bioptimus_jax.hosts.remote.mirror import BULK, Mirror
from bioptimus_jax.hosts.workers import WorkerKilled
from bioptimus_jax.progress import Console, clock
from bioptimus_jax.schema import Experiment, result_keys
from bioptimus_jax.shipped import PLUG_IN, plug_ins
from bioptimus_jax.tracker import Trackers
from bioptimus_jax.tracker import check as check_trackers


@dataclasses.dataclass(frozen=True)
class Stage:
    """One verb: what it is for, the stages and config sections that it reads, and how it is built.

    `build(run, folder)` writes into `folder` and returns counts for the manifest; the key `content` of the
    returned dict, where present, is the stage's content digest (else the digest of its files).
    `external(experiment)` gives what outside the run decides the result: a list of files, whose order counts, or
    `GROUP:NAME` -> a file, or a word about its group.
    `extendable` are endings of keys that may change without starting anew: the stage goes on from what it has.
    `grows` are beginnings of names. Groups of inputs that begin so may come and go as a whole, and may not change while
    they are there; with `GROUP:` each name of the group may by itself. Entries of a section that begin so may be added.
    A stage that is made `always` reads whatever is there and is never up to date. `format` is raised when a stage
    would make something else of the same inputs and settings: what was made before is then refused.
    `check(run)` raises what `build` would find wrong in settings and other people's folders, from small files alone.
    `memory`: what to change where it is not enough. `apart`: it computes on accelerators without jax.
    `beside`: keys outside its sections that it looks at.
    """

    name: str
    summary: str
    reads: str
    writes: str
    sections: tuple[str, ...]
    needs: Callable[['Run'], tuple[str, ...]]
    build: Callable[['Run', Path], dict[str, Any]]
    external: Callable[[Experiment], list[Path] | dict[str, Path | str]] = lambda experiment: []
    extendable: tuple[str, ...] = ()
    grows: tuple[str, ...] = ()
    always: bool = False
    format: int = 1
    check: Callable[['Run'], None] = lambda run: None
    memory: str = 'take a larger machine'
    apart: bool = False
    beside: tuple[str, ...] = ()


class Run(Console):
    """The folder of one run and what every stage needs: config, earlier stages, metrics, progress, stopping."""

    def __init__(
        self,
        workdir: Path | str,
        experiment: Experiment,
        *,
        quiet: bool = False,
        leads: bool = True,
        writes: bool = True,
    ):
        super().__init__(quiet or not leads)
        self.workdir = Path(workdir)
        self.config = experiment
        self.leads = leads  # of several processes one writes
        self.command = ''  # that was given, where there was one: it makes the same again
        self.mirror: Mirror | None = None  # of a run folder in a bucket
        self.origins: dict[str, list[str]] = {}  # of keys whose files were fetched at a commit
        self.kept = False  # whether this attempt at a stage has saved something
        self.counted = ''  # of several stages: which one is being made, of how many
        self.started = devices.replaced_since() or time.time()
        self._trackers: Trackers | None = None
        self.computed_on: dict[str, Any] = {}  # of the stage that is being made, for its manifest
        self.began = time.time()  # with that stage, in this process
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
        for old, new in FORMER.items():
            if any(
                manifests.read_record(self.workdir / old, file)
                for file in (manifests.MANIFEST, manifests.STARTED)
            ):
                raise InputError(
                    f'{self.workdir / old}: was made when stage {new} was called {old}, and this version cannot read '
                    f'it; move it elsewhere, and run `bioptimus {new}` to score the models again'
                )

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
            manifests.require_whole(folder, self.flaws(stage))
            self._whole.add(stage)
        return folder

    def place(self, stage: str) -> Path:
        """As `folder`, but of a run in a bucket perhaps without the stage's files."""
        manifest = self.manifest(stage)
        if manifest is None:
            raise InputError(
                f'{self.workdir / stage}: stage {stage!r} has not been done; run `bioptimus {stage}` first'
            )
        folder = stage_folder(self, stage)
        if not folder.is_dir():
            raise InputError(
                f'{folder}: is gone, but {self.workdir / stage / manifests.MANIFEST} refers to it; restore it'
            )
        return folder

    def manifest(self, stage: str) -> dict[str, Any] | None:
        """The manifest of a finished stage, or None."""
        return manifests.read_record(self.workdir / stage)

    def flaws(self, stage: str, bulk: bool = True) -> manifests.Flaws:
        """Files of a finished stage that are gone or changed; without `bulk`, not of weights, documents and rows."""
        manifest = self.manifest(stage) or {}
        remembered, absent = self.checksums(), self.mirror.absent if self.mirror else ()

        def reads(name: str) -> bool:
            whole = f'{stage}/{name}'
            return whole not in absent and (bulk or not any(fnmatch.fnmatch(whole, glob) for glob in BULK))

        sizes = [entry['bytes'] for name, entry in manifest.get('files', {}).items() if reads(name)]
        progress = self.progress(f'{stage}: checksums of its files', sum(sizes) / 1e6, 'MB')
        flaws = manifests.find_flaws(
            stage_folder(self, stage), manifest, remembered, reads=reads, advance=progress.update
        )
        remembered.save()
        return flaws

    def fetch(self, stage: str, bulk: bool = True) -> None:
        """Of a run in a bucket: bring the stage's files here; without `bulk`, no weights, documents and rows."""
        if self.mirror:
            self.mirror.need(stage, bulk)

    def refresh(self) -> None:
        """Of several processes that mirror a bucket: take over what the leader has put there."""
        if self.mirror and not self.leads:
            self.mirror.refresh()

    def saved(self, now: bool = False) -> None:
        """Something worth keeping is on disk: a run in a bucket puts it there, at a bounded rate unless `now`."""
        self.kept = True
        if self.mirror and now:
            self.mirror.push()
        elif self.mirror:
            self.mirror.saved()

    def came_from(self, key: str, url: str) -> None:
        """Remember for the manifests of stages that read a key which commit its files are from."""
        self.say(f'{key}: {url}')
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
        self.say(f'{stage}: {message}{where}')

    def computes(self, stage: str, on: str, **how: Any) -> None:
        """Say on what a stage computes, in one line, and remember it for the manifest; loud beside unused devices."""
        self.computed_on = {'on': on, **how}
        self.say(f'{stage}: computes on {", ".join([on, *(f"{n} {v}" for n, v in how.items())])}')
        if wrong := unused(on):
            self.say(
                f'{stage}: WARNING: {wrong}; `bioptimus doctor` says what is missing (or set JAX_PLATFORMS=cpu if it '
                'is intended)'
            )

    def log(self, stage: str, step: int, **values: Any) -> None:
        """Append one record to metrics.jsonl, the one record that the report is made from."""
        if not self.leads:
            return
        record = {'stage': stage, 'step': step, 'time': round(time.time(), 3), **values}
        with open(self.workdir / 'metrics.jsonl', 'ab+') as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b'\n':  # the last line was cut off: this one must not be lost with it
                    file.write(b'\n')
            file.write(json.dumps(record).encode() + b'\n')
        self._trackers = self._trackers or Trackers(self.workdir, self.config, self.say)
        self._trackers.write(stage, step, values)

    def metrics(self, stage: str) -> list[dict[str, Any]]:
        """The records of one stage in order of steps; a step done again after a kill counts once, the last time.

        A record of kind 'start' says that the stage began anew: what came before it is of another attempt.
        """
        latest: dict[tuple, dict] = {}
        for record in intact_jsonl(self.workdir / 'metrics.jsonl'):
            if record.get('stage') != stage:
                continue
            if record.get('kind') == 'start':
                latest.clear()
            elif isinstance(record.get('step'), int):
                latest[record['step'], str(record.get('kind', '')), str(record.get('name', ''))] = record
        return sorted(latest.values(), key=lambda r: r['step'])


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


def stage_folder(run: Run, stage: str) -> Path:
    """Where a stage's files lie, finished or not: in this run, or in the run that it was taken from."""
    return manifests.place_of(run.workdir / stage)


def stage_metrics(run: Run, stage: str, lines: str = '') -> list[dict[str, Any]]:
    """The stage's lines of metrics.jsonl, or `lines` of another name that it wrote, from the run that made them."""
    home = stage_folder(run, stage).parent
    owner = run if home == run.workdir else Run(home, run.config, quiet=True)
    return owner.metrics(lines or stage)


def lost_metrics(run: Run, stage: str) -> str:
    """What to say where metrics.jsonl is not what a finished stage left in it; otherwise ''."""
    written = (run.manifest(stage) or {}).get('metrics')
    if not written or written == digest(stage_metrics(run, stage)):
        return ''
    return f'metrics.jsonl does not hold the lines that {stage} wrote'


def execute(run: Run, stage: Stage, replace: bool = False, keep_matching: bool = False) -> dict[str, Any]:
    """`bring_up_to_date` while no other process works on the same stage of the same run.

    What can be refused from settings and small files is refused before anything is written.
    """
    check_bases(run.config.runtime.base_run)
    for name in stage.needs(run):
        run.place(name)  # says which stage is missing
    if check_settings(run, stage, replace) or replace or not run.manifest(stage.name):
        check_ahead(run, stage)
    whose = f'{run.workdir / stage.name}: another process is working on it'
    with alone(run.lock(stage.name), whose):
        return bring_up_to_date(run, stage, replace, keep_matching)


def check_ahead(run: Run, stage: Stage) -> None:
    """Raise what can be known of a stage before it, or any before it, begins: ConfigError, InputError."""
    check_trackers(run.config)
    _external(stage, run.config)
    stage.check(run)


def _external(stage: Stage, experiment: Experiment) -> dict[str, Path | str]:
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


def check_settings(run: Run, stage: Stage, replace: bool) -> list[str]:
    """In what the settings differ from those that a stage was made with, or begun with.

    Raises ConfigError where `bring_up_to_date` would refuse them, whatever the inputs are.
    """
    folder = run.workdir / stage.name
    manifest = run.manifest(stage.name)
    previous = manifest or manifests.read_record(folder, manifests.STARTED)
    if replace or not previous or (not manifest and _is_empty(folder)):
        return []
    wanted = {'config': _settings(run, stage), 'inputs': {}}
    before = {**previous, 'inputs': {}}
    changes = manifests.differences(before, wanted)
    if refusal := _refusal(folder, stage, changes, before, wanted):
        raise refusal
    return changes


@dataclasses.dataclass(frozen=True)
class Seen:
    """Inputs against those that a stage was made of, without reading large files: what differs, what is not known."""

    changes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def check_inputs(run: Run, stage: Stage, replace: bool) -> Seen:
    """What is seen of the inputs of a stage that was made, or begun, before.

    A large file is not read: it is known by size and time, and what is neither the same nor surely another is `unread`.
    Raises ConfigError where `bring_up_to_date` would refuse what is seen, InputError for a file that is not there.
    """
    folder = run.workdir / stage.name
    manifest = run.manifest(stage.name)
    previous = manifest or manifests.read_record(folder, manifests.STARTED)
    if replace or stage.always or not previous or (not manifest and _is_empty(folder)):
        return Seen()
    before, remembered = previous.get('inputs', {}), run.checksums()
    inputs: dict[str, Any] = {}
    unread = []
    for name in stage.needs(run):
        inputs[name] = (run.manifest(name) or {}).get('content', before.get(name))
    for name, value in _external(stage, run.config).items():
        inputs[name] = remembered.at_sight(value) if isinstance(value, Path) else value
        if inputs[name] is None and isinstance(value, Path):
            if name in before and not remembered.has_other_size(value, before[name]):
                inputs[name] = before[name]
                unread.append(str(value))
            else:
                inputs[name] = f'{value.stat().st_size:,} bytes'
    old, new = {**previous, 'config': {}}, {'config': {}, 'inputs': inputs}
    changes = manifests.differences(old, new)
    if refusal := _refusal(folder, stage, changes, old, new):
        raise refusal
    return Seen(tuple(changes), tuple(unread))


def _settings(run: Run, stage: Stage) -> dict[str, Any]:
    config = result_keys(run.config, stage.sections)
    if stage.format > 1:
        config[f'{stage.name}.format'] = stage.format
    return config


def _refusal(
    folder: Path, stage: Stage, changes: Sequence[str], old: dict[str, Any], new: dict[str, Any]
) -> ConfigError | None:
    """What to raise where the changes do not let the stage go on from the old fingerprint to the new one."""
    # A plug-in comes with a phase that is added, and goes once the program ships it.
    against = manifests.refused(changes, old, new, stage.extendable, (*stage.grows, PLUG_IN))
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


def bring_up_to_date(
    run: Run, stage: Stage, replace: bool = False, keep_matching: bool = False
) -> dict[str, Any]:
    """Bring one stage up to date and return its manifest.

    A matching manifest is kept; an unfinished folder of the same fingerprint is resumed; anything else is refused
    with what differs, unless `replace`. With `keep_matching`, `replace` touches only what would be refused, so that
    the same command can be given again. Raises ConfigError, InputError, Stopped.
    """
    folder, wanted = run.workdir / stage.name, fingerprint(run, stage)
    found = _look(run, stage, wanted)
    if found.is_unwanted(replace, keep_matching, _is_empty(folder)):
        _remove(folder)
        found = manifests.Found()
    if found.refusal:
        raise found.refusal
    finished = None if found.changes or found.missing or stage.always else found.manifest
    _clear(run, stage, scratch=bool(finished))
    if finished:
        run.say_of(stage.name, 'up to date')
        return finished
    if not (found.begun or stage.always) and (taken := _from_base(run, stage, wanted)):
        return taken
    return _make(run, stage, wanted, found)


def _look(run: Run, stage: Stage, wanted: dict[str, Any]) -> manifests.Found:
    """What the stage's folder holds, against the fingerprint that is `wanted`; nothing is changed."""
    folder, manifest = run.workdir / stage.name, run.manifest(stage.name)
    if manifest is None:
        run.fetch(stage.name)  # what an earlier attempt has left
    claim = None if manifest else manifests.read_record(folder, manifests.STARTED)
    found = manifests.Found(manifest, claim)
    if not found.begun:
        return dataclasses.replace(found, refusal=_refuse_strange(folder))
    changes = tuple(manifests.differences(found.begun, wanted))
    refusal = _refusal(folder, stage, changes, found.begun, wanted)
    found = dataclasses.replace(found, changes=changes, refusal=refusal)
    # Only now, as it may read gigabytes: the checksums of what is finished and would be kept.
    if refusal or not manifest or stage.always:
        return found
    flaws, place = run.flaws(stage.name), Path(manifest.get('folder', folder))
    try:  # what is missing is made again here, and in no other run
        manifests.require_whole(place, flaws if place != folder else dataclasses.replace(flaws, missing=()))
    except InputError as error:
        return dataclasses.replace(found, refusal=error)
    return dataclasses.replace(found, missing=flaws.missing)


def _refuse_strange(folder: Path) -> ConfigError | None:
    """What to raise for a folder without a record that holds more than a kill leaves."""
    if not folder.exists() or all(is_left(path) for path in folder.iterdir()):
        return None
    return ConfigError(
        f'{folder}: holds files that no stage of this program began (or its {manifests.MANIFEST} is gone: '
        'restore it); remove the folder, or use another --workdir'
    )


def _make(run: Run, stage: Stage, wanted: dict[str, Any], found: manifests.Found) -> dict[str, Any]:
    """Make the stage, or go on with it, and return its manifest.

    Where it is refused before it has saved anything, the folder is as it was. Raises Afresh where jax holds what it
    needs.
    """
    if stage.apart and devices.held():
        _leave_accelerators(run, stage.name)
    if found.begun or stage.always:
        run.fetch('' if stage.always else stage.name, bulk=not stage.always)
    folder = run.workdir / stage.name
    folder.mkdir(exist_ok=True)
    if found.manifest:
        # Finished no longer. Renamed, as a kill must not leave files without a record: they would be refused.
        os.replace(folder / manifests.MANIFEST, folder / manifests.STARTED)
    # With what was begun before: entries that are left out for once must not come back as others.
    begun = (found.begun or {}).get('config', {})
    write_json(folder / manifests.STARTED, {**wanted, 'config': {**begun, **wanted['config']}})
    run.saved(now=True)
    run.kept, run.computed_on, run.began, started = False, {}, time.time(), time.monotonic()
    run.say_of(stage.name, stage.summary)
    for name in found.missing:
        run.say(f'{stage.name}: {name} is missing, and is rebuilt')
    counts = _build(run, stage, folder, found)
    records = _records(run, stage)
    for name in set(found.missing) - records['files'].keys():
        run.say(f'{stage.name}: {name} is still missing; only `bioptimus {stage.name} --replace` rebuilds it')
    sums = {name: entry['sha256'] for name, entry in records['files'].items()}
    origins = {key: urls for key, urls in run.origins.items() if stage.name in READ_BY[key]}
    manifest = {
        'stage': stage.name,
        **wanted,
        'content': counts.pop('content', None) or digest(sums),
        'counts': counts,
        **records,
        'versions': manifests.versions(),
        **({'computed': run.computed_on} if run.computed_on else {}),
        **({'origins': origins} if origins else {}),
        'seconds': round(time.monotonic() - started, 1),
    }
    manifests.write_manifest(folder, manifest)
    _clear(run, stage)
    run.saved(now=True)
    run.say_of(stage.name, f'done in {clock(manifest["seconds"])}')
    return manifest


def _leave_accelerators(run: Run, stage: str) -> None:
    """Have another process go on, once, where jax holds the memory that the stage needs: raises Afresh, Stopped."""
    run.check_stop()
    if not run.config.runtime.distributed and devices.replaced_since() is None:
        raise Afresh
    run.say(
        f'{stage}: WARNING: jax holds memory of the accelerators in this run; `bioptimus {stage}` has '
        'all of it once the run has ended'
    )


def _build(run: Run, stage: Stage, folder: Path, found: manifests.Found) -> dict[str, Any]:
    """What the stage counted. Where it is refused its folder is left as `Found.after_refusal` says."""
    try:
        return stage.build(run, folder)
    except (ConfigError, InputError) as error:
        left = found.after_refusal(error, run.kept, killed=isinstance(error, WorkerKilled))
        if left is manifests.Left.FINISHED and found.manifest:
            # `_make` has made a claim of the manifest: it comes back, with what this attempt has written.
            records = _records(run, stage)
            files = {**found.manifest.get('files', {}), **records['files']}
            manifests.write_manifest(folder, {**found.manifest, **records, 'files': files})
        elif left is manifests.Left.NOTHING:
            _remove(folder)
        raise
    except Stopped:
        raise
    except Exception as error:
        if lacks_memory(error):
            raise InputError(
                f'{stage.name}: there is not enough memory ({reason_of(error)}); {stage.memory}'
            ) from error
        if reason := of_the_system(error, str(folder)):
            raise InputError(reason) from error
        raise


def _records(run: Run, stage: Stage) -> dict[str, Any]:
    """What the stage has written: its files, and the digest of its lines in metrics.jsonl."""
    checksums = run.checksums()
    files = manifests.listed(run.workdir / stage.name, checksums)
    checksums.save()
    return {'files': files, 'metrics': digest(run.metrics(stage.name))}


def fingerprint(run: Run, stage: Stage, external: bool = True) -> dict[str, Any]:
    """What decides a stage's result: its result keys, and its inputs by content, unless only those of the run."""
    inputs: dict[str, Any] = {}
    for name in stage.needs(run):
        run.place(name)  # says which stage is missing
        inputs[name] = (run.manifest(name) or {}).get('content')
    given = _external(stage, run.config) if external else {}
    sizes = [path.stat().st_size for path in given.values() if isinstance(path, Path)]
    progress = run.progress(f'{stage.name}: checksums of the inputs', sum(sizes) / 1e6, 'MB')
    remembered = run.checksums()
    for name, value in given.items():
        inputs[name] = remembered.sha256(value, progress.update) if isinstance(value, Path) else value
        run.check_stop()
    remembered.save()
    return {'config': _settings(run, stage), 'inputs': inputs}


def _is_empty(folder: Path) -> bool:
    """Whether a stage began and left nothing: its input was bad, and whoever corrects it need not say --replace."""
    return not any(p.is_file() and p.name != manifests.STARTED and not is_left(p) for p in folder.rglob('*'))


def _remove(folder: Path) -> None:
    """Delete a stage's folder so that a kill in between never leaves a manifest with half of its files."""
    shutil.rmtree(_removed(folder), ignore_errors=True)
    os.replace(folder, _removed(folder))
    shutil.rmtree(_removed(folder))


def _removed(folder: Path) -> Path:
    return folder.with_name(f'.{folder.name}.removed')


def _clear(run: Run, stage: Stage, scratch: bool = True) -> None:
    """Delete what kills have left: files half written, a folder half removed; with `scratch` also claim and scratch."""
    folder = run.workdir / stage.name
    for path in [p for p in folder.rglob('.*') if is_left(p)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(_removed(folder), ignore_errors=True)
    if scratch:
        (folder / manifests.STARTED).unlink(missing_ok=True)
        shutil.rmtree(run.scratch(stage.name), ignore_errors=True)


def _from_base(run: Run, stage: Stage, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the same stage in a base run, the first that matches, now also in this run's folder; or None."""
    if run.mirror and run.config.runtime.base_run:
        raise ConfigError(
            'config.runtime.base_run: a run in a bucket cannot depend on a folder of one machine; leave it empty'
        )
    remembered = run.checksums()
    bases = [Path(base) for base in run.config.runtime.base_run]
    below = {base: sorted(p for p in base.iterdir() if p.is_dir() and p.name[0] != '.') for base in bases}
    for folder in (place / stage.name for base in bases for place in (base, *below[base])):
        manifest = manifests.read_record(folder)
        if manifest is None or manifests.differences(manifest, wanted):
            continue
        # A base may have taken the stage from a third run: its own folder then holds the manifest alone.
        manifest['folder'] = manifest.get('folder') or str(folder.resolve())
        # Compared now: the files are somebody else's, and may have changed since their stage was done.
        flaws = manifests.find_flaws(Path(manifest['folder']), manifest, remembered)
        if flaws != manifests.Flaws():
            name = (*flaws.changed, *flaws.missing)[0]
            run.say(f'{stage.name}: not taken from {manifest["folder"]}, whose {name} is damaged or missing')
            continue
        remembered.save()
        (run.workdir / stage.name).mkdir(exist_ok=True)
        manifests.write_manifest(run.workdir / stage.name, manifest)
        run.say_of(stage.name, f'taken from {manifest["folder"]}')
        return manifest
    return None
