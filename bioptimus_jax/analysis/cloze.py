"""Hidden words: a masked-language-model measure that compares models with different vocabularies.

The mask is defined in words, not pieces: those of the tokenizer after its normaliser (what is between spaces, where
tokenizers of several kinds are compared), a fixed share of them chosen by a hash of (evaluation seed, document, word
position). Whatever its vocabulary, every model sees the same words hidden, whole and all masked, in text that fits
under all vocabularies compared. A word that some vocabulary can only spell with an unknown piece is never hidden: its
event would not be the same.

B rows, L pieces, M masked slots of a whole batch, D hidden size, V padded vocabulary.
"""

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.corpus.documents import Document
from bioptimus_jax.errors import InputError
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import Params
from bioptimus_jax.records.analysis import HiddenWords, Words
from bioptimus_jax.storage.hashing import hash64
from bioptimus_jax.tokenizer.subwords import Subwords

BATCH_PIECES = 4096
NARROWEST = 32


@dataclasses.dataclass(frozen=True)
class Passage:
    """The beginning of a held-out document: its words, and the positions of those that are hidden."""

    id: str
    words: tuple[str, ...]
    hidden: tuple[int, ...]


class Speller:
    """Pieces of words under one vocabulary; remembers what it has spelled.

    Its words are those of its tokenizer. Tokenizers of different kinds have no such words in common: with `by_space`
    they are what is between spaces, each with the space before it, as written.
    """

    def __init__(self, subwords: Subwords, by_space: bool = False):
        self.subwords, self.by_space = subwords, by_space
        self.spaced = by_space or subwords.kind.carries_space
        """Whether a word within a sentence begins with a space."""
        self._words = subwords.kind.words(subwords.reader)
        self._known: dict[str, tuple[int, ...]] = {}

    def words(self, text: str) -> list[str]:
        """The words of a text."""
        if not self.by_space:
            return self._words(text)
        return [' ' * (number > 0) + word for number, word in enumerate(text.split())]

    def __call__(self, word: str) -> tuple[int, ...]:
        if word not in self._known:
            self._known[word] = tuple(self._spelled(word))
        return self._known[word]

    def _spelled(self, word: str) -> list[int]:
        if not self.by_space:
            return self.subwords.pieces(word)
        text = word if self.subwords.kind.carries_space else word.removeprefix(' ')
        return self.subwords.encode([text])[0].ids

    def knows(self, word: str) -> bool:
        return self.subwords.unknown not in self(word)


def passages(
    documents: Iterable[Document], spellers: Sequence[Speller], *, fraction: float, seed: int, max_pieces: int
) -> list[Passage]:
    """Held-out text under the frozen mask; passages without a hidden word are left out.

    Each document is cut to the longest prefix of words that has at most `max_pieces` pieces (with special
    ones) under every speller. Raises InputError where the spellers' casing differs.
    """
    if len({s.subwords.lowercase for s in spellers}) > 1:
        raise InputError(
            'the vocabularies compared are cased and uncased, so they have no words in common;'
            ' set config.analysis.reference_vocab to one of the same casing'
        )
    chosen = []
    for document in documents:
        words = spellers[0].words(document.text)
        lengths = [np.cumsum([len(s(w)) for w in words]) for s in spellers]
        kept = min(int(np.searchsorted(total, max_pieces - 2, side='right')) for total in lengths)
        hidden = [
            i
            for i, word in enumerate(words[:kept])
            if is_hidden(seed, document.id, i, fraction)
            and word.strip()  # several spaces in a row are a word of some tokenizers
            and all(s.knows(word) for s in spellers)
        ]
        if hidden:
            chosen.append(Passage(document.id, tuple(words[:kept]), tuple(hidden)))
    return chosen


def is_hidden(seed: int, document: str, position: int, fraction: float) -> bool:
    """Whether the word at `position` of a document is chosen: the same on every machine and vocabulary."""
    return hash64(f'{seed}\0{document}\0{position}') < fraction * 2**64


def mask_digest(chosen: Sequence[Passage]) -> str:
    """Names a frozen mask: two runs whose digests agree have scored the same words in the same text."""
    sha = hashlib.sha256()
    for p in sorted(chosen, key=lambda p: p.id):
        sha.update('\0'.join([p.id, *p.words, *map(str, p.hidden)]).encode() + b'\n')
    return sha.hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class PassageRow:
    """A passage in pieces: `slots` are those of its `hidden` words, `word_of` the word of each."""

    passage: int
    tokens: np.ndarray
    slots: np.ndarray
    targets: np.ndarray
    word_of: np.ndarray


def rows_of(chosen: Sequence[Passage], speller: Speller, masked: bool = True) -> list[PassageRow]:
    """Passages in pieces, their hidden words masked, or with `masked` off as they are written."""
    known = speller.subwords
    rows = []
    for number, passage in enumerate(chosen):
        tokens, hidden = [known.cls], set(passage.hidden)
        slots, targets, word_of = list[int](), list[int](), list[int]()
        for position, word in enumerate(passage.words):
            pieces = speller(word)
            if position in hidden:
                slots += range(len(tokens), len(tokens) + len(pieces))
                targets += pieces
                word_of += [position] * len(pieces)
                pieces = (known.mask,) * len(pieces) if masked else pieces
            tokens += pieces
        tokens.append(known.sep)
        rows.append(PassageRow(number, *(np.array(x, np.int32) for x in (tokens, slots, targets, word_of))))
    return rows


Scorer = Callable[[dict[str, np.ndarray]], tuple[np.ndarray, np.ndarray]]
"""Batch -> (nats, right) for each of its M slots."""


@functools.partial(jax.jit, static_argnums=0)  # compiled once for all models of one shape
def _score(
    architecture: Architecture, params: Params, batch: dict[str, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    hidden_BxLxD = jnp.asarray(architecture.encode(params, batch))
    hidden_MxD = hidden_BxLxD[batch['rows'], batch['slots']]
    logits_MxV = architecture.masked_lm_logits(params, hidden_MxD[None])[0]
    target_M = jnp.take_along_axis(logits_MxV, batch['targets'][:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(logits_MxV, axis=1) - target_M, logits_MxV.argmax(axis=1) == batch['targets']


def make_scorer(architecture: Architecture, params: Params) -> Scorer:
    """A compiled function from a batch to each slot's negative log-likelihood and whether it is guessed."""
    on_device = jax.device_put(params)

    def call(batch: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        nats_M, right_M = _score(architecture, on_device, batch)
        return np.asarray(nats_M, np.float64), np.asarray(right_M)

    return call


def batches(
    rows: Sequence[PassageRow], batch_pieces: int = BATCH_PIECES
) -> Iterable[tuple[list[PassageRow], dict[str, np.ndarray]]]:
    """Rows of similar length together; one shape per power of two, the last batch filled with empty rows."""
    by_width: dict[int, list[PassageRow]] = {}
    for row in rows:
        by_width.setdefault(max(NARROWEST, 1 << (len(row.tokens) - 1).bit_length()), []).append(row)
    for width, group in sorted(by_width.items()):
        size = max(1, min(batch_pieces // width, len(group)))
        parts = [group[start : start + size] for start in range(0, len(group), size)]
        # One number of slots for all batches of a width: each new shape is compiled.
        slots = -(-max(sum(len(row.slots) for row in part) for part in parts) // 8) * 8
        for part in parts:
            yield part, _batch(part, size, width, slots)


def _batch(part: list[PassageRow], size: int, width: int, slots: int) -> dict[str, np.ndarray]:
    batch = {name: np.zeros((size, width), np.int32) for name in ('tokens', 'segments')}
    batch['positions'] = np.tile(np.arange(width, dtype=np.int32), (size, 1))
    used = sum(len(row.slots) for row in part)
    columns = {
        'rows': np.repeat(np.arange(len(part)), [len(row.slots) for row in part]),
        'slots': np.concatenate([row.slots for row in part]),
        'targets': np.concatenate([row.targets for row in part]),
    }
    # Empty slots point to the first piece of the first row; callers drop what they give.
    batch |= {name: np.pad(column.astype(np.int32), (0, slots - used)) for name, column in columns.items()}
    batch['segments'][:, 0] = 1  # no row without anything to attend to
    for i, row in enumerate(part):
        length = len(row.tokens)
        batch['tokens'][i, :length] = row.tokens
        batch['segments'][i, :length] = 1
        batch['positions'][i, length:] = 0  # padding must stay inside the position table
    return batch


@dataclasses.dataclass
class HiddenWord:
    """One scored word: nats summed over its pieces, and whether all of them were guessed."""

    passage: int
    text: str
    pieces: int
    nats: float
    right: bool


def score_words(
    chosen: Sequence[Passage],
    speller: Speller,
    scorer: Scorer,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> list[HiddenWord]:
    """Every hidden word under one model, in order of passages and positions."""
    scored: dict[tuple[int, int], HiddenWord] = {}
    for part, batch in batches(rows_of(chosen, speller)):
        places = [(row.passage, int(position)) for row in part for position in row.word_of]
        scores = zip(places, *scorer(batch), strict=False)  # empty slots follow
        for (passage, position), nats, right in scores:
            text = chosen[passage].words[position]
            word = scored.setdefault((passage, position), HiddenWord(passage, text, 0, 0.0, True))
            word.pieces += 1
            word.nats += float(nats)
            word.right &= bool(right)
        on_rows(len(part))
    return [scored[key] for key in sorted(scored)]


def summarise(model: str, scored: Sequence[HiddenWord], spellers: Sequence[Speller]) -> HiddenWords:
    """Nats per word (with its standard error over documents), bits per character, accuracy, nats per piece;
    the same for the stratum of words that are one piece under every speller."""
    one_piece = [w for w in scored if all(len(s(w.text)) == 1 for s in spellers)]
    found = measures(scored)
    every = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    return HiddenWords(model=model, **every, one_piece=measures(one_piece))


def measures(scored: Sequence[HiddenWord]) -> Words:
    """The measures of some hidden words; only their number where it is 0."""
    if not scored:
        return Words(words=0)
    nats = sum(w.nats for w in scored)
    pieces, characters = sum(w.pieces for w in scored), sum(len(w.text.strip()) for w in scored)
    return Words(
        words=len(scored),
        pieces=pieces,
        characters=characters,
        nats_per_word=nats / len(scored),
        nats_per_word_error=_ratio_error(scored),
        bits_per_character=nats / math.log(2) / characters,
        word_accuracy=sum(w.right for w in scored) / len(scored),
        nats_per_piece=nats / pieces,
    )


def _ratio_error(scored: Sequence[HiddenWord]) -> float | None:
    """Standard error of nats per word. Words of a document depend on each other: documents are the units."""
    _, unit = np.unique([w.passage for w in scored], return_inverse=True)
    counts = np.bincount(unit).astype(np.float64)
    sums = np.bincount(unit, [w.nats for w in scored])
    n = len(counts)
    if n < 2:
        return None
    # The ratio of two sums is linearised: what each document has beyond its share.
    residuals = sums - sums.sum() / counts.sum() * counts
    return float(np.sqrt((residuals**2).sum() * n / (n - 1)) / counts.sum())
