"""Several documents in a row, kept apart in a model of transformers.

R: rows of a batch, L: pieces of a row.
"""

import copy
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bioptimus_jax.errors import ConfigError
from bioptimus_jax.rows.packing import best_fit

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

MASK, WINDOWED = 'attention_mask', 'sliding_attention'
WHOLE = 'full_attention'
POSITIONS = 'position_ids'
NO_DOCUMENT = -1
FEW_PIECES = 12
"""Pieces of a document that a model without windows is tried with."""
FIRST_OF_MPNET = 2
"""Where MPNet counts from whatever the padding is; RoBERTa counts from behind the padding."""
TOLERANCE, OF_A_LEAK = 1e-4, 0.2
"""How far outputs may differ: as a share of the largest output, and of the change where documents see each other."""
FAILURES = (TypeError, ValueError, RuntimeError, IndexError, KeyError, AttributeError)
"""What models raise that cannot take an argument, or a mask of this form."""
Batch: TypeAlias = Mapping[str, np.ndarray | Mapping[str, np.ndarray]]
"""Arrays by name; under MASK also a mask for each kind of layer."""
ModelInputs: TypeAlias = 'dict[str, torch.Tensor | dict[str, torch.Tensor]]'
"""A batch as a model of transformers takes it."""


@dataclasses.dataclass(frozen=True)
class Packing:
    """How a model keeps the documents of a row of up to `width` pieces apart; rows end at a multiple of `multiple`.

    `first`: the number of a document's first position, None for a model without them. `window`: how far a piece of a
    windowed layer sees to each side, 0 for a model without such layers. `added`: the type of a mask that is added to
    scores; '' for one of True and False.
    """

    width: int
    first: int | None = 0
    window: int = 0
    added: str = ''
    multiple: int = 1

    def rows(self, documents: Sequence[Mapping[str, np.ndarray]], usual: Mapping[str, int]) -> Batch:
        """Documents, arrays [pieces] by name, in rows [R, L]; `usual`: what stands where there is none.

        The mask is True where a piece sees another, [R, 1, L, L].
        """
        lengths = [len(one['input_ids']) for one in documents]
        placed = best_fit(lengths, self.width)
        fullest = max(sum(lengths[at] for at in members) for members in placed)
        shape = len(placed), -(-fullest // self.multiple) * self.multiple
        batch = {name: np.full(shape, usual.get(name, 0)) for name in documents[0] if name != MASK}
        document_RxL, position_RxL = np.full(shape, NO_DOCUMENT), np.zeros(shape, np.int64)
        for row, members in enumerate(placed):
            ends = np.cumsum([lengths[at] for at in members])
            for at, end in zip(members, ends.tolist(), strict=True):
                own = row, slice(end - lengths[at], end)
                for name in batch:
                    batch[name][own] = documents[at][name]
                document_RxL[own] = np.where(documents[at][MASK] > 0, at, NO_DOCUMENT)
                position_RxL[own] = np.arange(lengths[at])
        if self.first is not None:
            batch[POSITIONS] = position_RxL + self.first
        return {**batch, MASK: self._mask(document_RxL)}

    def _mask(self, document_RxL: np.ndarray) -> np.ndarray | dict[str, np.ndarray]:
        # Padding attends to padding, so that no softmax is empty.
        same_Rx1xLxL = (document_RxL[:, :, None] == document_RxL[:, None, :])[:, None]
        if not self.window:
            return same_Rx1xLxL
        place_L = np.arange(document_RxL.shape[1])
        near_LxL = np.abs(place_L[:, None] - place_L) <= self.window
        return {WHOLE: same_Rx1xLxL, WINDOWED: same_Rx1xLxL & near_LxL}


def tensors_of(batch: Batch, added: str = '') -> ModelInputs:
    """A batch for a model; `added`: as of `Packing`."""
    import torch

    def tensor(array: np.ndarray) -> 'torch.Tensor':
        made = torch.from_numpy(array)
        if not added or made.dtype != torch.bool:
            return made
        dtype = getattr(torch, added)
        return torch.zeros(made.shape, dtype=dtype).masked_fill_(~made, torch.finfo(dtype).min)

    return {
        name: {kind: tensor(array) for kind, array in value.items()}
        if isinstance(value, Mapping)
        else tensor(value)
        for name, value in batch.items()
    }


def packing_for(model: 'PreTrainedModel', width: int, multiple: int) -> Packing:
    """The packing that this model takes, found by trial: packed documents have the outputs that they have alone.

    transformers gives no warning where it mixes documents. Raises ConfigError for a model that does.
    """
    import torch

    if not (isinstance(model, torch.nn.Module) and hasattr(getattr(model, 'config', None), 'vocab_size')):
        raise ConfigError(
            f'pack_for: got {type(model).__name__}; give the model of transformers that is trained'
        )
    dtype, training = model.dtype, {module: module.training for module in model.modules()}
    # What half precision rounds may be as much as what another document adds.
    tried = model if dtype == torch.float32 else copy.deepcopy(model).float()
    tried.eval()
    try:
        with torch.no_grad():
            found = _tried(tried)
    finally:
        for module, was in training.items():
            module.training = was
    if found:
        added = found.added and str(dtype).removeprefix('torch.')
        return dataclasses.replace(found, width=width, multiple=multiple, added=added)
    attention = getattr(model.config, '_attn_implementation', 'unknown')
    # Some families of transformers, a DeBERTa or a Longformer, have no other attention.
    other = getattr(model, '_supports_sdpa', False) and attention != 'sdpa'
    load = "load it with attn_implementation='sdpa', or " if other else ''
    raise ConfigError(
        f'pack_for: {type(model).__name__} does not keep the documents of a row apart (attention {attention!r}); '
        f'{load}leave pack_for out'
    )


def _tried(model: 'PreTrainedModel') -> Packing | None:
    """The first packing that gives the outputs of documents alone, None where none does."""
    import torch

    ids = _two_documents(model)
    try:
        alone = torch.cat([model(input_ids=one[None])[0][0] for one in ids])
        together = model(input_ids=torch.cat(ids)[None])[0][0]
    except FAILURES:  # an attention that takes no float32
        return None
    leak = float((together - alone).abs().max())
    bound = min(TOLERANCE * float(alone.abs().max()), OF_A_LEAK * leak)
    candidates = _candidates(model.config, sum(map(len, ids)))
    return next((one for one in candidates if _difference(model, one, ids, alone) <= bound), None)


def _two_documents(model: 'PreTrainedModel') -> list['torch.Tensor']:
    """Pieces of two documents, longer than its windows, without padding among them."""
    import torch

    config = model.config
    known = torch.tensor([at for at in range(config.vocab_size) if at != config.pad_token_id])
    longest = 2 * _window(config) + FEW_PIECES
    draw = torch.Generator().manual_seed(0)
    return [
        known[torch.randint(len(known), (pieces,), generator=draw)].to(model.device)
        for pieces in (longest, longest // 2 + 1)
    ]


def _window(config: Any) -> int:
    """How far a windowed layer sees to each side, 0 where the model has none."""
    windowed = WINDOWED in (getattr(config, 'layer_types', None) or ())
    return int(getattr(config, 'sliding_window', 0) or 0) if windowed else 0


def _candidates(config: Any, width: int) -> Iterator[Packing]:
    behind_padding = (config.pad_token_id or 0) + 1
    for added, first in itertools.product(('', 'float32'), (0, behind_padding, FIRST_OF_MPNET, None)):
        yield Packing(width, first, _window(config), added)


def _difference(
    model: 'PreTrainedModel', tried: Packing, ids: Sequence['torch.Tensor'], alone: 'torch.Tensor'
) -> float:
    """The largest difference of an output from that of the document alone; infinite where there is none."""
    documents = [{'input_ids': one.cpu().numpy(), MASK: np.ones(len(one))} for one in ids]
    batch = tensors_of(tried.rows(documents, {}), tried.added)

    def moved(value: Any) -> Any:
        return (
            {k: moved(v) for k, v in value.items()} if isinstance(value, Mapping) else value.to(model.device)
        )

    try:
        found = model(**moved(batch))[0][0]
    except FAILURES:
        return float('inf')
    difference = float((found - alone).abs().max()) if found.shape == alone.shape else float('inf')
    return difference if difference == difference else float('inf')
