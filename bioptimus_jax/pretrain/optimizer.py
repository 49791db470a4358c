"""AdamW and LAMB with rules that cover every parameter, and their reset at the start of a phase."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from bioptimus_jax.model.architecture import Rule
from bioptimus_jax.pretrain.decay import DECAYS
from bioptimus_jax.schema import Pretrain
from bioptimus_jax.trees import match_rules


def make_optimizer(settings: Pretrain, params: Any, rules: Sequence[Rule]) -> optax.GradientTransformation:
    """Clipping, Adam with bias correction, decoupled weight decay; the learning rate is applied by the step.

    LAMB (You et al., arXiv 1904.00962, algorithm 2), for batches of many thousand sequences, also scales the update of
    each decayed tensor to the norm of the tensor.
    """
    exempts = DECAYS[settings.decay].exempts
    decayed = match_rules(params, [(rule.pattern, rule.decays or not exempts) for rule in rules])
    lamb = optax.masked(optax.scale_by_trust_ratio(), decayed)
    return optax.chain(
        optax.clip_by_global_norm(settings.clip_norm) if settings.clip_norm else optax.identity(),
        optax.scale_by_adam(settings.beta1, settings.beta2, settings.epsilon),
        optax.add_decayed_weights(settings.weight_decay, mask=decayed),
        *((lamb,) if settings.optimizer == 'lamb' else ()),
    )


def reset_where(condition: jax.Array, optimizer_state: Any) -> Any:
    """The state as at step 0 (all zeros for Adam) where `condition` holds."""
    return jax.tree.map(lambda x: jnp.where(condition, jnp.zeros_like(x), x), optimizer_state)
