"""transformers' PyTorch BERT on the same documents, in the ways that people train it.

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
from workload import Shape, documents_of

from bioptimus_jax.pretrain.rows import positions_and_segments

PEERS = ('hf_padded', 'hf_concatenated', 'hf_masked', 'hf_packed_masked', 'hf_compiled')
RATE, MASK_ID, FIRST_WORD = 0.15, 4, 5


def model_of(shape: Shape) -> torch.nn.Module:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=4 * shape.hidden,
        max_position_embeddings=512,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return transformers.BertForMaskedLM(config)


def make_step(
    name: str, shape: Shape, read: Callable[[int], dict[str, np.ndarray]]
) -> tuple[Callable[[], dict[str, Any]], dict[str, Any]]:
    """A step on the documents of the next batch, and facts: threads chosen."""
    device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    model = model_of(shape).train().to(device)
    encoder = torch.compile(model.bert) if name == 'hf_compiled' else model.bert
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=device.type == 'cuda')
    generator = torch.Generator().manual_seed(0)
    number = 0

    def step() -> dict[str, Any]:
        nonlocal number
        batch = read(number)
        number += 1
        inputs = {key: torch.from_numpy(value) for key, value in layout(name, batch).items()}
        tokens = inputs.pop('input_ids')
        drawn = torch.rand(tokens.shape, generator=generator) < RATE
        chosen = (drawn & (tokens >= FIRST_WORD)).to(device)
        tokens = tokens.to(device)
        inputs = {key: value.to(device) for key, value in inputs.items()}
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == 'cuda'):
            masked = torch.where(chosen, MASK_ID, tokens)
            if name in ('hf_padded', 'hf_concatenated'):
                loss = model(input_ids=masked, labels=torch.where(chosen, tokens, -100), **inputs).loss
            else:
                states = encoder(input_ids=masked, **inputs).last_hidden_state
                loss = torch.nn.functional.cross_entropy(model.cls(states[chosen]).float(), tokens[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if device.type == 'cuda':
            torch.cuda.synchronize()
        return {'useful': int((batch['tokens'] > 0).sum())}

    return step, {'threads': _better_threads(step) if device.type == 'cpu' else None}


def layout(name: str, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The documents of packed rows as this variant takes them: input_ids, attention_mask, position_ids."""
    documents, width = documents_of(batch), batch['tokens'].shape[1]
    if name in ('hf_padded', 'hf_masked'):
        longest = max(map(len, documents))
        tokens = np.stack([np.pad(document, (0, longest - len(document))) for document in documents])
        return {'input_ids': tokens.astype(np.int64), 'attention_mask': (tokens > 0).astype(np.int64)}
    if name == 'hf_concatenated':
        joined = np.concatenate(documents)
        joined = np.pad(joined, (0, -len(joined) % width))
        tokens = joined.reshape(-1, width)
        return {'input_ids': tokens.astype(np.int64), 'attention_mask': (tokens > 0).astype(np.int64)}
    positions, segments = positions_and_segments(batch['segment_lengths'], width)
    same = segments[:, None, :, None] == segments[:, None, None, :]
    return {
        'input_ids': batch['tokens'].astype(np.int64),
        'attention_mask': np.where(same, 0, np.finfo(np.float32).min).astype(np.float32),
        'position_ids': positions.astype(np.int64),
    }


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
