"""Inputs in a bucket or on the hub: keys that name them, fetched once for each host, and again where they changed."""

import dataclasses
import operator
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.remote import hub
from bioptimus_jax.hosts.remote.store import Store, in_bucket, is_pattern, is_remote, on_disk
from bioptimus_jax.progress.console import Progress
from bioptimus_jax.storage.files import by_numbers, locks, read_json, write_json

ConfigT = TypeVar('ConfigT')
READ_BY = {
    # Where difficulty is measured, its texts must not be among them.
    'corpus.inputs': ('corpus', 'pretrain', 'difficulty'),
    'corpus.audit.folder': ('corpus',),
    'corpus.content.terms': ('corpus',),
    'corpus.content.scores': ('corpus',),
    # Objectives read the vocabulary and the source. So does the plan, while stage surgery is only in the bucket.
    'vocab.file': ('vocab', 'pretrain'),
    'vocab.general': ('vocab',),
    'source.path': ('vocab', 'contexts', 'surgery', 'pretrain', 'finetune', 'analyze', 'difficulty'),
    'source.adapter': ('surgery', 'pretrain', 'finetune', 'analyze'),
    'surgery.fit_only': ('surgery',),
    'surgery.donor': ('surgery',),
    'curriculum.probe': ('pretrain', 'difficulty'),
    'curriculum.texts': ('pretrain', 'difficulty'),
    'finetune.folder': ('finetune', 'analyze', 'pretrain'),
    'finetune.models': ('finetune',),
    'analysis.reference_vocab': ('analyze',),
    'analysis.tokens': ('analyze',),
}
"""Keys that may be URLs, and the stages and verbs that read them: no other makes anybody wait for them."""

STORES: dict[str, Callable[[str], tuple[Store | hub.Hub, str]]] = {'file': on_disk, 'hf': hub.opened}
"""What a URL names, and the path or pattern in it: by the scheme; others are buckets."""

RECORD = '.{}.fetched.json'
SECONDS_BETWEEN_LOOKS = 0.5
CHECKSUM = '.md5'  # beside an input, as PubMed has it


def with_local_inputs(
    experiment: ConfigT,
    stages: tuple[str, ...],
    staging: Path,
    quiet: bool = False,
    check: Callable[[], None] = lambda: None,
    said: Callable[[str, str], None] = lambda key, url: None,
) -> ConfigT:
    """The experiment with local paths for all that its stages read from a bucket or the hub, fetched below `staging`.

    The content decides a run, never the path: inputs in a bucket and the same files here give the same run. `said` is
    told a key and the URL that its files come from, where a commit stands in it. Raises ConfigError, InputError for
    what is not there, and whatever `check` raises between files.
    """
    for key, value in read_by(experiment, stages):
        fetch = Fetching(staging, key, quiet, check, said)
        if isinstance(value, str):
            local: Any = fetch.local(value)
        else:
            local = tuple(path for entry in value for path in fetch.locals(entry))
        if local != value:
            experiment = changed(experiment, key, local)
    return experiment


def remote_inputs(experiment: ConfigT, stages: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Keys that these stages read, and what of them is in a bucket."""
    for key, value in read_by(experiment, stages):
        places = (value,) if isinstance(value, str) else value
        yield from ((key, place) for place in places if is_remote(place.rpartition('=')[2]))


def read_by(experiment: ConfigT, stages: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Keys of READ_BY that these stages read, and their values."""
    asked = set(stages)
    unread = {
        'corpus.inputs': 'corpus' not in asked and not operator.attrgetter('curriculum.texts')(experiment),
        'finetune.folder': asked.isdisjoint(('finetune', 'analyze'))
        and not operator.attrgetter('evaluation.entities')(experiment),
    }
    for key, stages_of_key in READ_BY.items():
        if asked & set(stages_of_key) and not unread.get(key):
            yield key, operator.attrgetter(key)(experiment)


@dataclasses.dataclass(frozen=True)
class Fetching:
    """Fetches what one key names; progress is shown in MB."""

    staging: Path
    key: str
    quiet: bool
    check: Callable[[], None]
    said: Callable[[str, str], None]

    def local(self, place: str) -> str:
        """The local path of one file or folder, as NAME=URL where it has a name of its own."""
        name, equals, url = place.rpartition('=')
        if not is_remote(url):
            return place
        folder, files = self._fetch(url)
        if not folder.is_file():
            _remove_others(folder, set(files))
        return f'{name}{equals}{folder}'

    def locals(self, place: str) -> list[str]:
        """The local paths of what a pattern names, in order; one path for a folder, which the reader judges."""
        if is_pattern(place) and is_remote(place):
            files = sorted(self._fetch(place)[1], key=by_numbers)  # as a pattern of local files
            return [str(file) for file in files if file.suffix != CHECKSUM]
        return [self.local(place)]

    def _fetch(self, url: str) -> tuple[Path, list[Path]]:
        """Bring files here that are new or have changed there; what the URL names, and all files in their order."""
        store, pattern = STORES.get(url.partition('://')[0].lower(), in_bucket)(url)
        there = store.find(pattern)
        if not there:
            raise InputError(f'{url}: no such object, and none matches it; correct --config.{self.key}')
        wanted = there | (store.find(pattern + CHECKSUM) if pattern else {})
        places = {name: local_place(self.staging, f'{store.mirror}/{name}') for name in wanted}
        self.staging.mkdir(parents=True, exist_ok=True)
        with open(self.staging / '.inputs.lock', 'w') as lock:
            while not locks(lock):  # another process of this host is fetching, perhaps the same
                self.check()
                time.sleep(SECONDS_BETWEEN_LOOKS)
            self._bring(store, wanted, places)
        if store.mirror != store.url:
            self.said(self.key, f'{store.url}/{pattern}'.rstrip('/'))
        return local_place(self.staging, f'{store.mirror}/{pattern}'), [places[name] for name in there]

    def _bring(
        self, store: Store | hub.Hub, wanted: dict[str, tuple[int, str]], places: dict[str, Path]
    ) -> None:
        missing = [n for n, (size, version) in wanted.items() if not _is_here(places[n], size, version)]
        total = sum(wanted[name][0] for name in missing) / 1e6
        progress = Progress(f'{self.key}: fetching from {store.url}', total, 'MB', self.quiet or not missing)
        for name in missing:
            size, version = wanted[name]
            place = places[name]
            # The record goes first and comes last: after a kill the file counts as not fetched.
            _record(place).unlink(missing_ok=True)
            store.download([(name, place, size, '')])
            if store.find(name).get(name) != (size, version):
                raise InputError(f'{store.url}/{name}: changed while it was fetched; rerun the command')
            write_json(_record(place), {'bytes': size, 'version': version})
            progress.update(size / 1e6)
            self.check()


def local_place(staging: Path, url: str) -> Path:
    """Where the mirror of a URL lies: SCHEME/BUCKET/PATH below `staging`."""
    scheme, _, rest = url.partition('://')
    parts = [part for part in rest.split('/') if part]
    if any(part in ('.', '..') for part in parts):
        raise InputError(f'{url}: "." and ".." have no meaning in a bucket; write the path without them')
    return staging.joinpath(scheme.lower(), *parts)


def _record(place: Path) -> Path:
    return place.with_name(RECORD.format(place.name))


def _is_here(place: Path, size: int, version: str) -> bool:
    record = read_json(_record(place))
    return record == {'bytes': size, 'version': version} and place.is_file() and place.stat().st_size == size


def _remove_others(folder: Path, files: set[Path]) -> None:
    """A file that the bucket has no longer would still be read as part of its folder."""
    for file in folder.rglob('*'):
        if file.is_file() and not file.name.startswith('.') and file not in files:
            file.unlink()


def changed(old: Any, dotted: str, value: Any) -> Any:
    """A frozen configuration with another value of one key."""
    name, _, rest = dotted.partition('.')
    return dataclasses.replace(old, **{name: changed(getattr(old, name), rest, value) if rest else value})
