"""Heads on any Hugging Face encoder: linear, CRF, spans, each also on a BiLSTM (PubMedBERT, section 5.2).

Shapes: B windows, L pieces of the longest window, T words of the longest, C labels, D hidden size, H units of an LSTM,
E scores of a word: one for each label, or what spans need.
"""

from collections.abc import Sequence
from typing import Any

import torch

from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.align import IGNORED
from bioptimus_jax.finetuning.entities.batches import TagBatch, collate
from bioptimus_jax.finetuning.entities.crf import Chain, ChainWords
from bioptimus_jax.finetuning.entities.segments import Segments
from bioptimus_jax.finetuning.heads import Head, read_both_ways

BUILT = ('head', 'lstm_hidden', 'scheme', 'label_pieces')
"""Keys of config.finetune that decide what a tagger is made of."""


class Tagger(Head):
    """An encoder and its head; what the head is made of follows `config.finetune.head`.

    linear: transformers' own token classification model, nothing added. crf: the same, its logits at the words'
    first pieces being the emissions of a chain. span: a linear layer instead, whose outputs there score mentions.
    bilstm: an LSTM in both directions over the last layer's states of all pieces, padding left out, then a linear
    layer, with dropout before either. The encoder computes in `dtype`, the rest and the loss always in float32.
    """

    undecayed = ('chain.',)

    def __init__(self, classifier: Any, labels: Sequence[str], settings: Finetune, dtype: str) -> None:
        self.recurrent = settings.head.startswith('bilstm')
        chain: Chain | Segments | None = None
        if settings.head.endswith('crf'):
            chain = Chain(labels, settings.scheme)
        elif settings.head.endswith('span'):
            chain = Segments(labels)
        scores = chain.scores if chain else len(labels)
        own = self.recurrent or scores != len(labels)  # transformers' linear layer is of no use then
        super().__init__(classifier.base_model if own else classifier, labels, dtype)
        self.chain, self.own = chain, own
        width = classifier.config.hidden_size
        if own:
            self.dropout = torch.nn.Dropout(settings.dropout)
        if self.recurrent:
            units = settings.lstm_hidden or width // 2
            self.lstm = torch.nn.LSTM(width, units, batch_first=True, bidirectional=True)
            width = 2 * units
        if own:
            self.linear = torch.nn.Linear(width, scores)
        self.built = {name: getattr(settings, name) for name in BUILT}
        self.label_ids = {label: i for i, label in enumerate(labels)}
        self.label_pieces = settings.label_pieces

    def forward(self, batch: TagBatch) -> torch.Tensor:
        """Scores of every piece, float32 [B, L, E]."""
        with self.computing():
            given = self.pretrained(input_ids=batch.pieces_BxL, attention_mask=batch.mask_BxL)
        if not self.own:
            return given.logits.float()
        states_BxLxD = self.dropout(given.last_hidden_state.float())
        if not self.recurrent:
            return self.linear(states_BxLxD)
        return self.linear(self.dropout(read_both_ways(self.lstm, states_BxLxD, batch.mask_BxL)))

    def batch(self, windows: Sequence[Any], targets: Sequence[Any] | None = None) -> TagBatch:
        """Batch of windows of `align`; targets are labels of their pieces, with CRF or spans of their words."""
        chained = self.chain is not None
        return collate(windows, pad=self.pad, device=self.device, chained=chained, labels=targets)

    def loss(self, batch: TagBatch) -> torch.Tensor:
        """Mean over the labelled pieces (crf, span: over the words) of minus log-likelihood, in nats."""
        scores_BxLxE = self(batch)
        if self.chain is None:
            return torch.nn.functional.cross_entropy(
                scores_BxLxE.flatten(0, 1), batch.labels_BxL.flatten(), ignore_index=IGNORED
            )
        likelihood_B = self.chain.log_likelihood(self._words(scores_BxLxE, batch), batch.labels_BxT)
        return -likelihood_B.sum() / batch.in_chain_BxT.sum()

    def predicted(self, windows: Sequence[Any], targets: Sequence[Any]) -> int:
        """The labelled pieces, or the words."""
        if self.chain is None:
            return sum(label != IGNORED for labels in targets for label in labels)
        return sum(len(window.shown_starts) for window in windows)

    @torch.inference_mode()
    def predict(self, batch: TagBatch) -> torch.Tensor:
        """The label of every piece, [B, L]; with CRF or spans only those of words' first pieces mean anything."""
        return self.best_labels(self(batch), batch)

    def best_labels(self, scores_BxLxE: torch.Tensor, batch: TagBatch) -> torch.Tensor:
        """The same, from the scores of every piece."""
        labels_BxL = scores_BxLxE.argmax(-1)
        if self.chain is None:
            return labels_BxL
        best_BxT = self.chain.best_labels(self._words(scores_BxLxE, batch))
        rows_Bx1 = torch.arange(len(best_BxT), device=best_BxT.device)[:, None]
        inside = batch.in_chain_BxT
        labels_BxL[rows_Bx1.expand_as(best_BxT)[inside], batch.chain_BxT[inside]] = best_BxT[inside]
        return labels_BxL

    def probabilities(
        self, scores_BxLxE: torch.Tensor, labels_BxL: torch.Tensor, batch: TagBatch
    ) -> torch.Tensor:
        """How probable these labels of the pieces are, [B, L]; with CRF or spans 0 but for words' first pieces."""
        if self.chain is None:
            return torch.softmax(scores_BxLxE, -1).gather(-1, labels_BxL[..., None])[..., 0]
        # Padding of the chain points to the first piece, whose label may be none of a word.
        labels_BxT = labels_BxL.gather(1, batch.chain_BxT) * batch.in_chain_BxT
        sure_BxT = self.chain.probabilities(self._words(scores_BxLxE, batch), labels_BxT) * batch.in_chain_BxT
        return torch.zeros_like(scores_BxLxE[..., 0]).scatter_add(1, batch.chain_BxT, sure_BxT)

    @staticmethod
    def _words(scores_BxLxE: torch.Tensor, batch: TagBatch) -> ChainWords:
        at_BxTx1 = batch.chain_BxT[:, :, None]
        emissions_BxTxE = scores_BxLxE.gather(1, at_BxTx1.expand(-1, -1, scores_BxLxE.shape[-1]))
        return ChainWords(emissions_BxTxE, batch.in_chain_BxT, batch.opens_B, batch.closes_B)
