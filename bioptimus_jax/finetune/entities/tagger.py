"""Heads on any Hugging Face encoder: linear, CRF, BiLSTM and both (PubMedBERT, section 5.2).

Shapes: B windows, L pieces of the longest window, T words of the longest, C labels, D hidden size, H units of an LSTM.
"""

from collections.abc import Sequence
from typing import Any

import torch

from bioptimus_jax.finetune.entities.align import IGNORED
from bioptimus_jax.finetune.entities.batches import Batch, collate
from bioptimus_jax.finetune.entities.crf import Chain, Words
from bioptimus_jax.finetune.heads import Head
from bioptimus_jax.schema import Finetune


class Tagger(Head):
    """An encoder and its head; what the head is made of follows `config.finetune.head`.

    linear: transformers' own token classification model, nothing added. crf: the same, its logits at the words'
    first pieces being the emissions of a chain. bilstm: an LSTM in both directions over the last layer's states of
    all pieces, padding left out, then a linear layer, with dropout before either. The encoder computes in `dtype`,
    LSTM, chain and loss always in float32.
    """

    undecayed = ('chain.',)

    def __init__(self, classifier: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> None:
        recurrent = settings.head.startswith('bilstm')
        # With an LSTM transformers' own linear layer has no use.
        super().__init__(classifier.base_model if recurrent else classifier, labels, dtype)
        self.recurrent = recurrent
        if self.recurrent:
            hidden = classifier.config.hidden_size
            units = settings.lstm_hidden or hidden // 2
            self.dropout = torch.nn.Dropout(settings.dropout)
            self.lstm = torch.nn.LSTM(hidden, units, batch_first=True, bidirectional=True)
            self.linear = torch.nn.Linear(2 * units, len(labels))
        self.chain = Chain(labels, settings.scheme) if settings.head.endswith('crf') else None
        self.label_ids = {label: i for i, label in enumerate(labels)}
        self.label_pieces = settings.label_pieces

    def forward(self, batch: Batch) -> torch.Tensor:
        """Logits of every piece, float32 [B, L, C]."""
        with self.computing():
            given = self.pretrained(input_ids=batch.pieces_BxL, attention_mask=batch.mask_BxL)
        if not self.recurrent:
            return given.logits.float()
        states_BxLxD = self.dropout(given.last_hidden_state.float())
        lengths_B = batch.mask_BxL.sum(1).cpu()
        packed = torch.nn.utils.rnn.pack_padded_sequence(states_BxLxD, lengths_B, True, enforce_sorted=False)
        read_BxLx2H, _ = torch.nn.utils.rnn.pad_packed_sequence(
            self.lstm(packed)[0], True, total_length=states_BxLxD.shape[1]
        )
        return self.linear(self.dropout(read_BxLx2H))

    def batch(self, windows: Sequence[Any], targets: Sequence[Any] | None = None) -> Batch:
        """Of windows of `align`; targets are labels of their pieces, with a CRF of their words."""
        chained = self.chain is not None
        return collate(windows, pad=self.pad, device=self.device, chained=chained, labels=targets)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Mean over the labelled pieces (crf: over the words of all chains) of minus log-likelihood, in nats."""
        logits_BxLxC = self(batch)
        if self.chain is None:
            return torch.nn.functional.cross_entropy(
                logits_BxLxC.flatten(0, 1), batch.labels_BxL.flatten(), ignore_index=IGNORED
            )
        likelihood_B = self.chain.log_likelihood(self._words(logits_BxLxC, batch), batch.labels_BxT)
        return -likelihood_B.sum() / batch.in_chain_BxT.sum()

    @torch.inference_mode()
    def predict(self, batch: Batch) -> torch.Tensor:
        """The label of every piece, [B, L]; with a CRF only those of words' first pieces mean anything."""
        logits_BxLxC = self(batch)
        labels_BxL = logits_BxLxC.argmax(-1)
        if self.chain is None:
            return labels_BxL
        best_BxT = self.chain.best_labels(self._words(logits_BxLxC, batch))
        rows_Bx1 = torch.arange(len(best_BxT), device=best_BxT.device)[:, None]
        inside = batch.in_chain_BxT
        labels_BxL[rows_Bx1.expand_as(best_BxT)[inside], batch.chain_BxT[inside]] = best_BxT[inside]
        return labels_BxL

    @staticmethod
    def _words(logits_BxLxC: torch.Tensor, batch: Batch) -> Words:
        at_BxTx1 = batch.chain_BxT[:, :, None]
        emissions_BxTxC = logits_BxLxC.gather(1, at_BxTx1.expand(-1, -1, logits_BxLxC.shape[-1]))
        return Words(emissions_BxTxC, batch.in_chain_BxT, batch.opens_B, batch.closes_B)
