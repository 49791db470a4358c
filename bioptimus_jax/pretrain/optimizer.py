"""Optimisers with rules that cover every parameter, and their reset at the start of a phase."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from bioptimus_jax.model.architecture import Rule
from bioptimus_jax.model.trees import match_rules
from bioptimus_jax.pretrain.config import Pretrain
from bioptimus_jax.pretrain.decay import DECAYS
from bioptimus_jax.pretrain.optimizers import OPTIMIZERS

MATRIX = r'^encoder/.*/kernel$'


def make_optimizer(
    settings: Pretrain, params: Any, rules: Sequence[Rule]
) -> optax.GradientTransformationExtraArgs:
    """Clipping, and what the record of the optimiser says; the learning rate is applied by `moved`."""
    exempts = DECAYS[settings.decay].exempts
    decayed = match_rules(params, [(rule.pattern, rule.decays or not exempts) for rule in rules])
    matrices = match_rules(params, [(MATRIX, True), ('', False)])
    return optax.chain(
        optax.clip_by_global_norm(settings.clip_norm) if settings.clip_norm else optax.identity(),
        *OPTIMIZERS[settings.optimizer].updates(settings, decayed, matrices),
    )


def moved(settings: Pretrain, params: Any, updates: Any, learning_rate: jax.Array) -> Any:
    """The parameters after a step with those updates."""
    if OPTIMIZERS[settings.optimizer].whole_steps:
        return jax.tree.map(jnp.add, params, updates)
    # Indexed by the global step: optax's own schedules count updates, which a reset or a skipped step would move.
    return jax.tree.map(lambda p, u: p - learning_rate * u, params, updates)


def scored(settings: Pretrain, before: Any, optimizer_state: Any, params: Any) -> Any:
    """The weights that are scored in place of the trained ones, after a step; `before`: what they were."""
    if of_optimizer := OPTIMIZERS[settings.optimizer].evaluated:
        return of_optimizer(settings, optimizer_state[1:], params)  # the first one is of clipping
    return jax.tree.map(lambda old, new: settings.ema * old + (1 - settings.ema) * new, before, params)


def reset_where(condition: jax.Array, optimizer_state: Any, fresh: Any) -> Any:
    """The `fresh` state where `condition` holds."""
    return jax.tree.map(lambda old, new: jnp.where(condition, new, old), optimizer_state, fresh)
