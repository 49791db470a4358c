"""Losses over the vocabulary without ever holding the logits of all slots: cross-entropy, divergence, others alike.

The output matrix is most of a small BERT's work and its logits most of the memory. So slots are taken a few columns
at a time; the forward pass computes a chunk's logits, its losses and, while they are at hand, its share of the
gradients. Slots are filled from the first on. On CPUs and TPUs a chunk that no row reaches is not computed, so a phase
that predicts 15 % does not pay for the slots of one that predicts 20 %. On GPUs it is: with BERT-base and these shares
it costs 1.4 %, and the wait for the number of chunks cost more.

B rows, M slots, C slots of a chunk, D hidden size, V padded vocabulary, S parts that the rows are split into.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from bioptimus_jax.model.architecture import OutputLayer, logits_of
from bioptimus_jax.model.compute import Compute

# On a CPU the logits of a chunk should fit the cache; elsewhere its products should outweigh their accumulation.
POSITIONS_PER_CHUNK = {'cpu': 128}
POSITIONS_PER_CHUNK_ELSEWHERE = 4096
WAITING = ('gpu',)
"""Platforms where the host waits until the device knows whether a loop goes on, and starts nothing meanwhile."""

Arrays: TypeAlias = tuple[jax.Array, ...]
Loss: TypeAlias = Callable[[Arrays, Arrays], tuple[Arrays, tuple[jax.Array | None, ...]]]
"""`(logits, others) -> (values, changes)` of a chunk; static under jit.

From the logits BxCxV of each output layer, and what else there is of the slots, each BxC: values BxC, the loss first;
and for each of the logits the gradient BxCxV of the loss, None for those that are taken as they are.
"""


def cross_entropy(
    states_BxMxD: jax.Array,
    table_VxD: jax.Array,
    bias_V: jax.Array,
    targets_BxM: jax.Array,
    weights_BxM: jax.Array,
    compute: Compute,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Weighted sum of the losses, the loss of every slot, and whether its target has the highest logit: `in_chunks`."""
    layers = (OutputLayer(states_BxMxD, table_VxD, bias_V),)
    total, (losses_BxM, correct_BxM) = in_chunks(of_targets, layers, (targets_BxM,), weights_BxM, compute)
    return total, losses_BxM, correct_BxM


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 4, 5))
def in_chunks(
    loss: Loss,
    layers: tuple[OutputLayer, ...],
    others: Arrays,
    weights_BxM: jax.Array,
    compute: Compute,
    tables: bool = True,
) -> tuple[jax.Array, Arrays]:
    """Weighted sum of a loss over the vocabulary, and its values in every slot.

    Only the sum has gradients: for states, table and bias of each layer, without `tables` for the states alone. Weights
    must be 0 from a row's last slot on; the values of slots of weight 0 are 0 where their chunk was left out. Columns
    that pad the vocabulary need a bias of the lowest number.
    """
    return _computed(loss, layers, others, weights_BxM, compute, tables, gradients=False)[0]


def of_targets(logits: Arrays, others: Arrays) -> tuple[Arrays, Arrays]:
    """A `Loss`: cross-entropy by the targets, and whether a target has the highest logit."""
    ((logits_BxCxV,), (targets_BxC,)) = logits, others
    # Less the largest logit, so that no power overflows; its own becomes 1.
    best_BxC = logits_BxCxV.max(axis=-1)
    powers_BxCxV = jnp.exp(logits_BxCxV - best_BxC[..., None])
    norm_BxC = powers_BxCxV.sum(axis=-1)
    true_BxC = jnp.take_along_axis(logits_BxCxV, targets_BxC[..., None], axis=-1)[..., 0]
    losses_BxC = best_BxC + jnp.log(norm_BxC) - true_BxC
    # One division a slot and a product a column: a division takes longer than a product.
    shares_BxCxV = powers_BxCxV * (1 / norm_BxC)[..., None]
    # A comparison is elementwise and fuses with the subtraction; a scatter would write the chunk once more.
    is_target_BxCxV = jnp.arange(logits_BxCxV.shape[-1])[None, None] == targets_BxC[..., None]
    return (losses_BxC, true_BxC >= best_BxC), (shares_BxCxV - is_target_BxCxV,)


@dataclasses.dataclass(frozen=True)
class Divergence:
    """A `Loss`: T^2 KL(second || first) of two layers' softmax at temperature T; the second is taken as it is.

    Hinton et al. (arXiv 1503.02531): the square keeps the size of the gradient whatever the temperature.
    """

    temperature: float = 1.0

    def __call__(self, logits: Arrays, others: Arrays) -> tuple[Arrays, tuple[jax.Array | None, ...]]:
        """The divergence, and its gradient by the first logits."""
        t = self.temperature
        learns, given = (Shares.of(x / t) for x in logits)
        return (t**2 * kl(given, learns),), (t * (learns.shares_BxCxV - given.shares_BxCxV), None)


class Shares(NamedTuple):
    """The softmax of logits, and its logarithm."""

    shares_BxCxV: jax.Array
    logs_BxCxV: jax.Array

    @classmethod
    def of(cls, logits_BxCxV: jax.Array) -> 'Shares':
        """Both shares, with one pass over the logits for the sum."""
        logs_BxCxV = jax.nn.log_softmax(logits_BxCxV)
        return cls(jnp.exp(logs_BxCxV), logs_BxCxV)


def kl(one: Shares, other: Shares) -> jax.Array:
    """KL(one || other), BxC."""
    terms_BxCxV = one.shares_BxCxV * (one.logs_BxCxV - other.logs_BxCxV)
    # In a column of padding the lowest number divided by a temperature below 1 is -inf, and 0 * (inf - inf) is NaN.
    return jnp.where(one.shares_BxCxV > 0, terms_BxCxV, 0).sum(axis=-1)


def chunk_slots(rows: int, slots: int, platform: str = '') -> int:
    """Slots of a chunk: a multiple of 8 near the platform's number of positions, as equal chunks as can be.

    `platform`: cpu, gpu or tpu; empty: the one that this process runs on.
    """
    # Chunks as equal as can be: a short last one would be padded, and computed as if it were full.
    wanted = POSITIONS_PER_CHUNK.get(platform or jax.default_backend(), POSITIONS_PER_CHUNK_ELSEWHERE)
    chunks = -(-slots // max(8, wanted // max(rows, 1)))
    return min(-(-slots // (8 * chunks)) * 8, slots)


def _computed(
    loss: Loss,
    layers: tuple[OutputLayer, ...],
    others: Arrays,
    weights_BxM: jax.Array,
    compute: Compute,
    tables: bool,
    *,
    gradients: bool = True,
) -> tuple[tuple[jax.Array, Arrays], list[OutputLayer | None]]:
    """What `in_chunks` gives, and if asked for the gradients of every layer, None of those that have none."""
    (rows, count), shards = weights_BxM.shape, compute.row_shards
    size = chunk_slots(rows // shards, count, compute.platform)

    # `dynamic_slice` moves a slice that reaches beyond the end back inside, so the last chunk must be whole.
    def padded(values: jax.Array) -> jax.Array:
        return jnp.pad(values, [(0, 0), (0, -count % size)] + [(0, 0)] * (values.ndim - 2))

    whole = [x.states_BxMxD for x in layers], others, weights_BxM
    states, others, weights_BxM = jax.tree.map(padded, whole)
    # Outside of the loop, so that the table is cast once and not for every chunk.
    low = [compute.place(x.table_VxD.astype(compute.dtype), 'vocabulary', None) for x in layers]

    def part_at(at: Any) -> tuple[Any, ...]:
        """The states and weights of the chunk there, and what the loss says of it."""
        cut = functools.partial(jax.lax.dynamic_slice_in_dim, start_index=at, slice_size=size, axis=1)
        parts = [cut(x) for x in states]
        logits = (logits_of(part, table, x.bias_V) for part, table, x in zip(parts, low, layers, strict=True))
        placed = tuple(compute.place(x, 'rows', None, 'vocabulary') for x in logits)
        return parts, cut(weights_BxM), *loss(placed, tuple(map(cut, others)))

    def chunk(number: jax.Array, carry: Any) -> Any:
        total, values, sums = carry
        at = number * size
        put = functools.partial(jax.lax.dynamic_update_slice_in_dim, start_index=at, axis=1)
        parts, weights_BxC, found, changes = part_at(at)
        total = total + (found[0] * weights_BxC).sum()
        values = tuple(map(put, values, found))
        for layer, before in sums.items():
            change_BxCxV = changes[layer] * weights_BxC[..., None]
            states_BxCxD, *of_tables = _gradients(parts[layer], change_BxCxV, low[layer], compute, tables)
            axes = ('rows', 'vocabulary', None), ('rows', 'vocabulary')
            # A place for every shard of the rows, so that devices add up their sums once, behind the loop, not in every
            # chunk.
            added = [compute.place(x + y, *a) for x, y, a in zip(before[1:], of_tables, axes)]
            sums = {**sums, layer: [put(before[0], states_BxCxD), *added]}
        return total, values, sums

    _, _, shapes, changes = jax.eval_shape(part_at, 0)
    values = tuple(jnp.zeros(weights_BxM.shape, x.dtype) for x in shapes)
    learning = [at for at, change in enumerate(changes) if change is not None] if gradients else []
    sums = {layer: _zeros(layers[layer], states[layer], shards, tables) for layer in learning}
    last: Any = -(-count // size)
    if (compute.platform or jax.default_backend()) not in WAITING:
        # A traced bound: the loop ends behind the last chunk in use, so a lower rate costs less without a new compile.
        used = ((weights_BxM > 0) * jnp.arange(1, weights_BxM.shape[1] + 1)[None]).max()
        last = -(-used // size)
    total, values, sums = jax.lax.fori_loop(0, last, chunk, (jnp.zeros(()), values, sums))
    ended: list[OutputLayer | None] = [None] * len(layers)
    for layer, (states_BxMxD, *of_tables) in sums.items():
        states_BxMxD = states_BxMxD[:, :count].astype(states[layer].dtype)
        ended[layer] = OutputLayer(states_BxMxD, *(x.sum(0) for x in of_tables) if tables else (None, None))
    return (total, tuple(x[:, :count] for x in values)), ended


def _zeros(layer: OutputLayer, states_BxMxD: jax.Array, shards: int, tables: bool) -> list[jax.Array]:
    """Where the gradients of a layer are summed: of its states and, for each shard of the rows, of table and bias."""
    of_tables = [(shards, *whole.shape) for whole in (layer.table_VxD, layer.bias_V)] if tables else []
    return [jnp.zeros(shape, jnp.float32) for shape in (states_BxMxD.shape, *of_tables)]


def _backward(
    _loss: Loss, _compute: Compute, _tables: bool, gradients: Any, cotangents: Any
) -> tuple[Any, ...]:
    # The forward pass had the logits at hand, so it has the gradients too: here they are only scaled.
    layers = tuple(jax.tree.map(lambda g: g * cotangents[0].astype(g.dtype), x) for x in gradients)
    return layers, None, None


in_chunks.defvjp(_computed, _backward)


def _gradients(
    states_BxCxD: jax.Array, change_BxCxV: jax.Array, table_VxD: jax.Array, compute: Compute, tables: bool
) -> list[jax.Array]:
    """Gradients of a chunk's weighted sum, given that of its logits: of its states BxCxD, of the table SxVxD and of the
    bias SxV.

    The gradients of table and bias are sums for every part of the rows, to be added across devices once, after the last
    chunk.
    """
    # The products take the compute type and are summed in float32; the bias sums the changes as they are.
    low_BxCxV = change_BxCxV.astype(compute.dtype)
    found = [jnp.einsum('bcv,vd->bcd', low_BxCxV, table_VxD, preferred_element_type=jnp.float32)]
    if tables:
        split = (compute.row_shards, len(low_BxCxV) // compute.row_shards)
        low, change, states = (
            x.reshape(*split, *x.shape[1:]) for x in (low_BxCxV, change_BxCxV, states_BxCxD)
        )
        found += [
            jnp.einsum('sbcv,sbcd->svd', low, states, preferred_element_type=jnp.float32),
            change.sum((1, 2)),
        ]
    return found
