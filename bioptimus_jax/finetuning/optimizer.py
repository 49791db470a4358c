"""AdamW with and without bias correction, and the slanted triangular schedule."""

from typing import Any

import torch

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.stability import parameter_groups

ORIGINAL_EPS = 1e-6
LONG_AGO = 1e6  # so many updates leave nothing to correct: 0.999 to its power is 0


def slanted_triangle(update: int, updates: int, warmup_fraction: float) -> float:
    """Share of the peak learning rate at `update` = 0 ..: linear up, then down, never quite zero."""
    warmup = max(1, round(updates * warmup_fraction))
    at = update + 1
    return at / warmup if at <= warmup else (updates + 1 - at) / (updates + 1 - warmup)


def eps_of(settings: Finetune) -> float:
    """What is added to the root of the second moment."""
    return 1e-8 if settings.bias_correction else ORIGINAL_EPS


def optimizer_of(head: Head, settings: Finetune, updates: int) -> tuple[Any, Any]:
    """Optimiser and schedule of what PyTorch computes; a step is that of `settings.bias_correction` for every group of
    parameters.

    With: AdamW (Loshchilov and Hutter), eps 1e-8 added to the corrected sqrt(v). Without: the optimiser of the
    original BERT, w -= rate * (m / (sqrt(v) + 1e-6) + decay * w) with m = 0.9 m + 0.1 g and v = 0.999 v + 0.001 g^2
    from zero. For a steady gradient its first update is 0.1 / sqrt(0.001) = 3.2 times as large, the twelfth 6.6 times;
    Tinn et al. find fine-tuning unstable with it.
    """
    kind = torch.optim.AdamW if settings.bias_correction else UncorrectedAdamW
    far = {id(p) for p in head.bridge.own().values()} if head.bridge else set()
    groups = parameter_groups(head, settings)
    near = [{**group, 'params': [p for p in group['params'] if id(p) not in far]} for group in groups]
    optimizer = kind(
        [group for group in near if group['params']], settings.learning_rate, eps=eps_of(settings), fused=True
    )
    rate = lambda update: slanted_triangle(update, updates, settings.warmup_fraction)  # noqa: E731
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


class UncorrectedAdamW(torch.optim.AdamW):
    """AdamW without bias correction: its count of updates begins so high that the correction is exactly 1."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for group in self.param_groups:
            for parameter in group['params']:
                # torch makes a state only where there is none. For `fused` the step is on the device.
                self.state[parameter] = {
                    'step': torch.full((), LONG_AGO, dtype=torch.float32, device=parameter.device),
                    'exp_avg': torch.zeros_like(parameter),
                    'exp_avg_sq': torch.zeros_like(parameter),
                }
