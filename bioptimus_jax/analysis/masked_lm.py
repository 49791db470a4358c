"""Masked language models that transformers can load, RoBERTa, ELECTRA, ModernBERT ..., scored on masks drawn here.

Legend: B rows of a batch, L pieces a row, M slots, V entries of the vocabulary.
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.corpus.documents import Document, document_key
from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.loading import check_embedding_rows, device_here, load_weights, positions_of
from bioptimus_jax.pretrain.masking import Masked
from bioptimus_jax.rows.blocks import PackedSegment, one_a_row
from bioptimus_jax.rows.parts import cut_points
from bioptimus_jax.rows.words import starts_of, white_space_starts
from bioptimus_jax.tokenizer.subwords import Vocabulary
from bioptimus_jax.vocab.agreement import for_texts, load_in_transformers, masked_by

BATCH_ROWS = 8
"""The logits of all places of these rows are held at once."""


@dataclasses.dataclass(frozen=True)
class ForeignModel:
    """A loaded model and its tokenizer; `longest`: pieces of its longest row, special ones included."""

    folder: Path
    tokenizer: Any
    model: Any
    longest: int

    @property
    def vocabulary(self) -> Vocabulary:
        """What may be hidden and what may stand in its place: nothing special but the unknown token is left."""
        return masked_by(self.tokenizer)

    def rows(self, documents: Sequence[Document], width: int, words: str) -> dict[str, np.ndarray]:
        """One document, or part of a long one, a row, cut as in training, as `Rows.read` gives them.

        `words`: config.rows.words.
        """
        ids = self.tokenizer.get_vocab()
        ends_V = np.zeros(len(self.tokenizer), bool)
        ends_V[[ids[mark] for mark in '.?!' if mark in ids]] = True
        cls, sep = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        parts = []
        for document in documents:
            encoding = self.tokenizer(document.text, add_special_tokens=False, verbose=False).encodings[0]
            tokens = np.array(encoding.ids, np.uint32)
            if not len(tokens):
                continue
            spaced = white_space_starts(document.text, encoding.offsets)
            cuts = starts_of(words, document.text, encoding)
            for begin, end in cut_points(tokens, spaced, ends_V, width - 2):
                parts.append(
                    PackedSegment(
                        np.r_[cls, tokens[begin:end], sep],
                        np.r_[True, spaced[begin:end], True],
                        document_key(document.id),
                        np.r_[True, cuts[begin:end], True],
                    )
                )
        return one_a_row(parts, width)

    def slot_losses(self, masked: Masked, segments_BxL: np.ndarray, positions_BxL: np.ndarray) -> np.ndarray:
        """The loss of every slot in nats, [B, M]; the model numbers its positions itself, from the first piece on."""
        import torch

        device = self.model.device
        real_BxL = torch.from_numpy(np.asarray(segments_BxL) > 0).to(device).long()
        inputs_BxL = torch.from_numpy(np.array(masked.inputs_L)).to(device).long()
        slots_BxM, targets_BxM = (
            torch.from_numpy(np.array(x)).to(device).long() for x in (masked.slots_M, masked.targets_M)
        )
        with torch.inference_mode():
            logits_BxLxV = self.model(input_ids=inputs_BxL, attention_mask=real_BxL).logits
            index = slots_BxM[..., None].expand(-1, -1, logits_BxLxV.shape[-1])
            logits_BxMxV = logits_BxLxV.gather(1, index).float()
            losses_BxM = torch.nn.functional.cross_entropy(
                logits_BxMxV.transpose(1, 2), targets_BxM, reduction='none'
            )
        return losses_BxM.cpu().numpy()


def load(folder: Path, threads: int) -> ForeignModel:
    """The model of a Hugging Face folder, on the GPU if there is one. Raises InputError without a masked-LM head."""
    import torch
    from transformers.utils import logging

    tokenizer = for_texts(load_in_transformers(folder))
    logging.disable_progress_bar()
    torch.set_num_threads(threads)
    refused = 'is not a masked language model that transformers can load ({}); name another model'
    model, info = load_weights(folder, 'AutoModelForMaskedLM', refused)
    wrong = sorted(map(str, [*info['missing_keys'], *info['mismatched_keys']]))
    if wrong or None in (tokenizer.mask_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id):
        reason = f'lacks {", ".join(wrong[:3])}' if wrong else 'its tokenizer has no mask, begin or end'
        raise InputError(f'{folder}: {reason}, so it has no perplexity; name another model')
    check_embedding_rows(folder, tokenizer, model)
    longest = min(positions_of(model, tokenizer.model_max_length), tokenizer.model_max_length)
    return ForeignModel(folder, tokenizer, model.eval().to(device_here()), longest)
