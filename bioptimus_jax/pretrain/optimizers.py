"""How gradients become updates: one record each, and the table is all that names them.

This file imports jax and optax only where a step is made, so that the schema can list the names.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from bioptimus_jax.config.plugins import Table


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """`meaning` is what the configuration says of it.

    `updates(settings, decayed, matrices)` gives the optax transformations between clipping and the learning rate, which
    the step applies: `decayed` and `matrices` are trees like the parameters that say which of them decay, and which are
    matrices of the encoder. Their `update` gets the keyword `learning_rate` too; where they have a use for it, the last
    one gives `whole_steps`: what is added to the parameters, which the step then only adds.

    `evaluated(settings, states, params)`: the weights that are scored, kept and exported where these are not the ones
    that are trained, from the states of those transformations and the trained parameters. They lie in the train state
    beside the trained ones.

    `for_matrices`: whether it differs from AdamW in the matrices of the encoder alone, which an adapter does not train.
    """

    meaning: str
    updates: Callable[[Any, Any, Any], Sequence[Any]]
    whole_steps: bool = False
    evaluated: Callable[[Any, Any, Any], Any] | None = None
    for_matrices: bool = False


def _adamw(settings: Any, decayed: Any, matrices: Any) -> Sequence[Any]:
    import optax

    adam = optax.scale_by_adam(settings.beta1, settings.beta2, settings.epsilon)
    return adam, optax.add_decayed_weights(settings.weight_decay, mask=decayed)


def _lamb(settings: Any, decayed: Any, matrices: Any) -> Sequence[Any]:
    import optax

    scale = optax.masked(optax.scale_by_trust_ratio(), decayed)
    return (*_adamw(settings, decayed, matrices), scale)


def _stable(settings: Any, decayed: Any, matrices: Any) -> Sequence[Any]:
    """AdamW with each tensor's update, decay included, divided by the root mean square of gradient / sqrt(v), if that
    is above 1; v is the bias-corrected second moment, of this step too."""
    import jax
    import jax.numpy as jnp
    import optax

    adam, decay = _adamw(settings, decayed, matrices)

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        updates, state = adam.update(gradients, state, params)
        # Decay keeps nothing between steps: its empty state is made here, so that only that of Adam is saved.
        updates, _ = decay.update(updates, decay.init(params), params)
        correction = 1 - settings.beta2 ** state.count.astype(jnp.float32)

        def clipped(update: Any, gradient: Any, moment: Any) -> Any:
            # Adam adds epsilon to sqrt(v), so v gets its square here: above 0, as v is 0 before the first gradient.
            least = max(settings.epsilon, 1e-12) ** 2
            squares = (gradient**2 / jnp.maximum(moment / correction, least)).mean()
            return update / jnp.maximum(1, jnp.sqrt(squares))

        return jax.tree.map(clipped, updates, gradients, state.nu), state

    return (optax.GradientTransformation(adam.init, update),)


MUON_BETA, MUON_RMS, MUON_STEPS = 0.95, 0.2, 5
MUON_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def _muon(settings: Any, decayed: Any, matrices: Any) -> Sequence[Any]:
    """Momentum with Nesterov's step, orthogonalised, at the root mean square of Adam's updates (arXiv 2502.16982)."""
    import jax
    import jax.numpy as jnp
    import optax

    others = jax.tree.map(lambda matrix: not matrix, matrices)
    adam = optax.masked(optax.scale_by_adam(settings.beta1, settings.beta2, settings.epsilon), others)
    momentum = optax.masked(optax.trace(MUON_BETA, nesterov=True), matrices)

    def orthogonal(update: Any, matrix: bool) -> Any:
        if not matrix:
            return update
        a, b, c = MUON_COEFFICIENTS
        # With rows on the shorter side `square` is the smaller product. A Frobenius norm of 1 keeps every singular
        # value at 1 or below, above which the iteration can diverge.
        wide = update.T if update.shape[0] > update.shape[1] else update
        wide = wide / (jnp.linalg.norm(wide) + 1e-7)
        for _ in range(MUON_STEPS):
            square = wide @ wide.T
            wide = a * wide + (b * square + c * square @ square) @ wide
        # Entries of an orthogonal matrix have a root mean square of 1 / sqrt(longer side).
        return (wide.T if wide.shape != update.shape else wide) * (MUON_RMS * max(update.shape) ** 0.5)

    def update(gradients: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        return jax.tree.map(orthogonal, gradients, matrices), state

    scale = optax.GradientTransformation(lambda params: optax.EmptyState(), update)
    return adam, momentum, scale, optax.add_decayed_weights(settings.weight_decay, mask=decayed)


OPTIMIZERS: Table[Optimizer] = Table(
    'OPTIMIZERS',
    {
        'adamw': Optimizer('AdamW', _adamw),
        'lamb': Optimizer('LAMB, for very large batches (arXiv 1904.00962)', _lamb),
        'stable_adamw': Optimizer('AdamW whose updates are clipped by tensor (arXiv 2304.13013)', _stable),
        'muon': Optimizer(
            'Muon for the matrices of the encoder, AdamW for all else (arXiv 2502.16982)',
            _muon,
            for_matrices=True,
        ),
    },
)
"""What `config.pretrain.optimizer` may be."""
