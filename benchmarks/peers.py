"""transformers' PyTorch model on the same documents, in the ways that people train it.

hf_padded: one document a row, padded to the longest, logits everywhere: what the examples do with one line a text.
hf_concatenated: documents one after the other, cut into full rows that attend across documents (`group_texts`).
hf_masked: padded, logits on the masked positions only. hf_packed_masked: our rows, with a block-diagonal mask,
positions from 0 in every document, and logits on masked positions. hf_compiled: the same under torch.compile.
hf_varlen: our rows without a mask, each document attended to by itself (PyTorch's nested tensors, which on a GPU call
its own flash attention); hf_varlen_compiled: the same with everything else compiled. They have no windows.
On a GPU the next batch is laid out while a step is made, as a DataLoader's worker would.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
import transformers
from torch.utils._pytree import tree_map
from workload import Shape, architecture, documents_of

from bioptimus_jax.rows.blocks import positions_and_segments

RATE, MASK_ID, FIRST_WORD = 0.15, 4, 5
Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Peer:
    """`layout(batch, config)`: the documents of packed rows as it takes them, with `input_ids`."""

    layout: Callable[[Batch, Any], dict[str, Any]]
    masked_head: bool = True
    compiled: bool = False
    attention: str = 'sdpa'


# The masked-language-model head of each family, on chosen states.
HEADS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    'bert': lambda model, states: model.cls(states),
    'roberta': lambda model, states: model.lm_head(states),
    'modernbert': lambda model, states: model.decoder(model.head(states)),
}


def model_of(shape: Shape, attention: str = 'sdpa') -> Any:
    """transformers' model of that shape, from the config.json that ours would have."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        shape.family, **{'pad_token_id': 0, **architecture(shape).to_config()}
    )
    return transformers.AutoModelForMaskedLM.from_config(config, attn_implementation=attention)


def make_step(
    name: str, shape: Shape, read: Callable[[int], Batch], steps: int = 1
) -> tuple[Callable[[], dict[str, Any]], dict[str, Any]]:
    """A function that makes so many optimiser steps on the documents of the next batches, and facts: threads chosen,
    the first loss."""
    device, peer = torch.device('cuda' if torch.cuda.is_available() else 'cpu'), PEERS[name]
    model = model_of(shape, peer.attention).train().to(device)
    head = HEADS[shape.family]
    encoder = torch.compile(model.base_model) if peer.compiled else model.base_model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=device.type == 'cuda')
    generator = torch.Generator().manual_seed(0)

    def batch_at(number: int) -> tuple[int, dict[str, Any]]:
        batch = read(number)
        inputs = peer.layout(batch, model.config)
        tokens = inputs['input_ids']
        chosen = (torch.rand(tokens.shape, generator=generator) < RATE) & (tokens >= FIRST_WORD)
        inputs |= {'chosen': chosen, 'places': chosen.flatten().nonzero().squeeze(1)}
        if device.type == 'cuda':
            inputs = tree_map(lambda x: x.pin_memory() if torch.is_tensor(x) else x, inputs)
        return int((batch['tokens'] > 0).sum()), inputs

    def losses(inputs: dict[str, Any]) -> torch.Tensor:
        tokens, chosen, places = (inputs.pop(name) for name in ('input_ids', 'chosen', 'places'))
        masked = torch.where(chosen, MASK_ID, tokens)
        if not peer.masked_head:
            return model(input_ids=masked, labels=torch.where(chosen, tokens, -100), **inputs).loss
        states = encoder(input_ids=masked, **inputs).last_hidden_state.flatten(0, 1)[places]
        return torch.nn.functional.cross_entropy(head(model, states).float(), tokens.flatten()[places])

    batches = _ahead(batch_at) if device.type == 'cuda' else map(batch_at, itertools.count())

    def step() -> dict[str, Any]:
        useful = 0
        for _ in range(steps):
            count, inputs = next(batches)
            useful += count
            inputs = tree_map(lambda x: x.to(device, non_blocking=True) if torch.is_tensor(x) else x, inputs)
            with torch.autocast(device.type, torch.bfloat16, enabled=device.type == 'cuda'):
                loss = losses(inputs)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        return {'useful': useful, 'loss': loss.item()}  # which waits for the device

    facts: dict[str, Any] = {'loss': step()['loss']}  # of the first step, or of the last of so many
    facts['threads'] = _better_threads(step) if device.type == 'cpu' else None
    return step, facts


def _ahead(make: Callable[[int], Any]) -> Iterator[Any]:
    """`make(0)`, `make(1)` and so on; the next one is made while one is used."""
    with ThreadPoolExecutor(1) as maker:
        following = maker.submit(make, 0)
        for number in itertools.count(1):
            made, following = following.result(), maker.submit(make, number)
            yield made


def padded(batch: Batch, config: Any) -> dict[str, Any]:
    """A document a row."""
    documents = documents_of(batch)
    longest = max(map(len, documents))
    return _whole(np.stack([np.pad(document, (0, longest - len(document))) for document in documents]))


def concatenated(batch: Batch, config: Any) -> dict[str, Any]:
    """Documents one after the other."""
    joined, width = np.concatenate(documents_of(batch)), batch['tokens'].shape[1]
    return _whole(np.pad(joined, (0, -len(joined) % width)).reshape(-1, width))


def packed_rows(batch: Batch, config: Any) -> dict[str, Any]:
    """Our rows, with a mask."""
    placed = positions_and_segments(batch['segment_lengths'], batch['tokens'].shape[1])
    return {'input_ids': torch.from_numpy(batch['tokens'].astype(np.int64)), **packed(*placed, config)}


def documents(batch: Batch, config: Any) -> dict[str, Any]:
    """Our rows, with the ends of documents; what is behind the last one of a row is a document, too."""
    inputs = packed_rows(batch, config)
    del inputs['attention_mask']
    lengths_BxG = batch['segment_lengths']
    left_B = batch['tokens'].shape[1] - lengths_BxG.sum(1)
    lengths = np.column_stack([lengths_BxG, left_B]).ravel()
    lengths = lengths[lengths > 0].astype(np.int64)
    ends = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))
    return {**inputs, 'cu_seq_lens_q': ends, 'max_length_q': int(lengths.max())}


def _whole(tokens: np.ndarray) -> dict[str, Any]:
    input_ids = torch.from_numpy(tokens.astype(np.int64))
    return {'input_ids': input_ids, 'attention_mask': (input_ids > 0).long()}


@torch.compiler.disable  # lengths differ from batch to batch
def _by_document(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    *,
    cu_seq_lens_q: torch.Tensor,
    max_length_q: int,
    scaling: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """An attention of transformers, [B, H, L, K] to [B, L, H, K]: documents as the parts of a nested tensor."""
    rows, heads, length, size = query.shape

    def parts(values: torch.Tensor) -> torch.Tensor:
        flat = values.transpose(1, 2).reshape(rows * length, heads, size)
        nested = torch.nested.nested_tensor_from_jagged(
            flat, cu_seq_lens_q, min_seqlen=1, max_seqlen=max_length_q
        )
        return nested.transpose(1, 2)

    mixed = torch.nn.functional.scaled_dot_product_attention(
        parts(query), parts(key), parts(value), scale=scaling
    )
    return mixed.transpose(1, 2).values().reshape(rows, length, heads, size), None


BY_DOCUMENT = 'by_document'
transformers.AttentionInterface.register(BY_DOCUMENT, _by_document)

PEERS = {
    'hf_padded': Peer(padded, masked_head=False),
    'hf_concatenated': Peer(concatenated, masked_head=False),
    'hf_masked': Peer(padded),
    'hf_packed_masked': Peer(packed_rows),
    'hf_compiled': Peer(packed_rows, compiled=True),
    'hf_varlen': Peer(documents, attention=BY_DOCUMENT),
    'hf_varlen_compiled': Peer(documents, compiled=True, attention=BY_DOCUMENT),
}


def packed(positions_BxL: np.ndarray, segments_BxL: np.ndarray, config: Any) -> dict[str, Any]:
    """Position ids and masks that keep the documents of a row apart; of a model with windows, one mask for each kind
    of layer."""
    same_BxLxL = segments_BxL[:, :, None] == segments_BxL[:, None, :]
    masks = {'full_attention': same_BxLxL}
    if window := getattr(config, 'sliding_window', None):
        place_L = np.arange(segments_BxL.shape[1])
        near_LxL = np.abs(place_L[:, None] - place_L[None]) <= window
        masks['sliding_attention'] = same_BxLxL & near_LxL
    lowest = np.finfo(np.float32).min
    added = {
        kind: torch.from_numpy(np.where(may[:, None], np.float32(0), lowest)) for kind, may in masks.items()
    }
    # RoBERTa's positions begin behind the row of padding.
    first = config.pad_token_id + 1 if config.model_type == 'roberta' else 0
    positions = torch.from_numpy(positions_BxL.astype(np.int64)) + first
    return {'attention_mask': added if len(added) > 1 else added['full_attention'], 'position_ids': positions}


def _better_threads(step: Callable[[], Any]) -> int:
    """One thread or two, whichever was faster in one step each, after one to warm up."""
    taken = {}
    for threads in (2, 1):
        torch.set_num_threads(threads)
        step()
        started = time.perf_counter()
        step()
        taken[threads] = time.perf_counter() - started
    best = min(taken, key=lambda threads: taken[threads])
    torch.set_num_threads(best)
    return best
