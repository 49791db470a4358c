"""Which commit of the hub's models a run is made of: the one that is on record, or else the newest, which then is."""

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.remote.inputs import changed, read_by
from bioptimus_jax.hosts.remote.models import MAIN, HubModel, commit_of, downloaded, hub_model, newest

ConfigT = TypeVar('ConfigT')
MODELS = ('source.path', 'surgery.donor', 'curriculum.probe', 'finetune.models')
"""Keys whose models may be hub ids: with its commit an id stays an id, so that names and cards say what it is."""
VOCABULARIES = ('vocab.file', 'analysis.reference_vocab')
"""Keys whose tokenizers may be hub ids: they become folders without weights."""
TRAINING = 'pretrain'
"""The stage that reads the models of objectives."""
OF_A_RUN = ('initial', 'source')
"""Models of a run that are no phases."""
RECORDED = re.compile(r'hf://([^@]+)@([0-9a-f]{40})')


def recorded(addresses: Iterable[str]) -> dict[str, str]:
    """The commits of models, by their ids, that addresses on record name."""
    found = (RECORDED.fullmatch(address) for address in addresses)
    return {one[1]: one[2] for one in found if one and not one[1].startswith('datasets/')}


@dataclasses.dataclass(frozen=True)
class Pinning:
    """Puts a commit to hub ids; what is not in the cache is downloaded.

    `known`: id -> commit that a run is already made of, which it keeps; where the hub has moved on, `say` is told.
    `came_from` is told a key and an address. `made`: models of the run itself.
    """

    known: Mapping[str, str]
    came_from: Callable[[str, str], None]
    say: Callable[[str], None]
    made: frozenset[str]

    def model(self, key: str, entry: str) -> str:
        """An id with its commit, as NAME=ID@COMMIT where it has a name of its own; anything else as it is."""
        name, equals, place = entry.rpartition('=')
        wanted = None if place.partition('@')[0] in self.made else hub_model(place)
        if wanted is None:
            return entry
        try:
            return f'{name}{equals}{self.pinned(key, wanted)}'
        except InputError:
            if equals or '/' in place or key != 'finetune.models':
                raise
            return entry  # a phase, perhaps, that is misspelt: the stage says so

    def vocabulary(self, key: str, place: str) -> str:
        """The local path of the tokenizer of an id; anything else as it is."""
        wanted = hub_model(place)
        if wanted is None:
            return place
        return str(downloaded(self.pinned(key, wanted), weights=False))

    def pinned(self, key: str, wanted: HubModel) -> HubModel:
        """The model at the commit that the run has of it, or else at the one that its revision means now."""
        commit = self.known.get(wanted.name) if wanted.revision == MAIN else None
        if commit and (now := newest(wanted.name)) not in (None, commit):
            self.say(
                f'{key}: {wanted.name} has moved on the hub, to {now}; this run stays with {commit}, which it was '
                'begun with (a new --workdir takes the other one)'
            )
        if not commit:
            weights = key not in VOCABULARIES
            commit = wanted.revision if wanted.is_commit else commit_of(downloaded(wanted, weights))
        self.came_from(key, f'hf://{wanted.name}@{commit}')
        return HubModel(wanted.name, commit)


def with_pinned_models(
    experiment: ConfigT,
    stages: tuple[str, ...],
    known: Mapping[str, str],
    came_from: Callable[[str, str], None],
    say: Callable[[str], None],
) -> ConfigT:
    """The experiment with a commit for every hub id that its stages read; see `Pinning`. Raises InputError."""
    pinning = Pinning(known, came_from, say, frozenset((*getattr(experiment, 'phases', ()), *OF_A_RUN)))
    for key, value in read_by(experiment, stages):
        if key in VOCABULARIES:
            local: Any = pinning.vocabulary(key, value)
        elif key not in MODELS:
            continue
        elif isinstance(value, str):
            local = pinning.model(key, value)
        else:
            local = tuple(pinning.model(key, entry) for entry in value)
        if local != value:
            experiment = changed(experiment, key, local)
    objectives = getattr(experiment, 'objective', {}) if TRAINING in stages else {}
    pinned = {name: _with_pinned_paths(name, settings, pinning) for name, settings in objectives.items()}
    return changed(experiment, 'objective', pinned) if pinned != objectives else experiment


def _with_pinned_paths(name: str, settings: Any, pinning: Pinning) -> Any:
    """The settings of an objective, with commits for the models that they name."""
    paths = [field.name for field in dataclasses.fields(settings) if field.metadata.get('path')]
    named = {path: value for path in paths if (value := getattr(settings, path))}
    return dataclasses.replace(
        settings, **{path: pinning.model(f'objective.{name}.{path}', value) for path, value in named.items()}
    )
