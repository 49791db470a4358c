"""Labels, or a number, that a classifier gives to a text or a pair of texts."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.recommended import BATCH
from bioptimus_jax.finetuning.task import Encoded
from bioptimus_jax.finetuning.texts.features import FEATURES, Features
from bioptimus_jax.finetuning.texts.head import AnyLabels, Number, OneLabel, TextHead
from bioptimus_jax.finetuning.texts.windows import CUT, TextWindow, windows
from bioptimus_jax.finetuning.training import outputs
from bioptimus_jax.inference.answer import Answer
from bioptimus_jax.inference.given import Given
from bioptimus_jax.inference.model import LoadedModel, Settings
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.foreign.flat import one_line
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
    if reads.texts and (wrong := next((one for one in given if len(one.texts) != reads.texts), None)):
        raise InputError(
            f'{wrong.place}: has {numbered(len(wrong.texts), "text")}, but the model has learned from {reads.texts}; '
            'give one as "text", two as "sentence1" and "sentence2", or with a tab between'
        )
    heads = loaded.heads(HEADS[kind], options)
    by, cut = FEATURES[heads[0].built['features']], 0
    for start in range(0, len(given), AT_ONCE):
        part = given[start : start + AT_ONCE]
        # Texts are read with as little white space as those of the set: a blank is a piece for some tokenizers.
        trim = one_line if reads.squeezed else str.strip
        stripped = [tuple(map(trim, one.texts)) for one in part]
        texts = [Text(words, (), parts=((),) * len(words) * reads.apart) for words in stripped]
        encoded = _windows(loaded, part, texts, options, by)
        made, cut = encoded.windows, cut + encoded.counts[CUT]
        found = [_by_text(made, outputs(head, made, options), len(part)) for head in heads]
        for one, *own in zip(part, *found, strict=True):
            yield _together(loaded, one, own, kind)
    if cut:
        longer = f'; --max_pieces reads up to {loaded.limit}' * (options.max_pieces < loaded.limit)
        settings.say(
            f'the end of {numbered(cut, "text")} is not read: longer than {options.max_pieces} pieces{longer}'
        )


def _windows(
    loaded: LoadedModel, given: Sequence[Given], texts: Sequence[Text], options: Finetune, by: Features
) -> Encoded:
    """The windows of some texts. Raises InputError that names the first text without the mentions that are read."""
    reads, longest = loaded.reads, options.max_pieces
    asked = reads.question, by.mentions, by.markers, reads.segment_ids
    try:
        return windows(loaded.tokenizer, texts, longest, *asked)
    except InputError:
        for one, text in zip(given, texts, strict=True):
            try:
                windows(loaded.tokenizer, [text], longest, *asked)
            except InputError as error:
                raise InputError(f'{one.place}: {str(error).removeprefix("text 1, ")}') from error
        raise


def _by_text(made: Sequence[TextWindow], logits: Sequence[Any], texts: int) -> list[np.ndarray]:
    """Logits [K] of every text; a label of several texts that are read apart is as probable as in the text where it is
    most so."""
    found: list[list[Any]] = [[] for _ in range(texts)]
    for window, of_window in zip(made, logits, strict=True):
        found[window.example].append(of_window)
    return [np.max(np.array(own, np.float64), 0) for own in found]


def _together(loaded: LoadedModel, given: Given, logits: Sequence[np.ndarray], kind: str) -> Answer:
    """What one model says of a text, or several seeds by the mean of their logits or the vote of their task."""
    if loaded.task is None or loaded.task.averages:
        return _of_logits(given, np.mean(logits, 0), loaded.labels, kind)
    sides = [_of_logits(given, of_one, loaded.labels, kind) for of_one in logits]
    voted = loaded.task.vote([one.said for one in sides])
    sure = {label: statistics.fmean(dict(one.labels)[label] for one in sides) for label, _ in sides[0].labels}
    return Answer(given, said=tuple(voted), labels=tuple(sorted(sure.items(), key=lambda pair: -pair[1])))


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
