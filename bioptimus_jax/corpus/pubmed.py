"""PubMed's files on its server: which there are, the MD5 beside each, and what `corpus` is to read of them."""

import fnmatch
import re
import shlex
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path

from bioptimus_jax.corpus.download import Proof, Wanted
from bioptimus_jax.corpus.fetch import LastingFailure, Server, check_address
from bioptimus_jax.corpus.stored import md5_beside, md5_in
from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.storage.files import atomic, by_numbers

ADDRESS = 'https://ftp.ncbi.nlm.nih.gov/pubmed'
FOLDERS = {'baseline': 'baseline', 'updates': 'updatefiles'}
NAME = re.compile(r'(pubmed\d\dn)\d{4,}\.xml\.gz')


class PubMed:
    """The yearly baseline, the daily updates, or both, as a catalogue of `download.Download`.

    `url` is the folder above `baseline` and `updatefiles`, `what` is from FOLDERS, `files` a pattern that names have
    to match. Every file keeps its NAME.xml.gz.md5 beside it. Raises ConfigError for what cannot be meant.
    """

    def __init__(self, url: str = ADDRESS, what: tuple[str, ...] = tuple(FOLDERS), files: str = '*'):
        if not what or not set(what) <= set(FOLDERS):
            raise ConfigError(
                f'--what={",".join(what)}: takes {" or ".join(FOLDERS)}, both with a comma, or ner'
            )
        check_address(url, f'the folder above baseline, as in {ADDRESS}')
        self.url, self.files = url.rstrip('/'), files
        self.folders = [FOLDERS[part] for part in FOLDERS if part in what]

    async def wanted(self, server: Server, say: Callable[[str], None]) -> list[Wanted]:
        """Everything that is asked for: the baseline before the updates, the oldest first."""
        wanted = [file for folder in self.folders for file in await self._listed(server, say, folder)]
        if not wanted:
            raise ConfigError(f'--files={self.files}: no file in {" or ".join(self.folders)} has such a name')
        return wanted

    async def proof(self, server: Server, file: Wanted) -> Proof:
        """The MD5 that the server has beside the file."""
        try:
            line = await server.text(f'{file.url}.md5', lambda line: '' if md5_in(line) else 'holds no MD5')
        except LastingFailure as error:
            raise LastingFailure(f'.md5: {error}') from error
        return Proof('md5', md5_in(line), 'its .md5 says', line)

    def keep(self, path: Path, proof: Proof) -> None:
        """Write the .md5 beside a file, as the server has it."""
        beside = md5_beside(path)
        if not beside.is_file() or beside.read_bytes() != proof.text.encode():
            with atomic(beside, 'wb') as kept:
                kept.write(proof.text.encode())

    def advice(self, to: Path, wanted: Iterable[Wanted]) -> str:
        """What to do with the files."""
        flag = shlex.quote(f'--config.corpus.inputs={",".join(self.inputs(to, wanted))}')
        return f'to read them in the right order, give `bioptimus corpus`\n  {flag}'

    def inputs(self, to: Path, wanted: Iterable[Wanted]) -> list[str]:
        """Patterns for corpus.inputs: the baseline, then its updates, of the newest year that was asked for.

        A folder may hold last year's files too; its updates are older than this year's baseline.
        """
        year = max(NAME.findall(file.name)[0] for file in wanted)
        folders = [to / folder for folder in FOLDERS.values()]
        return [f'{folder}/{year}*.xml.gz' for folder in folders if any(folder.glob(f'{year}*.xml.gz'))]

    async def _listed(self, server: Server, say: Callable[[str], None], folder: str) -> list[Wanted]:
        """The files of one folder that are asked for, oldest first."""
        url = f'{self.url}/{folder}/'

        def flaw(page: str) -> str:  # a file that is not listed would be missing without a word
            return '' if '</html>' in page.lower() else 'the list of files is cut off, or is not an HTML page'

        try:
            names = linked_files(await server.text(url, flaw))
        except LastingFailure as error:
            raise InputError(
                f'{url}: {error}; check --url and the network, then rerun the same command'
            ) from error
        if not names:
            raise InputError(
                f'{url}: links to no file like pubmed26n0001.xml.gz; correct --url, or leave it out by --what'
            )
        say(f'{folder}: {numbered(len(names), "file")}, {names[0]} to {names[-1]}')
        return [Wanted(f'{folder}/{name}', url + name) for name in fnmatch.filter(names, self.files)]


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
    return sorted((name for name in links.names if NAME.fullmatch(name)), key=by_numbers)
