"""What a mirrored run consists of: the index in the bucket, and the files of the local folder that count."""

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from bioptimus_jax.errors import InputError
from bioptimus_jax.records.manifests import FileEntry
from bioptimus_jax.records.record import Record, left_out
from bioptimus_jax.storage.files import Checksums

INDEX = '.remote/index.json'
RECORDS = ('manifest.json', '.started.json')  # of a stage; `run` writes them
UNFINISHED = 'orbax-checkpoint-tmp'
CHANGED = 'was it changed by hand?'


@dataclasses.dataclass(frozen=True)
class MirroredFile(FileEntry):
    """A file of a run in a bucket; `at`: the name that it lies under there, if that is not its own."""

    at: str | None = left_out()


Files: TypeAlias = Mapping[str, MirroredFile]


@dataclasses.dataclass(frozen=True)
class Index(Record):
    """What a run in a bucket consists of.

    `pending` are names that may lie there and are of no use. Another revision means other files.
    """

    revision: str = ''
    files: Files = dataclasses.field(default_factory=dict)
    pending: tuple[str, ...] = ()


class LocalFiles:
    """The files of a local run folder: no hidden ones but the records of stages, no checkpoint being written."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.remembered = Checksums(folder / '.remote.checksums.json')
        self.sums = dict[str, tuple[tuple, str]]()

    def scan(self) -> Files:
        """The files by name."""
        found = {name: entry for name in self._names() if (entry := self.entry(name))}
        self.remembered.save()
        return found

    def _names(self) -> Iterator[str]:
        for place, folders, files in os.walk(self.folder):
            folders[:] = sorted(f for f in folders if not f.startswith('.') and UNFINISHED not in f)
            below = Path(place).relative_to(self.folder)
            for file in files:
                if not file.startswith('.') or (file in RECORDS and len(below.parts) == 1):
                    yield str(below / file)

    def entry(self, name: str) -> MirroredFile | None:
        """Bytes and SHA-256 of a file, read again only if it has changed; None where it is gone."""
        try:
            stat = (self.folder / name).stat()
            # The inode, too: a file that is replaced may have the size and the time of the old one.
            mark = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
            if self.sums.get(name, ((), ''))[0] != mark:
                self.sums[name] = mark, self.remembered.sha256(self.folder / name)
        except FileNotFoundError:
            return None
        return MirroredFile(stat.st_size, self.sums[name][1])


def same_stage(name: str, here: Files, index: Index) -> bool:
    """Whether the stage that a file belongs to is, here, the one of the index: not deleted, not made anew."""
    stage = name.split('/')[0]
    records = [f'{stage}/{record}' for record in RECORDS]
    if name in records or '/' not in name or not any(record in here for record in records):
        return not any(record in here for record in records)
    return all(here.get(r) == plain(index.files.get(r)) for r in records)


def records_last(names: Iterable[str]) -> list[str]:
    """Names in the order to fetch or to send: what says that a stage is complete comes behind its files."""
    return sorted(names, key=lambda name: (name.endswith(RECORDS), name))


def plain(entry: MirroredFile | None) -> MirroredFile | None:
    """Size and SHA-256 of a file, without where it lies; None for none."""
    return entry and dataclasses.replace(entry, at=None)


def plain_files(files: Files) -> dict[str, MirroredFile]:
    """The files, each without where it lies."""
    return {name: dataclasses.replace(entry, at=None) for name, entry in files.items()}


def parse_index(content: bytes, url: str) -> Index:
    """The index of a store's folder. Raises InputError for a damaged one."""
    try:
        index = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f'{url}/{INDEX}: is damaged ({error}); {CHANGED}') from error
    return Index.read(index, f'{url}/{INDEX}', CHANGED)
