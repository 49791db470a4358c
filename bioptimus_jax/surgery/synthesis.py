"""Rows of new tokens from what was gathered for them: strategy, layers, map, shrinkage, scale and fallbacks.

N: new tokens, M: tokens of the source that something is fitted on, D: hidden size.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.progress import Progress
from bioptimus_jax.run import Run
from bioptimus_jax.schema import DRAWN, WITH_CONTEXTS, Surgery
from bioptimus_jax.surgery import account, comparators, distil, linear, rows
from bioptimus_jax.surgery.account import NewRows
from bioptimus_jax.surgery.material import Fitted, Material, Sums, gather
from bioptimus_jax.surgery.reading import Reading, choose_occurrences
from bioptimus_jax.surgery.source import sum_states
from bioptimus_jax.vocab.contexts import Contexts, load_contexts


@dataclasses.dataclass(frozen=True)
class Made:
    """Rows [N, D], the context-free rows beside them, contexts used [N], fallbacks; how both were scaled, and what
    the map is like."""

    rows: np.ndarray
    averaged: np.ndarray
    contexts: np.ndarray
    fallback: list[str | None]
    scale: str = 'literal'
    factor: float = 1.0
    map: dict[str, Any] | None = None


def synthesise(run: Run, source: Loaded, tokens: list[str]) -> NewRows:
    """Rows for tokens that the source does not have, as the configuration wants them."""
    settings, seed = run.config.surgery, run.config.seed
    run.log('surgery', 0, kind='start')
    contexts = load_contexts(run.folder('contexts')) if settings.strategy in WITH_CONTEXTS else None
    material = gather(
        source, tokens, contexts, [settings], seed, summing(run, settings.batch_pieces, keep=True)
    )
    made = make(settings, material, seed)
    if (made.scale, settings.scale) == ('rescaled', 'centred'):
        run.say(
            f'surgery: fewer than {rows.LEAST_ROWS} new rows have no mean to be centred by; they are rescaled'
        )
    if settings.fit_steps and contexts is not None:
        progress = run.progress('surgery, gradient fit', settings.fit_steps, 'steps')
        made = distilled(settings, made, source, tokens, contexts, seed, watched(run, progress))
    if settings.dealt:
        made = dataclasses.replace(made, rows=rows.dealt(made.rows, seed))
    kind = account.FRESH if settings.strategy in DRAWN else account.SYNTHESISED
    spelled = [[source.vocabulary[i] for i in pieces] for pieces in material.spellings]
    return NewRows(
        made.rows,
        made.averaged,
        material.spellings,
        spelled,
        made.contexts,
        made.fallback,
        made.scale,
        made.factor,
        kind,
        material.windows,
        made.map,
    )


def summing(run: Run, batch_pieces: int, keep: bool) -> Sums:
    """`sum_states` with progress, which stops when the run is asked to; with `keep` the stage can go on from there."""

    def sums(source: Loaded, read: Reading, layers: Sequence[int], label: str) -> np.ndarray:
        only_last = tuple(layers) == (source.architecture.layers,)
        progress = run.progress(f'surgery, {label}', len(read.windows), 'windows')
        keeping: dict[str, Any] = {}
        if keep:
            keeping = {'kept': run.scratch('surgery') / f'{label}.npz', 'start_at': progress.start_at}
        wanted = () if only_last else layers
        states = sum_states(source, read, batch_pieces, watched(run, progress), wanted, **keeping)
        if keep:
            _log_encoded(run, read, label)
        return states

    return sums


def _log_encoded(run: Run, read: Reading, label: str) -> None:
    """What was encoded, for the account of FLOPs: pieces, and how many of them each attended to on average."""
    lengths_W = np.array([len(window) for window in read.windows], np.int64)
    pieces = int(lengths_W.sum())
    attended = float((lengths_W**2).sum() / max(pieces, 1))
    run.log('surgery', 0, kind='encoded', name=label, pieces=pieces, attended=attended)


def distilled(
    settings: Surgery,
    made: Made,
    source: Loaded,
    tokens: Sequence[str],
    contexts: Contexts,
    seed: int,
    advance: Callable[[int], None],
) -> Made:
    """The rows after `surgery.fit_steps` steps of their gradient fit, on the contexts that the setting uses."""
    targets = {token: number for number, token in enumerate(tokens)}
    chosen = choose_occurrences(contexts, targets, settings.contexts, seed, settings.max_contexts)
    taught = distil.lessons(source, contexts.sentences, chosen)
    refined_NxD = distil.refine(source, made.rows, taught, settings.fit_steps, seed, advance)
    return dataclasses.replace(made, rows=refined_NxD)


def watched(run: Run, progress: Progress) -> Callable[[int], None]:
    """What is called after a piece of work: it shows progress, and raises Stopped if the run is asked to stop."""

    def advance(amount: int) -> None:
        progress.update(amount)
        run.check_stop()

    return advance


def make(settings: Surgery, material: Material, seed: int) -> Made:
    """The rows of one setting. Raises InputError where a map has too little to be fitted on."""
    if not material.spellings:
        none_0xD = np.zeros((0, material.table.shape[1]))
        return Made(none_0xD, none_0xD, np.zeros(0, np.int64), [])
    made = _of_strategy(settings, material, seed)
    if settings.strategy in DRAWN:
        return made
    # Rows of unknown_mean lie among the source's rows already.
    moved_N = np.array([name != 'unknown_mean' for name in made.fallback], bool)
    scaling = rows.scaling(settings.scale, made.rows[moved_N], material.table)
    scaled_NxD, averaged_NxD = (
        np.where(moved_N[:, None], scaling(values_NxD), values_NxD)
        for values_NxD in (made.rows, made.averaged)
    )
    return dataclasses.replace(
        made, rows=scaled_NxD, averaged=averaged_NxD, scale=scaling.name, factor=scaling.factor
    )


def _of_strategy(settings: Surgery, material: Material, seed: int) -> Made:
    table_VxD, count = material.table, len(material.spellings)
    none_N = np.zeros(count, np.int64)
    input_NxD = _or_mean(rows.averaged_input(table_VxD, material.spellings), material)
    fallback: list[str | None] = [None if known else 'unknown_mean' for known in material.known]
    match settings.strategy:
        case 'random_rows':
            drawn_NxD = rows.random_rows(count, table_VxD.shape[1], seed)
            return Made(drawn_NxD, input_NxD, none_N, [None] * count)
        case 'gaussian':
            return Made(comparators.gaussian(table_VxD, count, seed), input_NxD, none_N, [None] * count)
        case 'mean_resizing':
            return Made(comparators.mean_resizing(table_VxD, count, seed), input_NxD, none_N, [None] * count)
        case 'averaged_input':
            return Made(input_NxD, input_NxD, none_N, fallback)
        case 'averaged_last':
            alone_NxD = _or_mean(_alone(settings, material), material)
            return Made(alone_NxD, alone_NxD, none_N, fallback)
        case 'similarity':
            return _similarity(settings, material, input_NxD)
        case 'contextualized':
            return _contextualized(settings, material, seed)
    raise ValueError(settings.strategy)


def _contextualized(settings: Surgery, material: Material, seed: int) -> Made:
    sums_NxD, contexts_N = _sums(settings, material)
    alone_NxD = _alone(settings, material)
    # A token that cannot be fed alone has nothing to be shrunk to.
    k_N = np.where(material.known, settings.shrinkage, 0.0)
    states_NxD = rows.contextualized(sums_NxD, contexts_N, alone_NxD, k_N)
    fitted = {'none': None, 'linear': material.pieces, 'respelled': material.respelled}[settings.map]
    described = None
    if fitted is not None:
        mapped = _fit(settings, material, fitted, seed)
        states_NxD, alone_NxD = mapped(states_NxD), mapped(alone_NxD)
        described = {'ridge': mapped.ridge, 'tokens': mapped.tokens, 'explained': round(mapped.explained, 4)}
    empty_N = (contexts_N == 0) & ~material.known
    states_NxD[empty_N] = rows.unknown_mean(material.table)
    names = ('context_free' if known else 'unknown_mean' for known in material.known)
    fallback = [None if n else name for n, name in zip(contexts_N, names, strict=True)]
    return Made(states_NxD, _or_mean(alone_NxD, material), contexts_N, fallback, map=described)


def _fit(settings: Surgery, material: Material, fitted: Fitted, seed: int) -> linear.LinearMap:
    return linear.fit(material.of_layers(fitted.states, settings), material.table[fitted.ids], seed)


def _similarity(settings: Surgery, material: Material, input_NxD: np.ndarray) -> Made:
    sums_NxD, contexts_N = _sums(settings, material)
    pieces_known = material.pieces is not None and len(material.pieces.ids) > 0
    found_N, new_NxD = (contexts_N > 0) & pieces_known, input_NxD.copy()
    if found_N.any() and material.pieces is not None:
        means_NxD = sums_NxD[found_N] / contexts_N[found_N, None]
        known_MxD = material.of_layers(material.pieces.states, settings)
        new_NxD[found_N] = comparators.similarity(means_NxD, known_MxD, material.table[material.pieces.ids])
    names = ('averaged_input' if known else 'unknown_mean' for known in material.known)
    fallback = [None if found else name for found, name in zip(found_N, names, strict=True)]
    return Made(new_NxD, input_NxD, contexts_N, fallback)


def _sums(settings: Surgery, material: Material) -> tuple[np.ndarray, np.ndarray]:
    sums_NxCxD, contexts_N = material.sums[settings.pooling, settings.contexts, settings.max_contexts]
    return material.of_layers(sums_NxCxD, settings), contexts_N


def _alone(settings: Surgery, material: Material) -> np.ndarray:
    return material.of_layers(material.alone[settings.pooling], settings)


def _or_mean(rows_NxD: np.ndarray, material: Material) -> np.ndarray:
    """The rows, and the mean of the source's rows for tokens that it cannot spell."""
    return np.where(material.known[:, None], rows_NxD, rows.unknown_mean(material.table))
