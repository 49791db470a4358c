"""The perplexity of every document under a masked language model, to choose texts by (config.corpus.content.scores).

Legend: B documents of a batch, L pieces of the longest, M hidden ones.
"""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.analysis.masked_lm import BATCH_ROWS, ForeignModel
from bioptimus_jax.corpus.documents import Document, document_key
from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.files import intact_jsonl

PERPLEXITY, HIDDEN = 'perplexity', 0.15
BEGUN = '.begun'
"""Ending of a file that is being written; the same command goes on with it."""


def write_perplexities(
    model: ForeignModel,
    documents: Iterable[Document],
    to: Path,
    advance: Callable[[int], None] = lambda documents: None,
) -> int:
    """Write a line {"id": ..., "perplexity": ...} for every document that has a piece, and give their number.

    Of the pieces of a document 15 % are hidden, chosen by its id; of one that is longer than the model's rows only
    the beginning counts. An attempt that was cut off is gone on with, if it was of the same model. `advance` is told
    the number of documents that were done. Raises InputError where another model has begun.
    """
    begun = to.with_name(to.name + BEGUN)
    first = {'model': str(model.folder.resolve())}
    lines = intact_jsonl(begun)
    if lines and lines[0] != first:
        raise InputError(f'{begun}: was begun with another model; delete it, or name another --to')
    known = {line['id'] for line in lines[1:]}
    text = ''.join(json.dumps(line, ensure_ascii=False) + '\n' for line in lines or [first])
    begun.write_text(text, 'utf-8')  # without a line that was cut off
    count = len(known)
    with open(begun, 'a', encoding='utf-8') as file:
        for batch in _batches(documents):
            waiting = [document for document in batch if document.id not in known]
            for document, loss in zip(waiting, losses(model, waiting), strict=True):
                if np.isfinite(loss):
                    row = {'id': document.id, PERPLEXITY: round(float(np.exp(loss)), 4)}
                    file.write(json.dumps(row, ensure_ascii=False) + '\n')
                    count += 1
            file.flush()
            advance(len(batch))
    _finish(begun, to)
    return count


def _finish(begun: Path, to: Path) -> None:
    """Give the file its name, without the line that says what it was begun with."""
    hidden = to.with_name(f'.{to.name}.tmp')
    with open(begun, encoding='utf-8') as lines, open(hidden, 'w', encoding='utf-8') as file:
        file.writelines(itertools.islice(lines, 1, None))
        file.flush()
        os.fsync(file.fileno())
    os.replace(hidden, to)
    begun.unlink()


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    iterator = iter(documents)
    while batch := list(itertools.islice(iterator, BATCH_ROWS)):
        yield batch


def losses(model: ForeignModel, documents: Sequence[Document]) -> np.ndarray:
    """The mean loss of the hidden pieces of every document, in nats; NaN for one without a piece."""
    import torch

    cls, sep, pad = (getattr(model.tokenizer, f'{name}_token_id') for name in ('cls', 'sep', 'pad'))
    pieces = [_pieces(model, document.text) for document in documents]
    longest = max((len(one) for one in pieces), default=0) + 2
    inputs_BxL = np.full((len(pieces), longest), pad, np.int64)
    targets_BxL = np.full_like(inputs_BxL, -100)  # what torch's loss passes over
    for row, (document, one) in enumerate(zip(documents, pieces, strict=True)):
        inputs_BxL[row, : len(one) + 2] = [cls, *one, sep]
        if one:
            hidden_M = _hidden(document, len(one)) + 1
            targets_BxL[row, hidden_M] = inputs_BxL[row, hidden_M]
            inputs_BxL[row, hidden_M] = model.tokenizer.mask_token_id
    if not any(pieces):
        return np.full(len(documents), np.nan)
    device = model.model.device
    inputs, targets = (torch.from_numpy(array).to(device) for array in (inputs_BxL, targets_BxL))
    real = torch.from_numpy(np.array([[at < len(one) + 2 for at in range(longest)] for one in pieces]))
    with torch.inference_mode():
        logits: Any = model.model(input_ids=inputs, attention_mask=real.to(device).long()).logits.float()
        each_BxL = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction='none')
    counts_B = (targets_BxL >= 0).sum(1)
    sums_B = each_BxL.sum(1).double().cpu().numpy()
    return np.where(counts_B > 0, sums_B / np.maximum(counts_B, 1), np.nan)


def _pieces(model: ForeignModel, text: str) -> list[int]:
    found: list[int] = model.tokenizer(text, add_special_tokens=False, verbose=False)['input_ids']
    return found[: model.longest - 2]


def _hidden(document: Document, pieces: int) -> np.ndarray:
    """The places that are hidden: the same for every model that cuts the document into as many pieces."""
    drawn = np.random.default_rng(document_key(document.id))
    return drawn.choice(pieces, max(1, round(HIDDEN * pieces)), replace=False)
