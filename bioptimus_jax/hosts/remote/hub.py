"""The Hugging Face hub, through its own client: one commit of a dataset as inputs, and lines for what goes wrong.

Endpoint, token and certificates are those of the environment, as for every program with that client (HF_ENDPOINT,
HF_TOKEN, HF_HUB_OFFLINE).
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.hosts.remote.store import fixed_part, is_pattern, pick

FORM = 'hf://datasets/OWNER/NAME[@REVISION]/PATH'
# The names of what the client raises, the narrower ones first.
MEANINGS = {
    'OfflineModeIsEnabled': 'HF_HUB_OFFLINE is set; unset it, or give files of this machine',
    'LocalTokenNotFoundError': 'there is no token; set HF_TOKEN',
    'GatedRepoError': 'access is refused; accept its terms on its page, and set HF_TOKEN to a token that may read it',
    'RepositoryNotFoundError': 'no such repository, or HF_TOKEN may not see it; correct the name, or set HF_TOKEN',
    'RevisionNotFoundError': 'no such revision; give a branch, a tag or a commit of it',
    'EntryNotFoundError': 'no such file or folder in it; correct the path',
}
STATUS = {401: 'HF_TOKEN is refused; set a valid one', 403: 'HF_TOKEN may not do this; set one that may'}
ELSE = 'check the network and HF_ENDPOINT, then rerun the same command'


@contextlib.contextmanager
def plain_errors(url: str) -> Iterator[None]:
    """One line for whatever the client raises: InputError."""
    try:
        yield
    except (ConfigError, InputError):
        raise
    except Exception as error:  # of the client, of its web client, of the answers of a server that is none
        raise InputError(f'{url}: {meaning(error)}') from error


def meaning(error: BaseException) -> str:
    """What an error of the client means, and what to do about it."""
    while True:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        status = getattr(getattr(error, 'response', None), 'status_code', 0)
        said = next((MEANINGS[name] for name in MEANINGS if name in kinds), None) or STATUS.get(status)
        if said:
            return said
        text = ' '.join(str(error).split())[:300] or type(error).__name__
        if type(error) is ValueError:  # what the hub says of a card
            return f'{text}; correct it'
        if not error.__cause__:  # of an upload in a thread
            return f'{text}; {ELSE}'
        error = error.__cause__


def parsed_url(url: str, form: str) -> Any:
    """The `type`, `id`, `revision` and `path_in_repo` of an hf:// URL. Raises ConfigError, which names the form."""
    from huggingface_hub import parse_hf_uri  # late: only those with such a URL need it

    try:
        return parse_hf_uri(url)
    except ValueError as error:
        raise ConfigError(f'{url}: is not understood; give {form}') from error


class Hub:
    """The files of one commit of a dataset; names are paths in it. Every method raises InputError.

    `url` names the commit, whatever branch or tag was asked for. `mirror` is the URL below which its files are kept
    here: the commit is above the name, so that a set is called as its dataset.
    """

    def __init__(self, name: str, revision: str | None):
        from huggingface_hub import HfApi
        from huggingface_hub.utils.tqdm import disable_progress_bars

        disable_progress_bars()  # whoever fetches shows one
        self.name, self.api = name, HfApi()
        with plain_errors(f'hf://datasets/{name}{"@" * bool(revision)}{revision or ""}'):
            self.commit = str(self.api.dataset_info(name, revision=revision).sha)
        self.url = f'hf://datasets/{name}@{self.commit}'
        owner, _, short = name.partition('/')
        self.mirror = f'hf://datasets/{owner}/{self.commit}/{short}'
        self._known: dict[str, dict[str, tuple[int, str]]] = {}  # of a commit: it does not change

    def find(self, pattern: str = '') -> dict[str, tuple[int, str]]:
        """Name -> (bytes, checksum), as `Store.find`."""
        if is_pattern(pattern):
            return pick(self._below(fixed_part(pattern)), pattern)
        if pattern not in self._known:
            with plain_errors(f'{self.url}/{pattern}'):
                named = self.api.get_paths_info(self.name, [pattern], **self._of()) if pattern else []
            found = _entries(named)
            self._known[pattern] = found if found or (pattern and not named) else self._below(pattern)
        return self._known[pattern]

    def _below(self, folder: str) -> dict[str, tuple[int, str]]:
        if folder not in self._known:
            with plain_errors(f'{self.url}/{folder}'):
                listed = self.api.list_repo_tree(self.name, folder or None, recursive=True, **self._of())
                found = _entries(listed)
            self._known |= {name: {name: entry} for name, entry in found.items()}
            self._known[folder] = found
        return self._known[folder]

    def download(
        self, files: Iterable[tuple[str, Path, int, str]], advance: Callable[[int], None] = lambda size: None
    ) -> None:
        """Download files; the client continues what was cut off. See `Store.download`."""
        for name, file, size, _ in files:
            # The client puts the name, with its folders, below the place that it is given.
            top = file.parents[name.count('/')]
            file.unlink(missing_ok=True)  # the client would keep a damaged one
            with plain_errors(f'{self.url}/{name}'):
                self.api.hf_hub_download(self.name, name, local_dir=top, **self._of())
            if file.stat().st_size != size:
                raise InputError(f'{self.url}/{name}: is not the {size:,} bytes that were listed; {ELSE}')
            advance(size)

    def _of(self) -> dict[str, Any]:
        return {'repo_type': 'dataset', 'revision': self.commit}


def _entries(listed: Iterable[Any]) -> dict[str, tuple[int, str]]:
    files = (one for one in listed if hasattr(one, 'size'))
    return {
        f.path: (f.size, f.lfs.sha256 if f.lfs else f.blob_id) for f in sorted(files, key=lambda f: f.path)
    }


def opened(url: str) -> tuple[Hub, str]:
    """The commit that a URL names, by default the newest one, and the path or pattern in it."""
    found = parsed_url(url, FORM)
    if found.type != 'dataset':
        raise ConfigError(
            f'{url}: is not a dataset; give {FORM}, and a model by its id, as config.source.path=OWNER/NAME'
        )
    return Hub(found.id, found.revision), found.path_in_repo.strip('/')
