"""Batches of windows for taggers: padded to their longest, on the device of the model.

Shapes: B windows, L pieces of the longest window of a batch, T words of the longest.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from bioptimus_jax.finetuning.batches import padded
from bioptimus_jax.finetuning.entities.align import IGNORED, TagWindow


@dataclasses.dataclass(frozen=True)
class TagBatch:
    """Tensors of some windows. Labels only in training: of pieces, or of words for a CRF, which alone has the chain.

    `chain_BxT`: first pieces of the words shown, context included; `in_chain_BxT` is false for padding. `opens_B`,
    `closes_B`: whether the sentence begins and ends with the chain.
    """

    pieces_BxL: Any
    mask_BxL: Any
    labels_BxL: Any = None
    labels_BxT: Any = None
    chain_BxT: Any = None
    in_chain_BxT: Any = None
    opens_B: Any = None
    closes_B: Any = None


def collate(
    windows: Sequence[TagWindow],
    *,
    pad: int,
    device: Any,
    chained: bool,
    labels: Sequence[Sequence[int]] | None = None,
) -> TagBatch:
    """A batch on `device`. `labels`: for every window those of its pieces, or, `chained` for a CRF, of its words."""
    import torch

    pieces_BxL = padded([w.pieces for w in windows], pad)
    mask_BxL = np.arange(pieces_BxL.shape[1]) < np.array([[len(w.pieces)] for w in windows])
    arrays = {'pieces_BxL': pieces_BxL, 'mask_BxL': mask_BxL.astype(np.int64)}
    if labels is not None and not chained:
        arrays['labels_BxL'] = padded(labels, IGNORED)
    # Padding is 0 here: labels and places are looked up, and `in_chain_BxT` leaves it out.
    if chained:
        if labels is not None:
            arrays['labels_BxT'] = padded(labels, 0)
        arrays['chain_BxT'] = padded([w.shown_starts for w in windows], 0)
        words_Bx1 = np.array([[len(w.shown_starts)] for w in windows])
        arrays['in_chain_BxT'] = np.arange(words_Bx1.max()) < words_Bx1
        arrays['opens_B'] = np.array([w.opens for w in windows])
        arrays['closes_B'] = np.array([w.closes for w in windows])
    return TagBatch(**{name: torch.from_numpy(array).to(device) for name, array in arrays.items()})
