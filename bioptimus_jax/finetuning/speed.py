"""A step of fine-tuning on one layer, by which the speed of PyTorch on this machine is measured."""

from collections.abc import Callable

ROWS, PIECES = 16, 48
"""A batch of sentences, as a fine-tuning reads them."""


def torch_step(hidden: int, heads: int, intermediate: int, threads: int) -> tuple[Callable[[], None], int]:
    """Forward and backward pass of a layer of these sizes, and its FLOPs."""
    import torch

    torch.set_num_threads(threads)
    layer = torch.nn.TransformerEncoderLayer(hidden, heads, intermediate, batch_first=True)
    states_BxLxD = torch.ones(ROWS, PIECES, hidden)
    weights = sum(p.numel() for p in layer.parameters() if p.ndim > 1)
    flops = 3 * ROWS * PIECES * (2 * weights + 4 * PIECES * hidden)
    return lambda: layer(states_BxLxD).mean().backward(), flops
