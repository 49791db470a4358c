"""One folder of an object store, through obstore: S3, Google Cloud Storage, Azure, or file:// on a mounted disk.

An object is replaced as a whole: nobody reads half of one. The library retries by itself, with growing pauses; what is
still an error then becomes one line with the remedy.
"""

import concurrent.futures
import contextlib
import datetime
import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import FULL_DISK, ConfigError, InputError, Stopped
from bioptimus_jax.storage.files import sha256, temporary

SCHEME = re.compile(r'[a-z][a-z0-9+.-]*://', re.IGNORECASE)
BATCH_FILES, BATCH_BYTES = 64, 2**30  # transferred at once: progress is told, and a stop is seen, in between
AT_ONCE = 16
RETRIES = {'max_retries': 8, 'retry_timeout': datetime.timedelta(seconds=60)}
CREDENTIALS = (
    's3: set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION; gs: `gcloud auth application-default login`; or '
    'give the machine a role that may use the bucket'
)
REFUSED = re.compile(
    r'credential|service account|denied|forbidden|unauthorized|\b40[13]\b|metadata|oauth|token|signature',
    re.IGNORECASE,
)
ADDRESS = re.compile(r'https?://(?!metadata|169\.254)\S+')  # but those that give credentials
MISSING = ('NoSuchBucket', 'bucket does not exist', 'Bucket not found')
WILDCARDS = '*?['
FOLDER_OF_HADOOP = '_$folder$'


def is_remote(place: str) -> bool:
    """Whether a path is a URL such as gs://bucket/folder."""
    return SCHEME.match(str(place)) is not None


@contextlib.contextmanager
def plain_errors(url: str) -> Iterator[None]:
    """One line for whatever the library raises: ConfigError where it is not installed, else InputError."""
    try:
        yield
    except (ConfigError, InputError, Stopped):
        raise
    except ImportError as error:
        raise ConfigError(f"{url}: obstore is not installed; pip install 'bioptimus-jax[remote]'") from error
    except Exception as error:  # every kind of store has kinds of its own
        if isinstance(error, OSError) and error.errno in FULL_DISK:
            raise
        raise InputError(f'{url}: {_what_to_do(error)}') from error


def _what_to_do(error: Exception) -> str:
    text = ' '.join(str(error).partition('Debug source')[0].split())[:300] or type(error).__name__
    kind = type(error).__name__
    if isinstance(error, FileNotFoundError) or any(word in text for word in MISSING):
        return f'no such bucket or object ({text}); correct the URL, or make the bucket first'
    if kind in ('PermissionDeniedError', 'UnauthenticatedError') or REFUSED.search(ADDRESS.sub('', text)):
        return f'access is refused or credentials are missing ({text}); {CREDENTIALS}'
    return f'cannot be reached ({text}); check URL and network, then rerun the same command'


class Store:
    """The folder at `url`; names are paths below it. Every method raises InputError (see `plain_errors`).

    `mirror` is the URL below which its files are kept here.
    """

    def __init__(self, url: str):
        self.url = self.mirror = url.rstrip('/') if url.partition('://')[2].strip('/') else url
        with plain_errors(self.url):
            import obstore.store  # late: only those with a bucket need it

            local = self.url.startswith('file:')
            options: Any = {'mkdir': True} if local else {'retry_config': RETRIES}
            try:
                self.objects = obstore.store.from_url(self.url, **options)
            except Exception as error:
                if 'Unable to recognise' not in str(error) and 'nknown' not in str(error):
                    raise
                raise ConfigError(
                    f'{self.url}: not a known kind of storage; give gs://BUCKET/FOLDER or s3://BUCKET/FOLDER'
                ) from error

    def read(self, name: str) -> bytes | None:
        """The bytes of an object, or None where there is none."""
        with plain_errors(f'{self.url}/{name}'):
            try:
                return bytes(self.objects.get(name).bytes())
            except FileNotFoundError as error:
                if any(word in str(error) for word in MISSING):
                    raise
                return None

    def write(self, name: str, content: bytes) -> None:
        """Replace an object."""
        with plain_errors(f'{self.url}/{name}'):
            self.objects.put(name, content)

    def upload(
        self, files: Iterable[tuple[Path, str, int]], advance: Callable[[int], None] = lambda size: None
    ) -> None:
        """Put (file, name, bytes) there; `advance` is told the bytes that are through."""

        def put(file: Path, name: str, size: int) -> int:
            with plain_errors(f'{self.url}/{name}'):
                self.objects.put(name, file)
            return size

        _side_by_side(put, list(files), advance)

    def download(
        self, files: Iterable[tuple[str, Path, int, str]], advance: Callable[[int], None] = lambda size: None
    ) -> None:
        """Fetch (name, file, bytes, SHA-256 or '' where it is not known); a file appears when it is whole and right."""

        def get(name: str, file: Path, size: int, checksum: str) -> int:
            hidden = temporary(file)
            hidden.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(hidden, 'wb') as target, plain_errors(f'{self.url}/{name}'):
                    for chunk in self.objects.get(name).stream():
                        target.write(chunk)
                if hidden.stat().st_size != size or (checksum and sha256(hidden) != checksum):
                    raise InputError(
                        f'{self.url}/{name}: is not the {size:,} bytes that were put there; restore it, or delete '
                        'the run folder to rebuild it'
                    )
                os.replace(hidden, file)
            finally:
                hidden.unlink(missing_ok=True)
            return size

        _side_by_side(get, list(files), advance)

    def copy(self, source: str, target: str) -> None:
        """Copy within the store: nothing passes through this machine."""
        with plain_errors(f'{self.url}/{source}'):
            self.objects.copy(source, target)

    def remove(self, names: Sequence[str]) -> None:
        """Delete objects in this order; those that are gone already are no error."""
        for name in names:
            with plain_errors(f'{self.url}/{name}'), contextlib.suppress(FileNotFoundError):
                self.objects.delete(name)

    def find(self, pattern: str = '') -> dict[str, tuple[int, str]]:
        """Name -> (bytes, version) of the object `pattern`, or of those that match it, or of all in such a folder.

        The version is the store's ETag, generation or time of change: another one means other content.
        """
        folder, named = fixed_part(pattern), not is_pattern(pattern)
        with plain_errors(f'{self.url}/{pattern}'.rstrip('/')):
            found = [o for part in self.objects.list(folder or None) for o in part]
            if named and pattern:  # a prefix is a folder: the object of that name is not in it
                with contextlib.suppress(FileNotFoundError):
                    found.append(self.objects.head(pattern))
            files = self._without_folders(found)
        entries = {o['path']: (o['size'], _version(o)) for o in sorted(files, key=lambda o: o['path'])}
        return entries if named else pick(entries, pattern)

    def _without_folders(self, found: Sequence[Any]) -> list[Any]:
        """The entries without the empty objects by which consoles and file systems say that there is a folder.

        The library hides the slash that their keys end in, but asked for the name without it, the store has none.
        """
        above = {parent for o in found for parent in _folders_of(o['path'])}

        def is_folder(path: str) -> bool:
            if not path or path in above or path.endswith(FOLDER_OF_HADOOP):
                return True
            try:
                self.objects.head(path)
            except FileNotFoundError:
                return True
            return False

        return [o for o in found if o['size'] or not is_folder(o['path'])]


def is_pattern(place: str) -> bool:
    """Whether a path has wildcards."""
    return any(character in place for character in WILDCARDS)


def fixed_part(pattern: str) -> str:
    """The folder that holds whatever a pattern matches; a path without wildcards as it is."""
    fixed = re.split(f'[{re.escape(WILDCARDS)}]', pattern)[0]
    return pattern if fixed == pattern else fixed.rpartition('/')[0]


def pick(entries: dict[str, tuple[int, str]], pattern: str) -> dict[str, tuple[int, str]]:
    """The entries whose names match."""
    return {name: entry for name, entry in entries.items() if _matches(name, pattern)}


def in_bucket(url: str) -> tuple[Store, str]:
    """The bucket that a URL names, and the path or pattern in it."""
    scheme, _, rest = url.partition('://')
    bucket, _, pattern = rest.partition('/')
    return Store(f'{scheme}://{bucket}'), pattern.rstrip('/')


def on_disk(url: str) -> tuple[Store, str]:
    """Store and path of a file:// URL, which has no bucket (`in_bucket`)."""
    scheme, _, path = url.partition('://')
    return Store(f'{scheme}:///'), path.strip('/')


def _folders_of(path: str) -> Iterator[str]:
    parts = path.split('/')
    return ('/'.join(parts[:number]) for number in range(1, len(parts)))


def _version(found: Any) -> str:
    return str(found['version'] or found['e_tag'] or found['last_modified'].isoformat())


def _matches(path: str, pattern: str) -> bool:
    """Whether a path matches, as in a shell: * and ? stay within a folder, ** does not, and none of them finds a hidden
    file."""
    parts, wanted = path.split('/'), pattern.split('/')

    def match(at: int, want: int) -> bool:
        if want == len(wanted):
            return at == len(parts)
        if wanted[want] == '**':
            return match(at, want + 1) or (at < len(parts) and parts[at][:1] != '.' and match(at + 1, want))
        if at == len(parts) or (parts[at].startswith('.') and not wanted[want].startswith('.')):
            return False
        return fnmatch.fnmatchcase(parts[at], wanted[want]) and match(at + 1, want + 1)

    return match(0, 0)


def _side_by_side(
    function: Callable[..., int], tasks: Sequence[tuple], advance: Callable[[int], None]
) -> None:
    """Threads, since a store answers many requests at once; the first error, after what had begun is through."""
    batch: list[tuple] = []
    size = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for number, task in enumerate(tasks, 1):
            batch.append(task)
            size += next(part for part in task if isinstance(part, int))
            if len(batch) >= BATCH_FILES or size >= BATCH_BYTES or number == len(tasks):
                for done in pool.map(lambda arguments: function(*arguments), batch):
                    advance(done)
                batch, size = [], 0
