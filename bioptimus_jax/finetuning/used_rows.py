"""Optimiser that updates only the rows of the word embeddings that the training text uses.

The gradient of a table of 30,000 rows is dense, though a training set touches a few thousand of them: in a small model
most of an update is spent on zeros. AdamW does to a row without a gradient nothing but weight decay, which is one
factor per update and is made up for when the whole table is needed. So the results are those of the whole table, up to
rounding.

Shapes: V rows of the table, U used ones, D its width.
"""

from collections.abc import Iterable
from typing import Any

import torch

from bioptimus_jax.finetuning.heads import Head


class UsedRows(torch.nn.Module):
    """Takes the place of an embedding table while training; `restore` puts the table back, up to date."""

    def __init__(self, head: Head, used: Iterable[int]) -> None:
        """Take the table's place; `used`: every piece of the training windows. See `applies` for the tables that this
        can stand in for."""
        super().__init__()
        table = head.encoder.get_input_embeddings()
        rows_U = torch.tensor(sorted(used), device=table.weight.device)
        # -1 for the rows that are not used, an index error if one ever is.
        row_of_V = torch.full((table.num_embeddings,), -1, device=rows_U.device)
        row_of_V[rows_U] = torch.arange(len(rows_U), device=rows_U.device)
        self.row_of_V: torch.Tensor
        self.register_buffer('row_of_V', row_of_V, persistent=False)
        self.weight = torch.nn.Parameter(table.weight.detach()[rows_U])
        padding = -1 if table.padding_idx is None else int(row_of_V[table.padding_idx])
        self.padding_idx = None if padding < 0 else padding
        # In tuples, which hide them from torch: as submodules they would be among the parameters of the head.
        self._rows_U, self._table, self._encoder = rows_U, (table,), (head.encoder,)
        self._decayed = 1.0

    @staticmethod
    def applies(head: Head) -> bool:
        """Whether the table is a plain one that is trained."""
        table = head.encoder.get_input_embeddings()
        plain = type(table) is torch.nn.Embedding and table.max_norm is None and not table.sparse
        return plain and not table.scale_grad_by_freq and table.weight.requires_grad

    def forward(self, pieces_BxL: torch.Tensor) -> torch.Tensor:
        """Embeddings [B, L, D] of pieces that are numbered as in the whole table."""
        return torch.nn.functional.embedding(self.row_of_V[pieces_BxL], self.weight, self.padding_idx)

    def install(self) -> None:
        """Stand in for the table."""
        self._encoder[0].set_input_embeddings(self)

    def after_update(self, optimizer: Any) -> None:
        """Remember the decay of an update, before the schedule moves on."""
        (group,) = (g for g in optimizer.param_groups if any(p is self.weight for p in g['params']))
        # AdamW decays a row before its gradient, by this factor alone where the gradient is 0.
        self._decayed *= 1 - group['lr'] * group['weight_decay']

    @torch.no_grad()
    def restore(self) -> None:
        """Put the table back: used rows as trained, the others decayed."""
        weight = self._table[0].weight
        weight.mul_(self._decayed)
        weight[self._rows_U] = self.weight
        self._decayed = 1.0
        self._encoder[0].set_input_embeddings(self._table[0])
