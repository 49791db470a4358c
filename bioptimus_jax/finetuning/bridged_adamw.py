"""AdamW on what lies beyond a bridge: that of `finetuning.optimizer`, in JAX."""

import functools

import jax
import jax.numpy as jnp
import optax

from bioptimus_jax.finetuning.bridge import Bridge, Tensors
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.optimizer import LONG_AGO, eps_of
from bioptimus_jax.finetuning.stability import parameter_groups

BETAS = 0.9, 0.999  # torch's


class BridgedAdamW:
    """Updates of the trained tensors of a head's bridge, each with the rate and the decay of its group."""

    def __init__(self, head: Head, settings: Finetune) -> None:
        self.bridge: Bridge = head.bridge
        groups = parameter_groups(head, settings)
        of = {id(p): (g['lr'], g['weight_decay']) for g in groups for p in g['params']}
        own = self.bridge.own()
        self.rates, self.decays = (
            {name: of[id(own[name])][n] for name in self.bridge.trained} for n in (0, 1)
        )
        self.eps = eps_of(settings)
        self.state = _begun(self.bridge.trained, self.eps, not settings.bias_correction)

    def norm(self) -> float:
        """The norm of the whole gradient; 0 without one."""
        return 0.0 if self.bridge.gradients is None else float(_norm(self.bridge.gradients))

    def update(self, scale: float, share: float) -> None:
        """One update by the gradient times `scale`, at a `share` of the rates; none where there was no gradient."""
        if (gradients := self.bridge.gradients) is None:
            return
        self.bridge.forget()
        self.bridge.trained, self.state = _updated(
            self.bridge.trained, self.state, gradients, self.rates, self.decays, scale, share, self.eps
        )


def _adam(eps: float) -> optax.GradientTransformation:
    return optax.scale_by_adam(*BETAS, eps=eps)


def _begun(trained: Tensors, eps: float, long_ago: bool) -> optax.OptState:
    """Nothing seen yet; without correction of the bias, by a count of updates that leaves nothing to correct."""
    state = _adam(eps).init(trained)
    return state._replace(count=jnp.full_like(state.count, int(LONG_AGO))) if long_ago else state


_norm = jax.jit(optax.tree.norm)


@functools.partial(jax.jit, static_argnums=7, donate_argnums=(0, 1))
def _updated(
    trained: Tensors,
    state: optax.OptState,
    gradients: Tensors,
    rates: dict[str, float],
    decays: dict[str, float],
    scale: float,
    share: float,
    eps: float,
) -> tuple[Tensors, optax.OptState]:
    scaled = {name: gradient * scale for name, gradient in gradients.items()}
    updates, state = _adam(eps).update(scaled, state)

    def moved(name: str, weight: jax.Array) -> jax.Array:
        rate = rates[name] * share
        return weight * (1 - rate * decays[name]) - rate * updates[name]

    return {name: moved(name, weight) for name, weight in trained.items()}, state
