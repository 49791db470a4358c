"""Model FLOPs and the share of a device's peak that they come to (MFU)."""

import collections
import math
import re

import jax

from bioptimus_jax.hosts.devices import peak_of_kind
from bioptimus_jax.model.architecture import HEAD, IN_LAYER, Architecture
from bioptimus_jax.model.lora import ATTENTION, is_target

WAY_OUT = re.compile(r'(^|/)(output/dense|Wo|o_proj)/kernel$')
"""The matrix of attention that reads what was attended to, as families call it."""


def training_flops_per_token(
    architecture: Architecture, attended: float, rate: float, sides: int = 2, last: float = 1.0
) -> float:
    """Forward and backward FLOPs of one piece: three times the forward products. What remat computes twice is not
    counted."""
    return 3 * forward_flops_per_token(architecture, attended, rate, sides, last)


def forward_flops_per_token(
    architecture: Architecture, attended: float, rate: float, sides: int = 2, last: float = 1.0
) -> float:
    """FLOPs of the forward products of one piece.

    `attended`: pieces that a piece attends to, on average, in layers without a window; in others no more than the
    window has, to one side or both `sides`. `rate`: share of pieces that are predicted; `last`: share of them that the
    last layer is computed for behind its attention. Embedding look-ups, norms, activations and the optimiser are not
    counted.
    """
    a, shapes = architecture, architecture.shapes()
    matrices = {path: math.prod(shape) for path, shape in shapes.items() if path.endswith('/kernel')}
    in_head = sum(size for path, size in matrices.items() if path.startswith(HEAD))
    # Layers that share weights multiply by them once each.
    times = collections.Counter(map(str, a.own_layers))
    in_all = sum(
        size * (times[at[1]] if (at := IN_LAYER.match(path)) else 1) for path, size in matrices.items()
    )
    # Two operations for a weight; scores, and what they mix: two each for a piece attended to and a column.
    of_layer, encoder = 2 * (in_all - in_head) / a.layers, 0.0
    for window, layers in collections.Counter(a.windows).items():
        seen = attended if window is None else min(attended, sides * window + 1)
        encoder += layers * (of_layer + 2 * (a.score_products + 1) * seen * a.hidden)
    if last < 1:
        encoder -= (1 - last) * 2 * sum(matrices[path] for path in behind_attention(a))
    head = 2 * (in_head + math.prod(shapes[a.output_table]))
    return encoder + rate * head


def behind_attention(architecture: Architecture) -> list[str]:
    """The matrices of the last layer whose results no other piece reads."""
    last = str(architecture.own_layers[-1])
    kernels = [path for path in architecture.shapes() if path.endswith('/kernel')]
    of_last = {path: at[2] for path in kernels if (at := IN_LAYER.match(path)) and at[1] == last}
    return [path for path, name in of_last.items() if not is_target(name, ATTENTION) or WAY_OUT.search(name)]


def peak_flops() -> float | None:
    """Peak of one device in FLOP/s, None where it is not known (a CPU)."""
    return peak_of_kind(jax.devices()[0].device_kind)
