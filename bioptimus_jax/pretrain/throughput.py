"""Model FLOPs and the share of a device's peak that they come to (MFU)."""

import math

import jax

from bioptimus_jax.hosts.devices import peak_of_kind
from bioptimus_jax.model.architecture import HEAD, Architecture


def training_flops_per_token(architecture: Architecture, attended: float, rate: float) -> float:
    """Forward and backward FLOPs of one piece: three times the forward products. What remat computes twice is not
    counted."""
    return 3 * forward_flops_per_token(architecture, attended, rate)


def forward_flops_per_token(architecture: Architecture, attended: float, rate: float) -> float:
    """FLOPs of the forward products of one piece.

    `attended`: pieces that a piece attends to, on average; `rate`: share of pieces that are predicted. Embedding
    look-ups, norms, activations and the optimiser are not counted.
    """
    a, shapes = architecture, architecture.shapes()
    matrices = {path: math.prod(shape) for path, shape in shapes.items() if path.endswith('/kernel')}
    in_head = sum(size for path, size in matrices.items() if path.startswith(HEAD))
    # Two operations for a weight; scores, and what they mix: four for a piece attended to and a column.
    layer = 2 * (sum(matrices.values()) - in_head) / a.layers + 4 * attended * a.hidden
    head = 2 * (in_head + math.prod(shapes[a.table]))
    return a.layers * layer + rate * head


def peak_flops() -> float | None:
    """Peak of one device in FLOP/s, None where it is not known (a CPU)."""
    return peak_of_kind(jax.devices()[0].device_kind)
