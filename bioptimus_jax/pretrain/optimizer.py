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


def make_optimizer(settings: Pretrain, params: Any, rules: Sequence[Rule]) -> optax.GradientTransformation:
    """Clipping, and what the record of the optimiser says; the learning rate is applied by the step."""
    exempts = DECAYS[settings.decay].exempts
    decayed = match_rules(params, [(rule.pattern, rule.decays or not exempts) for rule in rules])
    matrices = match_rules(params, [(MATRIX, True), ('', False)])
    return optax.chain(
        optax.clip_by_global_norm(settings.clip_norm) if settings.clip_norm else optax.identity(),
        *OPTIMIZERS[settings.optimizer].updates(settings, decayed, matrices),
    )


def reset_where(condition: jax.Array, optimizer_state: Any) -> Any:
    """The state as at step 0, all zeros, where `condition` holds."""
    return jax.tree.map(lambda x: jnp.where(condition, jnp.zeros_like(x), x), optimizer_state)
