"""Cross-entropy over the vocabulary without ever holding the logits of all slots.

The output matrix is most of a small BERT's work and its logits most of the memory. So slots are taken a few columns
at a time; the forward pass computes a chunk's logits, its losses and, while they are at hand, its share of the
gradients. Slots are filled from the first on: a chunk that no row reaches is not computed, so a phase that predicts
15 % does not pay for the slots of one that predicts 20 %.

B rows, M slots, C slots of a chunk, D hidden size, V padded vocabulary, S parts that the rows are split into.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bioptimus_jax.model.architecture import logits_of
from bioptimus_jax.model.compute import Compute

# On a CPU the logits of a chunk should fit the cache; elsewhere its products should outweigh their accumulation.
POSITIONS_PER_CHUNK = {'cpu': 128}
POSITIONS_PER_CHUNK_ELSEWHERE = 4096


class Slots(NamedTuple):
    """Slots, or a chunk of them: what is predicted from, what is right, and what counts."""

    states_BxMxD: jax.Array
    targets_BxM: jax.Array
    weights_BxM: jax.Array


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def cross_entropy(
    states_BxMxD: jax.Array,
    table_VxD: jax.Array,
    bias_V: jax.Array,
    targets_BxM: jax.Array,
    weights_BxM: jax.Array,
    compute: Compute,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Weighted sum of the losses, the loss of every slot, and whether its target has the highest logit.

    Only the sum has gradients: for states, table and bias. Weights must be 0 from a row's last slot on; the loss of
    slots of weight 0 is 0 where their chunk was left out. Columns that pad the vocabulary need a bias of the lowest
    number.
    """
    slots = (states_BxMxD, table_VxD, bias_V, targets_BxM, weights_BxM)
    return _in_chunks(*slots, compute, gradients=False)[0]


def chunk_slots(rows: int, slots: int, platform: str = '') -> int:
    """Slots of a chunk: a multiple of 8 near the platform's number of positions, as equal chunks as can be.

    `platform`: cpu, gpu or tpu; empty: the one that this process runs on.
    """
    wanted = POSITIONS_PER_CHUNK.get(platform or jax.default_backend(), POSITIONS_PER_CHUNK_ELSEWHERE)
    chunks = -(-slots // max(8, wanted // max(rows, 1)))
    return min(-(-slots // (8 * chunks)) * 8, slots)


def _in_chunks(
    states_BxMxD: jax.Array,
    table_VxD: jax.Array,
    bias_V: jax.Array,
    targets_BxM: jax.Array,
    weights_BxM: jax.Array,
    compute: Compute,
    *,
    gradients: bool = True,
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], tuple[jax.Array, ...]]:
    """What `cross_entropy` gives, and the gradients of states, table and bias if asked for."""
    (rows, count), shards = weights_BxM.shape, compute.row_shards
    size = chunk_slots(rows // shards, count)
    padding = [(0, 0), (0, -count % size)]
    slots = Slots(
        jnp.pad(states_BxMxD, [*padding, (0, 0)]),
        jnp.pad(targets_BxM, padding),
        jnp.pad(weights_BxM, padding),
    )
    table_VxD = compute.place(table_VxD.astype(compute.dtype), 'vocabulary', None)

    def chunk(number: jax.Array, carry: Any) -> Any:
        total, losses_BxM, correct_BxM, sums = carry
        at = number * size
        part = Slots(*(jax.lax.dynamic_slice_in_dim(x, at, size, axis=1) for x in slots))
        losses_BxC, correct_BxC, shares_BxCxV = _losses(part, table_VxD, bias_V, compute)
        total = total + (losses_BxC * part.weights_BxM).sum()
        losses_BxM = jax.lax.dynamic_update_slice_in_dim(losses_BxM, losses_BxC, at, axis=1)
        correct_BxM = jax.lax.dynamic_update_slice_in_dim(correct_BxM, correct_BxC, at, axis=1)
        if gradients:
            states_BxCxD, table_SxVxD, bias_SxV = _gradients(part, shares_BxCxV, table_VxD, compute)
            sums = (
                jax.lax.dynamic_update_slice_in_dim(sums[0], states_BxCxD, at, axis=1),
                compute.place(sums[1] + table_SxVxD, 'rows', 'vocabulary', None),
                compute.place(sums[2] + bias_SxV, 'rows', 'vocabulary'),
            )
        return total, losses_BxM, correct_BxM, sums

    shapes = (slots.states_BxMxD.shape, (shards, *table_VxD.shape), (shards, *bias_V.shape))
    sums = tuple(jnp.zeros(shape, jnp.float32) for shape in shapes) if gradients else ()
    zeros_BxM = jnp.zeros(slots.weights_BxM.shape, jnp.float32)
    used = ((slots.weights_BxM > 0) * jnp.arange(1, zeros_BxM.shape[1] + 1)[None]).max()
    total, losses_BxM, correct_BxM, sums = jax.lax.fori_loop(
        0, -(-used // size), chunk, (jnp.zeros(()), zeros_BxM, zeros_BxM > 0, sums)
    )
    if gradients:
        states_BxMxD = sums[0][:, :count].astype(slots.states_BxMxD.dtype)
        sums = (states_BxMxD, sums[1].sum(0), sums[2].sum(0))
    return (total, losses_BxM[:, :count], correct_BxM[:, :count]), sums


def _backward(compute: Compute, gradients: Any, cotangents: Any) -> tuple[Any, ...]:
    del compute
    return *(g * cotangents[0].astype(g.dtype) for g in gradients), None, None


cross_entropy.defvjp(_in_chunks, _backward)


def _losses(
    part: Slots, table_VxD: jax.Array, bias_V: jax.Array, compute: Compute
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Losses BxC, whether the target has the highest logit BxC, and the softmax BxCxV, of a chunk."""
    logits_BxCxV = logits_of(part.states_BxMxD, table_VxD, bias_V)
    logits_BxCxV = compute.place(logits_BxCxV, 'rows', None, 'vocabulary')
    best_BxC = logits_BxCxV.max(axis=-1)
    powers_BxCxV = jnp.exp(logits_BxCxV - best_BxC[..., None])
    norm_BxC = powers_BxCxV.sum(axis=-1)
    true_BxC = jnp.take_along_axis(logits_BxCxV, part.targets_BxM[..., None], axis=-1)[..., 0]
    losses_BxC = best_BxC + jnp.log(norm_BxC) - true_BxC
    return losses_BxC, true_BxC >= best_BxC, powers_BxCxV * (1 / norm_BxC)[..., None]


def _gradients(
    part: Slots, shares_BxCxV: jax.Array, table_VxD: jax.Array, compute: Compute
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradients of a chunk's weighted sum: of its states BxCxD, of the table SxVxD and of the bias SxV.

    Those of table and bias are sums for every part of the rows, to be added across devices once, after the last chunk.
    """
    is_target_BxCxV = jnp.arange(len(table_VxD))[None, None] == part.targets_BxM[..., None]
    change_BxCxV = (shares_BxCxV - is_target_BxCxV) * part.weights_BxM[..., None]
    low_BxCxV = change_BxCxV.astype(compute.dtype)
    states_BxCxD = jnp.einsum('bcv,vd->bcd', low_BxCxV, table_VxD, preferred_element_type=jnp.float32)
    split = (compute.row_shards, len(low_BxCxV) // compute.row_shards)
    low, change, states = (
        x.reshape(*split, *x.shape[1:]) for x in (low_BxCxV, change_BxCxV, part.states_BxMxD)
    )
    table_SxVxD = jnp.einsum('sbcv,sbcd->svd', low, states, preferred_element_type=jnp.float32)
    return states_BxCxD, table_SxVxD, change.sum((1, 2))
