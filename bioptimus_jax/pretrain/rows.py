"""Rows: every document tokenised once and packed, whole, into rows of fixed width.

Legend: R rows, L pieces a row, G segments a row.

A row holds documents (or parts of long ones), each between two special tokens, best-fit within fixed
blocks of documents, so that the rows are the same for any number of workers. Held-out rows hold one document each.
"""

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bioptimus_jax.corpus.documents import Document, DocumentSource, document_key, open_documents
from bioptimus_jax.errors import InputError
from bioptimus_jax.files import atomic, read_json, write_json
from bioptimus_jax.hosts.workers import open_workers, ranges
from bioptimus_jax.packing import best_fit
from bioptimus_jax.run import Run
from bioptimus_jax.schema import Rows as RowSettings
from bioptimus_jax.vocab.subwords import Subwords
from bioptimus_jax.vocab.subwords import load as load_subwords

ENCODE_DOCUMENTS = 250  # encodings of larger batches are heavy
_documents: DocumentSource  # of this process: see _prepare
_subwords: Subwords


@dataclasses.dataclass(frozen=True)
class Block:
    """Rows as arrays: tokens, whether a white-space word starts at a piece, segment lengths, document keys.

    `cuts_RxL`: whether a word of the tokenizer starts at a piece, where a token alone does not say so; else no columns.
    """

    tokens_RxL: np.ndarray
    word_starts_RxL: np.ndarray
    segment_lengths_RxG: np.ndarray
    documents_RxG: np.ndarray
    cuts_RxL: np.ndarray


@dataclasses.dataclass(frozen=True)
class Part:
    """A document, or a part of a long one, with the special tokens at its ends."""

    tokens: np.ndarray
    word_starts: np.ndarray
    document: int
    cuts: np.ndarray | None = None


class Rows:
    """Memory-mapped rows of one split, read by row numbers."""

    def __init__(self, folder: Path, split: str):
        facts = read_json(folder / split / 'rows.json')
        if facts is None:
            raise InputError(f'{folder / split}: holds no rows; run `bioptimus rows` first')
        self.pieces, self.segments = facts['row_pieces'], facts['segments']
        self.counts: dict[str, Any] = facts['counts']
        self.fields = FIELDS[: None if facts.get(CUTS) else -1]
        self.shards = [
            {
                name: np.load(folder / split / f'{name}-{number:05d}.npy', mmap_mode='r', allow_pickle=False)
                for name in self.fields
            }
            for number in range(facts['shards'])
        ]
        lengths = [len(shard['tokens']) for shard in self.shards]
        if sum(lengths) != self.counts['rows']:
            raise InputError(
                f'{folder / split}: {sum(lengths)} rows, but rows.json says {self.counts["rows"]}'
            )
        self.ends, self.parts = np.cumsum(lengths), [self]

    def followed_by(self, others: Sequence['Rows']) -> 'Rows':
        """These rows, and behind them those of other corpora, numbered through."""
        together = copy.copy(self)
        together.parts = [self, *others]
        together.shards = [shard for part in together.parts for shard in part.shards]
        together.ends = np.cumsum([len(shard['tokens']) for shard in together.shards])
        together.segments = max(part.segments for part in together.parts)
        return together

    def __len__(self) -> int:
        return sum(part.counts['rows'] for part in self.parts)

    def read(self, numbers_B: np.ndarray) -> dict[str, np.ndarray]:
        """Those rows: tokens [B, L] int32, word_starts [B, L] bool, segment_lengths [B, G] int32, documents [B, G].

        And cuts [B, L] bool, where a token does not say whether a word of the tokenizer begins.
        """
        shard_B = np.searchsorted(self.ends, numbers_B, side='right')
        batch = len(numbers_B)
        tokens = np.empty((batch, self.pieces), np.int32)
        bits = {
            name: np.empty((batch, (self.pieces + 7) // 8), np.uint8) for name in BITS if name in self.fields
        }
        lengths = np.zeros((batch, self.segments), np.int32)
        documents = np.zeros((batch, self.segments), np.uint64)
        for shard in np.unique(shard_B):
            here = np.flatnonzero(shard_B == shard)
            local = numbers_B[here] - (self.ends[shard - 1] if shard else 0)
            arrays = self.shards[shard]
            width = arrays['segment_lengths'].shape[1]
            tokens[here] = arrays['tokens'][local]
            for name, packed in bits.items():
                packed[here] = arrays[name][local]
            lengths[here, :width] = arrays['segment_lengths'][local]
            documents[here, :width] = arrays['documents'][local]
        unpacked = _unpacked(bits, self.pieces)
        return {'tokens': tokens, **unpacked, 'segment_lengths': lengths, 'documents': documents}


CUTS = 'cuts'
FIELDS = ('tokens', 'word_starts', 'segment_lengths', 'documents', CUTS)
BITS = ('word_starts', CUTS)


def _unpacked(bits: dict[str, np.ndarray], width: int) -> dict[str, np.ndarray]:
    return {name: np.unpackbits(packed, axis=1, count=width).astype(bool) for name, packed in bits.items()}


def build(run: Run, folder: Path) -> dict[str, Any]:
    """Stage `rows`: tokenise and pack the training split; one document a row for the held-out split."""
    settings, counts = run.config.rows, {}
    for split in ('train', 'heldout'):
        pack = split == 'train'
        documents = open_documents(run.folder('corpus'), split)
        (folder / split).mkdir(exist_ok=True)
        writer = _ShardWriter(folder / split, settings, pack)
        progress = run.progress(f'rows: {split}', len(documents), 'documents')
        for block, counted in _blocks(run, split, len(documents), pack):
            writer.add(block, counted)
            progress.update(counted['documents'])
        counts[split] = writer.close()
    train = counts['train']
    if not train['rows']:
        raise InputError(
            f'{run.folder("corpus")}: no training documents to make rows of; check corpus counts'
        )
    run.say(
        f'rows: {train["rows"]:,} of {settings.row_pieces} pieces, fill {train["fill"]:.3f}, '
        f'{train["documents_cut"]:,} documents cut, {train["tokens_dropped"]} tokens dropped, '
        f'{train["share_at_384_and_more"]:.1%} of tokens at positions of 384 and more'
    )
    return counts


def _blocks(run: Run, split: str, documents: int, pack: bool) -> Iterator[tuple[Block, dict[str, int]]]:
    settings = run.config.rows
    spans = ranges(documents, settings.block_documents)
    arguments = (run.folder('corpus').absolute(), run.folder('vocab').absolute(), split)
    with open_workers(run.config.runtime, len(spans), _prepare, arguments) as workers:
        yield from workers.map(_make_block, ((settings, pack, span) for span in spans), run.check_stop)


def _prepare(corpus: Path, vocab: Path, split: str) -> None:
    """What every block of this process needs, made once."""
    global _documents, _subwords
    _documents, _subwords = open_documents(corpus, split), load_subwords(vocab)


def _make_block(settings: RowSettings, pack: bool, span: tuple[int, int]) -> tuple[Block, dict[str, int]]:
    starts = range(*span, ENCODE_DOCUMENTS)
    batches = (_documents.read(at, min(at + ENCODE_DOCUMENTS, span[1])) for at in starts)
    parts, counted = document_parts(batches, _subwords, settings.max_document_pieces)
    width = settings.row_pieces if pack else settings.max_document_pieces
    rows = best_fit([len(p.tokens) for p in parts], width) if pack else [[i] for i in range(len(parts))]
    return lay_out(parts, rows, width), counted


def document_parts(
    batches: Iterable[Sequence[Document]], subwords: Subwords, longest: int
) -> tuple[list[Part], dict[str, int]]:
    """Documents tokenised and cut into parts of at most `longest` pieces, and what was counted."""
    sentence_ends = np.array(
        [subwords.text(number) in ('.', '?', '!') for number in range(len(subwords.tokens))]
    )
    parts: list[Part] = []
    counted = dict.fromkeys(('documents', 'documents_cut', 'tokens_dropped', 'words', 'tokens'), 0)
    for batch in batches:
        counted['documents'] += len(batch)
        encodings = subwords.encode(d.text for d in batch)
        for document, encoding in zip(batch, encodings, strict=True):
            tokens = np.array(encoding.ids, np.uint32)
            if not len(tokens):
                continue
            starts = white_space_starts(document.text, encoding.offsets)
            cuts = word_cuts(encoding.word_ids) if subwords.kind.words_in_rows else None
            pieces = list(cut_points(tokens, starts, sentence_ends, longest - 2))
            counted['documents_cut'] += len(pieces) > 1
            counted['words'] += int(starts.sum())
            key = document_key(document.id)
            for begin, end in pieces:
                ids = np.concatenate([[subwords.cls], tokens[begin:end], [subwords.sep]])
                parts.append(Part(ids, _closed(starts, begin, end), key, _closed(cuts, begin, end)))
            counted['tokens_dropped'] += len(tokens) - sum(end - begin for begin, end in pieces)
    counted['tokens'] = sum(len(p.tokens) for p in parts)
    return parts, counted


def white_space_starts(text: str, offsets: list[tuple[int, int]]) -> np.ndarray:
    """True where a piece is the first of a white-space word."""
    spans = np.array(offsets, np.int64).reshape(-1, 2)
    is_space = np.array([character.isspace() for character in text], bool)
    # A piece may hold the space before its word: its word begins at the next character that is none.
    numbers = np.where(is_space, len(text), np.arange(len(text)))
    next_letter = np.append(np.minimum.accumulate(numbers[::-1])[::-1], len(text))
    # Spaces before each character; decomposed text can give a piece that begins before its neighbour ended.
    spaces = np.concatenate([[0], np.cumsum(is_space)])
    ended = np.maximum.accumulate(spans[:, 1])
    starts = np.ones(len(spans), bool)
    starts[1:] = spaces[np.maximum(next_letter[spans[1:, 0]], ended[:-1])] > spaces[ended[:-1]]
    return starts


def word_cuts(words: Sequence[int | None]) -> np.ndarray:
    """True where a piece is the first of its word; `words`: the number of the word of each, by the tokenizer's cut."""
    numbers = np.array(words)
    return np.append(True, numbers[1:] != numbers[:-1])


def _closed(starts: Any, begin: int, end: int) -> Any:
    """The starts of a part, with the special tokens at its ends."""
    return None if starts is None else np.concatenate([[True], starts[begin:end], [True]])


def cut_points(
    tokens: np.ndarray, starts: np.ndarray, sentence_ends_V: np.ndarray, limit: int
) -> Iterator[tuple[int, int]]:
    """Spans of at most `limit` pieces: cut after a sentence end in the last half, else before a word, else hard."""
    begin = 0
    while len(tokens) - begin > limit:
        window = np.arange(begin + 1, begin + limit + 1)
        at_word = starts[window]
        at_sentence = at_word & sentence_ends_V[tokens[window - 1]] & (window > begin + limit // 2)
        candidates = window[at_sentence] if at_sentence.any() else window[at_word]
        end = int(candidates[-1]) if len(candidates) else begin + limit
        yield begin, end
        begin = end
    yield begin, len(tokens)


def lay_out(parts: list[Part], rows: list[list[int]], width: int) -> Block:
    """The block of those rows, each of the parts by number, `width` pieces wide."""
    count, segments = len(rows), max(map(len, rows), default=1)
    tokens = np.zeros((count, width), np.uint32)
    starts, cuts = np.zeros((count, width), bool), np.zeros((count, width), bool)
    lengths = np.zeros((count, segments), np.uint16)
    documents = np.zeros((count, segments), np.uint64)
    for row, members in enumerate(rows):
        at = 0
        for segment, member in enumerate(members):
            part = parts[member]
            end = at + len(part.tokens)
            tokens[row, at:end], starts[row, at:end] = part.tokens, part.word_starts
            if part.cuts is not None:
                cuts[row, at:end] = part.cuts
            lengths[row, segment], documents[row, segment] = len(part.tokens), part.document
            at = end
    told = any(part.cuts is not None for part in parts)
    packed = np.packbits(starts, axis=1), np.packbits(cuts if told else cuts[:, :0], axis=1)
    return Block(tokens, packed[0], lengths, documents, packed[1])


def one_a_row(parts: list[Part], width: int) -> dict[str, np.ndarray]:
    """Rows of one part each, as `Rows.read` gives them."""
    block = lay_out(parts, [[number] for number in range(len(parts))], width)
    return {
        'tokens': block.tokens_RxL.astype(np.int32),
        'segment_lengths': block.segment_lengths_RxG.astype(np.int32),
        'documents': block.documents_RxG,
        **_unpacked({'word_starts': block.word_starts_RxL}, width),
        **(_unpacked({CUTS: block.cuts_RxL}, width) if block.cuts_RxL.shape[1] else {}),
    }


class _ShardWriter:
    """Collects blocks in order and writes shards of fixed size; rows.json, written last, makes them valid."""

    def __init__(self, folder: Path, settings: RowSettings, pack: bool):
        self.folder, self.settings = folder, settings
        self.width = settings.row_pieces if pack else settings.max_document_pieces
        self.waiting: list[Block] = []
        self.shards = self.segments = self.rows = self.beyond_384 = 0
        self.counted: dict[str, int] = {}
        self.fields: tuple[str, ...] = FIELDS[:-1]

    def add(self, block: Block, counted: dict[str, int]) -> None:
        self.waiting.append(block)
        for name, value in counted.items():
            self.counted[name] = self.counted.get(name, 0) + value
        while sum(len(b.tokens_RxL) for b in self.waiting) >= self.settings.shard_rows:
            self._write(self.settings.shard_rows)

    def _write(self, count: int) -> None:
        segments = max(b.documents_RxG.shape[1] for b in self.waiting)
        full = [b for b in self.waiting if len(b.cuts_RxL)]
        merged = {
            'tokens': np.concatenate([b.tokens_RxL for b in self.waiting]),
            'word_starts': np.concatenate([b.word_starts_RxL for b in self.waiting]),
            'segment_lengths': np.concatenate(
                [_widen(b.segment_lengths_RxG, segments) for b in self.waiting]
            ),
            'documents': np.concatenate([_widen(b.documents_RxG, segments) for b in self.waiting]),
            CUTS: np.concatenate([b.cuts_RxL for b in full] or [self.waiting[0].cuts_RxL]),
        }
        self.fields = FIELDS[: None if merged[CUTS].shape[1] else -1]
        if merged['tokens'].max(initial=0) < 65536:
            merged['tokens'] = merged['tokens'].astype(np.uint16)
        for name in self.fields:
            with atomic(self.folder / f'{name}-{self.shards:05d}.npy', 'wb') as file:
                np.save(file, merged[name][:count])
        self.segments = max(self.segments, segments)
        self.beyond_384 += int(np.maximum(merged['segment_lengths'][:count].astype(int) - 384, 0).sum())
        self.rows += len(merged['tokens'][:count])
        self.shards += 1
        rest = Block(*(merged[name][count:] for name in FIELDS))
        self.waiting = [rest] if len(rest.tokens_RxL) else []

    def close(self) -> dict[str, Any]:
        if self.waiting:
            self._write(sum(len(b.tokens_RxL) for b in self.waiting))
        tokens = self.counted.get('tokens', 0)
        counts = {
            'rows': self.rows,
            **{
                n: self.counted.get(n, 0)
                for n in ('documents', 'documents_cut', 'tokens_dropped', 'words', 'tokens')
            },
            'fill': round(tokens / max(self.rows * self.width, 1), 4),
            'share_at_384_and_more': round(self.beyond_384 / max(tokens, 1), 4),
        }
        facts = {
            'row_pieces': self.width,
            'segments': max(self.segments, 1),
            'shards': self.shards,
            'counts': counts,
            **({CUTS: True} if CUTS in self.fields else {}),
        }
        write_json(self.folder / 'rows.json', facts)
        return counts


def _widen(array_RxG: np.ndarray, segments: int) -> np.ndarray:
    return np.pad(array_RxG, ((0, 0), (0, segments - array_RxG.shape[1])))


def positions_and_segments(segment_lengths_BxG: Any, pieces: int, xp: Any = np) -> tuple[Any, Any]:
    """Positions [B, L] (from 0 in every document) and segments [B, L] (1, 2, ...; 0 is padding) of packed rows."""
    ends_BxG = xp.cumsum(segment_lengths_BxG, axis=1)
    index_L = xp.arange(pieces)
    over_BxLxG = index_L[None, :, None] >= ends_BxG[:, None, :]
    number_BxL = over_BxLxG.sum(axis=-1)
    real_BxL = index_L[None, :] < ends_BxG[:, -1:]
    begin_BxL = xp.max(xp.where(over_BxLxG, ends_BxG[:, None, :], 0), axis=-1)
    positions_BxL = xp.where(real_BxL, index_L[None, :] - begin_BxL, 0)
    return positions_BxL, xp.where(real_BxL, number_BxL + 1, 0)
