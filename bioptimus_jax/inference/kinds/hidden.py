"""Words that a masked language model puts for [MASK]. Shapes: V entries of the vocabulary, M masks of a text."""

import re
from collections.abc import Iterator, Sequence

import torch

from bioptimus_jax.errors import InputError
from bioptimus_jax.inference.answer import Answer, AnswerSpan
from bioptimus_jax.inference.given import Given
from bioptimus_jax.inference.model import LoadedModel, Settings

MASKS = re.compile(r'\[MASK\]|<mask>')
"""Either is taken for the mask of the tokenizer."""


def answers(loaded: LoadedModel, given: Sequence[Given], settings: Settings) -> Iterator[Answer]:
    """The most probable tokens for every mask, the others hidden too. Raises InputError for text without one."""
    tokenizer, limit = loaded.tokenizer, loaded.pieces(settings.max_pieces, loaded.limit)
    if tokenizer.mask_token is None:
        raise InputError(f'{loaded.folder}: its tokenizer has no mask, so nothing can be filled in')
    pattern = re.compile(f'{MASKS.pattern}|{re.escape(tokenizer.mask_token)}')
    for one in given:
        text = '\t'.join(one.texts)
        places = [match.span() for match in pattern.finditer(text)]
        if not places:
            raise InputError(f'{one.place}: has no {tokenizer.mask_token} to be filled in')
        # Replaced by a function: in a template of `re` a backslash of the mask would be read as an escape.
        pieces = tokenizer(pattern.sub(lambda _: tokenizer.mask_token, text), return_tensors='pt')
        if pieces['input_ids'].shape[1] > limit:
            raise InputError(
                f'{one.place}: has {pieces["input_ids"].shape[1]} pieces, but a text may have {limit}; shorten it'
            )
        at_M = pieces['input_ids'][0] == tokenizer.mask_token_id
        with torch.inference_mode():
            logits_MxV = loaded.model(**pieces.to(loaded.model.device)).logits[0, at_M].float()
        best = torch.softmax(logits_MxV, -1).topk(min(settings.best, logits_MxV.shape[-1]))
        found = []
        for (start, end), ids, sure in zip(places, best.indices.tolist(), best.values.tolist(), strict=True):
            words = tuple(zip([tokenizer.decode([i]).strip() for i in ids], sure, strict=True))
            found.append(AnswerSpan(start, end, *words[0], words))
        yield Answer(one, tuple(found))
