"""Rows of new tokens from what was gathered for them: initialisation, map, fallbacks, scale.

N: new tokens, D: hidden size.
"""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bioptimus_jax.model.loaded import Loaded
from bioptimus_jax.progress.console import Console
from bioptimus_jax.records.metrics import Encoded, Start
from bioptimus_jax.records.surgery import FittedMap
from bioptimus_jax.run.folder import Run
from bioptimus_jax.run.metrics import MetricsLog
from bioptimus_jax.surgery import account, donor, fit, linear, rows
from bioptimus_jax.surgery.account import NewRows
from bioptimus_jax.surgery.config import HasSurgery, Surgery
from bioptimus_jax.surgery.initialisations import averaged_input
from bioptimus_jax.surgery.material import Material, Sums, gather
from bioptimus_jax.surgery.reading import StateReading
from bioptimus_jax.surgery.source import sum_states, watched
from bioptimus_jax.vocab.contexts import load_contexts

UNKNOWN_MEAN = 'unknown_mean'

Mapping = Callable[[np.ndarray], np.ndarray]
"""Rows of states: [N, D] of [N, D]."""


def synthesise(
    run: Run[HasSurgery],
    source: Loaded,
    tokens: list[str],
    spellings: list[list[int]],
    written: Sequence[str],
) -> NewRows:
    """Rows for tokens that the source does not have but can spell, as the configuration wants them.

    `written`: the tokens as `spelling.with_borders` has them.
    """
    settings, seed = run.config.surgery, run.config.seed
    run.metrics.add('surgery', Start(step=0))
    fit.check(settings, source.architecture, not source.fresh, str(source.folder))
    contexts = load_contexts(run.folder('contexts')) if settings.reads_contexts else None
    sums = summing(settings.batch_pieces, run.console, run.scratch('surgery'), run.metrics)
    given = gather(source, tokens, spellings, contexts, [settings], seed, sums, written)
    if settings.initialisation.donor:
        given = dataclasses.replace(given, donated=donor.donate(run, source.subwords, tokens))
    progress = run.console.progress('surgery, rows', len(tokens), 'tokens')
    made = make(settings, given, seed, watched(progress, run.console.check_stop))
    if (made.scale, settings.scale) == ('rescaled', 'centred'):
        run.console.say(
            f'surgery: fewer than {rows.LEAST_ROWS} new rows have no mean to be centred by; they are rescaled'
        )
    if settings.fit_steps and contexts is not None:
        progress = run.console.progress('surgery, gradient fit', fit.steps(settings), 'steps')
        made = fit.fitted(
            settings, made, source, tokens, contexts, seed, watched(progress, run.console.check_stop)
        )
        if made.fit is not None:
            run.console.say(f'surgery: {made.fit.words()}')
    return dataclasses.replace(made, rows=rows.shuffled(made.rows, seed)) if settings.dealt else made


def summing(
    batch_pieces: int, console: Console, scratch: Path | None = None, metrics: MetricsLog | None = None
) -> Sums:
    """`sum_states` with progress, which stops when the console is asked to.

    The states are kept in `scratch`, so that the stage can go on from there, and what was read is counted in `metrics`.
    """

    def sums(source: Loaded, read: StateReading, layers: Sequence[int], label: str) -> np.ndarray:
        progress = console.progress(f'surgery, {label}', len(read.windows), 'windows')
        kept = scratch / f'{label}.npz' if scratch else None
        advance = watched(progress, console.check_stop)
        # For the last layer alone there is a program that hands on no others.
        wanted = () if tuple(layers) == (source.architecture.layers,) else layers
        states = sum_states(
            source, read, batch_pieces, advance, wanted, kept=kept, start_at=progress.start_at
        )
        if metrics:  # for the account of FLOPs; `attended`: pieces that each attends to, on average
            lengths_W = np.array([len(window) for window in read.windows], np.int64)
            pieces, attended = int(lengths_W.sum()), float((lengths_W**2).sum())
            attended /= max(pieces, 1)
            metrics.add('surgery', Encoded(step=0, name=label, pieces=pieces, attended=attended))
        return states

    return sums


def make(
    settings: Surgery,
    material: Material,
    seed: int,
    advance: Callable[[int], None] = lambda tokens: None,
) -> NewRows:
    """The rows of one setting. Raises InputError where a map has too little to be fitted on.

    `advance` is called with numbers of tokens that were done, where that takes long, and may raise to stop.
    """
    initialisation, inputs = settings.initialisation, material.inputs(settings, seed, advance)
    assert initialisation.rows is not None, f'{settings.strategy} has no new rows'
    made_NxD = initialisation.rows(inputs)
    alone_NxD = (
        inputs.isolated if initialisation.isolated_states else averaged_input(inputs.table, inputs.spellings)
    )
    fitted_map, described = _map(settings, material, seed), None
    if fitted_map:
        fitted, mapped = fitted_map
        # A fallback is mapped too: unmapped states beside mapped ones would be far from all other rows.
        made_NxD, alone_NxD = mapped(made_NxD), mapped(alone_NxD)
        described = FittedMap(fitted.ridge, fitted.tokens, round(fitted.explained, 4))
    known_N, missing_N = inputs.known, np.isnan(made_NxD).all(axis=1)
    alone_NxD = np.where(known_N[:, None], alone_NxD, material.table.mean(axis=0, dtype=np.float64))
    made_NxD = np.where(missing_N[:, None], alone_NxD, made_NxD)
    if_known = 'context_free' if initialisation.isolated_states else 'averaged_input'
    fallback = [
        (if_known if known else UNKNOWN_MEAN) if missing else None
        for known, missing in zip(known_N, missing_N, strict=True)
    ]
    # The mean of the source's rows is among them already, and would pull the mean of what is moved towards itself.
    moved_N = np.array([name != UNKNOWN_MEAN for name in fallback], bool)
    scaling = rows.scaling(
        settings.scale if initialisation.scaled else 'literal', made_NxD[moved_N], material.table
    )
    made_NxD, alone_NxD = (
        np.where(moved_N[:, None], scaling(values_NxD), values_NxD) for values_NxD in (made_NxD, alone_NxD)
    )
    return NewRows(
        made_NxD,
        alone_NxD,
        inputs.contexts,
        fallback,
        material.spellings,
        account.FRESH if initialisation.drawn else account.SYNTHESISED,
        material.windows,
        scaling.name,
        scaling.factor,
        described,
    )


def _map(settings: Surgery, material: Material, seed: int) -> tuple[linear.LinearMap, Mapping] | None:
    """The map of `surgery.map` as it was fitted, and what makes rows of states; None where there is nothing to map."""
    record = settings.fitted_map
    anchors = getattr(material, record.anchors) if record.anchors else None
    if anchors is None or not material.spellings:
        return None
    states_MxD, rows_MxD = material.pairs(anchors, settings)
    if not record.spelling:
        fitted = linear.fit(states_MxD, rows_MxD, seed)
        return fitted, fitted
    spelled = material.spelled
    assert spelled is not None, 'gathered for this setting'
    joined = linear.side_by_side((states_MxD, spelled.anchors))
    fitted = linear.fit(joined(states_MxD, spelled.anchors), rows_MxD, seed)
    return fitted, lambda states_NxD: fitted(joined(states_NxD, spelled.rows))
