"""Model FLOPs and the share of a device's peak that they come to (MFU)."""

import collections
import math

import jax

from bioptimus_jax.hosts.devices import peak_of_kind
from bioptimus_jax.model.architecture import HEAD, Architecture


def training_flops_per_token(
    architecture: Architecture, attended: float, rate: float, sides: int = 2
) -> float:
    """Forward and backward FLOPs of one piece: three times the forward products. What remat computes twice is not
    counted."""
    return 3 * forward_flops_per_token(architecture, attended, rate, sides)


def forward_flops_per_token(
    architecture: Architecture, attended: float, rate: float, sides: int = 2
) -> float:
    """FLOPs of the forward products of one piece.

    `attended`: pieces that a piece attends to, on average, in layers without a window; in others no more than the
    window has, to one side or both `sides`. `rate`: share of pieces that are predicted. Embedding look-ups, norms,
    activations and the optimiser are not counted.
    """
    a, shapes = architecture, architecture.shapes()
    matrices = {path: math.prod(shape) for path, shape in shapes.items() if path.endswith('/kernel')}
    in_head = sum(size for path, size in matrices.items() if path.startswith(HEAD))
    # Two operations for a weight; scores, and what they mix: two each for a piece attended to and a column.
    of_layer, encoder = 2 * (sum(matrices.values()) - in_head) / a.layers, 0.0
    for window, layers in collections.Counter(a.windows).items():
        seen = attended if window is None else min(attended, sides * window + 1)
        encoder += layers * (of_layer + 2 * (a.score_products + 1) * seen * a.hidden)
    head = 2 * (in_head + math.prod(shapes[a.output_table]))
    return encoder + rate * head


def peak_flops() -> float | None:
    """Peak of one device in FLOP/s, None where it is not known (a CPU)."""
    return peak_of_kind(jax.devices()[0].device_kind)
