"""An encoder as it is, which gives a vector for a text. Shapes: B texts, L pieces of the longest, D hidden size."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bioptimus_jax.finetuning.batches import padded
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.model.pooling import POOLINGS, USUAL, files_for_sentence_transformers, pooling_in


@dataclasses.dataclass(frozen=True)
class VectorWindow:
    """The pieces of a text, special ones included; `example`: its number among all that are read."""

    example: int
    pieces: tuple[int, ...]


class Vectors(Head):
    """Vectors of length 1, pooled as the model's folder says, else the mean. None of it is trained."""

    def __init__(self, pretrained: Any, labels: Sequence[str], dtype: str) -> None:
        super().__init__(pretrained, labels, dtype)
        self.pooled = pooling_in(Path(pretrained.name_or_path)) or USUAL

    def beside(self, max_pieces: int) -> Mapping[str, Any]:
        """What sentence-transformers and `bx.embed` look for."""
        return files_for_sentence_transformers(self.pooled, self.encoder.config.hidden_size, max_pieces)

    def batch(self, windows: Sequence[VectorWindow], targets: Sequence[Any] | None = None) -> Any:
        """Pieces padded to the longest, and where there are some."""
        pieces_BxL = padded([w.pieces for w in windows], self.pad)
        mask_BxL = np.arange(pieces_BxL.shape[1]) < np.array([[len(w.pieces)] for w in windows])
        arrays = pieces_BxL, mask_BxL.astype(np.int64)
        return [torch.from_numpy(array).to(self.device) for array in arrays]

    def loss(self, batch: Any) -> torch.Tensor:
        """Nothing is learned: the task says so."""
        raise NotImplementedError

    @torch.inference_mode()
    def predict(self, batch: Any) -> torch.Tensor:
        """The vectors, BxD."""
        pieces_BxL, mask_BxL = batch
        with self.computing():
            states_BxLxD = self.pretrained(input_ids=pieces_BxL, attention_mask=mask_BxL).last_hidden_state
        weights_Bx1xL = POOLINGS[self.pooled].weights(mask_BxL[:, None].float())
        vectors_BxD = (weights_Bx1xL @ states_BxLxD.float())[:, 0]
        return torch.nn.functional.normalize(vectors_BxD, dim=-1)
