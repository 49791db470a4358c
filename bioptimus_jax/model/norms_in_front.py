"""BERT's blocks with their norms in front of them instead of behind their sums.

B rows, L positions, D hidden size.
"""

from typing import ClassVar

import jax

from bioptimus_jax.model import layers


class Sum(layers.Residual):
    """Dense layer and dropout, added to what went in."""

    def closed(self, summed_BxLxD: jax.Array) -> jax.Array:
        """The sum as it is."""
        return summed_BxLxD


class Normed(layers.Block):
    """A block with its norm in front; `norm`: what transformers calls it."""

    residual: ClassVar = Sum
    norm: ClassVar = 'ln'

    def opened(self, hidden_BxLxD: jax.Array) -> jax.Array:
        """The states, normalised."""
        return self.normal(hidden_BxLxD, self.norm)
