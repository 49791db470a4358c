"""A run folder: stage folders with manifests, `metrics.jsonl`, progress, and files that are never half-written."""

import contextlib
import dataclasses
import importlib.metadata
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import (
    ConfigError,
    InputError,
    Stopped,
    lacks_memory,
    of_the_system,
    printable,
    reason_of,
)
from bioptimus_jax.files import Checksums, alone, digest, read_json, sha256, write_json
from bioptimus_jax.progress import Progress, clock
from bioptimus_jax.remote.mirror import Mirror
from bioptimus_jax.schema import Experiment, result_keys, value_before

MANIFEST = 'manifest.json'
STARTED = '.started.json'
NUMBERED, CHECKSUM = re.compile(r'\d+:'), re.compile('[0-9a-f]{64}')
PACKAGES = (
    'bioptimus-jax',
    'jax',
    'flax',
    'optax',
    'orbax-checkpoint',
    'transformers',
    'tokenizers',
    'torch',
    'numpy',
)


@dataclasses.dataclass(frozen=True)
class Stage:
    """One verb: what it is for, the stages and config sections that it reads, and how it is built.

    `build(run, folder)` writes into `folder` and returns counts for the manifest; the key `content` of the
    returned dict, where present, is the stage's content digest (else the digest of its files).
    `external(experiment)` gives what outside the run decides the result: a list of files, whose order counts, or
    `GROUP:NAME` -> a file, or a word about its group.
    `extendable` are endings of keys that may change without starting anew: the stage goes on from what it has.
    `grows` are beginnings of groups of inputs that may come and go as a whole, unchanged while they are there.
    A stage that is made `always` reads whatever is there and is never up to date. `format` is raised when a stage
    would make something else of the same inputs and settings: what was made before is then refused.
    `check(run)` raises what `build` would find wrong in settings and other people's folders, from small files alone.
    `memory`: what to change where it is not enough.
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


class Run:
    """The folder of one run and what every stage needs: config, earlier stages, metrics, progress, stopping."""

    def __init__(
        self, workdir: Path | str, experiment: Experiment, *, quiet: bool = False, leads: bool = True
    ):
        self.workdir = Path(workdir)
        self.config = experiment
        self.leads = leads  # of several processes one writes
        self.quiet = quiet or not leads
        self.command = ''  # that was given, where there was one: it makes the same again
        self.stopping = threading.Event()
        self.mirror: Mirror | None = None  # of a run folder in a bucket
        self._events: Any = None
        self.computed_on: dict[str, Any] = {}  # of the stage that is being made, for its manifest
        # Unlike Path's, os.path's answer is no for names that cannot be.
        if os.path.exists(self.workdir) and not os.path.isdir(self.workdir):
            raise InputError(f'{self.workdir}: is a file; --workdir needs a folder')
        self._made = [p for p in (self.workdir, *self.workdir.parents) if not os.path.exists(p)]
        try:
            self.workdir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f'--workdir={of_the_system(error) or error}') from error

    def withdraw(self) -> None:
        """Take back the folders that were made for this run and are empty: what was refused leaves nothing."""
        with contextlib.suppress(OSError):
            for folder in self._made:
                folder.rmdir()

    def folder(self, stage: str) -> Path:
        """The finished folder of an earlier stage, in this run or in the base run that it was taken from."""
        folder = self.place(stage)
        self.fetch(stage)
        return folder

    def place(self, stage: str) -> Path:
        """As `folder`, but of a run in a bucket perhaps without the stage's files."""
        manifest = self.manifest(stage)
        if manifest is None:
            raise InputError(
                f'{self.workdir / stage}: stage {stage!r} has not been done; run `bioptimus {stage}` first'
            )
        folder = Path(manifest.get('folder', self.workdir / stage))
        if not folder.is_dir():
            raise InputError(
                f'{folder}: is gone, but {self.workdir / stage / MANIFEST} refers to it; restore it'
            )
        return folder

    def manifest(self, stage: str) -> dict[str, Any] | None:
        """The manifest of a finished stage, or None."""
        return read_json(self.workdir / stage / MANIFEST)

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
        if self.mirror and now:
            self.mirror.push()
        elif self.mirror:
            self.mirror.saved()

    def scratch(self, stage: str) -> Path:
        """Where a stage may keep work between attempts, under names that say what it is of; gone once it is done."""
        return self.workdir / f'.{stage}.scratch'

    def checksums(self) -> Checksums:
        """What is remembered of the files outside the run."""
        return Checksums(self.workdir / '.checksums.json')

    def say(self, message: str) -> None:
        """One line for the person who watches."""
        if not self.quiet:
            print(printable(message), flush=True)

    def computes(self, stage: str, on: str, **how: Any) -> None:
        """Say on what a stage computes, in one line, and remember it for the manifest."""
        self.computed_on = {'on': on, **how}
        self.say(
            f'{stage}: computes on {", ".join([on, *(f"{name} {value}" for name, value in how.items())])}'
        )

    def progress(self, label: str, total: float, unit: str) -> Progress:
        """A progress bar (terminal) or plain lines (elsewhere) with rate and ETA."""
        return Progress(label, total, unit, self.quiet)

    def check_stop(self) -> None:
        """Raise Stopped if a signal asked for it; call it where everything worth keeping is on disk."""
        if self.stopping.is_set():
            raise Stopped

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
        if self.config.runtime.tensorboard:
            self._write_events(stage, step, values)

    def _write_events(self, stage: str, step: int, values: dict[str, Any]) -> None:
        from tensorboardX import SummaryWriter  # late: only those who ask for it pay for the import

        if self._events is None:
            self._events = SummaryWriter(str(self.workdir / 'tensorboard'))
        for name, value in values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._events.add_scalar(f'{stage}/{values.get("kind", "")}/{name}', value, step)
        self._events.flush()

    def metrics(self, stage: str) -> list[dict[str, Any]]:
        """The records of one stage in order of steps; a step done again after a kill counts once, the last time.

        A record of kind 'start' says that the stage began anew: what came before it is of another attempt.
        """
        latest: dict[tuple, dict] = {}
        path = self.workdir / 'metrics.jsonl'
        for line in path.read_text('utf-8').splitlines() if path.exists() else ():
            with contextlib.suppress(json.JSONDecodeError):  # a line cut off by a kill
                record = json.loads(line)
                if record['stage'] == stage and record.get('kind') == 'start':
                    latest.clear()
                elif record['stage'] == stage:
                    latest[record['step'], record.get('kind', ''), record.get('name', '')] = record
        return sorted(latest.values(), key=lambda r: r['step'])


def stage_folder(run: Run, stage: str) -> Path:
    """Where a stage's files lie, finished or not: in this run, or in the run that it was taken from."""
    manifest = run.manifest(stage) or {}
    return Path(manifest.get('folder', run.workdir / stage))


def stage_metrics(run: Run, stage: str) -> list[dict[str, Any]]:
    """The stage's lines of metrics.jsonl, from the run that made them."""
    home = stage_folder(run, stage).parent
    owner = run if home == run.workdir else Run(home, run.config, quiet=True)
    return owner.metrics(stage)


def execute(run: Run, stage: Stage, replace: bool = False, keep_matching: bool = False) -> dict[str, Any]:
    """`bring_up_to_date` while no other process works on the same stage of the same run.

    What can be refused from settings and small files is refused before anything is written.
    """
    check_bases(run)
    for name in stage.needs(run):
        run.place(name)  # says which stage is missing
    if replace or not run.manifest(stage.name):
        check_ahead(run, stage)
    whose = f'{run.workdir / stage.name}: another process is working on it'
    with alone(run.workdir / f'.{stage.name}.lock', whose):
        return bring_up_to_date(run, stage, replace, keep_matching)


def check_ahead(run: Run, stage: Stage) -> None:
    """Raise what can be known of a stage before it, or any before it, begins: ConfigError, InputError."""
    given = stage.external(run.config)
    for path in given.values() if isinstance(given, dict) else given:
        if isinstance(path, Path):
            require_file(path, stage)
    stage.check(run)


def check_settings(run: Run, stage: Stage, replace: bool) -> None:
    """Raise ConfigError where `bring_up_to_date` would refuse the stage for its settings, whatever its inputs are."""
    folder = run.workdir / stage.name
    manifest = run.manifest(stage.name)
    previous = manifest or read_json(folder / STARTED)
    if previous and not replace and (manifest or not _is_empty(folder)):
        wanted = {'config': _settings(run, stage), 'inputs': {}}
        before = {**previous, 'inputs': {}}
        if refused := _refused(stage, differences(before, wanted), before, wanted):
            raise _other(folder, stage, refused)


def _settings(run: Run, stage: Stage) -> dict[str, Any]:
    config = result_keys(run.config, stage.sections)
    if stage.format > 1:
        config[f'{stage.name}.format'] = stage.format
    return config


def _other(folder: Path, stage: Stage, changes: Sequence[str]) -> ConfigError:
    return ConfigError(
        f'{folder}: belongs to another configuration or other inputs ({"; ".join(changes[:4])}); '
        f'use another --workdir, or `bioptimus {stage.name} --replace` to rebuild it'
    )


def check_bases(run: Run) -> None:
    """Raise ConfigError for a base run that is not there, also where nothing is to be taken from it."""
    for base in run.config.runtime.base_run:
        if not os.path.isdir(base):
            raise ConfigError(
                f'config.runtime.base_run: {base}: no such run folder; correct it, or leave it empty'
            )


def require_file(path: Path, stage: Stage) -> None:
    """Raise InputError where a file that a stage reads is not there."""
    if not path.is_file():
        raise InputError(f'{path}: no such file; it is an input of stage {stage.name!r}')


def bring_up_to_date(
    run: Run, stage: Stage, replace: bool = False, keep_matching: bool = False
) -> dict[str, Any]:
    """Bring one stage up to date and return its manifest.

    A matching manifest is kept; an unfinished folder of the same fingerprint is resumed; anything else is refused
    with what differs, unless `replace`. With `keep_matching`, `replace` touches only what would be refused, so that
    the same command can be given again. Raises ConfigError, InputError, Stopped.
    """
    folder = run.workdir / stage.name
    print_of = fingerprint(run, stage)
    manifest = run.manifest(stage.name)
    if not manifest:
        run.fetch(stage.name)  # what an earlier attempt has left
    previous = manifest or read_json(folder / STARTED)
    changes = differences(previous, print_of) if previous else []
    refused = _refused(stage, changes, previous or {}, print_of)
    unwanted = replace and (refused if keep_matching else changes or manifest)
    if previous and (unwanted or (refused and not manifest and _is_empty(folder))):
        _remove(folder)
        manifest = previous = None
        changes, refused = [], []
    if refused:
        raise _other(folder, stage, refused)
    if manifest and not changes and not stage.always:
        # Left where a kill came right after the manifest.
        shutil.rmtree(run.scratch(stage.name), ignore_errors=True)
        run.say(f'{stage.name}: up to date')
        return manifest
    if folder.exists() and not previous and any(folder.iterdir()):
        raise ConfigError(f'{folder}: holds files that no stage of this program began; use another --workdir')
    if not previous and not stage.always and (taken := _from_base(run, stage, print_of)):
        return taken
    if previous or stage.always:
        run.fetch('' if stage.always else stage.name, bulk=not stage.always)
    folder.mkdir(exist_ok=True)
    if manifest:  # extended: finished no longer
        os.replace(folder / MANIFEST, folder / STARTED)
    write_json(folder / STARTED, print_of)
    run.saved(now=True)
    started, run.computed_on = time.monotonic(), {}
    run.say(f'{stage.name}: {stage.summary}')
    try:
        counts = stage.build(run, folder)
    except ConfigError:
        if manifest:  # the change was refused: the stage is as finished as it was
            write_json(folder / MANIFEST, manifest)
            (folder / STARTED).unlink()
        raise
    except (InputError, Stopped):
        raise
    except Exception as error:
        if lacks_memory(error):
            raise InputError(
                f'{stage.name}: the memory is not enough ({reason_of(error)}); {stage.memory}'
            ) from error
        if refused := of_the_system(error, str(folder)):
            raise InputError(refused) from error
        raise
    files = {
        str(p.relative_to(folder)): {'bytes': p.stat().st_size, 'sha256': sha256(p)}
        for p in sorted(folder.rglob('*'))
        if p.is_file() and not any(part.startswith('.') for part in p.relative_to(folder).parts)
    }
    content = counts.pop('content', None) or digest({name: entry['sha256'] for name, entry in files.items()})
    manifest = {
        'stage': stage.name,
        **print_of,
        'content': content,
        'counts': counts,
        'files': files,
        'versions': versions(),
        **({'computed': run.computed_on} if run.computed_on else {}),
        'seconds': round(time.monotonic() - started, 1),
    }
    write_json(folder / MANIFEST, manifest)
    (folder / STARTED).unlink()
    shutil.rmtree(run.scratch(stage.name), ignore_errors=True)
    run.saved(now=True)
    run.say(f'{stage.name}: done in {clock(manifest["seconds"])}')
    return manifest


def fingerprint(run: Run, stage: Stage, external: bool = True) -> dict[str, Any]:
    """What decides a stage's result: its result keys, and its inputs by content, unless only those of the run."""
    inputs = {}
    for name in stage.needs(run):
        run.place(name)  # says which stage is missing
        inputs[name] = run.manifest(name)['content']  # type: ignore[index]
    given = stage.external(run.config) if external else []
    if not isinstance(given, dict):
        given = {f'{number}:{path.name}': path for number, path in enumerate(given)}
    files = {name: path for name, path in given.items() if isinstance(path, Path)}
    for path in files.values():
        require_file(path, stage)
    progress = run.progress(
        f'{stage.name}: checksums of the inputs', sum(p.stat().st_size for p in files.values()) / 1e6, 'MB'
    )
    remembered = run.checksums()
    for name, value in given.items():
        inputs[name] = remembered.sha256(value, progress.update) if isinstance(value, Path) else value
        run.check_stop()
    remembered.save()
    return {'config': _settings(run, stage), 'inputs': inputs}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """`key: old -> new` for every configuration key and input that is not the same.

    A key that the program has learned since is no difference where it says what was done before.
    """
    changes = []
    for part in ('config', 'inputs'):
        before, after = old.get(part, {}), new[part]
        if part == 'inputs':
            before = _under_names(before, after)
        for name in sorted(before.keys() | after.keys()):
            known = before.get(name)
            if part == 'config' and name not in before:
                known = value_before(name)
            if known != after.get(name):
                changes.append(f'{part}.{name}: {_short(known)} -> {_short(after.get(name))}')
    return changes


def _under_names(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Inputs that were numbered, as all once were, under the names that the same files have now.

    Of two names for a file the one of a group without a word about it: there were no such words.
    """
    if not any(map(NUMBERED.match, before)):
        return before
    names = [name for name in after if ':' in name and not NUMBERED.match(name)]
    worded = {name.split(':')[0] for name in names if not CHECKSUM.fullmatch(after[name])}
    now: dict[tuple[str, str], list[str]] = {}
    for name in sorted(names, key=lambda name: name.split(':')[0] in worded):
        now.setdefault((re.split('[:/]', name)[-1], after[name]), []).append(name)
    found = {}
    for name, checksum in before.items():
        same = now.get((re.split('[:/]', name)[-1], checksum)) if NUMBERED.match(name) else None
        found[same.pop(0) if same else name] = checksum
    return found


def _refused(stage: Stage, changes: Sequence[str], old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Those of the changes with which the stage cannot go on from what it has."""
    before = _under_names(old.get('inputs', {}), new['inputs'])
    old_groups, new_groups = ({name.split(':')[0] for name in inputs} for inputs in (before, new['inputs']))
    found = []
    for change in changes:
        part, _, group = (key := change.split(':')[0]).partition('.')
        grown = part == 'inputs' and group.startswith(stage.grows) and group not in old_groups & new_groups
        if not grown and not key.endswith(stage.extendable):
            found.append(change)
    return found


def _short(value: Any) -> str:
    text = 'none' if value is None else str(value)
    return text if len(text) <= 24 else text[:12] + '…'


def _is_empty(folder: Path) -> bool:
    """Whether a stage began and left nothing: its input was bad, and whoever corrects it need not say --replace."""
    return not any(p.is_file() and p.name != STARTED for p in folder.rglob('*'))


def _remove(folder: Path) -> None:
    """Delete a stage's folder so that a kill in between never leaves a manifest with half of its files."""
    hidden = folder.with_name(f'.{folder.name}.removed')
    shutil.rmtree(hidden, ignore_errors=True)
    os.replace(folder, hidden)
    shutil.rmtree(hidden)


def _from_base(run: Run, stage: Stage, print_of: dict[str, Any]) -> dict[str, Any] | None:
    """The manifest of the same stage in a base run, the first that matches, now also in this run's folder; or None."""
    if run.mirror and run.config.runtime.base_run:
        raise ConfigError(
            'config.runtime.base_run: a run in a bucket cannot lean on a folder of one machine; leave it empty'
        )
    places = []
    for base in map(Path, run.config.runtime.base_run):
        places += [
            base,
            *sorted(p for p in base.iterdir() if p.is_dir() and not p.name.startswith('.')),
        ]
    for place in places:
        manifest = read_json(place / stage.name / MANIFEST)
        if manifest is None or differences(manifest, print_of):
            continue
        manifest['folder'] = manifest.get('folder') or str((place / stage.name).resolve())
        (run.workdir / stage.name).mkdir(exist_ok=True)
        write_json(run.workdir / stage.name / MANIFEST, manifest)
        run.say(f'{stage.name}: taken from {manifest["folder"]}')
        return manifest
    return None


def versions() -> dict[str, str]:
    """The installed versions of what decides a result, by package."""
    found = {}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found
