"""PubMed's baseline and update files over HTTPS: resumed where they were cut off, checked by MD5, complete or absent.

The folder becomes a copy of the server's: `baseline` and `updatefiles` with NAME.xml.gz and NAME.xml.gz.md5. Hidden
beside a file lie the bytes that have come so far (.NAME.partial) and which version of it they belong to
(.NAME.origin). `.checked.jsonl` holds size, time and MD5 of every file that was found right: another start asks the
server for its .md5 only, and reads a file again if its size or time, or the server's MD5, has changed.
"""

import asyncio
import contextlib
import dataclasses
import fnmatch
import json
import os
import re
import shlex
import threading
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2

from bioptimus_jax import __version__
from bioptimus_jax.corpus.fetch import LastingFailure, Partial, Patience, Server
from bioptimus_jax.corpus.stored import md5_beside, md5_in, md5_of
from bioptimus_jax.errors import ConfigError, InputError, Stopped
from bioptimus_jax.files import alone, atomic
from bioptimus_jax.progress import Progress

FOLDERS = {'baseline': 'baseline', 'updates': 'updatefiles'}
NAME = re.compile(r'(pubmed\d\dn)\d{4}\.xml\.gz')
MOST_PARALLEL = 16
FAILURES_IN_A_ROW = 8  # the server is gone: what has not begun is not tried
FAILURES_NAMED = 20
MIB = 2**20  # a power of two: parts of it add up exactly


@dataclasses.dataclass(eq=False)
class _File:
    folder: str
    url: str
    path: Path
    size: int | None = None
    counted: int = 0

    @property
    def md5_path(self) -> Path:
        return md5_beside(self.path)

    def note(self, md5: str) -> dict[str, Any]:
        stat = self.path.stat()
        name = f'{self.folder}/{self.path.name}'
        return {'file': name, 'bytes': stat.st_size, 'mtime_ns': stat.st_mtime_ns, 'md5': md5}


class Download:
    """One download into the folder `to`; `stopping`, when set, ends it with Stopped.

    `url` is the folder above `baseline` and `updatefiles`, `what` is from FOLDERS, `files` a pattern that names have
    to match. With `check` every file that is there already is read again. Raises ConfigError for what cannot be meant,
    InputError for a folder that is a file.
    """

    def __init__(
        self,
        to: Path | str,
        url: str,
        what: tuple[str, ...] = tuple(FOLDERS),
        files: str = '*',
        parallel: int = 4,
        *,
        check: bool = False,
        patience: Patience | None = None,
        quiet: bool = False,
    ):
        if not what or not set(what) <= set(FOLDERS):
            raise ConfigError(f'--what={",".join(what)}: takes {" or ".join(FOLDERS)}, or both with a comma')
        if not 1 <= parallel <= MOST_PARALLEL:
            raise ConfigError(f'--parallel={parallel}: must be from 1 to {MOST_PARALLEL}')
        if not _is_address(url):
            raise ConfigError(
                f'--url={url}: give the folder above baseline, as in https://ftp.ncbi.nlm.nih.gov/pubmed'
            )
        self.to = Path(to)
        if self.to.exists() and not self.to.is_dir():
            raise InputError(f'{self.to}: is a file; --to needs a folder')
        self.folders = [FOLDERS[part] for part in FOLDERS if part in what]
        self.files, self.url, self.parallel, self.check = files, url.rstrip('/'), parallel, check
        self.patience, self.quiet = patience or Patience(), quiet
        self.stopping = threading.Event()
        self.progress = Progress('download', 0, 'MiB', quiet)
        self.checked: dict[str, dict[str, Any]] = {}
        self.wanted: list[_File] = []
        self.there = self.fetched = self.failed_in_a_row = 0
        self.failures: dict[str, str] = {}

    def run(self) -> dict[str, int]:
        """Fetch what is missing; returns how many files were asked for, fetched, there already.

        Raises InputError with what could not be fetched (all else is kept), Stopped, OSError, and ConfigError while
        another process downloads into the folder.
        """
        self.to.mkdir(parents=True, exist_ok=True)
        with alone(self.to / '.download.lock', f'{self.to}: another process downloads into it'):
            self._recall()
            asyncio.run(self._until_stopped())
        if self.failures:
            raise InputError(self._what_failed())
        self._say(f'{len(self.wanted):,} files: {self.fetched:,} fetched, {self.there:,} were there')
        flag = shlex.quote(f'--config.corpus.inputs={",".join(self.inputs())}')
        self._say(f'to read them in the right order, give `bioptimus corpus`\n  {flag}')
        return {'files': len(self.wanted), 'fetched': self.fetched, 'there': self.there}

    def inputs(self) -> list[str]:
        """Patterns for corpus.inputs: the baseline, then its updates, of the newest year that was asked for.

        A folder may hold last year's files too; its updates are older than this year's baseline.
        """
        year = max(NAME.findall(file.path.name)[0] for file in self.wanted)
        folders = [self.to / folder for folder in FOLDERS.values()]
        return [f'{folder}/{year}*.xml.gz' for folder in folders if any(folder.glob(f'{year}*.xml.gz'))]

    async def _until_stopped(self) -> None:
        work = asyncio.ensure_future(self._everything())
        try:
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
            for folder in self.folders:
                self.wanted += await self._listed(server, folder)
            if not self.wanted:
                raise ConfigError(f'--files={self.files}: no file in {" or ".join(self.folders)} is named so')
            queue = iter(self.wanted)
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self.parallel, len(self.wanted))):
                        group.create_task(self._work(server, queue))
            except ExceptionGroup as errors:  # the first one ended the others
                raise errors.exceptions[0] from None

    async def _listed(self, server: Server, folder: str) -> list[_File]:
        """The files of one folder that are asked for, oldest first."""
        url = f'{self.url}/{folder}/'

        def flaw(page: str) -> str:  # a file that is not listed would be missing without a word
            return '' if '</html>' in page.lower() else 'the list of files is cut off, or no HTML page'

        try:
            names = linked_files(await server.text(url, flaw))
        except LastingFailure as error:
            raise InputError(
                f'{url}: {error}; check --url and the network, and start the same command again'
            ) from error
        if not names:
            raise InputError(
                f'{url}: links to no file like pubmed26n0001.xml.gz; correct --url, or leave it out by --what'
            )
        self._say(f'{folder}: {len(names):,} files, {names[0]} to {names[-1]}')
        return [
            _File(folder, url + name, self.to / folder / name) for name in fnmatch.filter(names, self.files)
        ]

    async def _work(self, server: Server, queue: Iterator[_File]) -> None:
        for file in queue:
            try:
                await self._bring(server, file)
                self.failed_in_a_row = 0
            except LastingFailure as error:
                self.failures[file.path.name] = str(error)
                self.failed_in_a_row += 1
                if self.failed_in_a_row >= FAILURES_IN_A_ROW:
                    return

    async def _bring(self, server: Server, file: _File) -> None:
        """Make the file lie under its name with the bytes that the server's .md5 tells, and the .md5 beside it."""
        partial = Partial(file.path, lambda found: self._count(file, partial.size, partial.got, found))
        for fetch in range(1, self.patience.fetches + 1):
            line = await self._md5_line(server, file)
            md5 = md5_in(line)
            if await asyncio.to_thread(self._is_there, file, line, md5):
                size = file.path.stat().st_size
                self._count(file, size, size, found=True)
                self.there += 1
                return
            file.path.parent.mkdir(exist_ok=True)
            await server.complete(file.url, partial)
            self._count(file, partial.got, partial.got)
            if await asyncio.to_thread(self._publish, file, partial, line, md5):
                self.fetched += 1
                return
            partial.discard()
            self._say(f'{file.url}: its bytes are not what its .md5 says; thrown away')
            if fetch < self.patience.fetches:
                await self.patience.sleep(self.patience.wait_seconds(fetch))
        raise LastingFailure(f'its bytes are not what its .md5 says, {self.patience.fetches} times in a row')

    async def _md5_line(self, server: Server, file: _File) -> str:
        try:
            return await server.text(f'{file.url}.md5', lambda line: '' if md5_in(line) else 'holds no MD5')
        except LastingFailure as error:
            raise LastingFailure(f'.md5: {error}') from error

    def _publish(self, file: _File, partial: Partial, line: str, md5: str) -> bool:
        """Whether the MD5 of what came is right: then the file appears, its .md5 before it."""
        with open(partial.path, 'rb') as came:
            if md5_of(came) != md5:
                return False
            os.fsync(came.fileno())
        self._keep_md5(file, line)
        os.replace(partial.path, file.path)
        partial.origin.unlink(missing_ok=True)
        self._remember(file.note(md5))
        return True

    def _is_there(self, file: _File, line: str, md5: str) -> bool:
        """Whether the file lies there with this MD5: as noted when it was checked, or by reading it again."""
        if not file.path.is_file():
            return False
        note = file.note(md5)
        if self.check or self.checked.get(note['file']) != note:
            with open(file.path, 'rb') as present:
                if md5_of(present) != md5:
                    self._say(f'{file.path}: is not what the server has (by MD5); will be replaced')
                    return False
            self._remember(note)
        self._keep_md5(file, line)
        return True

    def _keep_md5(self, file: _File, line: str) -> None:
        if not file.md5_path.is_file() or file.md5_path.read_bytes() != line.encode():
            with atomic(file.md5_path, 'wb') as kept:
                kept.write(line.encode())

    def _recall(self) -> None:
        path = self.to / '.checked.jsonl'
        for line in path.read_bytes().splitlines() if path.exists() else ():
            # Cut off by a kill: its file is read again.
            with contextlib.suppress(ValueError, KeyError, TypeError):
                note = json.loads(line)
                self.checked[note['file']] = note

    def _remember(self, note: dict[str, Any]) -> None:
        self.checked[note['file']] = note
        with open(self.to / '.checked.jsonl', 'a', encoding='utf-8') as notes:
            notes.write(f'\n{json.dumps(note)}')  # on a line of its own, whatever a kill cut off before

    def _count(self, file: _File, size: int | None, got: int, found: bool = False) -> None:
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
            print(('\r\x1b[K' if self.progress.terminal else '') + message, flush=True)

    def _what_failed(self) -> str:
        failures = [f'{name} ({reason})' for name, reason in sorted(self.failures.items())]
        more = f' and {len(failures) - FAILURES_NAMED:,} more' if len(failures) > FAILURES_NAMED else ''
        untried = len(self.wanted) - self.fetched - self.there - len(failures)
        return (
            f'{len(failures):,} of {len(self.wanted):,} files could not be fetched: '
            f'{", ".join(failures[:FAILURES_NAMED])}{more}'
            + (f'; after these {untried:,} were not tried' if untried else '')
            + '; the others are kept, start the same command again for the rest'
        )


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attributes: Iterable[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if tag == 'a' and key == 'href' and value:
                self.names.add(re.split('[?#]', value)[0].rpartition('/')[2])


def linked_files(page: str) -> list[str]:
    """Names of the PubMed files that an HTML page links to, each once, oldest first."""
    links = _Links()
    links.feed(page)
    return sorted(name for name in links.names if NAME.fullmatch(name))


def _is_address(url: str) -> bool:
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        return False
    return parts.scheme in ('http', 'https') and bool(parts.host) and not parts.query and not parts.fragment
