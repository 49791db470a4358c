"""Perplexity of a masked language model under each masking setting, over all positions and by what stands at them.

Legend: R rows, L pieces a row, N batches of B rows, M slots, S samples.

A sample is one mask of all rows; its perplexity is exp of the mean loss over its selected positions, pooled, and the
samples give a mean and an interval. The interval is over masks: the documents are the same for every setting and
sample. Under 80-10-10 the unchanged tenth is nearly free, the replaced tenth is not, and the corruption goes with the
rate, so each kind of position stands alone beside the perplexity over all of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from scipy import special

from bioptimus_jax.pretrain import evaluate
from bioptimus_jax.pretrain.masking import MASKED, REPLACED, UNCHANGED, Masked
from bioptimus_jax.pretrain.objective import slot_losses
from bioptimus_jax.pretrain.step import StepPlan
from bioptimus_jax.schema import Experiment

BATCH_ROWS = 64
KINDS = {'masked': MASKED, 'replaced': REPLACED, 'kept': UNCHANGED}
"""What may stand at a selected position: [MASK], another token, the token itself."""

SlotLosses: TypeAlias = Callable[[Masked, np.ndarray, np.ndarray], Any]
"""`(masked batch, segments_BxL, positions_BxL) -> losses_BxM` in nats: how a model is scored."""


def by_setting(
    losses: SlotLosses,
    batch: Mapping[str, np.ndarray],
    plan: evaluate.MaskingPlan,
    experiment: Experiment,
    advance: Callable[[], None] = lambda: None,
    batch_rows: int = BATCH_ROWS,
) -> dict[str, dict[str, Any]]:
    """Phase -> `of_setting` of the model that `losses` scores; `advance` is called after each mask and may raise.

    `batch`: rows of one document each, as `Rows.read` gives them.
    """
    found: dict[str, list[dict[str, float]]] = {name: [] for name in experiment.phases}
    for masks in masks_of_samples(batch, plan, experiment, batch_rows):
        for name, samples in found.items():
            samples.append(_pooled(losses, masks, name))
            advance()
    return {name: of_setting(samples) for name, samples in found.items()}


def of_bert(plan: StepPlan, params: Any) -> SlotLosses:
    """The losses by the model of a plan, on its devices, jitted, without dropout."""

    @jax.jit
    def losses(params: Any, masked: Masked, segments_BxL: Any, positions_BxL: Any) -> jax.Array:
        parts = masked, segments_BxL, positions_BxL
        return slot_losses(params, plan.architecture, *parts, compute=plan.compute)[1]

    placed = jax.device_put(params)
    return lambda *parts: losses(placed, *parts)


def masks_of_samples(
    batch: Mapping[str, np.ndarray],
    plan: evaluate.MaskingPlan,
    experiment: Experiment,
    batch_rows: int = BATCH_ROWS,
) -> Iterator[evaluate.FrozenMasks]:
    """Every sample's masks under every phase: keyed by (evaluation seed, document, sample), alike for all settings."""
    maskable = evaluate.Maskable.of(batch, plan, experiment.evaluation.seed, batch_rows)
    mask = evaluate.make_mask(plan, plan.settings.max_word_pieces)
    phases = {name: experiment.phase[name] for name in experiment.phases}
    for sample in range(experiment.curriculum.samples):
        keys_R = jax.vmap(lambda key, s=sample: jax.random.fold_in(key, s))(maskable.keys_R)
        yield maskable.under(phases, mask, lambda phase: plan.slots, keys_R)


def sums_of(losses_BxM: np.ndarray, masked: Masked) -> dict[str, float]:
    """Summed loss and number of positions over all selected ones (`loss`, `weight`) and by kind (`masked_loss` ...)."""
    losses_BxM, weights_BxM = np.asarray(losses_BxM, np.float64), np.asarray(masked.weights_M, np.float64)
    kinds_BxM = np.asarray(masked.kinds_M)
    counted = {'': weights_BxM}
    counted |= {f'{name}_': weights_BxM * (kinds_BxM == kind) for name, kind in KINDS.items()}
    sums = {}
    for prefix, weight_BxM in counted.items():
        sums[f'{prefix}loss'] = float((losses_BxM * weight_BxM).sum())
        sums[f'{prefix}weight'] = float(weight_BxM.sum())
    return sums


def of_setting(samples: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """`perplexity` over all selected positions and `masked`, `replaced`, `kept` over those kinds alone, each as
    `summary` gives it (None where a sample has no such position), and mean `positions` of a sample by the same names.
    """
    names = {'perplexity': '', **{name: f'{name}_' for name in KINDS}}
    measured: dict[str, Any] = {
        name: summary([math.exp(s[f'{at}loss'] / s[f'{at}weight']) for s in samples])
        if all(s[f'{at}weight'] for s in samples)
        else None
        for name, at in names.items()
    }
    measured['positions'] = {
        name: float(np.mean([s[f'{at}weight'] for s in samples])) for name, at in names.items()
    }
    return measured


def summary(perplexities_S: Sequence[float]) -> dict[str, Any]:
    """Mean over the samples, its 95 % interval (Student's t; None for a single sample), and the samples."""
    count, mean = len(perplexities_S), float(np.mean(perplexities_S))
    half = None
    if count > 1:
        error = float(np.std(perplexities_S, ddof=1)) / math.sqrt(count)
        half = float(special.stdtrit(count - 1, 0.975)) * error
    interval = None if half is None else [mean - half, mean + half]
    return {'mean': mean, 'interval': interval, 'samples': list(perplexities_S)}


def _pooled(losses: SlotLosses, masks: evaluate.FrozenMasks, name: str) -> dict[str, float]:
    """The sums of all batches under one setting."""
    totals: dict[str, float] = {}
    for number in range(len(masks.segments_NxBxL)):
        part = jax.tree.map(lambda x, n=number: x[n], masks.masked[name])
        losses_BxM = losses(part, masks.segments_NxBxL[number], masks.positions_NxBxL[number])
        for key, value in sums_of(losses_BxM, part).items():
            totals[key] = totals.get(key, 0.0) + value
    return totals
