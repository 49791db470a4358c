"""Entities that a tagger finds. Shapes: B windows, L pieces of the longest window, C labels."""

import statistics
from collections.abc import Iterator, Sequence

import torch

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.config import Finetune
from bioptimus_jax.finetuning.entities.align import align, of_words
from bioptimus_jax.finetuning.entities.batches import TagBatch
from bioptimus_jax.finetuning.entities.tagger import Tagger
from bioptimus_jax.finetuning.loading import computing_dtype
from bioptimus_jax.finetuning.recommended import BATCH
from bioptimus_jax.finetuning.training import outputs
from bioptimus_jax.inference.answer import Answer, AnswerSpan
from bioptimus_jax.inference.given import Given
from bioptimus_jax.inference.model import LoadedModel, Settings
from bioptimus_jax.sets.cutting import Cut, lines
from bioptimus_jax.sets.sentences import Sentence
from bioptimus_jax.sets.tags import OUTSIDE, Scheme, is_tag, recognise, spans, to_iob2

AT_ONCE = 64
"""Documents whose windows are held together."""


class Sure(Tagger):
    """A tagger that also says how probable its labels are."""

    @torch.inference_mode()
    def predict(self, batch: TagBatch) -> torch.Tensor:
        """The label of every piece and its probability, [B, L, 2]."""
        best = torch.softmax(self(batch), -1).max(-1)
        return torch.stack([best.indices.float(), best.values], -1)


def answers(loaded: LoadedModel, given: Sequence[Given], settings: Settings) -> Iterator[Answer]:
    """The entities of every document, in its order. Raises InputError for labels that are not tags, and two texts."""
    scheme, reads = scheme_of(loaded), loaded.reads
    pieces = loaded.pieces(settings.max_pieces, Finetune.max_pieces)
    # Windows of another length than in training share a quarter at most.
    overlap = reads.overlap_pieces if pieces == reads.max_pieces else min(reads.overlap_pieces, pieces // 4)
    options = Finetune(max_pieces=pieces, overlap_pieces=overlap, batch_sentences=BATCH)
    dtype = computing_dtype(options, loaded.model.device.type)
    cut = lines if settings.lines else reads.words
    head = Sure(loaded.model, loaded.labels, options, dtype)
    for start in range(0, len(given), AT_ONCE):
        part = given[start : start + AT_ONCE]
        yield from _tagged(loaded, head, scheme, part, options, cut)


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
    loaded: LoadedModel, head: Sure, scheme: Scheme, given: Sequence[Given], options: Finetune, cut: Cut
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
    said = of_words(sentences, windows, outputs(head, windows, options))
    mentions: list[list[AnswerSpan]] = [[] for _ in given]
    for sentence, words, found in zip(sentences, places, said, strict=True):
        tags = [OUTSIDE if one is None else head.labels[int(one[0])] for one in found]
        for kind, first, last in spans(to_iob2(tags, scheme)):
            sure = statistics.fmean(probability for _, probability in found[first : last + 1])
            mentions[sentence.document].append(AnswerSpan(words[first][0], words[last][1], kind, sure))
    for one, of_text in zip(given, mentions, strict=True):
        yield Answer(one, tuple(of_text))
