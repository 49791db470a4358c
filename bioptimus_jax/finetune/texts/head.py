"""What transformers puts on an encoder to classify a text, taught labels or numbers.

Shapes: B windows, L pieces of the longest, K labels.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bioptimus_jax.finetune.batches import padded
from bioptimus_jax.finetune.heads import Head
from bioptimus_jax.finetune.texts.windows import Window


@dataclasses.dataclass(frozen=True)
class Batch:
    """Tensors on the device of the model: `given` by the names of the encoder's arguments."""

    given: dict[str, torch.Tensor]
    targets: torch.Tensor
    """Empty in prediction."""


class TextHead(Head):
    """transformers' own head of the family, over the first piece as the family has it (for BERT its pooler)."""

    def batch(self, windows: Sequence[Window], targets: Sequence[Any] | None = None) -> Batch:
        """Padded to the longest window; targets as `Task.target` gives them."""
        pieces_BxL = padded([w.pieces for w in windows], self.pad)
        mask_BxL = np.arange(pieces_BxL.shape[1]) < np.array([[len(w.pieces)] for w in windows])
        arrays = {'input_ids': pieces_BxL, 'attention_mask': mask_BxL.astype(np.int64)}
        if windows[0].types:
            arrays['token_type_ids'] = padded([w.types for w in windows], 0)
        given = {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}
        return Batch(given, torch.tensor(targets or [], device=self.device))

    def forward(self, batch: Batch) -> torch.Tensor:
        """Logits, float32 [B, K]."""
        with self.computing():
            return self.pretrained(**batch.given).logits.float()

    @abc.abstractmethod
    def loss(self, batch: Batch) -> torch.Tensor:
        """The mean over texts."""

    @torch.inference_mode()
    def predict(self, batch: Batch) -> torch.Tensor:
        """Logits of every text, [B, K]."""
        return self(batch)


class OneLabel(TextHead):
    """Exactly one of the labels: softmax and cross-entropy."""

    def loss(self, batch: Batch) -> torch.Tensor:
        """In nats."""
        return torch.nn.functional.cross_entropy(self(batch), batch.targets)


class AnyLabels(TextHead):
    """Any number of the labels: a sigmoid each, the sum over labels of their cross-entropies."""

    def loss(self, batch: Batch) -> torch.Tensor:
        """In nats a label."""
        return torch.nn.functional.binary_cross_entropy_with_logits(self(batch), batch.targets)


class Number(TextHead):
    """One number: squared error."""

    def loss(self, batch: Batch) -> torch.Tensor:
        """In squares of the answers' unit."""
        return torch.nn.functional.mse_loss(self(batch)[:, 0], batch.targets)
