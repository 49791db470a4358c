"""Near duplicates: MinHash signatures of texts, and the documents whose signature is close to an earlier one's.

A document is a set of word n-grams. The share of equal values in two signatures estimates the Jaccard similarity
of their sets. Signatures are cut into bands; only documents that agree in a whole band are compared. The bands'
hashes lie on disk and are sorted a range at a time, so memory is bounded however many documents there are.
"""

import contextlib
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rensa import RMinHash

from bioptimus_jax.corpus.config import Near
from bioptimus_jax.corpus.sameness import ACCENTS, DASHES
from bioptimus_jax.text.words import COMBINING_MARKS, spaced

HASHES = 120  # has many divisors, so that bands suit every threshold
SEED = 1
RECALL = 0.99
LETTERS_PER_BLOCK = 1 << 19  # each takes some 50 bytes while its block is hashed
ROWS_PER_READ = 1 << 14
HASHES_PER_READ = 1 << 20
BYTES_PER_HASH = 64  # while a range of them is sorted: hash, document, order and what sorting takes
TEMPORARY = '.near-{}.tmp'

# Small letters and digits stay, capitals become small, other ASCII separates words (0); other bytes are letters.
BYTE_OF_WORD = bytes(ord(chr(i).lower()) * chr(i).isalnum() if i < 128 else i for i in range(256))
OTHER_THAN_WORDS = re.compile(f'(?:[^\\w+{COMBINING_MARKS}-]|_)+')
DASH = re.compile(f'[{DASHES}]')
IS_SIGN, IS_DIGIT = (np.array([i in marks for i in range(256)]) for marks in (b'+-', b'0123456789'))
# Random odd factors, of bytes by place in a word, of words by place in an n-gram, of values by place in a band.
FACTORS = np.frombuffer(hashlib.shake_256(b'near duplicates').digest(8 * 1024), '<u8') | np.uint64(1)


def signatures(texts: Sequence[str], settings: Near) -> np.ndarray:
    """MinHash signatures, uint32 [texts, HASHES], the same on every machine and in any division into calls."""
    rows = np.empty((len(texts), HASHES), np.uint32)
    for block in _blocks(texts):
        hashes, bounds = ngram_hashes(texts[block], settings.words)
        rows[block] = RMinHash.digest_matrix_from_flat_token_hashes(hashes, bounds, HASHES, SEED).to_rows()
    return rows


def ngram_hashes(texts: Sequence[str], words: int) -> tuple[np.ndarray, np.ndarray]:
    """64-bit hashes of each text's n-grams of `words` words, one after another, and uint64 [texts + 1] bounds.

    Words are runs of letters and digits with the sign at their end, case folded, without accents and compatibility
    forms; in scripts without blanks each letter is one. A text of fewer words is one n-gram; one without any word
    counts as it is.
    """
    encoded = [_folded(text) for text in texts]
    ends = np.cumsum([len(text) + 1 for text in encoded])
    hashes, starts = _word_hashes(_letters(b'\0'.join([*encoded, b''])))
    first = np.concatenate([[0], np.searchsorted(starts, ends)])
    counts = np.diff(first)
    long = np.maximum(counts - words + 1, 0)
    before = np.cumsum(long) - long
    # For every n-gram the number of its first word, counted through all texts.
    at = np.arange(long.sum()) + np.repeat(first[:-1] - before, long)
    ngrams = np.zeros(len(at), np.uint64)
    for place in range(words if len(at) else 0):
        ngrams += hashes[at + place] * FACTORS[min(place, len(FACTORS) - 1)]
    ngrams = _mixed(ngrams)
    short = np.flatnonzero(counts < words)
    if len(short):
        whole = [_whole(hashes[first[i] : first[i + 1]], texts[i]) for i in short.tolist()]
        # `insert` takes places in the array as it was before, which is what `before` has.
        ngrams = np.insert(ngrams, before[short], np.array(whole, np.uint64))
    return ngrams, np.concatenate([[0], np.cumsum(np.maximum(long, 1))]).astype(np.uint64)


def rows_per_band(threshold: float) -> int:
    """The most values per band with which a pair at the threshold agrees in some band with probability RECALL."""
    # A pair agrees in one band of r values with probability t^r, and in none of the bands with (1 - t^r)^bands.
    divisors = [rows for rows in range(1, HASHES + 1) if HASHES % rows == 0]
    return max((r for r in divisors if 1 - (1 - threshold**r) ** (HASHES // r) >= RECALL), default=1)


def near_duplicates(
    parts: Sequence[Path],
    chosen: Sequence[np.ndarray],
    settings: Near,
    folder: Path,
    advance: Callable[[float], None] = lambda documents: None,
    check_stop: Callable[[], None] = lambda: None,
    memory_bytes: int = 1 << 30,
) -> np.ndarray:
    """Which documents are near an earlier one, bool [documents]; the earlier one may itself be near another.

    `parts` are files of `signatures`, their bytes; the documents are their rows `chosen[i]`, part after part. Each of
    the documents that agree in a band is compared with the first and with the one before it, so thousands of copies
    take linear time. `advance` is told fractions that add up to the number of documents.

    Sorting takes about `memory_bytes` (a run of equal hashes is never cut), `folder` 8 bytes per document and band
    for files with hidden names, gone at the end. The result depends on neither, nor on how documents are cut into
    parts.
    """
    documents = _Documents(parts, chosen)
    near = np.zeros(len(documents), bool)
    if not settings.threshold or not len(documents):
        return near
    rows = rows_per_band(settings.threshold)
    bands = HASHES // rows
    share = len(documents) / (bands + 1)
    _clear(folder)
    try:
        files = [folder / TEMPORARY.format(band) for band in range(bands)]
        _write_band_hashes(documents, rows, files, lambda done: advance(done / (bands + 1)), check_stop)
        ranges = -(-len(documents) * BYTES_PER_HASH // memory_bytes)
        for file in files:
            for number in range(ranges):
                check_stop()
                _mark(near, documents, *_candidates(file, number, ranges), settings.threshold)
            advance(share)
            file.unlink()
    finally:
        _clear(folder)
    return near


def _blocks(texts: Sequence[str]) -> Iterator[slice]:
    start = letters = 0
    for stop, text in enumerate(texts, 1):
        letters += len(text)
        if letters >= LETTERS_PER_BLOCK or stop == len(texts):
            yield slice(start, stop)
            start, letters = stop, 0


def _folded(text: str) -> bytes:
    if text.isascii():
        return text.encode('ascii')
    text = ACCENTS.sub('', unicodedata.normalize('NFKD', text)).casefold()
    return OTHER_THAN_WORDS.sub(' ', DASH.sub('-', spaced(text))).encode()


def _letters(text: bytes) -> np.ndarray:
    """Bytes of words, uint8, 0 for what separates them. The last byte has to be 0.

    A plus or minus at the end of a word (`ER+`) or before a number is a part of it; two of them in a row are a dash.
    """
    letters = np.frombuffer(bytearray(text.translate(BYTE_OF_WORD)), np.uint8)
    signs = np.flatnonzero(np.frombuffer(text.translate(IS_SIGN.tobytes()), np.bool_))
    before, after = letters[signs - 1] != 0, letters[signs + 1] != 0
    outside = np.flatnonzero(~(before & after))  # most are hyphens within a word
    signs, before, after = signs[outside], before[outside], after[outside]
    given = np.frombuffer(text, np.uint8)
    previous, following = given[signs - 1], given[signs + 1]
    kept = signs[~IS_SIGN[previous] & ~IS_SIGN[following] & np.where(before, ~after, IS_DIGIT[following])]
    letters[kept] = given[kept]
    return letters


def _word_hashes(letters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A hash of every run of bytes other than 0, uint64, and where it starts. The last byte has to be 0."""
    inside = letters != 0
    starts = np.flatnonzero(inside & ~np.concatenate([[False], inside[:-1]]))
    if not len(starts):
        return np.zeros(0, np.uint64), starts
    place = np.arange(starts[0], len(letters)) - np.repeat(starts, np.diff(starts, append=len(letters)))
    # The zeros behind a word are counted to it, and add nothing.
    values = letters[starts[0] :] * FACTORS.take(place, mode='clip')
    return _mixed(np.add.reduceat(values, starts - starts[0])), starts


def _mixed(hashes: np.ndarray) -> np.ndarray:
    # Sums of products are weak in their low bits, and sums of them again: '18 5' would be '17 6'.
    hashes = (hashes ^ (hashes >> np.uint64(32))) * FACTORS[0]
    return hashes ^ (hashes >> np.uint64(29))


def _whole(hashes: np.ndarray, text: str) -> int:
    key = hashes.astype('<u8').tobytes() or text.encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), 'little')


class _Documents:
    """Signatures of the chosen rows of all parts, by document number."""

    def __init__(self, parts: Sequence[Path], chosen: Sequence[np.ndarray]):
        self.parts, self.chosen = parts, chosen
        self.bounds = np.concatenate([[0], np.cumsum([len(rows) for rows in chosen])]).astype(np.int64)

    def __len__(self) -> int:
        return int(self.bounds[-1])

    def signatures(self, numbers: np.ndarray) -> np.ndarray:
        """uint32 [numbers, HASHES]"""
        found = np.empty((len(numbers), HASHES), np.uint32)
        order = np.argsort(numbers, kind='stable')
        cuts = np.searchsorted(numbers[order], self.bounds)
        for part in np.flatnonzero(np.diff(cuts)).tolist():
            here = order[cuts[part] : cuts[part + 1]]
            # Mapped anew each time: pages that were read once do not stay in memory.
            stored = np.memmap(self.parts[part], np.uint32, 'r').reshape(-1, HASHES)
            found[here] = stored[self.chosen[part][numbers[here] - self.bounds[part]]]
        return found


def _write_band_hashes(
    documents: _Documents,
    rows: int,
    files: Sequence[Path],
    advance: Callable[[float], None],
    check_stop: Callable[[], None],
) -> None:
    """One file per band with a uint64 per document, in their order."""
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open(file, 'wb')) for file in files]
        for start in range(0, len(documents), ROWS_PER_READ):
            check_stop()
            numbers = np.arange(start, min(start + ROWS_PER_READ, len(documents)))
            block = documents.signatures(numbers)
            hashes = np.zeros((len(block), len(files)), np.uint64)
            # Columns place, place + rows, ... are that place in every band: all bands are summed at once.
            for place in range(rows):
                hashes += block[:, place::rows] * FACTORS[place]
            for file, column in zip(opened, hashes.T, strict=True):
                file.write(column.tobytes())
            advance(len(block))


def _candidates(file: Path, number: int, ranges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`(document, first, previous)` of every document that is not the first with its hash.

    Only hashes in one of `ranges` equal ranges are looked at, which is what bounds the memory.
    """
    hashes, numbers = _in_range(file, number, ranges)
    order = np.argsort(hashes, kind='stable')  # of equal hashes the numbers stay in order
    hashes, numbers = hashes[order], numbers[order]
    starts = np.ones(len(hashes), bool)
    starts[1:] = hashes[1:] != hashes[:-1]
    first = numbers[starts][np.cumsum(starts) - 1]
    later = np.flatnonzero(~starts)
    return numbers[later], first[later], numbers[later - 1]


def _in_range(file: Path, number: int, ranges: int) -> tuple[np.ndarray, np.ndarray]:
    # In Python's integers: the end of the last range, 2^64, is beyond uint64.
    low, high = (number << 64) // ranges, ((number + 1 << 64) // ranges) - 1
    hashes, numbers, start = [], [], 0
    for block in _stored(file):
        inside = np.flatnonzero((block >= np.uint64(low)) & (block <= np.uint64(high)))
        hashes.append(block[inside])
        numbers.append(inside + start)
        start += len(block)
    return np.concatenate(hashes), np.concatenate(numbers)


def _stored(file: Path) -> Iterator[np.ndarray]:
    with open(file, 'rb') as stored:
        while len(block := np.fromfile(stored, np.uint64, HASHES_PER_READ)):
            yield block


def _mark(
    near: np.ndarray,
    documents: _Documents,
    later: np.ndarray,
    first: np.ndarray,
    previous: np.ndarray,
    threshold: float,
) -> None:
    """Mark each `later` document that is near the `first` or the `previous` one of its group."""
    for other in (first, previous):
        # Where both are the same document, the first turn has compared it.
        open_pairs = np.flatnonzero(~near[later] & ((other is first) | (previous != first)))
        open_pairs = open_pairs[np.argsort(later[open_pairs])]  # neighbours lie in one part
        for start in range(0, len(open_pairs), ROWS_PER_READ):
            pairs = open_pairs[start : start + ROWS_PER_READ]
            equal = documents.signatures(later[pairs]) == documents.signatures(other[pairs])
            near[later[pairs[equal.sum(1) / HASHES >= threshold]]] = True


def _clear(folder: Path) -> None:
    for path in folder.glob(TEMPORARY.format('*')):
        path.unlink()
