"""Updates of all that is trained of a head, whoever computes it: one norm of the gradient, one schedule."""

import math
from collections.abc import Collection

import torch

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.optimizer import optimizer_of, slanted_triangle
from bioptimus_jax.finetuning.used_rows import UsedRows

LARGEST_NORM = 1.0  # the original BERT's, too


class Updates:
    """The optimiser of what PyTorch computes, and of an encoder beyond a bridge where there is one.

    `pieces`: every piece of the training windows, of which alone PyTorch's table of embeddings is updated.
    """

    def __init__(self, head: Head, settings: Finetune, updates: int, pieces: Collection[int]) -> None:
        self.settings, self.total, self.done = settings, updates, 0
        self.rows: UsedRows | None = None
        if head.bridge is None and UsedRows.applies(head):
            self.rows = UsedRows(head, {*pieces, head.pad})
            # Before the optimiser is made: it takes the used rows in place of the table.
            self.rows.install()
        self.optimizer, self.schedule = optimizer_of(head, settings, updates)
        self.near = [p for group in self.optimizer.param_groups for p in group['params']]
        self.far = None
        if head.bridge and head.bridge.trained:
            from bioptimus_jax.finetuning.bridged_adamw import BridgedAdamW

            self.far = BridgedAdamW(head, settings)

    def begin_epoch(self) -> None:
        """Only what the training windows use is there until `end_epoch`."""
        if self.rows:
            self.rows.install()

    def end_epoch(self) -> None:
        """All is there: devel has words that training lacks, and the weights that are kept have every row."""
        if self.rows:
            self.rows.restore()

    def begin(self) -> None:
        """Forget the gradient of the update before."""
        self.optimizer.zero_grad()
        if self.far:
            self.far.bridge.forget()

    def update(self) -> None:
        """Clip the whole gradient, and go one step."""
        if self.far:
            self._clip_both(self.far.norm())
        else:
            torch.nn.utils.clip_grad_norm_(self.near, LARGEST_NORM)
        self.optimizer.step()
        if self.rows:
            self.rows.after_update(self.optimizer)
        self.schedule.step()
        self.done += 1

    def _clip_both(self, far_norm: float) -> None:
        """Scale both gradients as torch would scale one, and update what is beyond the bridge."""
        assert self.far
        near_norm = torch.nn.utils.get_total_norm([p.grad for p in self.near if p.grad is not None]).item()
        # In this order a norm that is NaN stays one, as in torch: weights that are NaN are seen by the loss.
        scale = min(LARGEST_NORM / (math.hypot(near_norm, far_norm) + 1e-6), 1.0)
        for parameter in self.near:
            if parameter.grad is not None:
                parameter.grad.mul_(scale)
        self.far.update(scale, slanted_triangle(self.done, self.total, self.settings.warmup_fraction))
