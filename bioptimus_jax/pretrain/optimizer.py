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
BODY = ('embeddings', 'encoder')
"""What a source always has; heads are beside them."""


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


def moved(settings: Pretrain, params: Any, updates: Any, learning_rate: jax.Array, step: jax.Array) -> Any:
    """The parameters after the step of that number with those updates."""
    if OPTIMIZERS[settings.optimizer].whole_steps:
        return jax.tree.map(jnp.add, params, updates)
    # Indexed by the global step: optax's own schedules count updates, which a reset or a skipped step would move.
    of_body = learning_rate * body_share(settings.head_steps, step)
    return {
        name: jax.tree.map(
            lambda p, u, rate=of_body if name in BODY else learning_rate: p - rate * u, part, updates[name]
        )
        for name, part in params.items()
    }


def body_share(head_steps: int, step: jax.Array) -> jax.Array | float:
    """Share of the learning rate that embeddings and encoder get in a step, while a head above them is fitted."""
    return jnp.clip((step + 1 - head_steps) / head_steps, 0.0, 1.0) if head_steps else 1.0


def scored(settings: Pretrain, before: Any, optimizer_state: Any, params: Any) -> Any:
    """The weights that are scored in place of the trained ones, after a step; `before`: what they were."""
    if of_optimizer := OPTIMIZERS[settings.optimizer].evaluated:
        return of_optimizer(settings, optimizer_state[1:], params)  # the first one is of clipping
    return jax.tree.map(lambda old, new: settings.ema * old + (1 - settings.ema) * new, before, params)


def reset_where(condition: jax.Array, optimizer_state: Any, fresh: Any) -> Any:
    """The `fresh` state where `condition` holds."""
    return jax.tree.map(lambda old, new: jnp.where(condition, new, old), optimizer_state, fresh)
