"""What rows of new tokens are made of: the source's states, read once for every setting that wants them.

N: new tokens, M: anchors, C: layers read, D: hidden size, V: source tokens.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.surgery import shared, spelling
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.donor import Donated
from bioptimus_jax.surgery.initialisations import Inputs
from bioptimus_jax.surgery.reading import (
    Occurrences,
    StateReading,
    choose_occurrences,
    read_alone,
    read_contexts,
)
from bioptimus_jax.vocab.contexts import TokenContexts

Sums = Callable[[Loaded, StateReading, Sequence[int], str], np.ndarray]
"""Sums of states over contexts, [targets, C * D], of a source, a reading and layers; and what to call the work."""


@dataclasses.dataclass(frozen=True)
class Anchors:
    """Tokens of the source in the contexts, to compare with or to fit on: ids [M], context means [M, C, D]."""

    ids: np.ndarray
    states: np.ndarray


@dataclasses.dataclass(frozen=True)
class Material:
    """Everything that `synthesis.make` needs, for the settings that it was gathered for.

    `isolated` holds, by pooling, context-free states [N, C, D]; `sums`, by (pooling, contexts, max_contexts), sums over
    contexts [N, C, D] with the number of contexts [N]. `anchors` are spelled as themselves, `respelled` in other
    pieces. `layers` are those that were read of a source that has `depth`; `windows` counts the sentences encoded
    for the new tokens. `spelled` holds what characters predict of them and of `respelled`.
    `donated`: what a donor knows of them. `vocabulary`, `tokens`: the tokens of the source and the new ones.
    """

    table: np.ndarray
    spellings: list[list[int]]
    depth: int
    layers: tuple[int, ...]
    isolated: dict[str, np.ndarray]
    sums: dict[tuple[str, str, int], tuple[np.ndarray, np.ndarray]]
    anchors: Anchors | None = None
    respelled: Anchors | None = None
    windows: int = 0
    spelled: spelling.Spelled | None = None
    donated: Donated | None = None
    vocabulary: Sequence[str] = ()
    tokens: Sequence[str] = ()

    def inputs(
        self, settings: Surgery, seed: int, advance: Callable[[int], None] = lambda tokens: None
    ) -> Inputs:
        """What the initialisation of a setting asks for: means over the layers that the setting reads."""
        reads = settings.initialisation
        found: dict[str, Any] = {'advance': advance, 'vocabulary': self.vocabulary, 'tokens': self.tokens}
        contexts_N = np.zeros(len(self.spellings), np.int64)
        if reads.isolated_states:
            found['isolated'] = self._of_layers(self.isolated[settings.pooling], settings)
        if reads.contexts:
            sums_NxCxD, contexts_N = self.sums[settings.pooling, settings.contexts, settings.max_contexts]
            found['sums'] = self._of_layers(sums_NxCxD, settings)
        if reads.anchors and self.anchors is not None:
            found['anchor_states'], found['anchor_rows'] = self.pairs(self.anchors, settings)
        if reads.spelling and self.spelled is not None:
            found['spelled'] = self.spelled.rows
        if reads.donor and self.donated is not None:
            found['donor_vectors'], found['donor_anchors'] = self.donated.vectors, self.donated.anchors
            found['donor_rows'] = self.table[self.donated.ids]
        return Inputs(self.table, self.spellings, contexts_N, settings, seed, **found)

    def pairs(self, anchors: Anchors, settings: Surgery) -> tuple[np.ndarray, np.ndarray]:
        """States and input rows of anchors: [M, D] each."""
        return self._of_layers(anchors.states, settings), self.table[anchors.ids]

    def _of_layers(self, states_xCxD: np.ndarray, settings: Surgery) -> np.ndarray:
        # Layers are read once for all settings; each setting takes its own.
        chosen = [self.layers.index(number) for number in _read(settings, self.depth)]
        return states_xCxD[..., chosen, :].mean(axis=-2)


def gather(
    source: Loaded,
    tokens: Sequence[str],
    spellings: list[list[int]],
    contexts: TokenContexts | None,
    wanted: Sequence[Surgery],
    seed: int,
    sums: Sums,
    written: Sequence[str] = (),
) -> Material:
    """Read every state that the settings want; contexts are encoded in one pass, however many settings there are.

    `written`: the tokens for `spelling.fitted`, where a setting reads spelling. Raises ConfigError for a layer that the
    source does not have.
    """
    layers, alone = layers_read(wanted, source.architecture.layers, str(source.folder)), {}
    for pooling in sorted({s.pooling for s in wanted if s.initialisation.isolated_states}):
        read = read_alone(source.subwords, source.capacity, spellings, pooling)
        alone[pooling] = _states(sums(source, read, layers, 'tokens alone'), layers)
    material = Material(
        source.table(),
        spellings,
        source.architecture.layers,
        layers,
        alone,
        {},
        vocabulary=source.vocabulary,
        tokens=tokens,
    )
    # One pass over the contexts for all settings: to encode them is nearly all of the work.
    if contexts is not None and any(s.initialisation.contexts for s in wanted):
        material = _with_contexts(material, source, tokens, contexts, wanted, seed, sums)
    if not any(s.reads_spelling for s in wanted):
        return material
    anchors_M = np.zeros(0, np.int64) if material.respelled is None else material.respelled.ids
    made = spelling.spelled(source.subwords, material.table, written, anchors_M, seed)
    return dataclasses.replace(material, spelled=made)


def layers_read(wanted: Sequence[Surgery], last: int, owner: str) -> tuple[int, ...]:
    """The layers that any setting reads of a source that has `last`. Raises ConfigError, which names its `owner`."""
    named = {n for s in wanted if s.initialisation.states for n in _read(s, last)}
    if max(named, default=0) > last:
        raise ConfigError(
            f'config.surgery.layers: {max(named)}, but {owner} has {numbered(last, "layer")}; give 0 to {last}'
        )
    return tuple(sorted(named))


def _read(settings: Surgery, last: int) -> list[int]:
    chosen = settings.layers or settings.initialisation.usual_layers(last)
    return [last if number < 0 else number for number in chosen]


def _states(sums_Nx_: np.ndarray, layers: tuple[int, ...]) -> np.ndarray:
    return sums_Nx_.reshape(len(sums_Nx_), len(layers), sums_Nx_.shape[1] // max(len(layers), 1))


def _with_contexts(
    material: Material,
    source: Loaded,
    tokens: Sequence[str],
    contexts: TokenContexts,
    wanted: Sequence[Surgery],
    seed: int,
    sums: Sums,
) -> Material:
    count, layers = len(tokens), material.layers
    number_of = {token: number for number, token in enumerate(tokens)}
    # In a fixed order: sums that an interrupted attempt has kept are by the numbers of targets.
    arms = sorted({(s.pooling, s.contexts, s.max_contexts) for s in wanted if s.initialisation.contexts})
    # Each arm has targets of its own, so that a sentence of several arms is encoded once for all of them.
    targets_of = {arm: slice(n * count, (n + 1) * count) for n, arm in enumerate(arms)}
    chosen: Occurrences = {}
    pooling: dict[int, str] = {}
    for (name, choice, most), own in targets_of.items():
        _add(chosen, choose_occurrences(contexts, number_of, choice, seed, most), own.start)
        pooling |= dict.fromkeys(range(own.start, own.stop), name)
    fitted_on = {s.fitted_map.anchors for s in wanted}
    plain = 'anchors' in fitted_on or any(s.initialisation.anchors for s in wanted)
    anchors = respelled = None
    ids: list[int] = []
    if plain or 'respelled' in fitted_on:
        pieces = shared.piece_occurrences(source.subwords, contexts.sentences, sorted(chosen), seed)
        if 'respelled' in fitted_on:
            respelled = _respelled(source, contexts.sentences, pieces, seed, layers, sums)
        if plain:
            # Anchors are more targets of the same windows: the sentences are encoded once for both.
            ids = sorted({i for spans_of in pieces.values() for i in spans_of})
            _add(chosen, shared.restricted(pieces, {i: n for n, i in enumerate(ids)}), len(arms) * count)
    targets = len(arms) * count + len(ids)
    read = read_contexts(source.subwords, source.capacity, contexts.sentences, chosen, targets, pooling)
    states = _states(sums(source, read, layers, 'contexts'), layers)
    if ids:
        behind = slice(len(arms) * count, targets)
        anchors = _means(np.array(ids), states[behind], read.contexts[behind])
    by_arm = {arm: (states[own], read.contexts[own]) for arm, own in targets_of.items()}
    return dataclasses.replace(
        material, sums=by_arm, anchors=anchors, respelled=respelled, windows=len(read.windows)
    )


def _add(chosen: Occurrences, more: Occurrences, first: int) -> None:
    """Put the occurrences of `more` into `chosen`, their targets numbered from `first`."""
    for sentence, spans_of in more.items():
        chosen.setdefault(sentence, {}).update({first + target: spans for target, spans in spans_of.items()})


def _means(ids_M: np.ndarray, sums_MxCxD: np.ndarray, contexts_M: np.ndarray) -> Anchors:
    found = contexts_M > 0
    return Anchors(ids_M[found], sums_MxCxD[found] / contexts_M[found, None, None])


def _respelled(
    source: Loaded,
    sentences: Sequence[str],
    pieces: Occurrences,
    seed: int,
    layers: tuple[int, ...],
    sums: Sums,
) -> Anchors:
    """Context means of tokens of the source where it has to spell them in other pieces."""
    parts = []
    # In folds of few tokens: were all hidden at once, what is left would spell each of them in far smaller pieces.
    folds = shared.respelled_folds(source.subwords, pieces, seed)
    for number, fold in enumerate(folds, 1):
        hiding = dataclasses.replace(source, subwords=source.subwords.without(fold))
        number_of = {i: n for n, i in enumerate(fold)}
        found = shared.restricted(pieces, number_of, shared.RESPELLED_CONTEXTS)
        read = read_contexts(hiding.subwords, source.capacity, sentences, found, len(fold))
        states = _states(sums(hiding, read, layers, f'respelled {number} of {len(folds)}'), layers)
        parts.append(_means(np.array(fold, np.int64), states, read.contexts))
    return Anchors(np.concatenate([p.ids for p in parts]), np.concatenate([p.states for p in parts]))
