"""Files over HTTPS: resumed where they were cut off, checked by their checksum, complete or absent.

What there is to fetch, and how its bytes are proved, is told by a catalogue: PubMed's files (pubmed.py), NER sets
(finetuning/entities/download.py). Hidden beside a file are the bytes that have come so far (.NAME.partial) and which
version they are of (.NAME.origin). `.checked.jsonl` holds size, time and checksum of every file that was found right:
another start reads a file again only if its size or time, or the checksum that is wanted, has changed.
"""

import asyncio
import dataclasses
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Protocol

import httpx2

from bioptimus_jax import __version__
from bioptimus_jax.corpus.fetch import LastingFailure, Partial, Patience, Server
from bioptimus_jax.errors import ConfigError, InputError, Stopped, printable
from bioptimus_jax.progress.console import Progress, numbered
from bioptimus_jax.storage.files import JsonObject, alone, intact_jsonl

MOST_PARALLEL = 16
FAILURES_IN_A_ROW = 8  # the server is gone: what has not begun is not tried
FAILURES_NAMED = 20
MIB = 2**20  # a power of two: parts of it add up exactly


@dataclasses.dataclass(eq=False)
class Wanted:
    """A file that is asked for: its name below the folder, with slashes, and where it lies on the server."""

    name: str
    url: str
    size: int | None = None
    counted: int = 0


@dataclasses.dataclass(frozen=True)
class Proof:
    """The checksum that a file must have, by `algorithm` of hashlib; `says`: who tells it, for messages.

    `text`: the words in which a server told it.
    """

    algorithm: str
    checksum: str
    says: str
    text: str = ''


class Catalogue(Protocol):
    """What there is to fetch. `wanted` and `proof` may ask the server, and raise what it raises."""

    async def wanted(self, server: Server, say: Callable[[str], None]) -> list[Wanted]: ...

    async def proof(self, server: Server, file: Wanted) -> Proof: ...

    def keep(self, path: Path, proof: Proof) -> None: ...

    def advice(self, to: Path, wanted: Iterable[Wanted]) -> str: ...


class Download:
    """One download of a catalogue into the folder `to`; `stopping`, when set, ends it with Stopped.

    With `check` every file that is there already is read again. Raises ConfigError for what cannot be meant,
    InputError for a folder that is a file.
    """

    def __init__(
        self,
        to: Path | str,
        catalogue: Catalogue,
        parallel: int = 4,
        *,
        check: bool = False,
        patience: Patience | None = None,
        quiet: bool = False,
    ):
        if not 1 <= parallel <= MOST_PARALLEL:
            raise ConfigError(f'--parallel={parallel}: must be from 1 to {MOST_PARALLEL}')
        self.to = Path(to)
        if self.to.exists() and not self.to.is_dir():
            raise InputError(f'{self.to}: is a file; --to needs a folder')
        self.catalogue, self.parallel, self.check = catalogue, parallel, check
        self.patience, self.quiet = patience or Patience(), quiet
        self.stopping = threading.Event()
        self.progress = Progress('download', 0, 'MiB', quiet)
        self.checked: dict[str, JsonObject] = {}
        self.wanted: list[Wanted] = []
        self.there = self.fetched = self.failed_in_a_row = 0
        self.failures: dict[str, str] = {}

    def run(self) -> dict[str, int]:
        """Fetch what is missing; returns how many files were asked for, fetched, there already.

        Raises InputError with what could not be fetched (all else is kept), Stopped, OSError, and ConfigError while
        another process downloads into the folder.
        """
        self.to.mkdir(parents=True, exist_ok=True)
        with alone(self.to / '.download.lock', f'{self.to}: another process is downloading into it'):
            self._recall()
            asyncio.run(self._until_stopped())
        if self.failures:
            raise InputError(self._what_failed())
        self._say(
            f'{numbered(len(self.wanted), "file")}: {self.fetched:,} fetched, {self.there:,} were there'
        )
        self._say(self.catalogue.advice(self.to, self.wanted))
        return {'files': len(self.wanted), 'fetched': self.fetched, 'there': self.there}

    async def _until_stopped(self) -> None:
        work = asyncio.ensure_future(self._everything())
        try:
            # asyncio cannot wait for a threading.Event, so it is looked at from time to time.
            while not work.done():
                await asyncio.wait({work}, timeout=0.2)
                if self.stopping.is_set() and not work.done():
                    raise Stopped
            work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _everything(self) -> None:
        # What is stored is fetched, byte by byte: it is compressed already.
        headers = {'User-Agent': f'bioptimus/{__version__}', 'Accept-Encoding': 'identity'}
        timeout = self.patience.timeout_seconds
        async with httpx2.AsyncClient(headers=headers, timeout=timeout, follow_redirects=True) as client:
            server = Server(client, self.patience, self._say)
            self.wanted = await self.catalogue.wanted(server, self._say)
            queue = iter(self.wanted)
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.parallel, len(self.wanted))):
                        group.create_task(self._work(server, queue))
            except ExceptionGroup as errors:  # the first one ended the others
                raise errors.exceptions[0] from None

    async def _work(self, server: Server, queue: Iterator[Wanted]) -> None:
        for file in queue:
            try:
                await self._bring(server, file)
                self.failed_in_a_row = 0
            except LastingFailure as error:
                self.failures[file.name] = str(error)
                self.failed_in_a_row += 1
                if self.failed_in_a_row >= FAILURES_IN_A_ROW:
                    return

    async def _bring(self, server: Server, file: Wanted) -> None:
        """Make the file lie under its name with the bytes that the catalogue can prove."""
        path = self.to / file.name
        partial = Partial(path, lambda found: self._count(file, partial.size, partial.got, found))
        for fetch in range(1, self.patience.fetches + 1):
            proof = await self.catalogue.proof(server, file)
            if await asyncio.to_thread(self._is_there, file, proof):
                size = path.stat().st_size
                self._count(file, size, size, found=True)
                self.there += 1
                return
            path.parent.mkdir(exist_ok=True)
            await server.complete(file.url, partial)
            self._count(file, partial.got, partial.got)
            if await asyncio.to_thread(self._publish, file, partial, proof):
                self.fetched += 1
                return
            partial.discard()
            self._say(f'{file.url}: its bytes are not what {proof.says}; discarded')
            if fetch < self.patience.fetches:
                await self.patience.sleep(self.patience.wait_seconds(fetch))
        raise LastingFailure(f'its bytes are not what {proof.says}, {self.patience.fetches} times in a row')

    def _publish(self, file: Wanted, partial: Partial, proof: Proof) -> bool:
        """Whether what came is proved: then the file appears, after what the catalogue keeps beside it."""
        path = self.to / file.name
        with open(partial.path, 'rb') as came:
            if checksum_of(came, proof.algorithm) != proof.checksum:
                return False
            # The bytes must be on disk before the name: a power cut could keep the renaming alone.
            os.fsync(came.fileno())
        # A kill between the two leaves a checksum without its file, never a file without its checksum.
        self.catalogue.keep(path, proof)
        os.replace(partial.path, path)
        partial.origin.unlink(missing_ok=True)
        self._remember(self._note(file, proof))
        return True

    def _is_there(self, file: Wanted, proof: Proof) -> bool:
        """Whether the file lies there with this checksum: as noted when it was checked, or by reading it again."""
        path = self.to / file.name
        if not path.is_file():
            return False
        note = self._note(file, proof)
        if self.check or self.checked.get(file.name) != note:
            with open(path, 'rb') as present:
                if checksum_of(present, proof.algorithm) != proof.checksum:
                    self._say(f'{path}: is not what {proof.says}; will be replaced')
                    return False
            self._remember(note)
        self.catalogue.keep(path, proof)
        return True

    def _note(self, file: Wanted, proof: Proof) -> JsonObject:
        stat = (self.to / file.name).stat()
        times = {'bytes': stat.st_size, 'mtime_ns': stat.st_mtime_ns}
        return {'file': file.name, **times, proof.algorithm: proof.checksum}

    def _recall(self) -> None:
        notes = intact_jsonl(self.to / '.checked.jsonl')
        self.checked |= {note['file']: note for note in notes if isinstance(note.get('file'), str)}

    def _remember(self, note: JsonObject) -> None:
        self.checked[note['file']] = note
        with open(self.to / '.checked.jsonl', 'a', encoding='utf-8') as notes:
            notes.write(f'\n{json.dumps(note)}')  # on a line of its own, whatever a kill cut off before

    def _count(self, file: Wanted, size: int | None, got: int, found: bool = False) -> None:
        """Show progress. Files not met yet are taken to be as large as the others on average."""
        if size is None:
            return
        if size != file.size:
            file.size = size
            known = [file.size for file in self.wanted if file.size is not None]
            unknown = len(self.wanted) - len(known)
            self.progress.total = (sum(known) + sum(known) / len(known) * unknown) / MIB
        change, file.counted = (got - file.counted) / MIB, got
        if change and found:  # does not count for the rate
            self.progress.first += change
        if change:
            self.progress.update(change)

    def _say(self, message: str) -> None:
        if not self.quiet:
            print(('\r\x1b[K' if self.progress.terminal else '') + printable(message), flush=True)

    def _what_failed(self) -> str:
        failures = [f'{name} ({reason})' for name, reason in sorted(self.failures.items())]
        more = f' and {len(failures) - FAILURES_NAMED:,} more' if len(failures) > FAILURES_NAMED else ''
        untried = len(self.wanted) - self.fetched - self.there - len(failures)
        return (
            f'{len(failures):,} of {numbered(len(self.wanted), "file")} could not be fetched: '
            f'{", ".join(failures[:FAILURES_NAMED])}{more}'
            + (f'; another {untried:,} were not tried' if untried else '')
            + '; the others are kept; rerun the same command for the rest'
        )


def checksum_of(file: BufferedReader, algorithm: str) -> str:
    """The checksum of an open file in hexadecimal, by an `algorithm` of hashlib."""
    return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
