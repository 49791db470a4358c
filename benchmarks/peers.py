"""transformers' PyTorch model on the same documents, in the ways that people train it.

hf_padded: one document a row, padded to the longest, logits everywhere: what the examples do with one line a text.
hf_concatenated: documents one after the other, cut into full rows that attend across documents (`group_texts`).
hf_masked: padded, logits on the masked positions only. hf_packed_masked: our rows, with a block-diagonal mask,
positions from 0 in every document, and logits on masked positions. hf_compiled: the same under torch.compile.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers
from torch.utils._pytree import tree_map
from workload import Shape, architecture, documents_of

from bioptimus_jax.pretrain.rows import positions_and_segments

PEERS = ('hf_padded', 'hf_concatenated', 'hf_masked', 'hf_packed_masked', 'hf_compiled')
RATE, MASK_ID, FIRST_WORD = 0.15, 4, 5


# The masked-language-model head of each family, on chosen states.
HEADS: dict[str, Callable[[Any, torch.Tensor], torch.Tensor]] = {
    'bert': lambda model, states: model.cls(states),
    'roberta': lambda model, states: model.lm_head(states),
    'modernbert': lambda model, states: model.decoder(model.head(states)),
}


def model_of(shape: Shape) -> Any:
    """transformers' model of that shape, from the config.json that ours would have."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        shape.family, **{'pad_token_id': 0, **architecture(shape).to_config()}
    )
    return transformers.AutoModelForMaskedLM.from_config(config)


def make_step(
    name: str, shape: Shape, read: Callable[[int], dict[str, np.ndarray]]
) -> tuple[Callable[[], dict[str, Any]], dict[str, Any]]:
    """A step on the documents of the next batch, and facts: threads chosen."""
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    model = model_of(shape).train().to(device)
    head = HEADS[shape.family]
    encoder = torch.compile(model.base_model) if name == 'hf_compiled' else model.base_model
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=device.type == 'cuda')
    generator = torch.Generator().manual_seed(0)
    number = 0

    def step() -> dict[str, Any]:
        nonlocal number
        batch = read(number)
        number += 1
        inputs = layout(name, batch, model.config)
        tokens = inputs.pop('input_ids')
        drawn = torch.rand(tokens.shape, generator=generator) < RATE
        chosen = (drawn & (tokens >= FIRST_WORD)).to(device)
        tokens = tokens.to(device)
        inputs = tree_map(lambda value: value.to(device), inputs)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == 'cuda'):
            masked = torch.where(chosen, MASK_ID, tokens)
            if name in ('hf_padded', 'hf_concatenated'):
                loss = model(input_ids=masked, labels=torch.where(chosen, tokens, -100), **inputs).loss
            else:
                states = encoder(input_ids=masked, **inputs).last_hidden_state
                loss = torch.nn.functional.cross_entropy(head(model, states[chosen]).float(), tokens[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if device.type == 'cuda':
            torch.cuda.synchronize()
        return {'useful': int((batch['tokens'] > 0).sum())}

    return step, {'threads': _better_threads(step) if device.type == 'cpu' else None}


def layout(name: str, batch: dict[str, np.ndarray], config: Any) -> dict[str, Any]:
    """The documents of packed rows as this variant takes them: input_ids, attention_mask, position_ids."""
    documents, width = documents_of(batch), batch['tokens'].shape[1]
    if name in ('hf_padded', 'hf_masked'):
        longest = max(map(len, documents))
        tokens = np.stack([np.pad(document, (0, longest - len(document))) for document in documents])
    elif name == 'hf_concatenated':
        joined = np.concatenate(documents)
        tokens = np.pad(joined, (0, -len(joined) % width)).reshape(-1, width)
    else:
        tokens = batch['tokens']
    inputs: dict[str, Any] = {'input_ids': torch.from_numpy(tokens.astype(np.int64))}
    if tokens is batch['tokens']:
        return inputs | packed(*positions_and_segments(batch['segment_lengths'], width), config)
    return inputs | {'attention_mask': (inputs['input_ids'] > 0).long()}


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
