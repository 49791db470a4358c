"""How fast PyTorch trains an encoder on this machine, measured on one layer."""

import time

ROWS, PIECES = 16, 48
"""A batch of sentences, as a fine-tuning reads them."""
SECONDS, FEWEST = 1.5, 2


def torch_speed(hidden: int, heads: int, intermediate: int, threads: int) -> float:
    """FLOP/s of forward and backward pass of a layer of these sizes."""
    import torch

    torch.set_num_threads(threads)
    layer = torch.nn.TransformerEncoderLayer(hidden, heads, intermediate, batch_first=True)
    states_BxLxD = torch.ones(ROWS, PIECES, hidden)
    weights = sum(p.numel() for p in layer.parameters() if p.ndim > 1)
    flops = 3 * ROWS * PIECES * (2 * weights + 4 * PIECES * hidden)
    layer(states_BxLxD).mean().backward()
    started, times = time.perf_counter(), 0
    while times < FEWEST or time.perf_counter() - started < SECONDS:
        layer(states_BxLxD).mean().backward()
        times += 1
    return flops * times / (time.perf_counter() - started)
