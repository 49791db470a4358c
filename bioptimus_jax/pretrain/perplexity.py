"""Perplexity of a masked language model under each masking setting, over all positions and by what stands at them.

Legend: R rows, L pieces a row, N batches of B rows, M slots, S samples.

The documents are parted at random into samples, the same for every setting. The perplexity of a sample is exp of the
mean loss over its selected positions, pooled; the samples give a geometric mean and an interval, which is one over
texts and masks (paper, Figure 4: ten random samples). Under 80-10-10 the unchanged tenth is nearly free, the replaced
tenth is not, and the corruption goes with the rate, so each kind of position stands alone beside the perplexity over
all.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.pretrain import evaluate
from bioptimus_jax.pretrain.config import HasTraining
from bioptimus_jax.pretrain.masking import MASKED, REPLACED, UNCHANGED, Masked, Masker, MaskingParams
from bioptimus_jax.records.curriculum import OfSetting, Perplexity
from bioptimus_jax.rows.blocks import Block
from bioptimus_jax.scoring import student

BATCH_ROWS = 64
CORRUPTIONS = {'masked': MASKED, 'replaced': REPLACED, 'kept': UNCHANGED}
"""What may stand at a selected position: [MASK], another token, the token itself."""

SlotLosses: TypeAlias = Callable[[Masked, np.ndarray, np.ndarray], Any]
"""`(masked batch, segments_BxL, positions_BxL) -> losses_BxM` in nats: how a model is scored."""


def by_setting(
    losses: SlotLosses,
    batch: Block,
    masker: Masker,
    experiment: HasTraining,
    advance: Callable[[float], None] = lambda share: None,
    batch_rows: int = BATCH_ROWS,
    row_shards: int = 1,
) -> dict[str, OfSetting]:
    """Phase -> `of_setting` of the model that `losses` scores.

    `batch`: rows of one document each, as `Rows.read` gives them. `advance` is called with the share of the work that
    was done, and may raise. Raises InputError where a sample has nothing to predict.
    """
    masks, samples_NxB = masks_and_samples(batch, masker, experiment, batch_rows, row_shards)
    found = {}
    for name in masks.masked:
        totals: dict[str, np.ndarray] = {}
        for samples_B, (masked, *places) in zip(samples_NxB, masks.batches(name), strict=True):
            sums = sums_of(losses(masked, *places), masked, samples_B, experiment.curriculum.samples)
            for key, sums_S in sums.items():
                totals[key] = totals.get(key, 0.0) + sums_S
            advance(1 / len(samples_NxB) / len(masks.masked))
        if not totals['weight'].all():
            raise InputError(
                f'config.curriculum.samples={experiment.curriculum.samples}: one of them has nothing to predict under '
                f'{name}; take fewer, or more text'
            )
        found[name] = of_setting(totals)
    return found


def masks_and_samples(
    batch: Block, masker: Masker, experiment: HasTraining, batch_rows: int = BATCH_ROWS, row_shards: int = 1
) -> tuple[evaluate.FrozenMasks, np.ndarray]:
    """Masks of the rows under every phase, keyed by (evaluation seed, document), and the sample of each row, [N, B].

    Samples are as even in documents as it goes; which one a document is in is decided by the hash of its id.
    """
    maskable = evaluate.Maskable.of(batch, masker, experiment.evaluation.seed, batch_rows, row_shards)
    longest = experiment.pretrain.max_word_pieces
    names = experiment.phases_under(experiment.pretrain.objective)
    settings = {name: MaskingParams.of(experiment.phase[name], longest) for name in names}
    places_R = np.unique(batch['documents'][:, 0], return_inverse=True)[1]
    samples_R = np.zeros(len(maskable.tokens_RxL), int)  # those that fill the last batch have no weight
    samples_R[: len(places_R)] = places_R % experiment.curriculum.samples
    slots = dict.fromkeys(settings, masker.slots)
    return maskable.under(settings, slots, masker), maskable.batches(samples_R)


def sums_of(
    losses_BxM: np.ndarray, masked: Masked, samples_B: np.ndarray, samples: int
) -> dict[str, np.ndarray]:
    """Sums by sample, [S], of losses and positions: over all selected ones (`loss`, `weight`) and by kind
    (`masked_loss` ...)."""
    losses_BxM, weights_BxM = np.asarray(losses_BxM, np.float64), np.asarray(masked.weights_M, np.float64)
    kinds_BxM = np.asarray(masked.kinds_M)
    counted = {'': weights_BxM}
    counted |= {f'{name}_': weights_BxM * (kinds_BxM == kind) for name, kind in CORRUPTIONS.items()}
    sums = {}
    for prefix, weight_BxM in counted.items():
        for name, values_BxM in ((f'{prefix}loss', losses_BxM * weight_BxM), (f'{prefix}weight', weight_BxM)):
            sums[name] = np.bincount(samples_B, values_BxM.sum(axis=1), samples)
    return sums


def of_setting(sums: Mapping[str, np.ndarray]) -> OfSetting:
    """`perplexity` over all selected positions and `masked`, `replaced`, `kept` over those kinds alone, each as
    `summary` gives it (None where a sample has no such position), and mean `positions` of a sample by the same names.

    `sums`: as `sums_of` gives them.
    """
    measured: dict[str, Perplexity | None] = {}
    positions = {}
    for name, at in {'perplexity': '', **{name: f'{name}_' for name in CORRUPTIONS}}.items():
        losses_S, weights_S = sums[f'{at}loss'], sums[f'{at}weight']
        measured[name] = summary(np.exp(losses_S / weights_S).tolist()) if weights_S.all() else None
        positions[name] = float(weights_S.mean())
    return OfSetting(**measured, positions=positions)


def summary(perplexities_S: Sequence[float]) -> Perplexity:
    """Geometric mean over the samples, its 95 % interval (None for a single sample), and the samples.

    Student's interval is of the mean loss, and then taken to perplexities: they lie on a scale of factors.
    """
    mean, half = student.interval(np.log(perplexities_S).tolist())
    interval = (math.exp(mean - half), math.exp(mean + half)) if len(perplexities_S) > 1 else None
    return Perplexity(math.exp(mean), interval, tuple(perplexities_S))
