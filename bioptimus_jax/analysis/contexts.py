"""The words whose geometry is measured, and their vectors: embedding rows, and last-layer states in unmasked text.

Half of the words are rare and half are frequent, in pairs of equal length, each with the same number of occurrences in
the same kind of text: a mean of fewer states would be noisier, and text that a model was trained on is not like other.
The choice depends on corpus, vocabulary and seed, so it is the same for every model of a run.
B rows, L pieces, M occurrences' pieces in a batch, N words, D hidden size, V vocabulary.
"""

import dataclasses
import functools
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bioptimus_jax.analysis import cloze
from bioptimus_jax.corpus.documents import BLOCK, Document, DocumentSource
from bioptimus_jax.model.architecture import Architecture
from bioptimus_jax.model.trees import Params
from bioptimus_jax.storage.hashing import hash64

LEAST_COUNT = 5
LEAST_LETTERS = 3
WINDOW = 64
"""Pieces of text around an occurrence, at most: a document is cut into such parts."""

Occurrence = tuple[str, tuple[str, ...], int]
"""Name and words of a part of a document, and the place of the word in it."""


@dataclasses.dataclass(frozen=True)
class WordPairs:
    """Rare and frequent words by turns, pairs of equal length; where they occur, and of which split that text is."""

    texts: tuple[str, ...]
    high: tuple[bool, ...]
    counts: tuple[int, ...]
    passages: tuple[cloze.Passage, ...]
    per_word: int
    split: str

    def digest(self) -> str:
        """Two runs whose digests agree have measured the same words in the same text."""
        content = '\n'.join([*self.texts, *('\0'.join([p.id, *p.words]) for p in self.passages)])
        return hashlib.sha256(content.encode()).hexdigest()[:16]


def frequency_thirds(words: Sequence[str], counts: Sequence[int], speller: cloze.Speller) -> dict[str, bool]:
    """Words of the lowest third by count (False) and of the highest (True); the third between is left out.

    Of the words of three letters or more that are one piece under `speller` and occur five times or more; where a piece
    holds the space before it, of those that follow a space. Where equal counts reach from the lowest third into the
    highest, those words are left out too.
    """
    known = [
        (int(count), word)
        for word, count in zip(words, counts, strict=True)
        if count >= LEAST_COUNT
        and len(word.strip()) >= LEAST_LETTERS
        and word.strip().isalpha()
        and word.startswith(' ') == speller.spaced
        and speller.knows(word)
        and len(speller(word)) == 1
    ]
    known.sort()
    third = len(known) // 3
    low, high = known[:third], known[len(known) - third :]
    if not third:
        return {}
    most, least = low[-1][0], high[0][0]
    rare = {word: False for count, word in low if count < least}
    return rare | {word: True for count, word in high if count > most}


def choose(
    classes: dict[str, bool],
    counts: dict[str, int],
    sources: Sequence[tuple[str, DocumentSource]],
    spellers: Sequence[cloze.Speller],
    *,
    wanted: int,
    per_word: int,
    most_documents: int,
    max_pieces: int,
    seed: int,
) -> WordPairs:
    """A choice of at most `wanted` words with `per_word` occurrences each, of as many documents.

    `sources` are tried in turn for all words together, until one has enough of them; the one with most is taken.
    """
    best: WordPairs | None = None
    for split, source in sources:
        documents = _shuffled(source, most_documents, seed)
        found = occurrences(documents, set(classes), spellers, per_word, max_pieces)
        texts = [w for pair in pairs(classes, found, seed)[: wanted // 2] for w in pair]
        if best is None or len(texts) > len(best.texts):
            best = WordPairs(
                tuple(texts),
                tuple(classes[w] for w in texts),
                tuple(counts[w] for w in texts),
                tuple(_passages(texts, found)),
                per_word,
                split,
            )
        if len(texts) >= wanted // 2 * 2:
            break
    assert best is not None, 'one source or more'
    return best


def pairs(classes: dict[str, bool], found: Iterable[str], seed: int) -> list[tuple[str, str]]:
    """(rare, frequent) words of equal length among the `found`, in an order by hash; the rest has no partner."""

    def order(word: str) -> int:
        return hash64(f'{seed}\0{word}')

    by_length: dict[int, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for word in sorted(found, key=order):
        by_length[len(word)][classes[word]].append(word)
    # The longer list ends unmatched.
    matched = (pair for low_high in by_length.values() for pair in zip(*low_high, strict=False))
    return sorted(matched, key=lambda pair: order('\0'.join(pair)))


def occurrences(
    documents: Iterable[Document],
    wanted: set[str],
    spellers: Sequence[cloze.Speller],
    per_word: int,
    max_pieces: int,
) -> dict[str, list[Occurrence]]:
    """The first `per_word` occurrences of every wanted word that has so many, at most one from a document.

    Documents are cut into parts that have at most `max_pieces` pieces (with special ones) under every speller.
    """
    found: dict[str, list[Occurrence]] = {}
    short = set(wanted)
    for document in documents:
        if not short:
            break
        words = spellers[0].words(document.text)
        here = short.intersection(words)
        if not here:
            continue
        for number, part in enumerate(parts(words, spellers, max_pieces)):
            for place, word in enumerate(part):
                if word in here:
                    here.remove(word)
                    found.setdefault(word, []).append((f'{document.id}#{number}', part, place))
                    if len(found[word]) == per_word:
                        short.remove(word)
    return {word: places for word, places in found.items() if len(places) == per_word}


def parts(
    words: Sequence[str], spellers: Sequence[cloze.Speller], max_pieces: int
) -> Iterator[tuple[str, ...]]:
    """Words in a row in parts of at most `max_pieces` pieces; a word that is longer than that ends the last one."""
    room = max_pieces - 2
    start, used = 0, [0] * len(spellers)
    for i, word in enumerate(words):
        sizes = [len(s(word)) for s in spellers]
        if any(u + size > room for u, size in zip(used, sizes, strict=True)):
            yield tuple(words[start:i])
            start, used = i, [0] * len(spellers)
        if max(sizes) > room:
            return
        used = [u + size for u, size in zip(used, sizes, strict=True)]
    yield tuple(words[start:])


def embedding_vectors(texts: Sequence[str], speller: cloze.Speller, table_VxD: np.ndarray) -> np.ndarray:
    """Each word's row of the embedding table, NxD; of a word of several pieces, the mean of their rows."""
    return np.stack([table_VxD[list(speller(word))].mean(axis=0) for word in texts])


def context_vectors(
    chosen: WordPairs,
    speller: cloze.Speller,
    architecture: Architecture,
    params: Params,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> np.ndarray:
    """Each word's mean last-layer state over its occurrences in unmasked text (and over its pieces), NxD."""
    number_of = {word: i for i, word in enumerate(chosen.texts)}
    sums_NxD = np.zeros((len(chosen.texts), architecture.hidden))
    pieces_N = np.zeros(len(chosen.texts), np.int64)
    on_device = jax.device_put(params)
    for part, batch in cloze.batches(cloze.rows_of(chosen.passages, speller, masked=False)):
        states_MxD = np.asarray(_states(architecture, on_device, batch), np.float64)
        at = [number_of[chosen.passages[r.passage].words[i]] for r in part for i in r.word_of]
        np.add.at(sums_NxD, at, states_MxD[: len(at)])  # empty slots follow
        np.add.at(pieces_N, at, 1)
        on_rows(len(part))
    return sums_NxD / pieces_N[:, None]


@functools.partial(jax.jit, static_argnums=0)
def _states(architecture: Architecture, params: Params, batch: dict[str, jax.Array]) -> Any:
    slots_M = batch['rows'] * batch['tokens'].shape[1] + batch['slots']
    return architecture.encode(params, batch, slots=jnp.asarray(slots_M))


def _shuffled(source: DocumentSource, most: int, seed: int) -> Iterator[Document]:
    """A shuffled sample of at most `most` documents, in blocks: one after the other may be of one journal."""
    given = 0
    for block in np.random.default_rng(seed).permutation(-(-len(source) // BLOCK)).tolist():
        for document in source.read(block * BLOCK, (block + 1) * BLOCK):
            if given == most:
                return
            yield document
            given += 1


def _passages(texts: Sequence[str], found: dict[str, list[Occurrence]]) -> Iterator[cloze.Passage]:
    """The parts in which the words were found, each with the places of those found in it."""
    places: dict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for word in texts:
        for name, words, place in found[word]:
            places[name, words].append(place)
    for (name, words), at in sorted(places.items()):
        yield cloze.Passage(name, words, tuple(sorted(at)))
