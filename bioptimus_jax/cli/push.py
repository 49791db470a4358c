"""What `bioptimus push` sends to the Hugging Face hub: which files, why not, and one commit of them.

A folder is sent as its stage left it: what no stage wrote, or somebody changed since, is refused. The card alone may be
edited.
"""

import dataclasses
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.export.adapters import for_hub
from bioptimus_jax.export.card import card_on_hub
from bioptimus_jax.export.sums import SUMS, as_lines, read_sums
from bioptimus_jax.hosts.remote.hub import parsed_url, plain_errors
from bioptimus_jax.hosts.remote.models import ADAPTER, ID, MAIN
from bioptimus_jax.inference.model import model_in
from bioptimus_jax.inference.onnx.session import ABOUT as OF_ONNX
from bioptimus_jax.records.export import ABOUT
from bioptimus_jax.run.manifests import MANIFEST, STARTED, read_manifest
from bioptimus_jax.storage.files import read_json, sha256

CARD, CARDS = 'README.md', 'cards'
DEPTH = 5  # of a fine-tuned model below its stage
SECRET = re.compile(
    rb'\bhf_[A-Za-z0-9]{30,}|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|-----BEGIN [A-Z ]*PRIVATE KEY-----'
)
BINARY = ('.safetensors', '.bin', '.onnx', '.data')
NAME = re.compile(r'\w[\w./-]*')
"""Names of branches and tags by which a model may be read here, too."""


@dataclasses.dataclass(frozen=True)
class Repository:
    """What a stage makes: the `kind` of repository for it, and `form`, how that is named. `sdk`: of a Space."""

    kind: str
    form: str
    sdk: str | None = None


MODEL, PAGE = (
    Repository('model', 'hf://OWNER/NAME[@BRANCH]'),
    Repository('space', 'hf://spaces/OWNER/NAME', 'static'),
)
REPOSITORIES = {'export': MODEL, 'finetune': MODEL, 'report': PAGE}
"""Kind of repository by stage. A report is a static Space, which shows its index.html."""


@dataclasses.dataclass(frozen=True)
class Place:
    """Where files go: the repository `name`, one of its branches (empty: main), and a tag for the commit, if any."""

    name: str
    branch: str = ''
    tag: str = ''

    @property
    def revision(self) -> str:
        """What those who read the files give; empty for what they get without."""
        return self.tag or self.branch


@dataclasses.dataclass(frozen=True)
class Parcel:
    """What is sent: name there -> a file, or bytes that were made for it."""

    folder: Path
    kind: Repository
    files: Mapping[str, Path | bytes]
    licence: str

    def for_place(self, place: 'Place', base: str = '') -> 'Parcel':
        """The same with a card that gets the files from where they will be; of an adapter, for the model `base` there.

        Raises ConfigError for an adapter without a base, and for a base of something else.
        """
        card, adapter = self.files.get(CARD), self.files.get(ADAPTER)
        changed: dict[str, str] = {}
        if adapter or base:
            _check_base(self.folder, bool(adapter), base)
        if isinstance(adapter, Path):
            changed = for_hub(adapter.parent, base, place.name, place.revision)
        elif isinstance(card, Path):
            changed = {CARD: card_on_hub(card.read_text('utf-8'), place.name, place.revision)}
        files = {name: text.encode() for name, text in changed.items()}
        if isinstance(sums := self.files.get(SUMS), Path):
            known = read_sums(sums.parent) | {
                name: hashlib.sha256(text).hexdigest() for name, text in files.items()
            }
            files[SUMS] = as_lines(known).encode()
        return dataclasses.replace(self, files={**self.files, **files})

    def lines(self, to: str, private: bool) -> list[str]:
        """What would be sent, in words."""
        sizes = {n: f.stat().st_size if isinstance(f, Path) else len(f) for n, f in self.files.items()}
        seen = 'private' if private else 'public, unless it is there and private'
        width = max(map(len, sizes))
        return [
            f'push: {self.folder} -> {to} ({self.kind.kind}, {seen})',
            *(f'  {name:{width}}  {size:>15,} bytes' for name, size in sizes.items()),
            f'push: {len(sizes)} files, {sum(sizes.values()):,} bytes; licence on the card: {self.licence or "none"}',
        ]


def _check_base(folder: Path, is_adapter: bool, base: str) -> None:
    """Raise ConfigError where an adapter is not given the model of the hub that it is for, or something else is."""
    if not is_adapter:
        raise ConfigError(f'--base={base}: is for an adapter, and {folder} is none; leave it out')
    if not base:
        raise ConfigError(
            f'--base: is missing; {folder} is an adapter, and the model that it is for is a folder here: push that '
            'one, too, and say where it is, as --base=OWNER/NAME'
        )
    if '@' in base or not ID.fullmatch(base):
        raise ConfigError(f'--base={base}: give the id of a model of the hub, OWNER/NAME')


def parcel(what: Path) -> Parcel:
    """The files of a model or report, each as its stage wrote it, or a card. Raises InputError for anything else."""
    alone = what.is_file() and (what.name == CARD or what.parent.name == CARDS)
    if not alone and not (what / 'index.html').is_file():
        what = model_in(what)
    stage, listed = _listed(what.parent if alone else what)
    if stage not in REPOSITORIES or not (what.name in listed if alone else listed):
        raise InputError(
            f'{what}: is not an export, kept model or report of this program; give RUN/export/PHASE, a model that '
            '--config.finetune.keep=best has kept, one as ONNX, RUN/report, or a card of RUN/report/cards'
        )
    if alone:
        _check_secrets(what)
        return _with_card(Parcel(what, MODEL, {CARD: what}, ''))
    return _with_card(Parcel(what, REPOSITORIES[stage], _checked(what, listed), ''))


def _listed(what: Path) -> tuple[str, dict[str, str]]:
    """The stage that has made a folder, and its files with their SHA-256. Raises InputError for an unfinished one."""
    here = what.resolve()
    for place in (here, *here.parents[:DEPTH]):
        finished = (place / MANIFEST).is_file()
        if (place / STARTED).is_file() and not finished:
            raise InputError(
                f'{place}: is not finished (no {MANIFEST}); run `bioptimus {place.name}` again first'
            )
        if finished and (record := read_manifest(place)):
            below = '' if place == here else f'{here.relative_to(place)}/'
            files = record.files.items()
            return str(record.stage), {
                name[len(below) :]: entry.sha256 for name, entry in files if name.startswith(below)
            }
    about = any(read_json(what / name) for name in (ABOUT, OF_ONNX))
    if (what / SUMS).is_file() and about:  # merged, of another form, or copied
        return 'export', read_sums(what) | {SUMS: sha256(what / SUMS)}
    return '', {}


def _checked(folder: Path, listed: Mapping[str, str]) -> dict[str, Path | bytes]:
    """The files of a folder, all of which are listed with that checksum, and none of which tells a secret."""
    found: dict[str, Path | bytes] = {}
    for place, folders, names in os.walk(folder):
        # `os.walk` lists a link to a folder among the folders, and does not go into it.
        for name in sorted([*names, *(f for f in folders if Path(place, f).is_symlink())]):
            file = Path(place, name)
            known = str(file.relative_to(folder))
            if file.is_symlink():
                raise InputError(f'{file}: is a link; only what a stage wrote is sent: remove it')
            if known == MANIFEST and known not in listed:
                continue
            if known not in listed:
                raise InputError(f'{file}: no stage wrote it; only what a stage wrote is sent: remove it')
            if known != CARD and sha256(file) != listed[known]:
                raise InputError(f'{file}: is not what its stage wrote; rebuild it, or restore it')
            _check_secrets(file)
            found[known] = file
    if missing := sorted(set(listed) - set(found) - {CARD}):
        raise InputError(f'{folder / missing[0]}: is missing; restore it, or make the folder again')
    return dict(sorted(found.items()))


def _check_secrets(file: Path) -> None:
    if file.suffix not in BINARY and (secret := SECRET.search(file.read_bytes())):
        raise InputError(f'{file}: seems to hold a secret ({secret[0][:4].decode()}...); take it out')


def _with_card(made: Parcel) -> Parcel:
    """The parcel with the licence of its card; a report gets a card, which says how the hub shows it."""
    from huggingface_hub import ModelCard, SpaceCardData

    if made.kind.sdk:
        title = f'{made.folder.resolve().parent.name}: report'
        data = SpaceCardData(title=title, sdk=made.kind.sdk, app_file='index.html', tags=['bioptimus-jax'])
        text = f'---\n{data.to_yaml()}\n---\n\n# {title}\n\nOf a run of bioptimus-jax.\n'
        return dataclasses.replace(made, files={CARD: text.encode(), **made.files})
    card = made.files.get(CARD)
    if not isinstance(card, Path):
        raise InputError(f'{made.folder}: has no card ({CARD}); restore it, a model is not sent without one')
    try:
        said: Any = ModelCard.load(card, ignore_metadata_errors=True).data.to_dict().get('license')
    except Exception as error:  # of YAML, and of what a card may hold
        raise InputError(
            f'{card}: its first lines are not metadata ({str(error).splitlines()[0]})'
        ) from error
    return dataclasses.replace(made, licence=str(said or ''))


def destination(to: str, tag: str, kind: Repository) -> Place:
    """The repository and branch of an hf:// URL for this kind. Raises ConfigError."""
    found = parsed_url(to, kind.form) if to.startswith('hf://') else None
    if not found or found.type != kind.kind or found.path_in_repo or (found.revision and kind.sdk):
        raise ConfigError(f'--to={to}: give {kind.form} for a {kind.kind}')
    for flag, name in (('--to', found.revision or ''), ('--tag', tag)):
        if name and not NAME.fullmatch(name):
            raise ConfigError(f'{flag}: {name!r} cannot be the name of a branch or a tag; choose another')
    branch = found.revision or ''
    return Place(str(found.id), '' if branch == MAIN else branch, tag)


def send(made: Parcel, place: Place, private: bool) -> str:
    """Make repository and branch if they are not there, and put the files in it by one commit; where they are then.

    Other files that are there stay. Raises InputError, also where it is public and should be private, and for a tag
    that is there.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    api, kind, name = HfApi(), made.kind.kind, place.name
    with plain_errors(made.kind.form.partition('[')[0].replace('OWNER/NAME', name)):
        url = api.create_repo(
            name, repo_type=kind, private=private or None, exist_ok=True, space_sdk=made.kind.sdk
        )
        if private and not api.repo_info(name, repo_type=kind).private:
            raise InputError(f'{url}: is there and public; make it private there, or leave out --private')
        if place.revision:
            _prepare(api, place, kind, str(url))
        files = [CommitOperationAdd(there, file) for there, file in made.files.items()]
        message = f'{made.kind.kind} of bioptimus-jax'
        branch = place.branch or None
        done = api.create_commit(name, files, commit_message=message, repo_type=kind, revision=branch)
        if place.tag:
            api.create_tag(name, tag=place.tag, revision=done.oid, repo_type=kind)
    said = ''.join(f'{word} {one}, ' for word, one in (('branch', place.branch), ('tag', place.tag)) if one)
    return f'{url} ({said}commit {done.oid})'


def _prepare(api: Any, place: Place, kind: str, url: str) -> None:
    """Make the branch if it is not there. Raises InputError for names that mean something else there."""
    refs = api.list_repo_refs(place.name, repo_type=kind)
    tags, branches = ({one.name for one in some} for some in (refs.tags, refs.branches))
    if place.branch in tags:
        raise InputError(f'{url}: {place.branch} is a tag there, and tags stay as they are; name a branch')
    if place.tag in tags:
        raise InputError(f'{url}: has a tag {place.tag} already, which stays as it is; choose another')
    if place.branch and place.branch not in branches:
        api.create_branch(place.name, branch=place.branch, repo_type=kind)
