"""Cross-entropy over the vocabulary without ever holding the logits of all slots.

The output matrix is most of a small BERT's work and its logits most of the memory. So slots are taken a few columns
at a time; the forward pass computes a chunk's logits, its losses and, while they are at hand, its share of the
gradients. Slots are filled from the first on: a chunk that no row reaches is not computed, so a phase that predicts
15 % does not pay for the slots of one that predicts 20 %.

B rows, M slots, C slots of a chunk, D hidden size, V padded vocabulary, S parts that the rows are split into.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from bioptimus_jax.model.compute import Compute

POSITIONS_PER_CHUNK = {'cpu': 128}  # the logits of a chunk then fit a CPU's cache
POSITIONS_PER_CHUNK_ELSEWHERE = (
    4096  # large enough that matrix products, not their accumulation, take the time
)
Slots = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]


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
    total, losses_BxM, correct_BxM, _ = _chunked(
        (states_BxMxD, table_VxD, bias_V, targets_BxM, weights_BxM), compute, gradients=False
    )
    return total, losses_BxM, correct_BxM


def _forward(*arguments: Any) -> tuple[Any, Any]:
    *slots, compute = arguments
    total, losses_BxM, correct_BxM, gradients = _chunked(tuple(slots), compute, gradients=True)
    return (total, losses_BxM, correct_BxM), gradients


def _backward(compute: Compute, gradients: Any, cotangents: Any) -> tuple[Any, ...]:
    del compute
    return *(g * cotangents[0].astype(g.dtype) for g in gradients), None, None


cross_entropy.defvjp(_forward, _backward)


def chunk_slots(rows: int, slots: int) -> int:
    """Slots of a chunk: a multiple of 8 near the platform's number of positions, as equal chunks as can be."""
    wanted = POSITIONS_PER_CHUNK.get(jax.default_backend(), POSITIONS_PER_CHUNK_ELSEWHERE)
    chunks = -(-slots // max(8, wanted // max(rows, 1)))
    return min(-(-slots // (8 * chunks)) * 8, slots)


def _chunked(slots: Slots, compute: Compute, gradients: bool) -> tuple[jax.Array, jax.Array, jax.Array, Any]:
    states_BxMxD, table_VxD, bias_V, targets_BxM, weights_BxM = slots
    rows, count, _ = states_BxMxD.shape
    size = chunk_slots(rows // compute.row_shards, count)
    padding = -count % size
    states_BxMxD = jnp.pad(states_BxMxD, ((0, 0), (0, padding), (0, 0)))
    targets_BxM, weights_BxM = (jnp.pad(x, ((0, 0), (0, padding))) for x in (targets_BxM, weights_BxM))
    table_VxD = compute.place(table_VxD.astype(compute.dtype), 'vocabulary', None)
    shards = compute.row_shards
    column_V = jnp.arange(len(table_VxD))

    def chunk(number: jax.Array, carry: Any) -> Any:
        total, losses_BxM, correct_BxM, sums = carry
        states_BxCxD, targets_BxC, weights_BxC = (
            jax.lax.dynamic_slice_in_dim(x, number * size, size, axis=1)
            for x in (states_BxMxD, targets_BxM, weights_BxM)
        )
        logits_BxCxV = jnp.einsum('bcd,vd->bcv', states_BxCxD, table_VxD, preferred_element_type=jnp.float32)
        logits_BxCxV = compute.place(logits_BxCxV + bias_V[None, None], 'rows', None, 'vocabulary')
        best_BxC = logits_BxCxV.max(axis=-1)
        shares_BxCxV = jnp.exp(logits_BxCxV - best_BxC[..., None])
        norm_BxC = shares_BxCxV.sum(axis=-1)
        true_BxC = jnp.take_along_axis(logits_BxCxV, targets_BxC[..., None], axis=-1)[..., 0]
        losses_BxC = best_BxC + jnp.log(norm_BxC) - true_BxC
        correct_BxC = true_BxC >= best_BxC
        total = total + (losses_BxC * weights_BxC).sum()
        losses_BxM = jax.lax.dynamic_update_slice_in_dim(losses_BxM, losses_BxC, number * size, axis=1)
        correct_BxM = jax.lax.dynamic_update_slice_in_dim(correct_BxM, correct_BxC, number * size, axis=1)
        if gradients:
            is_target_BxCxV = column_V[None, None] == targets_BxC[..., None]
            change_BxCxV = shares_BxCxV * (weights_BxC / norm_BxC)[..., None]
            change_BxCxV = change_BxCxV - jnp.where(is_target_BxCxV, weights_BxC[..., None], 0)
            low_BxCxV = change_BxCxV.astype(compute.dtype)
            grown_BxCxD = jnp.einsum('bcv,vd->bcd', low_BxCxV, table_VxD, preferred_element_type=jnp.float32)
            # A sum for every part of the rows: they are added across devices once, after the last chunk.
            parts = (low_BxCxV, change_BxCxV, states_BxCxD)
            low, change, states = (x.reshape(shards, rows // shards, *x.shape[1:]) for x in parts)
            table = jnp.einsum('sbcv,sbcd->svd', low, states, preferred_element_type=jnp.float32)
            sums = (
                jax.lax.dynamic_update_slice_in_dim(sums[0], grown_BxCxD, number * size, axis=1),
                compute.place(sums[1] + table, 'rows', 'vocabulary', None),
                compute.place(sums[2] + change.sum((1, 2)), 'rows', 'vocabulary'),
            )
        return total, losses_BxM, correct_BxM, sums

    sums: tuple[jax.Array, ...] = ()
    if gradients:
        sums = (
            jnp.zeros(states_BxMxD.shape, jnp.float32),
            jnp.zeros((shards, *table_VxD.shape), jnp.float32),
            jnp.zeros((shards, *bias_V.shape), jnp.float32),
        )
    zeros_BxM = jnp.zeros(weights_BxM.shape, jnp.float32)
    used = ((weights_BxM > 0) * jnp.arange(1, weights_BxM.shape[1] + 1)[None]).max()
    total, losses_BxM, correct_BxM, sums = jax.lax.fori_loop(
        0, -(-used // size), chunk, (jnp.zeros(()), zeros_BxM, zeros_BxM > 0, sums)
    )
    found: tuple[jax.Array, ...] = ()
    if gradients:
        found = (sums[0][:, :count].astype(states_BxMxD.dtype), sums[1].sum(0), sums[2].sum(0))
    return total, losses_BxM[:, :count], correct_BxM[:, :count], found
