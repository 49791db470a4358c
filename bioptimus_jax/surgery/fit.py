"""The gradient fit of `surgery.fit_steps`, how far each token is from the source before and after, and a second fit.

X: lessons, M: lessons that are measured, N: new tokens, B: lessons of a batch, D: hidden size.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.errors import ConfigError, InputError
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.surgery import FitSummary, FittedAgain
from bioptimus_jax.surgery import distil
from bioptimus_jax.surgery.account import Fit, NewRows
from bioptimus_jax.surgery.config import Surgery
from bioptimus_jax.surgery.distil import BATCH, Aim, Lessons
from bioptimus_jax.surgery.reading import Occurrences, choose_occurrences
from bioptimus_jax.vocab import lists
from bioptimus_jax.vocab.contexts import TokenContexts

MEASURED = 4  # contexts of a token at most: measuring more would soon take longer than the fit
WIDTHS = 16  # windows are cut to a multiple of so many pieces, each compiled once
WORST = 10


def check(settings: Surgery, architecture: Architecture, has_head: bool, owner: str) -> None:
    """Raise ConfigError for a layer that the source does not have, or a cross-entropy without its masked-LM head.

    `owner` names the source.
    """
    if settings.fit_layer > architecture.layers:
        raise ConfigError(
            f'config.surgery.fit_layer: {settings.fit_layer}, but {owner} has '
            f'{numbered(architecture.layers, "layer")}; give 1 to {architecture.layers}, or -1 for the last'
        )
    if settings.fit_cross_entropy and not has_head:
        raise ConfigError(
            f'config.surgery.fit_cross_entropy: {settings.fit_cross_entropy:g} needs a masked-LM head, which {owner} '
            'does not have; set it to 0, or take a source with one'
        )
    _untied(settings, architecture, owner)


def _untied(settings: Surgery, architecture: Architecture, owner: str) -> None:
    if settings.fit_cross_entropy and architecture.untied:
        raise ConfigError(
            f'config.surgery.fit_cross_entropy: {settings.fit_cross_entropy:g} fits rows that are read and predicted, '
            f'but {owner} predicts from a table of its own (tie_word_embeddings is false); set it to 0'
        )


def steps(settings: Surgery) -> int:
    """Steps of the fit, and of the second one if there is one."""
    return settings.fit_steps * (2 if settings.fit_again else 1)


def fitted(
    settings: Surgery,
    made: NewRows,
    source: Loaded,
    tokens: Sequence[str],
    contexts: TokenContexts,
    seed: int,
    advance: Callable[[int], None],
) -> NewRows:
    """The rows after their gradient fit, on the contexts that the setting uses, and what the fit has reached. With
    `surgery.fit_only` the tokens of that file alone are fitted and measured. Raises InputError where none is new.

    With `surgery.fit_again` the tokens that are worst on every other of their contexts are fitted for as many steps
    again, on their own contexts alone. The report gives their gain on the remaining contexts, which had no part in the
    choice, so that it contains no regression to the mean. Both halves are fitted on: it is no gain on unseen text.
    `advance` is called after each step, and with 0 while tokens are measured.
    """
    targets = {token: number for number, token in enumerate(tokens)}
    chosen = choose_occurrences(contexts, targets, settings.contexts, seed, settings.max_contexts)
    if settings.fit_only:
        chosen = _only(_listed(settings.fit_only, targets), chosen)
    taught = distil.lessons(source, contexts.sentences, chosen)
    # Setting and depth may name the same layer; as -1 no states of other layers are handed on.
    last = settings.fit_layer == source.architecture.layers
    aim = Aim(-1 if last else settings.fit_layer, settings.fit_cross_entropy)
    fit = functools.partial(
        distil.refine, source, steps=settings.fit_steps, seed=seed, advance=advance, aim=aim
    )
    rows_NxD = fit(made.rows, taught)
    if not len(taught.target):
        return made
    number_X = numbers(taught.target)
    tested = taught.chosen(number_X < MEASURED)
    # Even contexts choose who is fitted again and odd ones measure the gain: a choice looks better on its own contexts.
    odd_M, count = numbers(tested.target) % 2 == 1, len(tokens)
    measured = functools.partial(disagreements, source, tested, layer=aim.layer, advance=advance)
    of_token = functools.partial(means, tested.target, count=count)
    before_M, after_M = measured((made.rows, rows_NxD))
    again_N = np.zeros(count, bool)
    again: FittedAgain | None = None
    if settings.fit_again:
        first_N, _ = of_token(np.where(odd_M, np.nan, after_M))
        worst = np.argsort(-first_N, kind='stable')  # NaN, without a context, comes last
        again_N[worst[: math.ceil(settings.fit_again * np.isfinite(first_N).sum())]] = True
        rows_NxD = fit(rows_NxD, taught.chosen(again_N[taught.target]))
        once_M, (after_M,) = np.where(odd_M, after_M, np.nan), measured((rows_NxD,))
        twice_M = np.where(odd_M, after_M, np.nan)
        gains = [_median(of_token(values_M)[0][again_N]) for values_M in (once_M, twice_M)]
        again = FittedAgain(int(again_N.sum()), *gains)
    (before_N, contexts_N), (after_N, _) = of_token(before_M), of_token(after_M)
    worst = np.argsort(-after_N, kind='stable')[: min(WORST, int(np.isfinite(after_N).sum()))]
    summary = FitSummary(
        tokens=int(np.isfinite(after_N).sum()),
        before=_median(before_N),
        after=_median(after_N),
        worst=tuple((tokens[n], float(f'{after_N[n]:.5g}')) for n in worst),
        again=again,
    )
    return dataclasses.replace(made, rows=rows_NxD, fit=Fit(before_N, after_N, contexts_N, again_N, summary))


def _listed(path: str, targets: Mapping[str, int]) -> frozenset[int]:
    """The numbers of the new tokens of a list; others are passed over. Raises InputError where there is none."""
    named = lists.read(path)
    found = frozenset(targets[token] for token in named if token in targets)
    if not found:
        raise InputError(
            f'config.surgery.fit_only: {path}: of {numbered(len(named), "token")} in it none is new; give some of '
            'vocab/new_tokens.txt'
        )
    return found


def _only(wanted: Container[int], chosen: Occurrences) -> Occurrences:
    left = {s: {n: spans for n, spans in of.items() if n in wanted} for s, of in chosen.items()}
    return {sentence: of for sentence, of in left.items() if of}


def numbers(target_X: np.ndarray) -> np.ndarray:
    """How many earlier lessons have the token of each lesson: int64 [X]."""
    order_X = np.argsort(target_X, kind='stable')
    _, firsts, sizes = np.unique(target_X[order_X], return_index=True, return_counts=True)
    number_X = np.empty(len(target_X), np.int64)
    number_X[order_X] = np.arange(len(target_X)) - np.repeat(firsts, sizes)
    return number_X


def means(target_M: np.ndarray, values_M: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean of each token's values that are not NaN, and their number: float64 [N] (NaN of none) and int64 [N]."""
    there_M = np.isfinite(values_M)
    contexts_N = np.bincount(target_M[there_M], minlength=count)
    sums_N = np.bincount(target_M[there_M], values_M[there_M], minlength=count)
    return np.where(contexts_N > 0, sums_N / np.maximum(contexts_N, 1), np.nan), contexts_N


def disagreements(
    source: Loaded,
    taught: Lessons,
    rows: Sequence[np.ndarray],
    layer: int = -1,
    advance: Callable[[int], None] = lambda steps: None,
) -> list[np.ndarray]:
    """Mean squared difference of every lesson, which `distil.refine` makes smaller: float64 [X] for each of several [N,
    D] of new rows. The source reads each lesson once for all of them."""
    parameters = jax.device_put(source.encoder)
    slot_D = jnp.asarray(source.table()[source.subwords.mask])
    each = tuple(jnp.asarray(rows_NxD, jnp.float32) for rows_NxD in rows)

    @jax.jit
    def measure(each: Any, parameters: Any, batch: Any) -> tuple[jax.Array, ...]:
        wanted_BxPxD = distil.read_source(parameters, source.architecture, batch, layer)
        found = []
        for new_NxD in each:
            squares_BxP, kept_BxP = distil.differences(
                new_NxD, wanted_BxPxD, parameters, source.architecture, slot_D, batch, layer
            )
            found.append((squares_BxP * kept_BxP).sum(axis=1) / kept_BxP.sum(axis=1))
        return tuple(found)

    # Sorted by length, so that most batches can be cut to a small width.
    order_X = np.argsort(taught.source_length, kind='stable')
    results = [np.empty(len(order_X)) for _ in rows]
    for start in range(0, len(order_X), BATCH):
        places = order_X[start : start + BATCH]
        full = taught.chosen(np.resize(places, BATCH))  # also the last one: one program a width
        # `own` is never longer than `source`: a single piece stands there for the spelling.
        width = -(-int(full.source_length.max()) // WIDTHS) * WIDTHS
        batch = {
            name: values[:, :width] if values.ndim == 2 else values for name, values in full._asdict().items()
        }
        for result_X, values_B in zip(results, measure(each, parameters, batch), strict=True):
            result_X[places] = np.asarray(values_B)[: len(places)]
        advance(0)
    return results


def _median(values: np.ndarray) -> float | None:
    """The median to five digits, without NaN; None of none."""
    found = values[np.isfinite(values)]
    return float(f'{np.median(found):.5g}') if len(found) else None
