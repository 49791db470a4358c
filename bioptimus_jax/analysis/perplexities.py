"""The perplexity of every document under a masked language model, to choose texts by (config.corpus.content.scores).

Legend: B documents of a batch, L pieces of the longest, M hidden ones, D width of the states.
"""

import contextlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.analysis.masked_lm import BATCH_ROWS, ForeignModel
from bioptimus_jax.corpus.documents import Document, document_key
from bioptimus_jax.errors import InputError
from bioptimus_jax.model.folder import content_of
from bioptimus_jax.storage.files import atomic, intact_jsonl
from bioptimus_jax.storage.hashing import hash64

PERPLEXITY, HIDDEN = 'perplexity', 0.15
BEGUN, TEXT = '.begun', 'text'
"""Ending of a file that is being written, with which the same command goes on; and the key of a hash of id and text in
its lines."""


def write_perplexities(
    model: ForeignModel,
    documents: Iterable[Document],
    to: Path,
    advance: Callable[[int], None] = lambda documents: None,
) -> int:
    """Write a line {"id": ..., "perplexity": ...} for every document that has a piece, and give their number.

    Of the pieces of a document 15 % are hidden, chosen by its id; of one that is longer than the model's rows only
    the beginning counts. The same call continues what was cut off, and computes a text again if it has changed.
    `advance` is told the number of documents that were done. Raises InputError if the file was begun with another
    model, or with other weights.
    """
    begun = to.with_name(to.name + BEGUN)
    first = {'model': str(model.folder.resolve()), 'content': content_of(model.folder)}
    lines = intact_jsonl(begun)
    if lines and lines[0] != first:
        raise InputError(f'{begun}: was begun with another model; delete it, or name another --to')
    known = {line[TEXT] for line in lines[1:]}
    strange = set(known)
    text = ''.join(json.dumps(line, ensure_ascii=False) + '\n' for line in lines or [first])
    begun.write_text(text, 'utf-8')  # without a line that was cut off
    with open(begun, 'a', encoding='utf-8') as file:
        for batch in _batches(documents):
            keys = [hash64(f'{document.id}\n{document.text}') for document in batch]
            strange.difference_update(keys)
            waiting = [(document, key) for document, key in zip(batch, keys, strict=True) if key not in known]
            found = losses(model, [document for document, _ in waiting])
            for (document, key), loss in zip(waiting, found, strict=True):
                if np.isfinite(loss):
                    row = {'id': document.id, PERPLEXITY: round(float(np.exp(loss)), 4), TEXT: key}
                    file.write(json.dumps(row, ensure_ascii=False) + '\n')
            file.flush()
            advance(len(batch))
    count = 0
    with open(begun, encoding='utf-8') as written, atomic(to) as finished:
        for line in itertools.islice(written, 1, None):  # the first says which model it is of
            row = json.loads(line)
            if row.pop(TEXT) not in strange:
                finished.write(json.dumps(row, ensure_ascii=False) + '\n')
                count += 1
    begun.unlink()
    return count


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    iterator = iter(documents)
    while batch := list(itertools.islice(iterator, BATCH_ROWS)):
        yield batch


def losses(model: ForeignModel, documents: Sequence[Document]) -> np.ndarray:
    """The mean loss of the hidden pieces of every document, in nats; NaN for one without a piece."""
    import torch

    cls, sep, pad = (getattr(model.tokenizer, f'{name}_token_id') for name in ('cls', 'sep', 'pad'))
    pieces = [_pieces(model, document.text) for document in documents]
    if not any(pieces):
        return np.full(len(documents), np.nan)
    hidden = [_hidden(document, len(one)) + 1 for document, one in zip(documents, pieces, strict=True)]
    counts_B = np.array(list(map(len, hidden)))
    inputs_BxL = np.full((len(pieces), max(map(len, pieces)) + 2), pad, np.int64)
    real_BxL = np.zeros_like(inputs_BxL)
    slots_BxM = np.zeros((len(pieces), max(counts_B)), np.int64)
    targets_BxM = np.full_like(slots_BxM, -100)  # what torch's loss passes over
    for row, (one, slots_M) in enumerate(zip(pieces, hidden, strict=True)):
        inputs_BxL[row, : len(one) + 2] = [cls, *one, sep]
        real_BxL[row, : len(one) + 2] = 1
        slots_BxM[row, : len(slots_M)] = slots_M
        targets_BxM[row, : len(slots_M)] = inputs_BxL[row, slots_M]
        inputs_BxL[row, slots_M] = model.tokenizer.mask_token_id
    arrays = (inputs_BxL, real_BxL, slots_BxM, targets_BxM)
    inputs, real, slots, targets = (torch.from_numpy(array).to(model.model.device) for array in arrays)
    with torch.inference_mode(), _states_at(model.model, slots):
        logits: Any = model.model(input_ids=inputs, attention_mask=real).logits.float()
        each = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction='none')
    sums_B = each.view(targets.shape).sum(1).double().cpu().numpy()
    return np.where(counts_B > 0, sums_B / np.maximum(counts_B, 1), np.nan)


@contextlib.contextmanager
def _states_at(model: Any, slots_BxM: Any) -> Iterator[None]:
    """Have the output layer of a model see the states of these places alone: its logits are most of the work."""

    def chosen(module: Any, given: Any, output: Any) -> Any:
        states_BxLxD = output['last_hidden_state']
        index = slots_BxM[..., None].expand(-1, -1, states_BxLxD.shape[-1])
        output['last_hidden_state'] = states_BxLxD.gather(1, index)
        return output

    hook = model.base_model.register_forward_hook(chosen)
    try:
        yield
    finally:
        hook.remove()


def _pieces(model: ForeignModel, text: str) -> list[int]:
    found: list[int] = model.tokenizer(text, add_special_tokens=False, verbose=False)['input_ids']
    return found[: model.longest - 2]


def _hidden(document: Document, pieces: int) -> np.ndarray:
    """The places that are hidden: the same for every model that cuts the document into as many pieces."""
    count = min(max(1, round(HIDDEN * pieces)), pieces)
    return np.random.default_rng(document_key(document.id)).choice(pieces, count, replace=False)
