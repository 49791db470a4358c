"""The train step: pure, jitted once for the whole curriculum and for one mesh.

Legend: B rows of the global batch, L pieces a row, G segments, M slots, W pieces of the longest unit.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from bioptimus_jax.model.architecture import Architecture, Rule
from bioptimus_jax.model.compute import PLAIN, Compute
from bioptimus_jax.pretrain import curriculum
from bioptimus_jax.pretrain.backends import make_compute
from bioptimus_jax.pretrain.masking import Masked, Masker, mask_batch, row_key
from bioptimus_jax.pretrain.objective import SUMS, masked_lm
from bioptimus_jax.pretrain.optimizer import make_optimizer, reset_where
from bioptimus_jax.pretrain.rows import positions_and_segments
from bioptimus_jax.pretrain.sharding import batch_sharding, place_state, replicated, state_shardings
from bioptimus_jax.schema import Experiment, Pretrain
from bioptimus_jax.vocab.subwords import Vocabulary

DROPOUT_STREAM = 2**32 - 1  # beyond any step: masks fold the step into the same seed's key


@dataclasses.dataclass(frozen=True)
class StepPlan:
    """Everything static that the step is compiled for."""

    architecture: Architecture
    settings: Pretrain
    masker: Masker
    seed: int
    compute: Compute = PLAIN


def make_plan(
    config: Experiment,
    architecture: Architecture,
    vocabulary: Vocabulary,
    row_pieces: int,
    mesh: Mesh,
    warn: Callable[[str], None],
) -> StepPlan:
    """The plan of a configuration, for rows of that many pieces."""
    return StepPlan(
        architecture,
        config.pretrain,
        Masker.of(vocabulary, config.pretrain, config.trained_phases, row_pieces),
        config.seed,
        make_compute(config, architecture, mesh, row_pieces, warn),
    )


def initial_state(params: Any, settings: Pretrain, rules: Sequence[Rule]) -> dict[str, Any]:
    """Train state: a plain dict of parameters, optimiser state and the number of steps done."""
    optimizer_state = make_optimizer(settings, params, rules).init(params)
    return {'params': params, 'optimizer': optimizer_state, 'step': jnp.zeros((), jnp.int32)}


def sharded_step(plan: StepPlan, mesh: Mesh, params: Any) -> tuple[Callable, dict[str, Any]]:
    """The jitted train step on a mesh, its state donated, and the placed state at step 0."""
    rules = plan.architecture.rules
    state = initial_state(params, plan.settings, rules)
    shardings = state_shardings(state, make_optimizer(plan.settings, params, rules), mesh, rules)
    everywhere = replicated(mesh)
    step = jax.jit(
        make_train_step(plan),
        donate_argnums=0,
        in_shardings=(shardings, batch_sharding(mesh), everywhere),
        out_shardings=(shardings, everywhere),
    )
    return step, place_state(state, shardings)


def mask_step_batch(
    batch: dict[str, jax.Array], plan: StepPlan, table: dict[str, jax.Array], step: jax.Array
) -> tuple[Masked, jax.Array, jax.Array, jax.Array]:
    """The masked batch of a step, and maskable_BxL, segments_BxL, positions_BxL."""
    rows, length = batch['tokens'].shape
    positions_BxL, segments_BxL = positions_and_segments(batch['segment_lengths'], length, jnp)
    seed_key = jax.random.key(plan.seed, impl='threefry2x32')
    keys_B = jax.vmap(lambda position: row_key(seed_key, step, position))(jnp.arange(rows))
    masked, maskable_BxL = mask_batch(
        batch['tokens'],
        plan.masker.word_starts(batch),
        segments_BxL,
        curriculum.setting_at(table, step),
        keys_B,
        plan.masker.vocabulary,
        plan.masker.slots,
    )
    return masked, maskable_BxL, segments_BxL, positions_BxL


def make_train_step(plan: StepPlan) -> Callable:
    """`(state, batch, table) -> (state, metrics)`, to be jitted with the state donated.

    Losses and gradients are summed over micro-batches and devices and divided once by the global number of slots.
    """
    settings, parts = plan.settings, plan.settings.micro_batches

    def loss_of(params: Any, part: tuple, dropout_key: jax.Array) -> tuple[jax.Array, dict]:
        masked, segments_BxL, positions_BxL = part
        return masked_lm(
            params,
            plan.architecture,
            masked,
            segments_BxL,
            positions_BxL,
            compute=plan.compute,
            dropout_key=dropout_key,
        )

    def train_step(state: dict, batch: dict, table: dict) -> tuple[dict, dict]:
        params, step = state['params'], state['step']
        masked, maskable_BxL, segments_BxL, positions_BxL = mask_step_batch(batch, plan, table, step)
        seed_key = jax.random.key(plan.seed, impl='threefry2x32')
        dropout_key = jax.random.fold_in(jax.random.fold_in(seed_key, DROPOUT_STREAM), step)

        def accumulate(totals: Any, numbered: tuple) -> tuple[Any, None]:
            number, part = numbered
            key = jax.random.fold_in(dropout_key, number)
            (loss, sums), gradients = jax.value_and_grad(loss_of, has_aux=True)(params, part, key)
            return jax.tree.map(jnp.add, totals, (loss, sums, gradients)), None

        # Interleaved cut: every device keeps its own rows in every part.
        cut = jax.tree.map(
            lambda x: x.reshape(x.shape[0] // parts, parts, *x.shape[1:]).swapaxes(0, 1),
            (masked, segments_BxL, positions_BxL),
        )
        zeros = (jnp.zeros(()), dict.fromkeys(SUMS, jnp.zeros(())), jax.tree.map(jnp.zeros_like, params))
        (loss, sums, gradients), _ = jax.lax.scan(accumulate, zeros, (jnp.arange(parts), cut))

        weight = jnp.maximum(sums['weight'], 1)
        gradients = jax.tree.map(lambda g: g / weight, gradients)
        at = curriculum.phase_at(table, step)
        starts_anew = jnp.asarray(table['reset'])[at] & (step == jnp.asarray(table['start'])[at])
        optimizer_state = reset_where(starts_anew, state['optimizer'])
        optimizer = make_optimizer(settings, params, plan.architecture.rules)
        updates, optimizer_state = optimizer.update(gradients, optimizer_state, params)
        learning_rate = curriculum.learning_rate_at(table, step, settings.end_fraction)
        moved = jax.tree.map(lambda p, u: p - learning_rate * u, params, updates)
        norm = optax.tree.norm(gradients)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        if settings.not_finite == 'skip':  # this batch leaves no trace but in the count
            moved, optimizer_state = jax.tree.map(
                lambda new, old: jnp.where(finite, new, old),
                (moved, optimizer_state),
                (params, state['optimizer']),
            )
        metrics = {
            'loss': loss / weight,
            'accuracy': sums['correct'] / weight,
            'word_accuracy': sums['correct_units'] / jnp.maximum(sums['units'], 1),
            'gradient_norm': norm,
            'finite': finite,
            'learning_rate': learning_rate,
            'tokens': (segments_BxL > 0).sum(),
            # Sum over pieces of the length of their document: what attention has to look at.
            'attended': (batch['segment_lengths'].astype(jnp.float32) ** 2).sum(),
            'phase': at,
            'units': sums['units'],
            **realised_rates(masked, maskable_BxL, batch, plan.masker),
        }
        return {'params': moved, 'optimizer': optimizer_state, 'step': step + 1}, metrics

    return train_step


def realised_rates(
    masked: Masked, maskable_BxL: jax.Array, batch: dict[str, jax.Array], masker: Masker
) -> dict[str, jax.Array]:
    """Selected and maskable pieces by length of their word, [W + 1] each, whatever the setting."""
    longest = masker.longest
    starts_BxL = masker.word_starts(batch)
    previous_BxL = jnp.pad(maskable_BxL[:, :-1], ((0, 0), (1, 0)))
    starts_BxL = starts_BxL | ~maskable_BxL | ~previous_BxL
    length = starts_BxL.shape[1]
    word_BxL = jnp.cumsum(starts_BxL, axis=1) - 1
    count = jax.vmap(lambda w: jax.ops.segment_sum(jnp.ones(length, jnp.int32), w, length)[w])
    lengths_BxL = jnp.minimum(count(word_BxL), longest)
    chosen_BxM = jnp.take_along_axis(lengths_BxL, masked.slots_M, axis=1)
    one_hot = jax.nn.one_hot(jnp.where(maskable_BxL, lengths_BxL, -1), longest + 1)
    selected = (jax.nn.one_hot(chosen_BxM, longest + 1) * masked.weights_M[..., None]).sum((0, 1))
    return {'selected_by_length': selected, 'maskable_by_length': one_hot.sum((0, 1))}
