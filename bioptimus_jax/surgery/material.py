"""What rows of new tokens are made of: the source's states, read once for every setting that wants them.

N: new tokens, M: tokens of the source that something is fitted on, C: layers read, D: hidden size, V: source tokens.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.schema import WITH_CONTEXTS, WITH_STATES, Surgery
from bioptimus_jax.surgery import shared
from bioptimus_jax.surgery.reading import Occurrences, Reading, choose_occurrences, read_alone, read_contexts
from bioptimus_jax.vocab.contexts import Contexts

Sums = Callable[[Loaded, Reading, Sequence[int], str], np.ndarray]
"""Sums of states over contexts, [targets, C * D], of a source, a reading and layers; and what to call the work."""


@dataclasses.dataclass(frozen=True)
class Fitted:
    """Context means of tokens of the source: ids [M] and states [M, C, D]."""

    ids: np.ndarray
    states: np.ndarray


@dataclasses.dataclass(frozen=True)
class Material:
    """Everything that `synthesis.make` needs, for the settings that it was gathered for.

    `alone` holds, by pooling, context-free states [N, C, D]; `sums`, by (pooling, contexts, max_contexts), sums over
    contexts [N, C, D] with the number of contexts [N]; `pieces` and `respelled` what the two maps are fitted on.
    `layers` are those that were read of a source that has `depth`; `windows` counts the sentences encoded for the new
    tokens.
    """

    table: np.ndarray
    spellings: list[list[int]]
    depth: int
    layers: tuple[int, ...]
    alone: dict[str, np.ndarray]
    sums: dict[tuple[str, str, int], tuple[np.ndarray, np.ndarray]]
    pieces: Fitted | None
    respelled: Fitted | None
    windows: int

    @property
    def known(self) -> np.ndarray:
        """Which tokens the source can spell: bool [N]."""
        return np.array([bool(pieces) for pieces in self.spellings], bool)

    def of_layers(self, states_xCxD: np.ndarray, settings: Surgery) -> np.ndarray:
        """Mean over the layers that a setting reads: [..., D]."""
        chosen = [self.layers.index(number) for number in _read(settings, self.depth)]
        return states_xCxD[..., chosen, :].mean(axis=-2)


def gather(
    source: Loaded,
    tokens: Sequence[str],
    contexts: Contexts | None,
    wanted: Sequence[Surgery],
    seed: int,
    sums: Sums,
) -> Material:
    """Read every state that the settings want; contexts are encoded in one pass, however many settings there are.

    Raises ConfigError for a layer that the source does not have.
    """
    spellings = [source.subwords.spell_token(token) for token in tokens]
    layers, alone = _layers(source, wanted), {}
    for pooling in sorted({s.pooling for s in wanted if s.strategy in WITH_STATES}):
        read = read_alone(source.subwords, source.capacity, spellings, pooling)
        alone[pooling] = _states(sums(source, read, layers, 'tokens alone'), layers)
    material = Material(
        source.table(), spellings, source.architecture.layers, layers, alone, {}, None, None, 0
    )
    if contexts is None or not any(s.strategy in WITH_CONTEXTS for s in wanted):
        return material
    return _with_contexts(material, source, tokens, contexts, wanted, seed, sums)


def middle(layers: int) -> tuple[int, int]:
    """The two layers in the middle of so many; of a single one, the embeddings and it."""
    return ((layers + 1) // 2, (layers + 1) // 2 + 1) if layers > 1 else (0, 1)


def _layers(source: Loaded, wanted: Sequence[Surgery]) -> tuple[int, ...]:
    """The layers that any setting reads."""
    return layers_read(wanted, source.architecture.layers, str(source.folder))


def layers_read(wanted: Sequence[Surgery], last: int, owner: str) -> tuple[int, ...]:
    """The layers that any setting reads of a source that has `last`. Raises ConfigError, which names its `owner`."""
    named = {n for s in wanted if s.strategy in WITH_STATES for n in _read(s, last)}
    if max(named, default=0) > last:
        raise ConfigError(
            f'config.surgery.layers: {max(named)}, but {owner} has {last} layers; give 0 to {last}'
        )
    return tuple(sorted(named))


def _read(settings: Surgery, last: int) -> list[int]:
    usual = (-1,) if settings.strategy == 'averaged_last' else middle(last)
    return [last if number < 0 else number for number in settings.layers or usual]


def _states(sums_Nx_: np.ndarray, layers: tuple[int, ...]) -> np.ndarray:
    return sums_Nx_.reshape(len(sums_Nx_), len(layers), sums_Nx_.shape[1] // max(len(layers), 1))


def _with_contexts(
    material: Material,
    source: Loaded,
    tokens: Sequence[str],
    contexts: Contexts,
    wanted: Sequence[Surgery],
    seed: int,
    sums: Sums,
) -> Material:
    count, layers = len(tokens), material.layers
    number_of = {token: number for number, token in enumerate(tokens)}
    arms = sorted({(s.pooling, s.contexts, s.max_contexts) for s in wanted if s.strategy in WITH_CONTEXTS})
    chosen: Occurrences = {}
    pooling: dict[int, str] = {}
    for arm, (name, choice, most) in enumerate(arms):
        found = choose_occurrences(contexts, number_of, choice, seed, most)
        _add(chosen, found, arm * count)
        pooling |= dict.fromkeys(range(arm * count, (arm + 1) * count), name)
    fitted, respelled = None, None
    ids: list[int] = []
    if any(s.map != 'none' or s.strategy == 'similarity' for s in wanted):
        pieces = shared.piece_occurrences(source.subwords, contexts.sentences, sorted(chosen), seed)
        if any(s.map == 'respelled' for s in wanted):
            respelled = _respelled(source, contexts.sentences, pieces, seed, layers, sums)
        if any(s.map == 'linear' or s.strategy == 'similarity' for s in wanted):
            ids = sorted({i for spans_of in pieces.values() for i in spans_of})
            _add(chosen, shared.restricted(pieces, {i: n for n, i in enumerate(ids)}), len(arms) * count)
    targets = len(arms) * count + len(ids)
    read = read_contexts(source.subwords, source.capacity, contexts.sentences, chosen, targets, pooling)
    states = _states(sums(source, read, layers, 'contexts'), layers)
    if ids:
        own = slice(len(arms) * count, targets)
        fitted = _fitted(np.array(ids), states[own], read.contexts[own])
    by_arm = {
        arm: (states[n * count : (n + 1) * count], read.contexts[n * count : (n + 1) * count])
        for n, arm in enumerate(arms)
    }
    return dataclasses.replace(
        material, sums=by_arm, pieces=fitted, respelled=respelled, windows=len(read.windows)
    )


def _add(chosen: Occurrences, more: Occurrences, first: int) -> None:
    """Put the occurrences of `more` into `chosen`, their targets numbered from `first`."""
    for sentence, spans_of in more.items():
        chosen.setdefault(sentence, {}).update({first + target: spans for target, spans in spans_of.items()})


def _fitted(ids_M: np.ndarray, sums_MxCxD: np.ndarray, contexts_M: np.ndarray) -> Fitted:
    found = contexts_M > 0
    return Fitted(ids_M[found], sums_MxCxD[found] / contexts_M[found, None, None])


def _respelled(
    source: Loaded,
    sentences: Sequence[str],
    pieces: Occurrences,
    seed: int,
    layers: tuple[int, ...],
    sums: Sums,
) -> Fitted:
    """Context means of tokens of the source where it has to spell them in other pieces."""
    parts = []
    folds = shared.respelled_folds(source.subwords, pieces, seed)
    for number, fold in enumerate(folds, 1):
        hiding = dataclasses.replace(source, subwords=source.subwords.without(fold))
        number_of = {i: n for n, i in enumerate(fold)}
        found = shared.restricted(pieces, number_of, shared.RESPELLED_CONTEXTS)
        read = read_contexts(hiding.subwords, source.capacity, sentences, found, len(fold))
        states = _states(sums(hiding, read, layers, f'respelled {number} of {len(folds)}'), layers)
        parts.append(_fitted(np.array(fold, np.int64), states, read.contexts))
    return Fitted(np.concatenate([p.ids for p in parts]), np.concatenate([p.states for p in parts]))
