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
from bioptimus_jax.finetune.texts.features import FEATURES
from bioptimus_jax.finetune.texts.windows import Window
from bioptimus_jax.schema import Finetune


@dataclasses.dataclass(frozen=True)
class Batch:
    """Tensors on the device of the model: `given` by the names of the encoder's arguments."""

    given: dict[str, torch.Tensor]
    targets: torch.Tensor
    """Empty in prediction."""
    spans_Bx2x2: torch.Tensor
    """Of mentions, empty without."""


class TextHead(Head):
    """transformers' own head of the family, or a linear layer on the features of `config.finetune.features`."""

    problem_type: str
    """What transformers calls it: pipelines turn logits into answers by it."""

    def __init__(self, classifier: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> None:
        features = FEATURES[settings.features]
        classifier.config.problem_type = self.problem_type
        super().__init__(classifier.base_model if features.of else classifier, labels, dtype)
        self.features = features
        if self.features.of:
            width = self.features.parts * classifier.config.hidden_size
            self.dropout = torch.nn.Dropout(settings.dropout)
            self.linear = torch.nn.Linear(width, len(labels))
            torch.nn.init.normal_(
                self.linear.weight, std=getattr(classifier.config, 'initializer_range', 0.02)
            )
            torch.nn.init.zeros_(self.linear.bias)

    def batch(self, windows: Sequence[Window], targets: Sequence[Any] | None = None) -> Batch:
        """Padded to the longest window; targets as `Task.target` gives them."""
        pieces_BxL = padded([w.pieces for w in windows], self.pad)
        mask_BxL = np.arange(pieces_BxL.shape[1]) < np.array([[len(w.pieces)] for w in windows])
        arrays = {'input_ids': pieces_BxL, 'attention_mask': mask_BxL.astype(np.int64)}
        if windows[0].types:
            arrays['token_type_ids'] = padded([w.types for w in windows], 0)
        given = {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}
        spans_Bx2x2 = torch.tensor([w.mentions for w in windows], dtype=torch.int64, device=self.device)
        return Batch(given, torch.tensor(targets or [], device=self.device), spans_Bx2x2)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Logits, float32 [B, K]."""
        with self.computing():
            given = self.pretrained(**batch.given)
        if not self.features.of:
            return given.logits.float()
        features_BxF = self.features.of(given.last_hidden_state.float(), batch.spans_Bx2x2)
        return self.linear(self.dropout(features_BxF))

    @abc.abstractmethod
    def loss(self, batch: Batch) -> torch.Tensor:
        """The mean over texts."""

    @torch.inference_mode()
    def predict(self, batch: Batch) -> torch.Tensor:
        """Logits of every text, [B, K]."""
        return self(batch)


class OneLabel(TextHead):
    """Exactly one of the labels: softmax and cross-entropy."""

    problem_type = 'single_label_classification'

    def loss(self, batch: Batch) -> torch.Tensor:
        """In nats."""
        return torch.nn.functional.cross_entropy(self(batch), batch.targets)


class AnyLabels(TextHead):
    """Any number of the labels: a sigmoid for each, the mean of their cross-entropies."""

    problem_type = 'multi_label_classification'

    def loss(self, batch: Batch) -> torch.Tensor:
        """In nats a label."""
        return torch.nn.functional.binary_cross_entropy_with_logits(self(batch), batch.targets)


class Number(TextHead):
    """One number: squared error."""

    problem_type = 'regression'

    def loss(self, batch: Batch) -> torch.Tensor:
        """In squares of the answers' unit."""
        return torch.nn.functional.mse_loss(self(batch)[:, 0], batch.targets)
