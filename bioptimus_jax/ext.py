"""What a config file and an extension import: these names are stable, their homes are not."""

from bioptimus_jax.experiment.config import defaults, environment, load, objective, override, phase

__all__ = ['defaults', 'environment', 'load', 'objective', 'override', 'phase']
