"""Entities that a tagger finds. Shapes: B windows, L pieces of the longest window, C labels."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.align import align, of_words
from bioptimus_jax.finetuning.entities.batches import TagBatch
from bioptimus_jax.finetuning.entities.tagger import Tagger
from bioptimus_jax.finetuning.heads import Head
from bioptimus_jax.finetuning.recommended import BATCH
from bioptimus_jax.finetuning.task import Task
from bioptimus_jax.finetuning.training import outputs
from bioptimus_jax.inference.answer import Answer, AnswerSpan
from bioptimus_jax.inference.given import Given
from bioptimus_jax.inference.model import LoadedModel, Settings
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.sets.cutting import Cut, in_letters, lines
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import OUTSIDE, Scheme, is_tag, recognise, spans, to_iob2

AT_ONCE = 64
"""Documents whose windows are held together."""


class Sure(Tagger):
    """A tagger that also says how probable its labels are."""

    @torch.no_grad()  # in inference mode the probabilities of a chain, which are gradients, could not be had
    def predict(self, batch: TagBatch) -> torch.Tensor:
        """The label of every piece and its probability, [B, L, 2]."""
        scores_BxLxE = self(batch)
        labels_BxL = self.best_labels(scores_BxLxE, batch)
        return torch.stack([labels_BxL.float(), self.probabilities(scores_BxLxE, labels_BxL, batch)], -1)


def answers(loaded: LoadedModel, given: Sequence[Given], settings: Settings) -> Iterator[Answer]:
    """The entities of every document, in its order. Raises InputError for labels that are not tags, and two texts."""
    scheme, reads = scheme_of(loaded), loaded.reads
    pieces = loaded.pieces(settings.max_pieces, Finetune.max_pieces)
    # Windows of another length than in training share a quarter at most.
    overlap = reads.overlap_pieces if pieces == reads.max_pieces else min(reads.overlap_pieces, pieces // 4)
    options = Finetune(max_pieces=pieces, overlap_pieces=overlap, batch_sentences=BATCH)
    cut = lines if settings.lines else reads.words
    heads = loaded.heads(Sure, options)
    for start in range(0, len(given), AT_ONCE):
        part = given[start : start + AT_ONCE]
        yield from _tagged(loaded, heads, scheme, part, options, cut)
    texts = [one.texts[0] for one in given if reads.long_words]
    if letters := sum(any(in_letters(text, words) for words in cut(text)) for text in texts):
        settings.say(
            f'{numbered(letters, "text")} cut into letters, but {loaded.folder} has learned words of several letters: '
            'put blanks between words as in its set'
        )


def scheme_of(loaded: LoadedModel) -> Scheme:
    """The scheme of a tagger's labels. Raises InputError where they are no tags of one scheme."""
    # B- comes before I- of its type: an I- before it would make the labels IOB1.
    labels = sorted((label for label in loaded.labels if label != OUTSIDE), key=lambda tag: (tag[2:], tag))
    wrong = next((label for label in labels if not is_tag(label)), None)
    try:
        if wrong is None:
            return recognise([labels])
        reason = f'{wrong!r:.60} is not a tag'
    except ValueError as error:
        reason = str(error)
    raise InputError(
        f'{loaded.folder / "config.json"}: {reason}; id2label must hold O, B-TYPE, I-TYPE or tags of another scheme'
    )


def _tagged(
    loaded: LoadedModel,
    heads: Sequence[Head],
    scheme: Scheme,
    given: Sequence[Given],
    options: Finetune,
    cut: Cut,
) -> Iterator[Answer]:
    sentences, places = [], []
    for number, one in enumerate(given):
        if len(one.texts) > 1:
            raise InputError(f'{one.place}: has two texts, but entities are looked for in one')
        for words in cut(one.texts[0]):
            shown = tuple(one.texts[0][start:end] for start, end in words)
            sentences.append(Sentence(shown, (), number))
            places.append(words)
    windows = align(loaded.tokenizer, sentences, options.max_pieces, options.overlap_pieces).windows
    said = [of_words(sentences, windows, outputs(head, windows, options)) for head in heads]
    mentions: list[list[AnswerSpan]] = [[] for _ in given]
    for sentence, words, *found in zip(sentences, places, *said, strict=True):
        sides = [_tags(loaded.labels, scheme, of_one) for of_one in found]
        tags, sure = together(loaded.task, sides)
        for kind, first, last in spans(tags):
            probability = statistics.fmean(sure[first : last + 1])
            mentions[sentence.document].append(AnswerSpan(words[first][0], words[last][1], kind, probability))
    for one, of_text in zip(given, mentions, strict=True):
        yield Answer(one, tuple(of_text))


Side = tuple[Sequence[str], Sequence[float]]
"""What one model says of the words of a sentence: IOB2 tags, and their probabilities."""


def _tags(labels: Sequence[str], scheme: Scheme, found: Sequence[Any]) -> Side:
    tags = [OUTSIDE if one is None else labels[int(one[0])] for one in found]
    return to_iob2(tags, scheme), [0.0 if one is None else one[1] for one in found]


def together(task: Task | None, sides: Sequence[Side]) -> Side:
    """What several seeds say by the vote of their task; a tag is as probable as it is to them on average, and not at
    all to one that has another, as the vote counts them."""
    if task is None:
        return sides[0]
    voted = task.vote([tags for tags, _ in sides])
    each = [(task.counted(tags), sure) for tags, sure in sides]
    means = [
        statistics.fmean(sure[at] if tags[at] == tag else 0.0 for tags, sure in each)
        for at, tag in enumerate(task.counted(voted))
    ]
    return voted, means
