"""Rows: every document tokenised once and packed, whole, into rows of fixed width.

Legend: R rows, L pieces a row, G segments a row.

A row holds documents (or parts of long ones, or pairs of texts: layouts.py), each between two special tokens, best-fit
within fixed blocks of documents, so that the rows are the same for any number of workers. Held-out rows hold one each,
or the two of texts apart, which lie side by side in any row.
"""

import copy
import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bioptimus_jax.corpus.documents import Document, DocumentSource, document_key, open_documents
from bioptimus_jax.errors import InputError
from bioptimus_jax.hosts.workers import open_workers, ranges
from bioptimus_jax.progress.console import numbered
from bioptimus_jax.records.counts import RowCountsOfSplits, RowsFile, SplitRows
from bioptimus_jax.rows.config import HasRows
from bioptimus_jax.rows.config import Rows as RowSettings
from bioptimus_jax.rows.layouts import fitting, layout_of, make_pairs
from bioptimus_jax.rows.packing import best_fit
from bioptimus_jax.rows.words import WORD_RULES, starts_of, white_space_starts
from bioptimus_jax.run.folder import Run
from bioptimus_jax.storage.files import atomic, read_json, write_json
from bioptimus_jax.text.splitting import split_sentences
from bioptimus_jax.tokenizer.quoted import quotation_note
from bioptimus_jax.tokenizer.subwords import Subwords
from bioptimus_jax.tokenizer.subwords import load as load_subwords

ENCODE_DOCUMENTS = 250  # encodings of larger batches are heavy
Block: TypeAlias = dict[str, np.ndarray]
"""Rows as arrays by name, R first: some or all of FIELDS and MORE."""
DocumentBatches: TypeAlias = Iterable[Sequence[Document]]
PartsAndCounts: TypeAlias = tuple[list['PackedSegment'], Counter[str]]
"""Parts, and what was counted."""
_documents: DocumentSource  # of this process: see _prepare
_subwords: Subwords


class Tokenised(NamedTuple):
    """A document in pieces: ids, where white-space words start and, where a token does not say so, `rows.words`.

    `bounds`: 0, and where each sentence or line ends, for layouts that ask for them.
    """

    key: int
    tokens: np.ndarray
    word_starts: np.ndarray
    tokenizer_word_starts: np.ndarray | None
    bounds: list[int]


@dataclasses.dataclass(frozen=True)
class PackedSegment:
    """A document, a part of a long one or a pair, with the special tokens at its ends.

    For a pair `first` counts the pieces of the first text with [CLS] and [SEP], and `label` is UNLABELLED, FOLLOWS or
    RANDOM.
    """

    tokens: np.ndarray
    word_starts: np.ndarray
    document: int
    tokenizer_word_starts: np.ndarray | None = None
    first: int | None = None
    label: int = 0


class Rows:
    """Memory-mapped rows of one split, read by row numbers."""

    def __init__(self, folder: Path, split: str):
        found = read_json(folder / split / 'rows.json')
        if found is None:
            raise InputError(f'{folder / split}: holds no rows; run `bioptimus rows` first')
        facts = RowsFile.read(found, str(folder / split / 'rows.json'))
        self.pieces, self.segments, self.counts = facts.row_pieces, facts.segments, facts.counts
        self.fields = (*FIELDS, *(name for name in MORE if getattr(facts, name)))
        self.shards = [
            {
                name: np.load(folder / split / f'{name}-{number:05d}.npy', mmap_mode='r', allow_pickle=False)
                for name in self.fields
            }
            for number in range(facts.shards)
        ]
        lengths = [len(shard['tokens']) for shard in self.shards]
        if sum(lengths) != self.counts.rows:
            raise InputError(f'{folder / split}: {sum(lengths)} rows, but rows.json says {self.counts.rows}')
        self.ends, self.parts = np.cumsum(lengths), [self]

    def concatenated(self, others: Sequence['Rows']) -> 'Rows':
        """The rows, and behind them those of other corpora, numbered through."""
        together = copy.copy(self)
        together.parts = [self, *others]
        together.shards = [shard for part in together.parts for shard in part.shards]
        together.ends = np.cumsum([len(shard['tokens']) for shard in together.shards])
        together.segments = max(part.segments for part in together.parts)
        return together

    def __len__(self) -> int:
        return sum(part.counts.rows for part in self.parts)

    def read(self, numbers_B: np.ndarray) -> Block:
        """The rows of those numbers: tokens [B, L] int32, word_starts [B, L] bool, segment_lengths [B, G] int32,
        documents [B, G].

        There is cuts [B, L] bool where a token does not say whether a word of the tokenizer begins, and for pairs there
        are first_lengths and labels, int32 [B, G].
        """
        shard_B = np.searchsorted(self.ends, numbers_B, side='right')
        batch = len(numbers_B)
        found = {'tokens': np.empty((batch, self.pieces), np.int32)}
        for name in self.fields[1:]:
            width, kind = ((self.pieces + 7) // 8, np.uint8) if name in BITS else (self.segments, np.int32)
            found[name] = np.zeros((batch, width), np.uint64 if name == 'documents' else kind)
        for shard in np.unique(shard_B):
            here = np.flatnonzero(shard_B == shard)
            local = numbers_B[here] - (self.ends[shard - 1] if shard else 0)
            for name, array in self.shards[shard].items():
                found[name][here, : array.shape[1]] = array[local]  # a shard is as wide as its fullest row
        return _unpacked(found, self.pieces)


TOKENIZER_WORD_STARTS, FIRSTS, LABELS = 'cuts', 'first_lengths', 'labels'
FIELDS = ('tokens', 'word_starts', 'segment_lengths', 'documents')
MORE = (TOKENIZER_WORD_STARTS, FIRSTS, LABELS)  # arrays that not all rows have
ARRAY_TYPES = {
    'tokens': np.uint32,
    'word_starts': bool,
    TOKENIZER_WORD_STARTS: bool,
    'documents': np.uint64,
    LABELS: np.uint8,
}
BITS = ('word_starts', TOKENIZER_WORD_STARTS)
WIDE = ('tokens', *BITS)  # a column a piece; others have one a segment
PAIRS, RANDOM_PAIRS, QUOTED = 'pairs', 'random_pairs', 'special_tokens_quoted'  # as counted
UNLABELLED, FOLLOWS, RANDOM = range(3)  # labels of a pair; UNLABELLED: its layout draws no random pairs


def _unpacked(block: Block, width: int) -> Block:
    bits = {n: np.unpackbits(block[n], axis=1, count=width).astype(bool) for n in BITS if n in block}
    return block | bits


def build(run: Run[HasRows], folder: Path) -> dict[str, Any]:
    """Stage `rows`: tokenise and pack the training split; one document a row for the held-out split."""
    settings, counts = run.config.rows, dict[str, SplitRows]()
    for split in ('train', 'heldout'):
        pack = split == 'train'
        documents = open_documents(run.folder('corpus'), split)
        (folder / split).mkdir(exist_ok=True)
        writer = _ShardWriter(folder / split, settings, pack)
        progress = run.console.progress(f'rows: {split}', len(documents), 'documents')
        for block, counted in _blocks(run, split, len(documents), pack):
            writer.add(block, counted)
            progress.update(counted['documents'])
        counts[split] = writer.close()
    train, layout = counts['train'], layout_of(settings.layout)
    if layout.apart and not train.rows:
        raise InputError(
            f'{run.folder("corpus")}: no training document has two texts, and config.rows.layout={settings.layout} '
            f'needs them ({layout.meaning}); name the fields of both in config.corpus.text_fields, or take another '
            'layout'
        )
    if not train.rows:
        raise InputError(
            f'{run.folder("corpus")}: no training documents to make rows of; check corpus counts'
        )
    if layout.labelled and train.share_random == 1:
        raise InputError(
            f'{run.folder("corpus")}: no document has two sentences, so the second text of every pair is random and '
            'nothing can be told; set config.rows.layout=documents, and an objective that needs no pairs'
        )
    paired = f', {numbered(train.pairs, "pair")}' if train.pairs is not None else ''
    paired += f', {train.share_random:.1%} of them random' if train.share_random is not None else ''
    quoted = f', {quotation_note(train.special_tokens_quoted)}' if train.special_tokens_quoted else ''
    run.console.say(
        f'rows: {train.rows:,} of {settings.row_pieces} pieces, fill {train.fill:.3f}, '
        f'{numbered(train.documents_cut, "document")} cut, {numbered(train.tokens_dropped, "token")} dropped, '
        f'{train.share_at_384_and_more:.1%} of tokens at positions of 384 and more{paired}{quoted}'
    )
    return RowCountsOfSplits(**counts).json()


def _blocks(
    run: Run[HasRows], split: str, documents: int, pack: bool
) -> Iterator[tuple[Block, Counter[str]]]:
    settings = run.config.rows
    spans = ranges(documents, settings.block_documents)
    arguments = (run.folder('corpus').absolute(), run.folder('vocab').absolute(), split)
    with open_workers(run.config.runtime, len(spans), _prepare, arguments) as workers:
        yield from workers.map(
            _make_block, ((settings, pack, span) for span in spans), run.console.check_stop
        )


def _prepare(corpus: Path, vocab: Path, split: str) -> None:
    """What every block of this process needs, made once."""
    global _documents, _subwords
    _documents, _subwords = open_documents(corpus, split), load_subwords(vocab)


def _make_block(settings: RowSettings, pack: bool, span: tuple[int, int]) -> tuple[Block, Counter[str]]:
    starts = range(*span, ENCODE_DOCUMENTS)
    batches = (_documents.read(at, min(at + ENCODE_DOCUMENTS, span[1])) for at in starts)
    layout, together = layout_of(settings.layout), 1
    if layout.is_random:
        parts, counted = pair_parts(batches, _subwords, settings, span[0])
    elif layout.apart:
        parts, counted = apart_parts(batches, _subwords, settings)
        together = 2
    else:
        parts, counted = document_parts(batches, _subwords, settings.max_document_pieces, settings.words)
    width = settings.row_pieces if pack else settings.max_document_pieces
    units = [range(at, at + together) for at in range(0, len(parts), together)]
    lengths = [sum(len(parts[number].tokens) for number in unit) for unit in units]
    rows = best_fit(lengths, width) if pack else [[number] for number in range(len(units))]
    return lay_out(parts, [[part for unit in row for part in units[unit]] for row in rows], width), counted


def document_parts(
    batches: DocumentBatches, subwords: Subwords, longest: int, words: str = 'tokenizer'
) -> PartsAndCounts:
    """Documents tokenised and cut into parts of at most `longest` pieces, and what was counted."""
    texts = map(subwords.text, range(len(subwords.tokens)))
    sentence_ends = np.array([text in ('.', '?', '!') for text in texts])
    parts: list[PackedSegment] = []
    counted = Counter[str]()
    for document in _tokenised(batches, subwords, counted, words):
        pieces = list(cut_points(document.tokens, document.word_starts, sentence_ends, longest - 2))
        counted['documents_cut'] += len(pieces) > 1
        counted['words'] += int(document.word_starts.sum())
        parts += (_part([(document, *span)], subwords) for span in pieces)
        counted['tokens_dropped'] += len(document.tokens) - sum(end - begin for begin, end in pieces)
    counted['tokens'] = sum(len(p.tokens) for p in parts)
    return parts, counted


def pair_parts(
    batches: DocumentBatches, subwords: Subwords, settings: RowSettings, block: int
) -> PartsAndCounts:
    """Pairs of texts of the documents of a block, which begins at that document, and what was counted.

    Random texts come from the same block. Dropped are pieces that no pair has where they stand in their document.
    """
    counted, parts, layout = Counter[str](), [], layout_of(settings.layout)
    assert layout.is_random
    documents = list(_tokenised(batches, subwords, counted, settings.words, split_sentences))
    # Seeded by the block, not by the process that makes it: the pairs are the same for any number of workers.
    generator = np.random.default_rng((0, block))
    bounds, longest = [document.bounds for document in documents], settings.max_document_pieces
    of_document: Counter[int] = Counter()
    for pair in make_pairs(bounds, longest, settings.short_pairs, layout.is_random, generator):
        texts = [(documents[pair.document], *pair.first), (documents[pair.other], *pair.second)]
        label = UNLABELLED if not layout.labelled else RANDOM if pair.random else FOLLOWS
        parts.append(_part(texts, subwords, label))
        of_document[pair.document] += 1
        counted[RANDOM_PAIRS] += pair.random
        counted['words'] += sum(int(text.word_starts[begin:end].sum()) for text, begin, end in texts)
        kept = texts[:1] if pair.random else texts
        counted['tokens_dropped'] -= sum(end - begin for _, begin, end in kept)
    counted['tokens_dropped'] += sum(len(document.tokens) for document in documents)
    counted['documents_cut'] = sum(pairs > 1 for pairs in of_document.values())
    counted['tokens'], counted[PAIRS] = sum(len(p.tokens) for p in parts), len(parts)
    return parts, counted


def apart_parts(batches: DocumentBatches, subwords: Subwords, settings: RowSettings) -> PartsAndCounts:
    """Texts of documents, each pair one behind the other, and what was counted.

    Dropped are pieces of a document that no text has; cut are documents with such pieces in a pair of theirs.
    """
    counted, parts, layout = Counter[str](), list[PackedSegment](), layout_of(settings.layout)
    assert layout.apart
    for document in _tokenised(batches, subwords, counted, settings.words, layout.cut or split_sentences):
        used = np.zeros(len(document.tokens), bool)
        cut = False
        for pair in layout.apart(document.bounds):
            texts = fitting(settings.max_document_pieces, layout.share, *pair)
            cut |= texts != pair
            counted[PAIRS] += 1
            for begin, end in texts:
                used[begin:end] = True
                counted['words'] += int(document.word_starts[begin:end].sum())
                parts.append(_part([(document, begin, end)], subwords))
        counted['documents_cut'] += cut
        counted['tokens_dropped'] += int((~used).sum())
    counted[PAIRS] += 0  # counted even where there are none
    counted['tokens'] = sum(len(p.tokens) for p in parts)
    return parts, counted


def _tokenised(
    batches: DocumentBatches,
    subwords: Subwords,
    counted: Counter[str],
    words: str,
    cut: Callable[[str], list[str]] | None = None,
) -> Iterator[Tokenised]:
    """Documents that have any pieces, `counted` with those that have none; `cut`: what `bounds` are the ends of."""
    tokens_show_words = WORD_RULES[words].by_tokenizer and not subwords.kind.words_in_rows
    for batch in batches:
        counted['documents'] += len(batch)
        counted[QUOTED] += subwords.quotations(d.text for d in batch)
        encodings = subwords.encode(d.text for d in batch)
        for document, encoding in zip(batch, encodings, strict=True):
            if encoding.ids:
                yield Tokenised(
                    document_key(document.id),
                    np.array(encoding.ids, np.uint32),
                    white_space_starts(document.text, encoding.offsets),
                    None if tokens_show_words else starts_of(words, document.text, encoding),
                    part_bounds(document.text, encoding.offsets, cut) if cut else [],
                )


def part_bounds(
    text: str, offsets: list[tuple[int, int]], cut: Callable[[str], list[str]] = split_sentences
) -> list[int]:
    """0, and where each part of a text ends, in pieces: parts in a row are the pieces of the whole text.

    A part begins with the first piece that ends behind its first character, which may hold the space before it.
    """
    begins, at, plain = [], 0, text.replace('\0', ' ')  # as the splitter reads it
    for part in cut(plain):
        at = max(plain.find(part, at), at)
        begins.append(at)
        at += len(part)
    ended = np.maximum.accumulate(np.array(offsets, np.int64).reshape(-1, 2)[:, 1])
    return sorted({0, len(offsets), *np.searchsorted(ended, begins, side='right').tolist()})


def _part(
    texts: list[tuple[Tokenised, int, int]], subwords: Subwords, label: int | None = None
) -> PackedSegment:
    """Some pieces of a document or, with a label, of two; the second text may be empty."""
    texts = [text for text in texts if text[2] > text[1]]
    document, begin, end = texts[0]

    def closed(name: str, first: Any, behind: Any) -> np.ndarray:
        arrays = ((getattr(text, name)[begin:end], [behind]) for text, begin, end in texts)
        return np.concatenate([[first], *itertools.chain.from_iterable(arrays)])

    tokens, starts = closed('tokens', subwords.cls, subwords.sep), closed('word_starts', True, True)
    cuts = None if document.tokenizer_word_starts is None else closed('tokenizer_word_starts', True, True)
    paired = {} if label is None else {'first': end - begin + 2, 'label': label}
    return PackedSegment(tokens, starts, document.key, cuts, **paired)


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


def lay_out(parts: list[PackedSegment], rows: list[list[int]], width: int) -> Block:
    """The block of those rows, each of the parts by number, `width` pieces wide."""
    count, segments = len(rows), max(map(len, rows), default=1)
    # All parts of a vocabulary and a layout have the same: the first one tells.
    names = list(FIELDS)
    names += [TOKENIZER_WORD_STARTS] if parts and parts[0].tokenizer_word_starts is not None else []
    names += [FIRSTS, LABELS] if parts and parts[0].first is not None else []
    widths = {name: width if name in WIDE else segments for name in names}
    block = {name: np.zeros((count, widths[name]), ARRAY_TYPES.get(name, np.uint16)) for name in names}
    for row, members in enumerate(rows):
        at = 0
        for segment, part in enumerate(parts[member] for member in members):
            length = len(part.tokens)
            of_pieces = part.tokens, part.word_starts, part.tokenizer_word_starts
            of_segment = length, part.document, part.first, part.label
            for name, values in zip(WIDE, of_pieces, strict=True):
                if name in block:
                    block[name][row, at : at + length] = values
            for name, value in zip(('segment_lengths', 'documents', FIRSTS, LABELS), of_segment, strict=True):
                if name in block:
                    block[name][row, segment] = value
            at += length
    return block | {name: np.packbits(block[name], axis=1) for name in BITS if name in block}


def one_a_row(parts: list[PackedSegment], width: int) -> Block:
    """Rows of one part each, as `Rows.read` gives them."""
    block = lay_out(parts, [[number] for number in range(len(parts))], width)
    kinds = {'tokens': np.int32, 'segment_lengths': np.int32}
    return _unpacked({n: array.astype(kinds.get(n, array.dtype)) for n, array in block.items()}, width)


class _ShardWriter:
    """Collects blocks in order and writes shards of fixed size; rows.json, written last, makes them valid."""

    def __init__(self, folder: Path, settings: RowSettings, pack: bool):
        self.folder, self.settings = folder, settings
        self.width = settings.row_pieces if pack else settings.max_document_pieces
        self.waiting: list[Block] = []
        self.shards = self.segments = self.rows = self.beyond_384 = 0
        self.counted = Counter[str]()
        self.fields: tuple[str, ...] = FIELDS

    def add(self, block: Block, counted: Counter[str]) -> None:
        self.waiting.append(block)
        self.counted.update(counted)
        while sum(len(b['tokens']) for b in self.waiting) >= self.settings.shard_rows:
            self._write(self.settings.shard_rows)

    def _write(self, count: int) -> None:
        # `lay_out` asks the first part which arrays there are: a block without parts lacks those of MORE.
        full = [b for b in self.waiting if len(b['tokens'])] or self.waiting[:1]
        segments = max(b['documents'].shape[1] for b in full)
        self.fields = tuple(full[0])
        merged = {
            name: np.concatenate([b[name] if name in WIDE else _widen(b[name], segments) for b in full])
            for name in self.fields
        }
        # Half of the bytes on disk and through the cache. It goes by what is there: each shard has its own type.
        if merged['tokens'].max(initial=0) < 65536:
            merged['tokens'] = merged['tokens'].astype(np.uint16)
        for name in self.fields:
            with atomic(self.folder / f'{name}-{self.shards:05d}.npy', 'wb') as file:
                np.save(file, merged[name][:count])
        self.segments = max(self.segments, segments)
        self.beyond_384 += int(np.maximum(merged['segment_lengths'][:count].astype(int) - 384, 0).sum())
        self.rows += len(merged['tokens'][:count])
        self.shards += 1
        rest = {name: array[count:] for name, array in merged.items()}
        self.waiting = [rest] if len(rest['tokens']) else []

    def close(self) -> SplitRows:
        if self.waiting:
            self._write(sum(len(b['tokens']) for b in self.waiting))
        tokens, pairs = self.counted['tokens'], self.counted[PAIRS]
        names = 'documents', 'documents_cut', 'tokens_dropped', 'words', 'tokens', QUOTED
        paired = PAIRS in self.counted
        counts = SplitRows(
            rows=self.rows,
            **{name: self.counted[name] for name in names},
            fill=round(tokens / max(self.rows * self.width, 1), 4),
            share_at_384_and_more=round(self.beyond_384 / max(tokens, 1), 4),
            pairs=pairs if paired else None,
            share_random=round(self.counted[RANDOM_PAIRS] / max(pairs, 1), 4)
            if RANDOM_PAIRS in self.counted
            else None,
        )
        facts = RowsFile(
            row_pieces=self.width,
            segments=max(self.segments, 1),
            shards=self.shards,
            counts=counts,
            **{name: name in self.fields or None for name in MORE},
        )
        write_json(self.folder / 'rows.json', facts.json())
        return counts


def _widen(array_RxG: np.ndarray, segments: int) -> np.ndarray:
    return np.pad(array_RxG, ((0, 0), (0, segments - array_RxG.shape[1])))


def positions_and_segments(segment_lengths_BxG: Any, pieces: int, xp: Any = np) -> tuple[Any, Any]:
    """Positions [B, L] (from 0 in every document) and segments [B, L] (1, 2, ...; 0 is padding) of packed rows."""
    ends_BxG = xp.cumsum(segment_lengths_BxG, axis=1)
    index_L = xp.arange(pieces)
    # Segments that a row does not use end where its last one does: only padding is beyond them.
    over_BxLxG = index_L[None, :, None] >= ends_BxG[:, None, :]
    number_BxL = over_BxLxG.sum(axis=-1)
    real_BxL = index_L[None, :] < ends_BxG[:, -1:]
    begin_BxL = xp.max(xp.where(over_BxLxG, ends_BxG[:, None, :], 0), axis=-1)
    positions_BxL = xp.where(real_BxL, index_L[None, :] - begin_BxL, 0)
    return positions_BxL, xp.where(real_BxL, number_BxL + 1, 0)


class RowPairs(NamedTuple):
    """What rows of pairs have: the token type of every piece, and where every pair begins and its label."""

    types_BxL: Any
    begins_BxG: Any
    labels_BxG: Any

    @classmethod
    def of(
        cls, batch: Mapping[str, Any], positions_BxL: Any, segments_BxL: Any, xp: Any = np
    ) -> 'RowPairs | None':
        """The pairs of a batch as `Rows.read` gives it; None for rows without pairs."""
        if FIRSTS not in batch:
            return None
        lengths_BxG, last = batch['segment_lengths'], positions_BxL.shape[1] - 1
        first_BxL = xp.take_along_axis(batch[FIRSTS], xp.maximum(segments_BxL - 1, 0), axis=1)
        types_BxL = (segments_BxL > 0) & (positions_BxL >= first_BxL)
        begins_BxG = xp.minimum(xp.cumsum(lengths_BxG, axis=1) - lengths_BxG, last)  # some hold nothing
        return cls(types_BxL.astype(np.int32), begins_BxG, batch[LABELS])
