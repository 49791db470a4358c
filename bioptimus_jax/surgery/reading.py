"""Which states of the source are read: windows of pieces, and the pieces in them that spell each new token.

S: pieces of a sentence, K: pieces read, N: new tokens ("targets", numbered from 0).
"""

import array
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import tokenizers

from bioptimus_jax.errors import InputError
from bioptimus_jax.storage.hashing import hash64
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.vocab.contexts import TokenContexts

TOKENIZER_BATCH = 500
POOLINGS = ('mean', 'first', 'last')

Pieces = TypeVar('Pieces', range, np.ndarray)

# sentence number -> target -> spans in characters of the sentence
Occurrences = dict[int, dict[int, list[tuple[int, int]]]]


@dataclasses.dataclass(frozen=True)
class StateReading:
    """What is encoded, and what is read: piece `position[k]` of `windows[window[k]]` counts for `target[k]`.

    `weight` is 1 / (pieces of that target in that context), so a target's sum over K is the sum over its
    contexts of the means over pieces. `contexts` counts, per target, the contexts in which a piece was found.
    """

    windows: list[np.ndarray]
    window: np.ndarray
    position: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    contexts: np.ndarray


class _Collector:
    """Windows and pieces of a `Reading` while it grows; special tokens stand at the ends of a window."""

    def __init__(self, subwords: Subwords, targets: int):
        self.first, self.last = subwords.cls, subwords.sep
        self.windows: list[np.ndarray] = []
        self.window, self.position, self.target = array.array('q'), array.array('q'), array.array('q')
        self.weight = array.array('d')
        self.contexts = np.zeros(targets, np.int64)

    def add_window(self, pieces: np.ndarray) -> int:
        self.windows.append(np.concatenate(([self.first], pieces, [self.last])).astype(np.int32))
        return len(self.windows) - 1

    def add_context(self, target: int, places: Iterable[tuple[int, int]]) -> None:
        """One context of a target; `places` are (window, piece without the first special one)."""
        distinct = sorted(set(places))
        for window, piece in distinct:
            self.window.append(window)
            self.position.append(piece + 1)
            self.target.append(target)
            self.weight.append(1 / len(distinct))
        self.contexts[target] += bool(distinct)

    def reading(self) -> StateReading:
        window, position, target = (np.array(c, np.int64) for c in (self.window, self.position, self.target))
        return StateReading(self.windows, window, position, target, np.array(self.weight), self.contexts)


def read_alone(
    subwords: Subwords, capacity: int, spellings: Sequence[Sequence[int]], pooling: str = POOLINGS[0]
) -> StateReading:
    """Every token fed alone, between special tokens, and its pieces read. Empty spellings are left out."""
    collector = _Collector(subwords, len(spellings))
    for target, pieces in enumerate(spellings):
        if len(pieces):
            kept = np.asarray(pieces[:capacity])
            window = collector.add_window(kept)
            collector.add_context(target, ((window, i) for i in pooled(range(len(kept)), pooling)))
    return collector.reading()


def read_contexts(
    subwords: Subwords,
    capacity: int,
    sentences: Sequence[str],
    occurrences: Occurrences,
    targets: int,
    pooling: Mapping[int, str] | None = None,
) -> StateReading:
    """The pieces that overlap each token's character spans, in every sentence that serves a token.

    A context is a sentence: one mean over the pieces of all spans of a token there (stage `contexts` names the first
    span). A piece that only partly lies in a span counts whole; unknown pieces do not count, they spell nothing. A
    sentence is one window however many tokens it serves, unless it has more than `capacity` pieces (the position table
    without the special tokens at its ends): then every span has the window in whose middle it stands.
    `pooling` names, by target, which pieces of a span are read (POOLINGS); of other targets all are.
    """
    collector = _Collector(subwords, targets)
    wanted = sorted(occurrences)
    for start in range(0, len(wanted), TOKENIZER_BATCH):
        chunk = wanted[start : start + TOKENIZER_BATCH]
        encodings = subwords.encode(sentences[s] for s in chunk)
        for sentence, encoding in zip(chunk, encodings, strict=True):
            spans_of = occurrences[sentence]
            _read_sentence(collector, encoding, spans_of, capacity, subwords.unknown, pooling or {})
    return collector.reading()


def _read_sentence(
    collector: _Collector,
    encoding: tokenizers.Encoding,
    spans_of: dict[int, list[tuple[int, int]]],
    capacity: int,
    unknown: int,
    pooling: Mapping[int, str],
) -> None:
    ids_S = np.array(encoding.ids, np.int64)
    offsets_Sx2 = np.array(encoding.offsets, np.int64).reshape(-1, 2)
    known_S = ids_S != unknown
    numbers: dict[int, int] = {}
    for target, spans in sorted(spans_of.items()):
        places: list[tuple[int, int]] = []
        for begin, end in spans:
            pieces = np.flatnonzero((offsets_Sx2[:, 0] < end) & (offsets_Sx2[:, 1] > begin) & known_S)
            if len(pieces):
                left = window_start(int(pieces[0]), int(pieces[-1]) + 1, len(ids_S), capacity)
                # In a sentence that fits, all windows begin at 0: its tokens share one.
                if left not in numbers:
                    numbers[left] = collector.add_window(ids_S[left : left + capacity])
                inside = pooled(pieces[pieces < left + capacity], pooling.get(target, POOLINGS[0]))
                places += [(numbers[left], int(p) - left) for p in inside]
        collector.add_context(target, places)


def pooled(pieces: Pieces, pooling: str) -> Pieces:
    """The pieces of a span that are read: all of them for `mean`, else the first or the last."""
    return {'mean': pieces, 'first': pieces[:1], 'last': pieces[-1:]}[pooling]


def window_start(first: int, stop: int, pieces: int, capacity: int) -> int:
    """Where a window of `capacity` pieces begins so that the span [first, stop) stands in its middle.

    The window stays inside the sentence; a span longer than the window is read from its beginning.
    """
    if stop - first >= capacity:
        return min(first, max(pieces - capacity, 0))
    return min(max((first + stop - capacity) // 2, 0), max(pieces - capacity, 0))


def contexts_wanted(token: str, found: int, choice: str, seed: int, most: int = 0) -> int:
    """How many of the contexts found are used: all, or m ~ U{1..found} as a function of (seed, token).

    `most`, where it is not 0, is a bound: no more are then taken to be found.
    """
    found = min(found, most or found)
    if choice == 'all' or found < 2:
        return found
    return 1 + hash64(f'{seed}\0{token}') % found


def choose_occurrences(
    contexts: TokenContexts, targets: dict[str, int], choice: str, seed: int, most: int = 0
) -> Occurrences:
    """The occurrences that are used: per token the sentences of lowest rank, as many as `choice` and `most` want.

    Ranks are the order in which a token's sentences were drawn, so its first m are such a sample too. Raises
    InputError for a token that is not new: the contexts were then made for another vocabulary.
    """
    by_token: dict[str, dict[int, list[tuple[int, int]]]] = {}
    # Dicts keep this order, so the sentences of a token stand by rank.
    for i in np.argsort(contexts.rank, kind='stable'):
        spans = by_token.setdefault(contexts.tokens[i], {}).setdefault(int(contexts.sentence[i]), [])
        spans.append((int(contexts.start[i]), int(contexts.end[i])))
    chosen: Occurrences = {}
    for token, sentences in by_token.items():
        if token not in targets:
            raise InputError(
                f'contexts/occurrences.parquet: token {token!r} is not new; run `bioptimus contexts` again'
            )
        wanted = contexts_wanted(token, len(sentences), choice, seed, most)
        for sentence in list(sentences)[:wanted]:
            chosen.setdefault(sentence, {})[targets[token]] = sentences[sentence]
    return chosen
