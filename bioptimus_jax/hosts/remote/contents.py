"""What a mirrored run consists of: the index in the bucket, and the files of the local folder that count."""

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import Checksums

Files: TypeAlias = 'dict[str, dict[str, Any]]'
INDEX = '.remote/index.json'
RECORDS = ('manifest.json', '.started.json')  # of a stage; `run` writes them
UNFINISHED = 'orbax-checkpoint-tmp'


@dataclasses.dataclass
class Index:
    """What a run in a bucket consists of: name -> {bytes, sha256}, and `at`, where it does not lie under its name.

    `pending` are names that may lie there and are of no use. Another revision means other files.
    """

    revision: str = ''
    files: Files = dataclasses.field(default_factory=dict)
    pending: list[str] = dataclasses.field(default_factory=list)


class LocalFiles:
    """The files of a local run folder: no hidden ones but the records of stages, no checkpoint being written."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.remembered = Checksums(folder / '.remote.checksums.json')
        self.sums = dict[str, tuple[tuple, str]]()

    def scan(self) -> Files:
        """Name -> {bytes, sha256}."""
        found = {}
        for name in self._names():
            with contextlib.suppress(FileNotFoundError):
                found[name] = self.entry(name)
        self.remembered.save()
        return {name: entry for name, entry in found.items() if entry}

    def _names(self) -> Iterator[str]:
        for place, folders, files in os.walk(self.folder):
            folders[:] = sorted(f for f in folders if not f.startswith('.') and UNFINISHED not in f)
            below = Path(place).relative_to(self.folder)
            for file in files:
                if not file.startswith('.') or (file in RECORDS and len(below.parts) == 1):
                    yield str(below / file)

    def entry(self, name: str) -> dict[str, Any]:
        """Bytes and SHA-256 of a file, read again only if it has changed; {} where it is gone."""
        try:
            stat = (self.folder / name).stat()
            # The inode, too: a file that is replaced may have the size and the time of the old one.
            mark = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
            if self.sums.get(name, ((), ''))[0] != mark:
                self.sums[name] = mark, self.remembered.sha256(self.folder / name)
        except FileNotFoundError:
            return {}
        return {'bytes': stat.st_size, 'sha256': self.sums[name][1]}


def same_stage(name: str, here: Files, index: Index) -> bool:
    """Whether the stage that a file belongs to is, here, the one of the index: not deleted, not made anew."""
    stage = name.split('/')[0]
    records = [f'{stage}/{record}' for record in RECORDS]
    if name in records or '/' not in name or not any(record in here for record in records):
        return not any(record in here for record in records)
    return all(here.get(r, {}) == plain(index.files.get(r)) for r in records)


def records_last(names: Iterable[str]) -> list[str]:
    """Names in the order to fetch or to send: what says that a stage is complete comes behind its files."""
    return sorted(names, key=lambda name: (name.endswith(RECORDS), name))


def plain(entry: dict[str, Any] | None) -> dict[str, Any]:
    """Size and SHA-256 of an entry, without where it lies; empty for none."""
    return {key: entry[key] for key in ('bytes', 'sha256')} if entry else {}


def parse_index(content: bytes, url: str) -> Index:
    """The index of a store's folder. Raises InputError for a damaged one."""
    try:
        return Index(**json.loads(content))
    except (ValueError, TypeError) as error:
        raise InputError(f'{url}/{INDEX}: is damaged ({error}); was it changed by hand?') from error
