"""Words to pieces and back: windows in which every word is predicted exactly once.

Shapes: N pieces of a sentence, W words of a sentence (in the code: those with a piece at least).
"""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bioptimus_jax.errors import InputError
from bioptimus_jax.finetuning.task import Encoded
from bioptimus_jax.sets.sentences import Sentence

BATCH = 500  # larger batches of encodings are heavy in memory and not faster
IGNORED = -100  # label id of pieces that carry no label
CONTINUED = {'B': 'I', 'U': 'L'}  # letter of a word's first piece -> of its other pieces


@dataclasses.dataclass(frozen=True)
class TagWindow:
    """Pieces of one stretch of a sentence, special tokens included, and the words that are predicted here.

    `words`: indices in the sentence; `starts`, `ends`: their first and one-past-last piece within `pieces`.
    `shown`, `shown_starts`: the same for all its words, with those that are context here and predicted in another
    window. `opens`, `closes`: whether it shows the sentence's first and last word, of those with a piece.
    """

    example: int
    pieces: tuple[int, ...]
    words: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    shown: tuple[int, ...]
    shown_starts: tuple[int, ...]
    opens: bool
    closes: bool


def align(tokenizer: Any, sentences: Sequence[Sentence], max_pieces: int, overlap_pieces: int) -> Encoded:
    """Windows of at most `max_pieces`, cut between words.

    Neighbouring windows share twice `overlap_pieces`, and a word is predicted in the window where it lies
    farthest from a cut, so that it sees about `overlap_pieces` or more on either side. A word that tokenises
    to nothing (U+200B, U+00AD ...) appears in no window and is tagged O by `tags_of_words`; a word with more
    pieces than a window is cut. `tokenizer` is any fast transformers tokenizer.
    """
    before, after = _special_tokens(tokenizer)
    room = max_pieces - len(before) - len(after)
    windows: list[TagWindow] = []
    zero = long = cut = 0
    for number, (pieces_N, word_N) in enumerate(_encode(tokenizer, sentences)):
        # Words count from 0: with -1 before them the first piece begins a word as well.
        starts_W = np.flatnonzero(np.diff(word_N, prepend=-1))
        sizes_W = np.diff(starts_W, append=len(word_N))
        zero += len(sentences[number].words) - len(starts_W)
        if not len(starts_W):
            continue
        spans = [(0, len(starts_W), 0, len(starts_W))]
        if len(pieces_N) > room:
            long += 1
            cut += int(np.sum(sizes_W > room))
            # `_spans` takes words that fit: a longer one would be in no window.
            sizes_W = np.minimum(sizes_W, room)
            spans = _spans(sizes_W, room, 2 * overlap_pieces)
        for low, high, own_low, own_high in spans:
            shown = zip(starts_W[low:high], sizes_W[low:high], strict=True)
            inner = np.concatenate([pieces_N[start : start + size] for start, size in shown]).tolist()
            names = word_N[starts_W[low:high]].tolist()
            ends_W = len(before) + np.cumsum(sizes_W[low:high])
            starts, ends = (ends_W - sizes_W[low:high]).tolist(), ends_W.tolist()
            own = slice(own_low - low, own_high - low)
            windows.append(
                TagWindow(
                    example=number,
                    pieces=(*before, *inner, *after),
                    words=tuple(names[own]),
                    starts=tuple(starts[own]),
                    ends=tuple(ends[own]),
                    shown=tuple(names),
                    shown_starts=tuple(starts),
                    opens=low == 0,
                    closes=high == len(starts_W),
                )
            )
    return Encoded(windows, {'zero_piece_words': zero, 'long_sentences': long, 'cut_words': cut})


def piece_labels(
    window: TagWindow, tags: Sequence[str], label_ids: dict[str, int], label_pieces: str
) -> list[int]:
    """A label id for every piece of the window; IGNORED where there is none.

    With `label_pieces='all'` the later pieces of a word carry what goes on with its tag: I-X after B-X, L-X after
    U-X, otherwise the tag itself. So every scheme stays valid between the last piece of a word and the next word.
    """
    labels = [IGNORED] * len(window.pieces)
    for word, start, end in zip(window.words, window.starts, window.ends, strict=True):
        tag = tags[word]
        labels[start] = label_ids[tag]
        if label_pieces == 'all':
            rest = label_ids[CONTINUED.get(tag[0], tag[0]) + tag[1:]]
            labels[start + 1 : end] = [rest] * (end - start - 1)
    return labels


def word_labels(window: TagWindow, tags: Sequence[str], label_ids: dict[str, int]) -> list[int]:
    """A label id for every word that the window shows, context included."""
    return [label_ids[tags[word]] for word in window.shown]


def tags_of_words(
    sentences: Sequence[Sentence],
    windows: Sequence[TagWindow],
    predicted: Sequence[Sequence[int]],
    labels: Sequence[str],
) -> list[list[str]]:
    """One tag per word, from label ids per piece of every window, read at a word's first piece."""
    ids = of_words(sentences, windows, predicted)
    return [['O' if at is None else labels[at] for at in sentence] for sentence in ids]


def of_words(
    sentences: Sequence[Sentence], windows: Sequence[TagWindow], predicted: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """What was predicted for the first piece of every word; None for a word without pieces."""
    found: list[list[Any]] = [[None] * len(s.words) for s in sentences]
    for window, of_pieces in zip(windows, predicted, strict=True):
        for word, start in zip(window.words, window.starts, strict=True):
            assert found[window.example][word] is None, 'a word was predicted twice'
            found[window.example][word] = of_pieces[start]
    return found


def _spans(pieces_W: np.ndarray, room: int, shared: int) -> list[tuple[int, int, int, int]]:
    """Word ranges (low, high, own_low, own_high): low..high are shown, own_low..own_high predicted."""
    ends_W = np.cumsum(pieces_W)
    starts_W = ends_W - pieces_W
    windows = [(0, int(np.searchsorted(ends_W, room, 'right')))]
    while windows[-1][1] < len(pieces_W):
        low, high = windows[-1]
        # The next one begins `shared` pieces before this one's end, but further on, and must reach further.
        begin = max(low + 1, int(np.searchsorted(starts_W, starts_W[high] - shared, 'left')))
        while starts_W[high] + pieces_W[high] - starts_W[begin] > room:
            begin += 1
        windows.append((begin, int(np.searchsorted(ends_W, starts_W[begin] + room, 'right'))))
    borders = [0]
    for (_, end), (begin, _) in itertools.pairwise(windows):
        # A word of both belongs to the one whose cut is farther away.
        right_W = ends_W[end - 1] - ends_W[begin:end]
        left_W = starts_W[begin:end] - starts_W[begin]
        # Towards the end of the shared words `left_W` grows and `right_W` falls, so the sum counts a first part.
        borders.append(begin + int(np.sum(left_W < right_W)))
    # Windows that share much could have borders out of order; a word must not be predicted twice.
    borders = list(np.maximum.accumulate([*borders, len(pieces_W)]))
    return [
        (low, high, int(a), int(b)) for (low, high), a, b in zip(windows, borders, borders[1:], strict=False)
    ]


def _encode(tokenizer: Any, sentences: Sequence[Sentence]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Piece ids of each sentence and, for every piece, the word that it belongs to."""
    for first in range(0, len(sentences), BATCH):
        batch = sentences[first : first + BATCH]
        encoded = tokenizer(
            [list(s.words) for s in batch],
            is_split_into_words=True,
            add_special_tokens=False,
            truncation=False,
            padding=False,
            verbose=False,
        )
        for i in range(len(batch)):
            yield np.asarray(encoded['input_ids'][i], np.int64), np.asarray(encoded.word_ids(i), np.int64)


def _special_tokens(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    plain = tokenizer(['a'], is_split_into_words=True, add_special_tokens=False)['input_ids']
    full = tokenizer(['a'], is_split_into_words=True)['input_ids']
    for at in range(len(full)):
        if full[at : at + len(plain)] == plain:
            return tuple(full[:at]), tuple(full[at + len(plain) :])
    raise InputError(f'{tokenizer.name_or_path}: cannot tell which special tokens surround a sentence')
