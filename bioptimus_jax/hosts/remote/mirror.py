"""A run folder in a bucket, mirrored in a local folder: stages work on files here, and what they made is put there.

The index is the commit point. New objects are uploaded first, objects that change beside the old ones, and then the
index says what the run consists of, each file by size and SHA-256: a kill at any moment leaves the run of before. Only
afterwards the changed objects get their names and what is gone is deleted; whoever comes next finishes that.
"""

import contextlib
import dataclasses
import fnmatch
import json
import os
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.hosts.remote.contents import (
    INDEX,
    RECORDS,
    Files,
    Index,
    LocalFiles,
    MirroredFile,
    parse_index,
    plain,
    plain_files,
    records_last,
    same_stage,
)
from bioptimus_jax.hosts.remote.lease import Lease, Taken
from bioptimus_jax.hosts.remote.store import Store
from bioptimus_jax.progress.console import Progress
from bioptimus_jax.storage.files import alone, read_json, write_json

BESIDE = '.remote/changed'
OWN = '.remote'  # objects below it are no files of the run
RECORD = '.remote.json'
BULK = ('*/checkpoints/*', '*/documents/*', '*.safetensors', '*.npy')  # what a report does not read
ATTEMPTS = 5
MOST_OF_THE_TIME = 0.05  # spent on putting unfinished work there


class Mirror:
    """The local `folder` of the run at `store`. A context manager: entering brings the folder up to date.

    Without `leads` it only reads. `stopping` ends long transfers (Stopped), except those that save.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        stopping: threading.Event,
        leads: bool,
        least_seconds: float,
        quiet: bool,
    ):
        self.store, self.folder, self.leads = store, folder, leads
        self.stopping, self.least_seconds, self.quiet = stopping, least_seconds, quiet
        self.index, self.absent = Index(), set[str]()
        self._seen: bytes | None = None
        self.broken = False
        self._wait_until = 0.0
        self.local = LocalFiles(folder)
        self._lease = Lease(store, str(folder.absolute()), self.say, self._check_stop)
        self._held = contextlib.ExitStack()

    def __enter__(self) -> 'Mirror':
        with contextlib.ExitStack() as stack:
            self.folder.mkdir(parents=True, exist_ok=True)
            whose = f'{self.store.url}: another process of this machine is working on it'
            stack.enter_context(alone(self.folder / '.remote.lock', whose))
            if self.leads:
                self._lease.acquire()
                stack.callback(self._lease.release)
            self.update()
            if self.leads:
                self._settle()
            self._held = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        with self._held:
            if self.leads and not self.broken:
                try:
                    self.push()
                except InputError:
                    if kind is None or issubclass(kind, Stopped):  # what went wrong before is said instead
                        raise

    def say(self, message: str) -> None:
        if not self.quiet:
            print(message, flush=True)

    def _check_stop(self) -> None:
        if self.stopping.is_set():
            raise Stopped

    def update(self) -> None:
        """Make the folder what the index says, or newer where nobody else has written since this one last did.

        Records of stages and what lies outside of them are fetched at once, the rest by `need`.
        """
        self._seen = content = self.store.read(INDEX)
        index = parse_index(content, self.store.url) if content else Index()
        here, record = self.local.scan(), read_json(self.folder / RECORD)
        # An empty bucket would otherwise have the whole mirror deleted, as if the leader had deleted its run.
        if content is None and record and any(record['revisions']):
            raise InputError(
                f'{self.store.url}: holds no run, but {self.folder} mirrors one that was there; '
                'remove that folder to start over, or correct --workdir'
            )
        if record is None and here:
            raise ConfigError(
                f'{self.folder}: holds files that mirror no bucket; remove them, or set config.runtime.staging'
            )
        if content is None and self.leads and (strange := self._strange()):
            raise ConfigError(
                f'{self.store.url}: holds objects that no run put there ({strange}); use another --workdir'
            )
        if record is None or index.revision not in record['revisions']:
            # Somebody has written since this folder last did, so what differs here is old, not new.
            self._remove_what_differs(index, here)
            here = self.local.scan()
            write_json(self.folder / RECORD, {'url': self.store.url, 'revisions': [index.revision]})
        self.index = index
        self.absent = {name for name in index.files if name not in here and same_stage(name, here, index)}
        # Records are small, and say what is up to date before anything large is fetched.
        at_once = [n for n in self.absent if '/' not in n or n.split('/')[1:] in [[r] for r in RECORDS]]
        self._fetch(at_once)

    def _strange(self) -> str:
        return next((name for name in self.store.find() if not name.startswith(f'{OWN}/')), '')

    def _remove_what_differs(self, index: Index, here: Files) -> None:
        # The record of a stage goes first and comes last, so that a kill leaves no stage that looks finished.
        for name in sorted(here, key=lambda n: not n.endswith(RECORDS)):
            if plain(index.files.get(name)) != here[name]:
                (self.folder / name).unlink()
        for place, folders, files in os.walk(self.folder, topdown=False):
            left = files or any((Path(place) / f).exists() for f in folders)
            if not left and Path(place) != self.folder:
                os.rmdir(place)

    def need(self, stage: str, bulk: bool = True) -> None:
        """Fetch what the stage has there and not yet here; without `bulk`, no weights, documents and rows.

        Raises InputError where an object is not what the index says, Stopped.
        """
        for attempt in range(1, ATTEMPTS + 1):
            names = [name for name in self.absent if not stage or name.startswith(f'{stage}/')]
            try:
                self._fetch(n for n in names if bulk or not any(fnmatch.fnmatch(n, glob) for glob in BULK))
                return
            except InputError:  # the leader of several processes may be giving an object its name
                if self.leads or attempt == ATTEMPTS:
                    raise
            time.sleep(attempt)
            self.refresh()

    def refresh(self) -> None:
        """Take over what the leader has put there since. Raises InputError after some attempts."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                if self.store.read(INDEX) != self._seen:
                    self.update()
                return
            except InputError:
                if attempt == ATTEMPTS:
                    raise
            time.sleep(attempt)

    def _fetch(self, names: Iterable[str]) -> None:
        ordered = records_last(names)
        entries = [(name, self.index.files[name]) for name in ordered]
        progress = self._progress('fetching from', [entry for _, entry in entries])

        def advance(size: int) -> None:
            progress.update(size / 1e6)
            self._check_stop()

        self.store.download(
            ((e.at or name, self.folder / name, e.bytes, e.sha256) for name, e in entries), advance
        )
        self.absent.difference_update(ordered)

    def saved(self) -> None:
        """Something worth keeping is on disk: put it there, unless the last time was too short ago.

        A bucket that cannot be reached for a while does not end the work. Raises Taken.
        """
        if self.leads and time.monotonic() >= self._wait_until:
            started = time.monotonic()
            try:
                self._push()
            except Taken:
                self.broken = True
                raise
            except InputError as error:
                self.say(f'{" ".join(str(error).split())}; continuing: what is new stays here until later')
            taken = time.monotonic() - started
            # The slower the bucket, the longer the pause: uploads take a bounded share of the time.
            pause = max(self.least_seconds, taken / MOST_OF_THE_TIME) if self.least_seconds else 0.0
            self._wait_until = time.monotonic() + pause

    def push(self) -> None:
        """Put there what is new or changed here and delete what is gone; the manifest of a stage comes with its files.

        Raises InputError where that cannot be done: then what the bucket held before is still whole.
        """
        try:
            self._push()
        except BaseException:
            self.broken = True  # not tried again on the way out
            raise

    def _push(self) -> None:
        self._settle()  # where the network went away in the middle of it
        for _ in range(ATTEMPTS):
            here = self.local.scan()
            known = self.index.files
            kept = {name for name in self.absent if same_stage(name, here, self.index)}
            files = {**plain_files({name: known[name] for name in kept}), **here}
            if files == plain_files(known):
                return
            changed = {name for name in here if name in known and plain(known[name]) != here[name]}
            targets = {name: f'{BESIDE}/{here[name].sha256}' if name in changed else name for name in here}
            sent = records_last(name for name in here if name not in known or name in changed)
            self._lease.require()
            # In the index before they are sent: whoever comes after a kill knows what to delete.
            pending = {*self.index.pending, *(targets[name] for name in sent)}
            self._write(dataclasses.replace(self.index, pending=tuple(sorted(pending))))
            try:
                self._send(sent, here, targets)
            except InputError:
                if all((self.folder / name).exists() for name in sent):
                    raise
                continue  # a checkpoint was dropped meanwhile
            # It may have changed while it was read: then what lies there is not what the index would say.
            if any(self.local.entry(name) != here[name] for name in sent):
                continue
            for name in changed:
                files[name] = dataclasses.replace(files[name], at=targets[name])
            self._commit(files, sorted(pending | (known.keys() - files.keys())))
            self.absent = kept
            self._settle()
            return
        self.say(f'{self.store.url}: files change while they are uploaded; trying again later')

    def _send(self, sent: list[str], here: Files, targets: dict[str, str]) -> None:
        progress = self._progress('putting to', [here[name] for name in sent])
        for records in (False, True):  # whoever looks into the bucket sees a manifest only behind its files
            self.store.upload(
                (
                    (self.folder / n, targets[n], here[n].bytes)
                    for n in sent
                    if n.endswith(RECORDS) is records
                ),
                lambda size: progress.update(size / 1e6),
            )

    def _progress(self, what: str, entries: Sequence[MirroredFile]) -> Progress:
        megabytes = sum(entry.bytes for entry in entries) / 1e6
        return Progress(f'{what} {self.store.url}', megabytes, 'MB', self.quiet or megabytes < 10)

    def _commit(self, files: Files, pending: list[str]) -> None:
        self._lease.require()
        old, new = self.index.revision, uuid.uuid4().hex
        record = {'url': self.store.url, 'revisions': [old, new]}
        # Both revisions, as a kill may come before or after the index is written: each of them is this folder's own.
        write_json(self.folder / RECORD, record)
        self._write(Index(new, files, tuple(pending)))
        write_json(self.folder / RECORD, {**record, 'revisions': [new]})

    def _settle(self) -> None:
        """Give changed objects their names, and delete what nothing refers to any more."""
        moved = {name: entry.at for name, entry in self.index.files.items() if entry.at}
        if not moved and not self.index.pending:
            return
        for name in records_last(moved):
            self.store.copy(moved[name], name)
        files = plain_files(self.index.files)
        unused = sorted({*self.index.pending, *moved.values()} - files.keys())
        # Before anything is deleted: the index must not name an object that is gone.
        if moved:
            self._write(Index(self.index.revision, files, tuple(unused)))
        # Records of stages first: a kill in between leaves no record without its files.
        self.store.remove(records_last(unused)[::-1])
        if unused or self.index.pending:
            self._write(Index(self.index.revision, files))

    def _write(self, index: Index) -> None:
        self.store.write(INDEX, json.dumps(index.json(), sort_keys=True).encode())
        self.index = index
