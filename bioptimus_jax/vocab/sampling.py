"""Bottom-k sampling by hash: every token keeps the k different sentences with the smallest priorities.

That puts the places where a sentence has the token in a uniformly random order, in one pass, and takes the first k
different texts. It is uniform over places, not over texts: one that stands in n of N places comes first with
probability n / N. A priority depends on seed, token, document and sentence number alone: the sample is the same in any
order, and samples of parts of a corpus merge exactly.
"""

import contextlib
import dataclasses
import zipfile
from pathlib import Path

import numpy as np

from bioptimus_jax.storage.files import atomic
from bioptimus_jax.storage.hashing import hash64

LARGEST = np.uint64(2**64 - 1)


def hash_text(text: str, seed: int = 0) -> int:
    """A stable 64-bit hash."""
    return hash64(text, key=seed.to_bytes(8, 'little'))


def hash_texts(texts: list[str], seed: int = 0) -> np.ndarray:
    """`hash_text` of each, uint64."""
    return np.fromiter((hash_text(t, seed) for t in texts), np.uint64, len(texts))


def mix(values: np.ndarray) -> np.ndarray:
    """Scatter uint64 values over all 64 bits, one to one (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def priorities(token_hashes: np.ndarray, document_keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """uint64 priority of (token, document, sentence number); the seed is in the token hashes."""
    # An odd factor takes different sentence numbers to different values, as splitmix64 steps its state.
    places = mix(document_keys + np.uint64(0x9E3779B97F4A7C15) * (numbers.astype(np.uint64) + np.uint64(1)))
    return mix(mix(token_hashes ^ places) + token_hashes)


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Sentences that may be in the sample, one entry per token and sentence."""

    token: np.ndarray  # int32, number of the token
    priority: np.ndarray  # uint64
    text: np.ndarray  # uint64, hash of the sentence's text
    document: np.ndarray  # int64, index of the document in its source
    number: np.ndarray  # int32, of the sentence in its document

    @classmethod
    def none(cls) -> 'Candidates':
        kinds = (np.int32, np.uint64, np.uint64, np.int64, np.int32)
        return cls(*(np.zeros(0, kind) for kind in kinds))

    @classmethod
    def join(cls, parts: list['Candidates']) -> 'Candidates':
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, chosen: np.ndarray) -> 'Candidates':
        return Candidates(*(getattr(self, field.name)[chosen] for field in dataclasses.fields(self)))

    def __len__(self) -> int:
        return len(self.token)

    def smallest(self, k: int) -> 'Candidates':
        """For each token the k smallest priorities over different texts, in order of token and priority."""
        # The last key of `lexsort` decides first: token, text, priority.
        order = np.lexsort((self.priority, self.text, self.token))
        first = _changes(self.token[order], self.text[order])
        # A text that stands in several places counts once, at its smallest priority.
        kept = self.take(order[first])
        kept = kept.take(np.lexsort((kept.text, kept.priority, kept.token)))
        return kept.take(ranks(kept.token) < k)

    def thresholds(self, tokens: int, k: int) -> np.ndarray:
        """uint64 [tokens]: what no further candidate may exceed. Call it on the result of `smallest(k)`."""
        limits = np.full(tokens, LARGEST)
        last = ranks(self.token) == k - 1
        limits[self.token[last]] = self.priority[last]
        return limits


def ranks(sorted_groups: np.ndarray) -> np.ndarray:
    """0, 1, 2 ... within each run of equal values."""
    starts = np.flatnonzero(_changes(sorted_groups))
    lengths = np.diff(np.append(starts, len(sorted_groups)))
    return np.arange(len(sorted_groups)) - np.repeat(starts, lengths)


def _changes(*columns: np.ndarray) -> np.ndarray:
    """True where a row differs from the row before in any column; the first row differs."""
    changed = np.zeros(len(columns[0]), bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed


@dataclasses.dataclass
class Search:
    """The bottom-k sample of the blocks that are done so far."""

    tokens: int
    k: int
    blocks: int = 0
    sentences: int = 0
    candidates: Candidates = dataclasses.field(default_factory=Candidates.none)
    limits: np.ndarray | None = None
    pending: list[Candidates] = dataclasses.field(default_factory=list)

    def add(self, candidates: Candidates, sentences: int) -> None:
        """Merge one block's candidates. Memory stays at a few times tokens * k entries."""
        self.blocks += 1
        self.sentences += sentences
        self.pending.append(candidates)
        # A merge sorts all that is known, so it waits for as many again.
        if sum(map(len, self.pending)) > max(len(self.candidates), self.tokens):
            self.merge()

    def merge(self) -> None:
        self.candidates = Candidates.join([self.candidates, *self.pending]).smallest(self.k)
        self.limits = self.candidates.thresholds(self.tokens, self.k)
        self.pending = []

    def save(self, path: Path) -> None:
        self.merge()
        with atomic(path, 'wb') as file:
            np.savez(file, blocks=self.blocks, sentences=self.sentences, **vars(self.candidates))

    def resume(self, path: Path) -> None:
        """Go on from a search that was cut off; a damaged record starts anew."""
        damage = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
        with contextlib.suppress(*damage), open(path, 'rb') as file:
            saved = np.load(file, allow_pickle=False)
            names = [field.name for field in dataclasses.fields(Candidates)]
            # All is read before anything is set: a damaged file leaves the search as it was.
            candidates = Candidates(**{name: saved[name] for name in names})
            self.blocks, self.sentences = int(saved['blocks']), int(saved['sentences'])
            self.candidates = candidates
            self.limits = self.candidates.thresholds(self.tokens, self.k)
