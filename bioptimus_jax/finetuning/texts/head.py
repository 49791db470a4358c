"""What transformers puts on an encoder to classify a text, taught labels or numbers.

Shapes: B windows, L pieces of the longest, D hidden size, F features, K labels.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bioptimus_jax.finetuning.batches import padded
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.heads import Head, read_both_ways
from bioptimus_jax.finetuning.texts.features import FEATURES, PREDICTORS
from bioptimus_jax.finetuning.texts.windows import TextWindow, tells_apart

BUILT = ('head', 'features', 'lstm_hidden')
"""Keys of config.finetune that decide what a head is made of."""


@dataclasses.dataclass(frozen=True)
class TextBatch:
    """Tensors on the device of the model: `given` by the names of the encoder's arguments."""

    given: dict[str, torch.Tensor]
    targets: torch.Tensor
    """Empty in prediction."""
    spans_Bx2x2: torch.Tensor
    """Places of mentions, empty without."""


class TextHead(Head):
    """transformers' own head of the family, or one of `config.finetune.head` on `config.finetune.features`.

    Its dropout is before every layer. The encoder computes in `dtype`, what is on it in float32.
    """

    problem_type: str
    """What transformers calls it: pipelines turn logits into answers by it."""

    def __init__(self, classifier: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> None:
        features = FEATURES[settings.features]
        classifier.config.problem_type = self.problem_type
        super().__init__(classifier.base_model if features.of else classifier, labels, dtype)
        self.features = features
        self.built = {name: getattr(settings, name) for name in BUILT}
        self.predictor = PREDICTORS[settings.head]
        if self.features.of:
            hidden = classifier.config.hidden_size
            deviation = getattr(classifier.config, 'initializer_range', 0.02)
            width = hidden
            self.dropout = torch.nn.Dropout(settings.dropout)
            if self.predictor.recurrent:
                units = settings.lstm_hidden or hidden // 2
                self.lstm = torch.nn.LSTM(hidden, units, batch_first=True, bidirectional=True)
                width = 2 * units
            width *= self.features.parts
            if self.predictor.hidden:
                self.hidden = _drawn(width, hidden, deviation)
                width = hidden
            self.linear = _drawn(width, len(labels), deviation)

    @property
    def above(self) -> list[torch.nn.Module]:
        """Modules above the encoder, with what a family's head for texts takes over from its masked LM (ModernBERT)."""
        found = getattr(self.pretrained, 'head', None)
        return super().above + ([] if found is None else [found])

    def batch(self, windows: Sequence[TextWindow], targets: Sequence[Any] | None = None) -> TextBatch:
        """Padded to the longest window; targets as `Task.target` gives them."""
        pieces_BxL = padded([w.pieces for w in windows], self.pad)
        mask_BxL = np.arange(pieces_BxL.shape[1]) < np.array([[len(w.pieces)] for w in windows])
        arrays = {'input_ids': pieces_BxL, 'attention_mask': mask_BxL.astype(np.int64)}
        if windows[0].types and tells_apart(self.encoder.config):
            arrays['token_type_ids'] = padded([w.types for w in windows], 0)
        given = {name: torch.from_numpy(array).to(self.device) for name, array in arrays.items()}
        spans_Bx2x2 = torch.tensor([w.mentions for w in windows], dtype=torch.int64, device=self.device)
        return TextBatch(given, torch.tensor(targets or [], device=self.device), spans_Bx2x2)

    def forward(self, batch: TextBatch) -> torch.Tensor:
        """Logits, float32 [B, K]."""
        with self.computing():
            given = self.pretrained(**batch.given)
        if not self.features.of:
            return given.logits.float()
        states_BxLxD = given.last_hidden_state.float()
        if self.predictor.recurrent:
            states_BxLxD = read_both_ways(
                self.lstm, self.dropout(states_BxLxD), batch.given['attention_mask']
            )
        features_BxF = self.features.of(states_BxLxD, batch.spans_Bx2x2)
        if self.predictor.hidden:
            features_BxF = torch.tanh(self.hidden(self.dropout(features_BxF)))
        return self.linear(self.dropout(features_BxF))

    @abc.abstractmethod
    def loss(self, batch: TextBatch) -> torch.Tensor:
        """The mean over texts."""

    @torch.inference_mode()
    def predict(self, batch: TextBatch) -> torch.Tensor:
        """Logits of every text, [B, K]."""
        return self(batch)


class OneLabel(TextHead):
    """Exactly one of the labels: softmax and cross-entropy."""

    problem_type = 'single_label_classification'

    def loss(self, batch: TextBatch) -> torch.Tensor:
        """The mean loss in nats."""
        return torch.nn.functional.cross_entropy(self(batch), batch.targets)


class AnyLabels(TextHead):
    """Any number of the labels: a sigmoid for each, the mean of their cross-entropies."""

    problem_type = 'multi_label_classification'

    def loss(self, batch: TextBatch) -> torch.Tensor:
        """The mean loss in nats a label."""
        return torch.nn.functional.binary_cross_entropy_with_logits(self(batch), batch.targets)


class Number(TextHead):
    """One number: squared error."""

    problem_type = 'regression'

    def loss(self, batch: TextBatch) -> torch.Tensor:
        """The mean loss in squares of the answers' unit."""
        return torch.nn.functional.mse_loss(self(batch)[:, 0], batch.targets)


def _drawn(width: int, outputs: int, deviation: float) -> torch.nn.Linear:
    """A linear layer as transformers draws those of heads."""
    layer = torch.nn.Linear(width, outputs)
    torch.nn.init.normal_(layer.weight, std=deviation)
    torch.nn.init.zeros_(layer.bias)
    return layer
