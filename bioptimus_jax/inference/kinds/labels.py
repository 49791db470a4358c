"""Labels, or a number, that a classifier gives to a text or a pair of texts."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.loading import computing_dtype
from bioptimus_jax.finetuning.recommended import BATCH
from bioptimus_jax.finetuning.texts.head import AnyLabels, Number, OneLabel, TextHead
from bioptimus_jax.finetuning.texts.windows import CUT, windows
from bioptimus_jax.finetuning.training import outputs
from bioptimus_jax.inference.answer import Answer
from bioptimus_jax.inference.given import Given
from bioptimus_jax.inference.model import LoadedModel, Settings
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.texts import Text

AT_ONCE = 1024
USUAL = 512
HEADS: dict[str, type[TextHead]] = {head.problem_type: head for head in (OneLabel, AnyLabels, Number)}


def answers(loaded: LoadedModel, given: Sequence[Given], settings: Settings) -> Iterator[Answer]:
    """What the model says of every text. The end of what is too long is cut, and of two texts the end of the longer
    one."""
    config, labels, reads = loaded.model.config, loaded.labels, loaded.reads
    options = Finetune(max_pieces=loaded.pieces(settings.max_pieces, USUAL), batch_sentences=BATCH)
    kind = config.problem_type or (Number if len(labels) == 1 else OneLabel).problem_type
    if not reads.apart and (wrong := next((one for one in given if len(one.texts) > 2), None)):
        raise InputError(f'{wrong.place}: has {len(wrong.texts)} texts, but the model reads one or two')
    head = HEADS[kind](loaded.model, labels, options, computing_dtype(options, loaded.model.device.type))
    cut = 0
    for start in range(0, len(given), AT_ONCE):
        part = given[start : start + AT_ONCE]
        # Texts of a set are read without the blanks around them, and a blank is a piece for some tokenizers.
        stripped = [tuple(text.strip() for text in one.texts) for one in part]
        texts = [Text(words, (), parts=((),) * len(words) * reads.apart) for words in stripped]
        encoded = windows(
            loaded.tokenizer, texts, options.max_pieces, reads.question, segment_ids=reads.segment_ids
        )
        made, cut = encoded.windows, cut + encoded.counts[CUT]
        found: list[list[Any]] = [[] for _ in part]
        for window, logits in zip(made, outputs(head, made, options), strict=True):
            found[window.example].append(logits)
        for one, own in zip(part, found, strict=True):
            # A label of several texts that are read apart is as probable as in the text where it is most so.
            yield _of_logits(one, np.max(np.array(own, np.float64), 0), labels, kind)
    if cut:
        longer = f'; --max_pieces reads up to {loaded.limit}' * (options.max_pieces < loaded.limit)
        settings.say(
            f'the end of {numbered(cut, "text")} is not read: longer than {options.max_pieces} pieces{longer}'
        )


def _of_logits(given: Given, logits_K: np.ndarray, labels: Sequence[str], kind: str) -> Answer:
    if kind == Number.problem_type:
        return Answer(given, said=(float(logits_K[0]),))
    if kind == AnyLabels.problem_type:
        sure_K = 1 / (1 + np.exp(-logits_K))
        said = tuple(label for label, sure in zip(labels, sure_K, strict=True) if sure > 0.5)
    else:
        sure_K = np.exp(logits_K - np.logaddexp.reduce(logits_K))
        said = (labels[int(np.argmax(logits_K))],)
    ranked = sorted(zip(labels, sure_K.tolist(), strict=True), key=lambda pair: -pair[1])
    return Answer(given, said=said, labels=tuple(ranked))
