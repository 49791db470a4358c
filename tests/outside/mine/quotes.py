"""Extractive question answering: where in a text the answer to a question is, as in SQuAD.

Lines are question TAB text TAB answer, which the text holds. A long text gets several windows that overlap; the best
span of all of them is the answer.
"""

import collections
import dataclasses

import numpy as np
import torch

from bioptimus_jax.ext import (
    DEFAULT,
    SPLITS,
    Encoded,
    Head,
    InputError,
    Metric,
    Task,
    divided,
    padded,
    split_files,
)

LONGEST_ANSWER = 20
"""Pieces that an answer has at most."""


@dataclasses.dataclass(frozen=True)
class Question:
    """An example; `at`: where the answer begins in the text."""

    words: tuple[str, str]
    answers: tuple[str]
    at: int
    document: int = 0


@dataclasses.dataclass(frozen=True)
class Questions:
    """A set."""

    name: str
    train: tuple[Question, ...]
    devel: tuple[Question, ...]
    test: tuple[Question, ...]


@dataclasses.dataclass(frozen=True)
class Window:
    """A question and a part of its text; `offsets`: characters of every piece in the text, (-1, -1) outside of it."""

    example: int
    pieces: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]


def overlaps(gold, predicted):
    """Words of each answer that are in both, in gold, in the prediction; whether all are the same; and 1."""
    rows = []
    for (right,), (said,) in zip(gold, predicted, strict=True):
        both = [collections.Counter(text.lower().split()) for text in (right, said)]
        rows.append([*(each.total() for each in (both[0] & both[1], *both)), both[0] == both[1], 1])
    return np.array(rows, np.int64)


WORD_F1 = Metric(
    'f1',
    'F1',
    'F1 of words in answers',
    'words of the answers',
    ('both', 'gold', 'predicted', 'same', 'questions'),
    overlaps,
    lambda sums_x5: divided(2 * sums_x5[..., 0], sums_x5[..., 1] + sums_x5[..., 2]),
)
EXACT = dataclasses.replace(
    WORD_F1,
    name='exact',
    label='exact',
    title='exact answers',
    meaning='answers that are right to the word',
    value=lambda sums_x5: divided(sums_x5[..., 3], sums_x5[..., 4]),
)


class Pointer(Head):
    """Begin and end of the answer, from transformers' head for questions."""

    def batch(self, windows, targets=None):
        pieces_BxL = padded([w.pieces for w in windows], self.pad)
        lengths_B = np.array([len(w.pieces) for w in windows])
        mask_BxL = np.arange(pieces_BxL.shape[1]) < lengths_B[:, None]
        inside_BxL = np.zeros(mask_BxL.shape, bool)
        for row_L, window in zip(inside_BxL, windows, strict=True):
            row_L[: len(window.offsets)] = [start >= 0 for start, _ in window.offsets]
        inside_BxL[:, 0] = True  # [CLS]: the answer is in another window
        arrays = pieces_BxL, mask_BxL.astype(np.int64), inside_BxL, np.array(targets or [], np.int64)
        return [torch.from_numpy(array).to(self.device) for array in arrays]

    def forward(self, batch):
        with self.computing():
            found = self.pretrained(input_ids=batch[0], attention_mask=batch[1])
        both_2xBxL = torch.stack([found.start_logits, found.end_logits]).float()
        return both_2xBxL.masked_fill(~batch[2], -1e9)

    def loss(self, batch):
        begin_BxL, end_BxL = self(batch)
        begin_B, end_B = batch[3].T
        cross = torch.nn.functional.cross_entropy
        return (cross(begin_BxL, begin_B) + cross(end_BxL, end_B)) / 2

    @torch.inference_mode()
    def predict(self, batch):
        return self(batch).transpose(0, 1)


class Quotes(Task):
    """Answers that a text holds."""

    title = 'Question answering'
    hub = 'question-answering'
    hf_class = 'AutoModelForQuestionAnswering'
    unit = 'question'
    metrics = {DEFAULT: WORD_F1, 'exact': EXACT}

    def read(self, chosen):
        return Questions(chosen.name, *(questions(split_files(chosen.folder, split)[0]) for split in SPLITS))

    def labels(self, dataset, settings):
        return ['begin', 'end']

    def windows(self, tokenizer, examples, settings):
        found = []
        for number, example in enumerate(examples):
            cut = tokenizer(
                *example.words,
                truncation='only_second',
                max_length=settings.max_pieces,
                stride=settings.overlap_pieces,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )
            for at, (pieces, offsets) in enumerate(zip(cut['input_ids'], cut['offset_mapping'], strict=True)):
                of_text = [number == 1 for number in cut.sequence_ids(at)]
                places = [
                    tuple(o) if inside else (-1, -1) for o, inside in zip(offsets, of_text, strict=True)
                ]
                found.append(Window(number, tuple(pieces), tuple(places)))
        return Encoded(found)

    def head(self, pretrained, labels, settings, dtype):
        return Pointer(pretrained, labels, dtype)

    def learned(self, example, settings):
        return example.at, example.at + len(example.answers[0])

    def target(self, window, learned, head):
        begin, end = learned
        inside = [
            at for at, (first, last) in enumerate(window.offsets) if first >= begin and 0 <= last <= end
        ]
        whole = inside and window.offsets[inside[0]][0] == begin and window.offsets[inside[-1]][1] == end
        return (inside[0], inside[-1]) if whole else (0, 0)

    def decode(self, examples, windows, found, head, settings):
        best = [(-np.inf, '')] * len(examples)
        for window, scores in zip(windows, found, strict=True):
            begin_L, end_L = np.array(scores)[:, : len(window.pieces)]
            sums_LxL = begin_L[:, None] + end_L[None]
            places = np.arange(len(begin_L))
            ahead_LxL = places[None] - places[:, None]
            sums_LxL[(ahead_LxL < 0) | (ahead_LxL >= LONGEST_ANSWER)] = -np.inf
            sums_LxL[[start < 0 for start, _ in window.offsets]] = -np.inf
            begin, end = np.unravel_index(sums_LxL.argmax(), sums_LxL.shape)
            text = examples[window.example].words[1][window.offsets[begin][0] : window.offsets[end][1]]
            best[window.example] = max(best[window.example], (sums_LxL[begin, end], text))
        return [(text,) for _, text in best]


def questions(file):
    """The examples of a file. Raises InputError."""
    found = []
    for number, line in enumerate(file.read_text('utf-8').splitlines(), 1):
        columns = line.split('\t')
        if len(columns) != 3 or not columns[2] or columns[2] not in columns[1]:
            raise InputError(f'{file}:{number}: expected question TAB text TAB answer, which the text holds')
        question, text, answer = columns
        found.append(Question((question, text), (answer,), text.index(answer), number))
    return tuple(found)


TASK = Quotes()
