"""ADOPT (Taniguchi et al. 2024, arXiv 2411.02853): Adam whose second moment leaves out the present gradient."""

from bioptimus_jax.ext import Optimizer


def adopt(settings, decayed, matrices):
    """ADOPT with decoupled decay; its first step only fills the second moment."""
    import optax

    scale = optax.contrib.scale_by_adopt(settings.beta1, settings.beta2, settings.epsilon)
    return scale, optax.add_decayed_weights(settings.weight_decay, mask=decayed)


OPTIMIZERS = {'adopt': Optimizer('ADOPT (arXiv 2411.02853)', adopt)}
