"""The train step: pure, jitted once for an objective and for one mesh, whatever the number of phases.

B rows of the global batch.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh

from bioptimus_jax.model.architecture import Rule
from bioptimus_jax.model.compute import undivided
from bioptimus_jax.model.layers import LOOKED_UP
from bioptimus_jax.model.trees import flatten, unflatten
from bioptimus_jax.pretrain import adapter, curriculum, sharding
from bioptimus_jax.pretrain.backends import compiler_options
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.masking import row_keys, seed_key
from bioptimus_jax.pretrain.objective import Example, Objective, OfPart, Tensors
from bioptimus_jax.pretrain.optimizer import make_optimizer, moved, reset_where, scored
from bioptimus_jax.pretrain.state import AVERAGE, TrainState
from bioptimus_jax.surgery.made import NOTHING_MADE, Made

DROPOUT_STREAM, START_STREAM = 2**32 - 1, 2**32 - 2  # beyond any step: masks fold the step into the same key


@dataclasses.dataclass(frozen=True)
class TrainStep:
    """`(state, batch, table) -> (state, metrics)`: the compiled function, and what it reads and nothing trains."""

    compiled: Any
    frozen: Any

    def __call__(
        self, state: TrainState, batch: Tensors, table: curriculum.Table
    ) -> tuple[TrainState, Tensors]:
        return self.compiled(state, self.frozen, batch, table)


@dataclasses.dataclass(frozen=True)
class Beginning:
    """The train state at step 0: `like` has its shapes, types and shardings, and `make` places it on the mesh.

    A run that resumes needs `like` alone: with two states on a device, the step may not find its memory in one piece.
    """

    like: Any
    make: Callable[[], TrainState]


def sharded_step(objective: Objective, mesh: Mesh, params: Any) -> tuple[TrainStep, TrainState]:
    """`sharded_steps` of one objective, and the state at step 0."""
    [step], beginning = sharded_steps([objective], mesh, params)
    return step, beginning.make()


def sharded_steps(
    objectives: Sequence[Objective], mesh: Mesh, params: Any, made: Made = NOTHING_MADE
) -> tuple[list[TrainStep], Beginning]:
    """The train step of each objective on a mesh, its state donated, and the one state that they begin with.

    `params` are the model's; the first objective says what comes to them, and all must train the same. `made`: what of
    them surgery made, which an adapter leaves to be trained.
    """
    # A stream of its own, so that what an objective adds (a head, a map) is drawn alike whatever the masks draw.
    own, settings = objectives[0], objectives[0].config.pretrain
    key = jax.random.fold_in(seed_key(own.config.seed), START_STREAM)
    started = own.start(params, key)
    parts = adapter.split(settings, own.architecture, made, params, started, key)

    def begin(trained: Any) -> TrainState:
        # A copy: a step takes the memory of its state, and can take none that somebody else has.
        return initial_state(jax.tree.map(jnp.array, trained), settings, own.all_rules)

    shapes = jax.eval_shape(begin, parts.trained)
    shardings = sharding.state_shardings(shapes, mesh, own.all_rules)

    def make() -> TrainState:
        # What the optimiser keeps is made where it stays, so that no device has all of it before.
        placed = sharding.place_state(parts.trained, shardings['params'])
        return jax.jit(begin, out_shardings=shardings)(placed)

    base_shardings = adapter.base_shardings(parts.frozen, mesh, own.all_rules)
    base = sharding.place_state(parts.frozen, base_shardings)  # once, for all objectives

    placed: dict[type[Objective], Any] = {}  # of an objective once, whatever the shapes of its steps

    def compiled(objective: Objective) -> TrainStep:
        # An argument of the compiled step, not a constant in it: XLA would copy a teacher into every program.
        kind = type(objective)
        frozen = placed[kind] if kind in placed else objective.frozen(started)
        frozen_shardings = sharding.shardings_of(frozen, mesh, objective.all_rules)
        step = jitted_step(objective, mesh, shardings, frozen_shardings | base_shardings)
        if kind not in placed:
            placed[kind] = sharding.place_state(frozen, frozen_shardings)
        return TrainStep(step, placed[kind] | base)

    like = jax.tree.map(
        lambda leaf, where: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=where), shapes, shardings
    )
    return [compiled(objective) for objective in objectives], Beginning(like, make)


def jitted_step(objective: Objective, mesh: Mesh, shardings: Any, frozen_shardings: Any) -> Any:
    """`train_step` of an objective under jit, for a state and frozen parameters that are split like this."""
    everywhere = sharding.replicated(mesh)
    return jax.jit(
        lambda *arguments: train_step(objective, *arguments),
        # The new state takes the old one's memory, or a device would hold both.
        donate_argnums=0,
        in_shardings=(shardings, frozen_shardings, sharding.batch_sharding(mesh), everywhere),
        out_shardings=(shardings, everywhere),
        compiler_options=compiler_options(mesh),
    )


def initial_state(params: Any, settings: Pretrain, rules: Sequence[Rule]) -> TrainState:
    """The train state at step 0."""
    optimizer_state = make_optimizer(settings, params, rules).init(params)
    state = TrainState(params=params, optimizer=optimizer_state, step=jnp.zeros((), jnp.int32))
    if settings.averages:
        state[AVERAGE] = jax.tree.map(jnp.array, params)  # a copy: the state is donated
    return state


def example_at(objective: Objective, batch: Tensors, table: curriculum.Table, step: jax.Array) -> Example:
    """What the objective makes of a step's batch. Nothing of it depends on how rows are spread over devices."""
    keys_B = row_keys(curriculum.seed_key_of(table), step, len(batch['segment_lengths']))
    return objective.example(batch, curriculum.setting_at(table, step), keys_B)


def train_step(
    objective: Objective, state: TrainState, frozen: Any, batch: Tensors, table: curriculum.Table
) -> tuple[TrainState, Tensors]:
    """One step: the new state, and metrics that stay on the device."""
    settings, params, step = objective.config.pretrain, state['params'], state['step']
    example = example_at(objective, batch, table, step)
    dropout_key = jax.random.fold_in(jax.random.fold_in(curriculum.seed_key_of(table), DROPOUT_STREAM), step)
    loss, sums, gradients = mean_gradients(objective, params, frozen, example, dropout_key)

    at = curriculum.phase_at(table, step)
    starts_anew = jnp.asarray(table.reset)[at] & (step == jnp.asarray(table.start)[at])
    optimizer = make_optimizer(settings, params, objective.all_rules)
    begun_with = reset_where(starts_anew, state['optimizer'], optimizer.init(params))
    learning_rate = curriculum.learning_rate_at(table, step)
    updates, optimizer_state = optimizer.update(gradients, begun_with, params, learning_rate=learning_rate)
    norm = optax.tree.norm(gradients)
    # Both: a finite loss may have gradients that are not, and the update would spread them over all weights.
    finite = jnp.isfinite(loss) & jnp.isfinite(norm)
    moved_on = moved(settings, params, updates, learning_rate, step)
    after = TrainState(params=moved_on, optimizer=optimizer_state, step=step + 1)
    if settings.averages:
        after[AVERAGE] = scored(settings, state[AVERAGE], optimizer_state, moved_on)
    if settings.not_finite == 'skip':  # this batch leaves no trace but in the count
        # A reset stays: only the first step of a phase asks for it.
        before: TrainState = {**state, 'optimizer': begun_with, 'step': step + 1}
        after = jax.tree.map(lambda new, old: jnp.where(finite, new, old), after, before)
    metrics = {
        'loss': loss,
        'gradient_norm': norm,
        'finite': finite,
        'learning_rate': learning_rate,
        'tokens': batch['segment_lengths'].sum(),
        # Sum over pieces of the length of their document: what attention has to look at. In int32 it overflows at 8,192
        # rows of 512 pieces.
        'attended': (batch['segment_lengths'].astype(jnp.float32) ** 2).sum(),
        'phase': at,
        **objective.metrics(example, sums),
    }
    return after, metrics


def mean_gradients(
    objective: Objective, params: Any, frozen: Any, example: Example, dropout_key: jax.Array
) -> tuple[jax.Array, dict[str, jax.Array], Any]:
    """The loss of the whole batch, the objective's sums, and the gradients, whatever the number of micro-batches.

    Micro-batches and devices hold different numbers of predictions, so a mean of their means would be another loss.
    Everything is summed and divided once, by the first term's weight; the other terms are scaled to it beforehand.
    """
    settings = objective.config.pretrain
    parts = settings.micro_batches
    (first, divisor), *others = ((name, jnp.maximum(w, 1)) for name, w in example.weights.items())

    def whole(params: Any) -> Any:
        joined = adapter.whole(settings, params, frozen)
        return sharding.beside_layers(joined, objective.compute.gather, objective.all_rules)

    def loss_of(params: Any, part: Any, key: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        terms, sums = objective.loss(whole(params), frozen, part, key)
        if terms.keys() != example.weights.keys():
            raise ValueError(f'terms {sorted(terms)} of the loss have weights {sorted(example.weights)}')
        return sum((terms[name] * (divisor / weight) for name, weight in others), terms[first]), sums

    def key_of(number: jax.Array) -> jax.Array:
        # Otherwise every micro-batch would drop the same units.
        return jax.random.fold_in(dropout_key, number)

    def accumulate(totals: Any, numbered: tuple) -> tuple[Any, None]:
        number, part = numbered
        key = key_of(number)
        (loss, sums), gradients = jax.value_and_grad(loss_of, has_aux=True)(params, part, key)
        return jax.tree.map(jnp.add, totals, (loss, sums, gradients)), None

    # Interleaved: consecutive rows lie on one device, and every device keeps its own rows in every micro-batch.
    cut = jax.tree.map(lambda x: x.reshape(-1, parts, *x.shape[1:]).swapaxes(0, 1), example.rows)

    def each(function: OfPart) -> Any:
        return jax.lax.map(
            lambda numbered: function(numbered[1], key_of(numbered[0])), (jnp.arange(parts), cut)
        )

    cut = objective.informed(whole(params), frozen, cut, each)
    params, together = rows_apart(objective, params)
    # A scan, not a loop that is unrolled: one compiled part, and the activations of one part at a time.
    shapes = jax.eval_shape(loss_of, params, jax.tree.map(lambda x: x[0], cut), dropout_key)
    # A scan wants totals of the right shapes to begin with: `eval_shape` tells them, and computes nothing.
    zeros = jax.tree.map(jnp.zeros_like, (*shapes, params))
    (loss, sums, gradients), _ = jax.lax.scan(accumulate, zeros, (jnp.arange(parts), cut))
    return loss / divisor, sums, jax.tree.map(lambda g: g / divisor, together(gradients))


def rows_apart(objective: Objective, params: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The parameters with a copy of a tied table for its rows, and what adds the two gradients up again.

    Where devices with copies of the parameters compute several micro-batches, the compiler adds gradients up across
    devices once, behind the last of them. Of a table that is input and output it would do so in each.
    """
    a, compute = objective.architecture, objective.compute
    tied, flat = a.table, flatten(params)
    several = objective.config.pretrain.micro_batches > 1 and compute.row_shards > 1
    if not several or compute.gather is not undivided or a.output_table != tied or tied not in flat:
        return params, lambda gradients: gradients
    copy = tied.removesuffix('embedding') + LOOKED_UP

    def together(gradients: Any) -> Any:
        found = flatten(gradients)
        of_rows = found.pop(copy)
        return unflatten({**found, tied: found[tied] + of_rows})

    return unflatten({**flat, copy: flat[tied]}), together
