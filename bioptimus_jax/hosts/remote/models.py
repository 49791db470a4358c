"""A model of the Hugging Face hub as a folder of this machine: the files that are needed, of one commit, in the cache
of the hub's own client.

Endpoint, token and cache are those of the environment, as for every program with that client (HF_ENDPOINT, HF_TOKEN,
HF_HOME, HF_HUB_OFFLINE).
"""

import dataclasses
import functools
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.remote.hub import meaning
from bioptimus_jax.records.kept import ENCODER, ENSEMBLE, HEAD, TENSORS, read_ensemble
from bioptimus_jax.storage.files import read_json

MAIN = 'main'
ID = re.compile(r'(\w[\w.-]*(?:/\w[\w.-]*)?)(?:@(\w[\w./-]*))?')
COMMIT = re.compile(r'[0-9a-f]{40}')
SAFE = re.compile(r'model(-\d+-of-\d+)?\.safetensors(\.index\.json)?')
PICKLED = re.compile(r'pytorch_model(-\d+-of-\d+)?\.bin(\.index\.json)?')
ONNX = re.compile(r'model\.onnx(\.data)?')
POOLING = re.compile(r'\d+_Pooling/config\.json')
WEIGHTS = ('model.safetensors', 'pytorch_model.bin', 'model.onnx')
"""Files of which one is in every whole copy of a model whose weights are not in several."""
BESIDE = ('.json', '.txt', '.model', '.md')
"""Endings of the files beside the weights: configuration, tokenizer, card; all of them in the first folder."""
TOKENIZER = re.compile(r'(tokenizer|vocab|merges).*|.*\.model')
"""Names of files of which one is in every whole copy: programs that read models alone leave copies without."""
ADAPTER = 'adapter_config.json'
SECONDS = 10
UNREACHED = (
    'OfflineModeIsEnabled',
    'LocalEntryNotFoundError',
    'ConnectError',
    'TimeoutException',
    'ProxyError',
)
"""The names of what the client raises where it reaches no hub, and of their classes."""
ABSENT = 'RepositoryNotFoundError'


@dataclasses.dataclass(frozen=True)
class HubModel:
    """A model of the hub by its id, and a branch, tag or commit of it."""

    name: str
    revision: str = MAIN

    def __str__(self) -> str:
        return self.name if self.revision == MAIN else f'{self.name}@{self.revision}'

    @property
    def is_commit(self) -> bool:
        """Whether the revision can never mean something else."""
        return bool(COMMIT.fullmatch(self.revision))


def hub_model(place: str) -> HubModel | None:
    """The model of the hub that `ID` or `ID@REVISION` names; None for a folder here and for what can be no id."""
    found = ID.fullmatch(place)
    return None if found is None or Path(place).exists() else HubModel(found[1], found[2] or MAIN)


def model_folder(place: str, named_in: str) -> Path:
    """The folder of a model: one of this machine, which goes first, or the files of a hub id.

    `named_in`: key or flag that names it. Raises InputError.
    """
    if Path(place).is_dir():
        return Path(place)
    wanted = hub_model(place)
    if wanted is None:
        raise InputError(f'{place}: no such folder; {named_in} must name a Hugging Face folder or a hub id')
    return downloaded(wanted)


@functools.cache
def downloaded(wanted: HubModel, weights: bool = True, asked: str = '') -> Path:
    """The folder of the hub's cache with all that is needed of a model, or all but its weights.

    It is the same one for as long as the program runs. What is in the cache is used where there is no network. `asked`:
    a file that the cache must hold as well, since other programs fetch less than all. Raises InputError.
    """
    if wanted.is_commit and (folder := in_cache(wanted, weights, asked)):
        return folder
    try:
        return _fetched(wanted, weights)
    except InputError:
        raise
    except Exception as error:  # of the client, of its web client, of the answers of a server that is none
        if _is_unreached(error) and (folder := in_cache(wanted, weights, asked)):
            return folder
        raise InputError(_refusal(wanted, error)) from error


def at_commit(place: str) -> str:
    """A hub id with the commit that it means now, and anything else as it is: what a config file keeps."""
    wanted = hub_model(place)
    return place if wanted is None else f'{wanted.name}@{commit_of(downloaded(wanted))}'


def commit_of(folder: Path) -> str:
    """The commit of a folder of the hub's cache, which is called so."""
    return folder.name


def newest(name: str) -> str | None:
    """The commit that the hub's main branch is at; None where it cannot be asked."""
    from huggingface_hub import HfApi

    try:
        return HfApi().model_info(name, timeout=SECONDS).sha
    except Exception:  # as above: then nothing is said of it
        return None


def configuration(place: str) -> Path | None:
    """A folder with at least the config.json of a model, without its weights; None where it cannot be had."""
    if Path(place).is_dir():
        return Path(place)
    wanted = hub_model(place)
    return None if wanted is None else _configuration(wanted)


@functools.cache
def _configuration(wanted: HubModel) -> Path | None:
    from huggingface_hub import HfApi, hf_hub_download, try_to_load_from_cache

    file = try_to_load_from_cache(wanted.name, 'config.json', revision=wanted.revision)
    if isinstance(file, str):
        return Path(file).parent
    try:
        # Asked first, as a download is tried again and again, with a warning each, where there is no network.
        HfApi().model_info(wanted.name, revision=wanted.revision, timeout=SECONDS)
        return Path(hf_hub_download(wanted.name, 'config.json', revision=wanted.revision)).parent
    except Exception:  # as above: a plan is made without
        return None


def in_cache(wanted: HubModel, weights: bool = True, asked: str = '') -> Path | None:
    """The folder of the hub's cache that holds all of a model, else None.

    All: configuration, tokenizer, `weights` and the file `asked`.
    """
    from huggingface_hub import try_to_load_from_cache

    file = try_to_load_from_cache(wanted.name, 'config.json', revision=wanted.revision)
    folder = Path(file).parent if isinstance(file, str) else None
    return folder if folder and (folder / asked).exists() and _is_complete(folder, weights) else None


def needed_files(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """What is downloaded of a model's files: those beside the weights, and the weights in one form.

    Other forms of the same weights (TensorFlow, Flax, OpenVINO, mostly ONNX) are in other files or folders, and how
    vectors of sentences are pooled in one of its own. A kept model that transformers has no class for is in several
    folders (`records.kept`), all of which are needed.
    """
    names = list(names)
    if {HEAD, ENSEMBLE}.intersection(names):
        weights = [name for name in names if name.endswith('.safetensors')]
        return [name for name in names if name.endswith(BESIDE)], weights
    top = [name for name in names if '/' not in name]
    forms = (SAFE, PICKLED, ONNX)
    every = ([n for n in top if form.fullmatch(n)] for form in forms)
    weights = next(filter(None, every), [])
    beside = [n for n in top if n.endswith(BESIDE) and not any(form.fullmatch(n) for form in forms)]
    return beside + [n for n in names if POOLING.fullmatch(n)], weights


def _fetched(wanted: HubModel, with_weights: bool) -> Path:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

    listed = HfApi().model_info(wanted.name, revision=wanted.revision, timeout=SECONDS)
    beside, weights = needed_files(one.rfilename for one in listed.siblings or ())
    if 'config.json' not in beside or not (weights or ADAPTER in beside):
        raise InputError(
            f'{wanted}: the model on the hub has no config.json, or no weights as safetensors, of PyTorch or as '
            'ONNX in its first folder; choose another one'
        )
    # It draws bars into logs, too, where nobody says otherwise.
    (enable_progress_bars if sys.stderr.isatty() or 'ipykernel' in sys.modules else disable_progress_bars)()
    # The weights come last, so that a copy with weights is a whole one.
    folder = Path(snapshot_download(wanted.name, revision=wanted.revision, allow_patterns=beside))
    if weights and with_weights:
        snapshot_download(wanted.name, revision=commit_of(folder), allow_patterns=weights)
    return folder


def _is_complete(folder: Path, weights: bool) -> bool:
    here = {path.name for path in folder.iterdir()}
    if not any(map(TOKENIZER.fullmatch, here)) or not weights:
        return any(map(TOKENIZER.fullmatch, here))
    return _has_weights(folder)


def _has_weights(folder: Path) -> bool:
    """Whether all weights of a model are there, also of one in several folders (`records.kept`)."""
    if not folder.is_dir():
        return False
    if ensemble := read_ensemble(folder):
        return all(_has_weights(folder / name) for name in ensemble.members)
    if (folder / HEAD).is_file():
        return (folder / TENSORS).is_file() and _has_weights(folder / ENCODER)
    here = {path.name for path in folder.iterdir()}
    first = next((n for n in sorted(here) if n in WEIGHTS), '')
    index = next((n for n in sorted(here, reverse=True) if n.endswith('.index.json')), '')
    if index and not first:
        listed: Any = (read_json(folder / index) or {}).get('weight_map') or {'': ''}
        first = index if here.issuperset(listed.values()) else ''
    return bool(first)


def _is_unreached(error: BaseException) -> bool:
    while True:
        if {kind.__name__ for kind in type(error).__mro__} & set(UNREACHED):
            return True
        if not error.__cause__:
            return False
        error = error.__cause__


def _refusal(wanted: HubModel, error: BaseException) -> str:
    """One line: there is no such folder, what the hub says, and the way out."""
    said = f'{wanted}: no such folder here, and '
    if type(error).__name__ == ABSENT:
        return (
            f'{said}no such model on the hub, or HF_TOKEN may not see it; correct the name, or set HF_TOKEN'
        )
    if not _is_unreached(error):
        return f'{wanted}: {meaning(error)}'
    import huggingface_hub.constants as settings

    why = (
        'HF_HUB_OFFLINE is set' if settings.HF_HUB_OFFLINE else 'no answer; check the network and HF_ENDPOINT'
    )
    revision = '' if wanted.revision == MAIN else f' --revision {shlex.quote(wanted.revision)}'
    return (
        f'{said}no whole copy in the cache, and the hub is out of reach ({why}); on a machine with a network run '
        f'`hf download {wanted.name}{revision} --local-dir {wanted.name.rpartition("/")[2]}`, bring that folder here '
        'and give its path'
    )
